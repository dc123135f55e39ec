#include "runtime/expectation.h"

#include "base/file.h"
#include "json/document.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

namespace kernelpath::runtime {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

Unexpected bad(const std::string& file, std::string where, std::string message,
               std::string value = {}) {
  return fail({.code = ErrorCode::kInputSchema,
               .message = std::move(message),
               .file = file,
               .where = std::move(where),
               .value = std::move(value),
               .hint = "--expect takes a golden.json: {\"prompts\": [{\"prompt_ids\": […], "
                       "\"output_ids\": […], \"gaps\": […]}, …]}"});
}

Result<std::vector<std::int32_t>> token_list(const json::Value& run, std::string_view key,
                                             const std::string& file, const std::string& where) {
  const std::string place = fmt::format("{}/{}", where, key);
  const json::Value* list = run.find(key);
  if (list == nullptr || !list->is_array() || list->items().empty()) {
    return bad(file, place, "is not a list of token ids");
  }
  std::vector<std::int32_t> out;
  out.reserve(list->items().size());
  for (const json::Value& item : list->items()) {
    const bool fits = item.is_integer() && item.as_integer() >= 0 &&
                      item.as_integer() <= std::numeric_limits<std::int32_t>::max();
    if (!fits) {
      return bad(file, fmt::format("{}/{}", place, out.size()), "is not a token id", item.brief());
    }
    out.push_back(static_cast<std::int32_t>(item.as_integer()));
  }
  return out;
}

Result<std::vector<double>> gap_list(const json::Value& run, std::size_t steps,
                                     const std::string& file, const std::string& where) {
  const json::Value* list = run.find("gaps");
  // Without gaps no step is a near tie.
  if (list == nullptr) return std::vector<double>(steps, std::numeric_limits<double>::infinity());
  if (!list->is_array() || list->items().size() != steps) {
    return bad(file, where + "/gaps",
               fmt::format("is not a list of {} numbers, one a step of output_ids", steps));
  }
  std::vector<double> out;
  out.reserve(steps);
  for (const json::Value& item : list->items()) {
    const bool fits = item.is_number() && std::isfinite(item.as_double()) && item.as_double() >= 0;
    if (!fits) {
      return bad(file, fmt::format("{}/gaps/{}", where, out.size()),
                 "is not a finite number of at least 0", item.brief());
    }
    out.push_back(item.as_double());
  }
  return out;
}

Result<ExpectedRun> read_run(const json::Value& run, const std::string& file,
                             const std::string& where, std::int64_t index) {
  ExpectedRun out;
  const json::Value* id = run.find_non_null("id");
  out.id = id != nullptr && id->is_integer() ? id->as_integer() : index;
  if (const json::Value* text = run.find_non_null("text"); text != nullptr) {
    if (!text->is_string()) return bad(file, where + "/text", "is not a string", text->brief());
    out.text = text->as_string();
  }
  KERNELPATH_TRY(prompt, token_list(run, "prompt_ids", file, where));
  KERNELPATH_TRY(output, token_list(run, "output_ids", file, where));
  KERNELPATH_TRY(gaps, gap_list(run, output.size(), file, where));
  out.prompt_ids = std::move(prompt);
  out.output_ids = std::move(output);
  out.gaps = std::move(gaps);
  return out;
}

}  // namespace

Result<Expectation> load_expectation(const std::string& path) {
  KERNELPATH_TRY(contents, read_file(path, kMaxBytes));
  return parse_expectation(std::move(contents.text), path);
}

Result<Expectation> parse_expectation(std::string text, const std::string& path) {
  KERNELPATH_TRY(document, json::parse_object(std::move(text), path,
                                              {.max_bytes = kMaxBytes, .max_members = 16'000'000}));
  Expectation out;
  if (const json::Value* name = document.root.find("name"); name != nullptr && name->is_string()) {
    out.name = name->as_string();
  }
  const json::Value* prompts = document.root.find("prompts");
  if (prompts == nullptr || !prompts->is_array() || prompts->items().empty()) {
    return bad(path, "/prompts", "is not a list of prompts");
  }
  out.runs.reserve(prompts->items().size());
  std::set<std::int64_t> ids;
  for (const json::Value& run : prompts->items()) {
    const auto index = static_cast<std::int64_t>(out.runs.size());
    const std::string where = fmt::format("/prompts/{}", index);
    KERNELPATH_TRY(read, read_run(run, path, where, index));
    if (!ids.insert(read.id).second) {
      return bad(path, where + "/id", "another prompt has the same id", std::to_string(read.id));
    }
    out.runs.push_back(std::move(read));
  }
  return out;
}

std::optional<Difference> first_difference(const ExpectedRun& expected,
                                           std::span<const std::int32_t> found) {
  for (std::size_t step = 0; step < expected.output_ids.size(); ++step) {
    if (expected.gaps[step] < kNearTie) return std::nullopt;
    const bool is_there = step < found.size();
    if (is_there && found[step] == expected.output_ids[step]) continue;
    return Difference{
        .step = static_cast<std::int64_t>(step),
        .expected = expected.output_ids[step],
        .found = is_there ? std::optional(found[step]) : std::nullopt,
        .gap = expected.gaps[step],
    };
  }
  return std::nullopt;
}

}  // namespace kernelpath::runtime
