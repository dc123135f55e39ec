#include "tokenizer/regex.h"

#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/pattern_dialect.h"

#include <algorithm>
#include <array>
#include <utility>

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): pcre2.h asks for it
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace kernelpath::tokenizer {
namespace {

// Patterns of published tokenizers are some hundred bytes long.
constexpr std::size_t kMaxPatternBytes = 65536;
// Steps that each match may take, and those beyond that a whole text may take, about a second's: a
// pattern that backtracks without end is refused, and one that does so a little at every place,
// too.
constexpr std::size_t kStepsOfAMatch = 2000;
constexpr std::size_t kStepsOfAText = 100'000'000;
constexpr std::size_t kHeapLimitKib = 65536;
constexpr std::size_t kJitStackBytes = std::size_t{4} << 20;

std::string pcre_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  if (pcre2_get_error_message(code, buffer.data(), buffer.size()) < 0) return "unknown error";
  return {reinterpret_cast<const char*>(buffer.data())};
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct JitStackDeleter {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  bool has_jit = false;

  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return fail({.code = ErrorCode::kInputLimit,
                 .message = "the pattern is longer than 65536 bytes",
                 .value = shorten(pattern, 40)});
  }
  KERNELPATH_TRY(translated, to_pcre(pattern));
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr std::uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context != nullptr) pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                       translated.size(), options, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (compiled == nullptr) {
    return fail({.code = ErrorCode::kConfigValue,
                 .message = "the pattern cannot be used: " + pcre_message(error),
                 .value = shorten(pattern, 80)});
  }
  auto code = std::make_unique<Code>(compiled);
  code->has_jit = pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(code));
}

namespace {

// What one search needs besides the compiled pattern; not shared between threads.
class Search {
 public:
  Search(const pcre2_code* code, bool has_jit, std::string_view text)
      : code_(code),
        has_jit_(has_jit),
        text_(text),
        data_(pcre2_match_data_create_from_pattern(code, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {
    if (context_ != nullptr) pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
  }

  // 1 for a match from `start` on, 0 for none, negative for an error of PCRE2.
  int find(std::size_t start, Match& match) {
    if (data_ == nullptr || context_ == nullptr) return PCRE2_ERROR_NOMEMORY;
    // PCRE2 does not tell how many steps a match took, only that they were not enough.
    int rc = match_within(kStepsOfAMatch, start);
    for (std::size_t steps = 8 * kStepsOfAMatch; rc == PCRE2_ERROR_MATCHLIMIT; steps *= 8) {
      if (steps > budget_) break;
      budget_ -= steps;
      rc = match_within(steps, start);
    }
    if (rc == PCRE2_ERROR_NOMATCH) return 0;
    if (rc < 0) return rc;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data_.get());
    match = {.begin = ends[0], .end = ends[1], .is_match = true};
    return 1;
  }

 private:
  [[nodiscard]] PCRE2_SPTR subject() const {
    return reinterpret_cast<PCRE2_SPTR>(text_.data() == nullptr ? "" : text_.data());
  }

  int match_within(std::size_t steps, std::size_t start) {
    pcre2_set_match_limit(context_.get(),
                          static_cast<std::uint32_t>(std::min<std::size_t>(steps, UINT32_MAX)));
    const int rc = has_jit_ ? jit_match(start) : PCRE2_ERROR_JIT_STACKLIMIT;
    if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
    // The interpreter takes its memory from the heap, which reaches further.
    return pcre2_match(code_, subject(), text_.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       data_.get(), context_.get());
  }

  int jit_match(std::size_t start) {
    const int rc = pcre2_jit_match(code_, subject(), text_.size(), start, PCRE2_NO_UTF_CHECK,
                                   data_.get(), context_.get());
    if (rc != PCRE2_ERROR_JIT_STACKLIMIT || stack_ != nullptr) return rc;
    stack_.reset(pcre2_jit_stack_create(32768, kJitStackBytes, nullptr));
    if (stack_ == nullptr) return rc;
    pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
    return pcre2_jit_match(code_, subject(), text_.size(), start, PCRE2_NO_UTF_CHECK, data_.get(),
                           context_.get());
  }

  const pcre2_code* code_;
  bool has_jit_;
  std::string_view text_;
  std::size_t budget_ = kStepsOfAText + 64 * text_.size();
  std::unique_ptr<pcre2_match_data, MatchDataDeleter> data_;
  std::unique_ptr<pcre2_jit_stack, JitStackDeleter> stack_;
  std::unique_ptr<pcre2_match_context, MatchContextDeleter> context_;
};

Unexpected search_failed(int rc) {
  const bool is_limit = rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT ||
                        rc == PCRE2_ERROR_DEPTHLIMIT || rc == PCRE2_ERROR_JIT_STACKLIMIT;
  if (is_limit) {
    return fail(
        {.code = ErrorCode::kInputLimit,
         .message = "the tokenizer's pattern takes too many steps on this text",
         .hint = "the pattern backtracks without end; use the tokenizer of another source"});
  }
  return fail({.code = ErrorCode::kRuntime,
               .message = "the pattern could not be searched for: " + pcre_message(rc)});
}

}  // namespace

Result<void> Regex::find_all(std::string_view text, std::vector<Match>& out) const {
  Search search(code_->code, code_->has_jit, text);
  std::size_t previous_end = 0;
  bool had_match = false;
  for (std::size_t start = 0; start <= text.size();) {
    Match match;
    const int found = search.find(start, match);
    if (found < 0) return search_failed(found);
    if (found == 0) break;
    // \K and look-behinds may place a match before the end of the last one.
    match.end = std::max(match.end, previous_end);
    match.begin = std::clamp(match.begin, previous_end, match.end);
    // An empty match right behind another match is none; look on one character further.
    if (match.begin == match.end && had_match && previous_end == match.end) {
      start += start < text.size()
                   ? std::max<std::size_t>(decode_utf8(text.substr(start)).length, 1)
                   : 1;
      continue;
    }
    if (match.begin != previous_end) out.push_back({previous_end, match.begin, false});
    out.push_back(match);
    had_match = true;
    previous_end = match.end;
    start = match.end;
  }
  if (previous_end != text.size()) out.push_back({previous_end, text.size(), false});
  return {};
}

}  // namespace kernelpath::tokenizer
