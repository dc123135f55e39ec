#include "runtime/request.h"

#include "base/text.h"
#include "json/document.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace kernelpath::runtime {
namespace {

constexpr std::array<std::string_view, 16> kFields = {"id",
                                                      "prompt",
                                                      "prompt_ids",
                                                      "messages",
                                                      "max_tokens",
                                                      "ignore_eos",
                                                      "temperature",
                                                      "top_k",
                                                      "top_p",
                                                      "min_p",
                                                      "repetition_penalty",
                                                      "presence_penalty",
                                                      "frequency_penalty",
                                                      "seed",
                                                      "stop",
                                                      "logprobs"};

// Reads the fields of one line into a request; keeps the place for errors.
class LineReader {
 public:
  LineReader(const json::Document& document, std::int64_t line_number)
      : document_(document), line_number_(line_number) {}

  Result<void> read(GenerationRequest& out) const {
    for (const json::Member& member : document_.root.members()) {
      KERNELPATH_CHECK_OK(read_field(member, out));
    }
    const int prompts = (out.prompt.has_value() ? 1 : 0) + (out.prompt_ids.empty() ? 0 : 1) +
                        (out.messages.empty() ? 0 : 1);
    if (prompts == 1) return {};
    return fail(bad("", prompts == 0
                            ? R"(has neither "prompt" nor "prompt_ids" nor "messages")"
                            : R"(has more than one of "prompt", "prompt_ids" and "messages")"));
  }

 private:
  [[nodiscard]] Error bad(std::string_view field, std::string message,
                          std::string value = {}) const {
    const std::string place = field.empty() ? fmt::format("{}", line_number_)
                                            : fmt::format("{}:/{}", line_number_, field);
    return {.code = ErrorCode::kBatchRequest,
            .message = std::move(message),
            .file = document_.file,
            .where = place,
            .value = std::move(value)};
  }

  [[nodiscard]] Result<std::string> text(const json::Member& member) const {
    if (member.value.is_string()) return member.value.as_string();
    return fail(bad(member.key, "is not a string", member.value.brief()));
  }

  [[nodiscard]] Result<std::int64_t> integer(const json::Member& member, std::int64_t least) const {
    if (member.value.is_integer() && member.value.as_integer() >= least) {
      return member.value.as_integer();
    }
    return fail(bad(member.key, fmt::format("is not a whole number of at least {}", least),
                    member.value.brief()));
  }

  Result<void> number(const json::Member& member, double& out) const {
    if (!member.value.is_number()) {
      return fail(bad(member.key, "is not a number", member.value.brief()));
    }
    out = member.value.as_double();
    return {};
  }

  Result<void> read_field(const json::Member& member, GenerationRequest& out) const {
    const std::string& key = member.key;
    if (key == "id") return read_id(member, out);
    if (key == "prompt") {
      KERNELPATH_TRY(prompt, text(member));
      out.prompt = prompt;
      return {};
    }
    if (key == "prompt_ids") return read_ids(member, out);
    if (key == "messages") return read_messages(member, out);
    if (key == "stop") return read_stop(member, out);
    if (key == "ignore_eos") {
      if (!member.value.is_bool()) {
        return fail(bad(key, "is not true or false", member.value.brief()));
      }
      out.ignore_eos = member.value.as_bool();
      return {};
    }
    if (key == "max_tokens") return read_integer(member, 1, out.max_tokens);
    if (key == "logprobs") return read_integer(member, 0, out.logprobs);
    return read_sampling(member, out.sampling);
  }

  Result<void> read_integer(const json::Member& member, std::int64_t least,
                            std::int64_t& out) const {
    KERNELPATH_TRY(value, integer(member, least));
    out = value;
    return {};
  }

  Result<void> read_sampling(const json::Member& member, SamplingParams& out) const {
    const std::string& key = member.key;
    if (key == "top_k") return read_integer(member, 0, out.top_k);
    if (key == "seed") {
      KERNELPATH_TRY(seed, integer(member, 0));
      out.seed = static_cast<std::uint64_t>(seed);
      return {};
    }
    const std::array<std::pair<std::string_view, double*>, 6> numbers = {{
        {"temperature", &out.temperature},
        {"top_p", &out.top_p},
        {"min_p", &out.min_p},
        {"repetition_penalty", &out.repetition_penalty},
        {"presence_penalty", &out.presence_penalty},
        {"frequency_penalty", &out.frequency_penalty},
    }};
    for (const auto& [name, field] : numbers) {
      if (name == key) return number(member, *field);
    }
    Error error = bad(key, "is not a field of a request");
    error.near_matches = near_matches(key, kFields);
    return fail(std::move(error));
  }

  Result<void> read_id(const json::Member& member, GenerationRequest& out) const {
    if (member.value.is_integer()) {
      out.id = member.value.number_text();
      return {};
    }
    KERNELPATH_TRY(id, text(member));
    out.id = id;
    return {};
  }

  Result<void> read_ids(const json::Member& member, GenerationRequest& out) const {
    constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
    if (!member.value.is_array() || member.value.items().empty()) {
      return fail(bad(member.key, "is not a list of token ids", member.value.brief()));
    }
    out.prompt_ids.reserve(member.value.items().size());
    for (const json::Value& item : member.value.items()) {
      if (!item.is_integer() || item.as_integer() < 0 || item.as_integer() > kLargest) {
        return fail(bad(fmt::format("{}/{}", member.key, out.prompt_ids.size()),
                        "is not a token id", item.brief()));
      }
      out.prompt_ids.push_back(static_cast<std::int32_t>(item.as_integer()));
    }
    return {};
  }

  Result<void> read_messages(const json::Member& member, GenerationRequest& out) const {
    if (!member.value.is_array() || member.value.items().empty()) {
      return fail(bad(member.key, "is not a list of messages", member.value.brief()));
    }
    for (const json::Value& item : member.value.items()) {
      const json::Value* role = item.find("role");
      const json::Value* content = item.find("content");
      const bool usable = role != nullptr && role->is_string() && content != nullptr &&
                          content->is_string() && item.members().size() == 2;
      if (!usable) {
        return fail(bad(fmt::format("{}/{}", member.key, out.messages.size()),
                        R"(is not {"role": TEXT, "content": TEXT})", item.brief()));
      }
      out.messages.push_back({role->as_string(), content->as_string()});
    }
    return {};
  }

  Result<void> read_stop(const json::Member& member, GenerationRequest& out) const {
    const bool list = member.value.is_array();
    if (!list && !member.value.is_string()) {
      return fail(bad(member.key, "is neither a text nor a list of texts", member.value.brief()));
    }
    out.stop.clear();
    for (const json::Value& item : list ? member.value.items() : std::span(&member.value, 1)) {
      if (!item.is_string()) return fail(bad(member.key, "is not a list of texts", item.brief()));
      if (item.as_string().empty()) {
        return fail(bad(member.key, "an empty text would stop everything", item.brief()));
      }
      out.stop.push_back(item.as_string());
    }
    return {};
  }

  const json::Document& document_;
  std::int64_t line_number_;
};

}  // namespace

Result<GenerationRequest> parse_request(std::string_view line, std::int64_t line_number,
                                        const std::string& file,
                                        const GenerationRequest& defaults) {
  const json::Limits limits{.max_bytes = kMaxRequestLineBytes, .max_members = 16'000'000};
  Result<json::Document> document = json::parse_object(std::string(line), file, limits);
  if (!document) {
    Error error = std::move(document).error();
    error.where = fmt::format("{}{}{}", line_number, error.where.empty() ? "" : ":", error.where);
    return fail(std::move(error));
  }
  GenerationRequest out = defaults;
  out.id = std::to_string(line_number);
  KERNELPATH_CHECK_OK(LineReader(*document, line_number).read(out));
  Result<void> sampling = check_sampling(out.sampling);
  if (!sampling) {
    Error error = std::move(sampling).error();
    error.code = ErrorCode::kBatchRequest;
    error.file = file;
    error.where = fmt::format("{}:/{}", line_number, error.where);
    return fail(std::move(error));
  }
  return out;
}

std::optional<std::string> stated_id(std::string_view line) {
  const json::Limits limits{.max_bytes = kMaxRequestLineBytes, .max_members = 16'000'000};
  const Result<json::Document> document = json::parse_object(std::string(line), "", limits);
  const json::Value* const id = document ? document->root.find("id") : nullptr;
  if (id != nullptr && id->is_string()) return id->as_string();
  if (id != nullptr && id->is_integer()) return std::to_string(id->as_integer());
  return std::nullopt;
}

}  // namespace kernelpath::runtime
