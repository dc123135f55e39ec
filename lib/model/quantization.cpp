#include "model/quantization.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): pcre2.h asks for it
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace kernelpath::model {
namespace {

constexpr std::int64_t kDefaultBlock = 128;
constexpr std::string_view kRegex = "re:";
// compressed-tensors' target for all modules that no other target names.
constexpr std::string_view kEveryLinear = "Linear";

// '*' stands for any characters.
bool wildcard_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Steps of one pattern on one name; patterns of checkpoints need some hundreds.
constexpr std::uint32_t kMostSteps = 100'000;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// From the start of the name on, as Python's re.match. A pattern that cannot be read, or that takes
// too many steps, matches nothing.
bool regex_matches(std::string_view pattern, std::string_view module) {
  int error = 0;
  PCRE2_SIZE at = 0;
  const std::unique_ptr<pcre2_code, FreeCode> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_ANCHORED,
                    &error, &at, nullptr));
  if (code == nullptr) return false;
  const std::unique_ptr<pcre2_match_data, FreeMatch> found(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  const std::unique_ptr<pcre2_match_context, FreeContext> limits(
      pcre2_match_context_create(nullptr));
  if (found == nullptr || limits == nullptr) return false;
  pcre2_set_match_limit(limits.get(), kMostSteps);
  return pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0,
                     found.get(), limits.get()) >= 0;
}

// "a.b" inside "x.a.b.y", at the dots.
bool is_part_of(std::string_view words, std::string_view module) {
  const std::string inside = fmt::format(".{}.", module);
  return inside.find(fmt::format(".{}.", words)) != std::string::npos;
}

Result<Scheme> scheme_named(const config::Quantization& q, const std::string& algorithm) {
  const bool modelopt = q.method && q.method.value_or("").starts_with("modelopt");
  if (algorithm == "FP8_BLOCK_SCALES") {
    Scheme scheme{SchemeKind::kFp8Block, kDefaultBlock, kDefaultBlock};
    if (q.weight_block_size.size() == 2) {
      scheme.block_rows = q.weight_block_size[0];
      scheme.block_cols = q.weight_block_size[1];
    }
    // A vector of 16 columns must not cross blocks.
    if (scheme.block_rows > 0 && scheme.block_cols > 0 && scheme.block_cols % 16 == 0) {
      return scheme;
    }
    return fail(Error{.code = ErrorCode::kUnavailable,
                      .message = "no kernel for blocks of this size; columns must be a multiple "
                                 "of 16",
                      .where = "/quantization_config/weight_block_size",
                      .value = fmt::format("{}x{}", scheme.block_rows, scheme.block_cols)});
  }
  if (algorithm == "FP8_PER_CHANNEL_PER_TOKEN") return Scheme{SchemeKind::kFp8Channel};
  if (algorithm == "FP8") return Scheme{SchemeKind::kFp8Tensor};
  if (algorithm == "NVFP4" || algorithm == "W4A16_NVFP4") {
    return Scheme{modelopt ? SchemeKind::kNvfp4Scale2 : SchemeKind::kNvfp4};
  }
  if (algorithm == "W4A16_MXFP4" && q.method.value_or("") == "mxfp4") {
    return Scheme{SchemeKind::kMxfp4};
  }
  return fail(
      Error{.code = ErrorCode::kUnavailable,
            .message = "no kernel reads weights of this quantisation; there are fp8 (per "
                       "block, channel or tensor), nvfp4 and mxfp4",
            .where = q.algo.origin.where.empty() ? "/quantization_config" : q.algo.origin.where,
            .value = algorithm,
            .hint = "use a checkpoint in bf16, fp8 or nvfp4, or a GGUF file"});
}

}  // namespace

bool module_matches(std::string_view pattern, std::string_view module) {
  if (pattern.starts_with(kRegex)) return regex_matches(pattern.substr(kRegex.size()), module);
  if (pattern.find('*') == std::string_view::npos) return is_part_of(pattern, module);
  return wildcard_matches(pattern, module) ||
         wildcard_matches(fmt::format("{}.*", pattern), module);
}

Result<QuantizationPlan> QuantizationPlan::make(const config::Quantization& quantization) {
  QuantizationPlan plan;
  if (!quantization.any()) return plan;
  plan.excluded_ = quantization.exclude_modules;
  const std::string algorithm = quantization.algo.value_or(quantization.method.value_or(""));
  if (algorithm != "MIXED_PRECISION") {
    KERNELPATH_TRY(scheme, scheme_named(quantization, algorithm));
    plan.common_ = scheme;
  }
  for (const auto& [module, own] : quantization.layer_algos) {
    KERNELPATH_TRY(scheme, scheme_named(quantization, own));
    if (module == kEveryLinear) {
      plan.common_ = scheme;
    } else {
      plan.own_.emplace_back(module, scheme);
    }
  }
  return plan;
}

bool QuantizationPlan::excluded(std::string_view module) const {
  return std::ranges::any_of(
      excluded_, [&](const std::string& pattern) { return module_matches(pattern, module); });
}

Scheme QuantizationPlan::scheme_of(std::string_view module) const {
  if (excluded(module)) return {};
  for (const auto& [name, scheme] : own_) {
    const bool regex = name.starts_with(kRegex);
    if (regex ? module_matches(name, module) : name == module) return scheme;
  }
  // mxfp4 files hold experts that way and nothing else.
  return common_.kind == SchemeKind::kMxfp4 ? Scheme{} : common_;
}

Scheme QuantizationPlan::stacked_scheme_of(std::string_view module) const {
  const bool quantised = common_.kind == SchemeKind::kMxfp4 && !excluded(module);
  return quantised ? common_ : Scheme{};
}

}  // namespace kernelpath::model
