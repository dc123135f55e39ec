#include "engines/sglang/why_not.h"

#include "base/text.h"
#include "engines/remedy_search.h"
#include "engines/sglang/packages.h"
#include "engines/sglang/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::engines::sglang {
namespace {

constexpr std::array<std::string_view, 3> kBackendSettings = {
    "attention_backend", "prefill_attention_backend", "decode_attention_backend"};
constexpr std::array<std::string_view, 4> kKvDtypes = {"auto", "bf16", "fp8_e4m3", "fp8_e5m2"};
constexpr std::array<std::int64_t, 4> kPageSizes = {1, 32, 64, 128};

Result<std::string> find_candidate(const Profile& profile, std::string_view name) {
  const std::string wanted = to_lower(name);
  const ArgumentRow* row = profile.find_argument(kBackendSettings.front());
  if (row != nullptr && contains(row->choices, wanted)) return wanted;
  std::vector<std::string_view> names;
  if (row != nullptr) names.assign(row->choices.begin(), row->choices.end());
  return fail(
      {.code = ErrorCode::kUsageUnknown,
       .message = fmt::format("sglang {} has no attention backend of this name", profile.version),
       .where = "--why-not",
       .value = shorten(name, 64),
       .hint = "llm-inspect --list backends --engine sglang prints them",
       .near_matches = near_matches(wanted, names)});
}

Request asking_for(const Request& request, const std::string& candidate) {
  Request out = request;
  for (const std::string_view field : kBackendSettings) remove_setting(out, field);
  out.deployment.backend = candidate;
  return out;
}

bool is_admitted(const Resolution& resolution, const std::string& candidate) {
  if (resolution.error) return false;
  const std::vector<std::string> names = split(resolution.selected_backend, '/');
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return trim(name) == candidate; });
}

// The refusal; where another backend just took the place, the steps that changed the option.
std::vector<Step> refusals_of(const Resolution& resolution) {
  std::vector<Step> out;
  for (const Step& step : resolution.steps) {
    const bool replaced = !resolution.error && step.verdict == Verdict::kApplied &&
                          step.reason.find("attention_backend: ") != std::string::npos;
    const bool refused = resolution.error && step.severity == Severity::kError;
    if (replaced || refused) out.push_back(step);
  }
  return out;
}

// The changes that are tried, cheapest first.
std::vector<Edit> edits_of(const Request& request) {
  std::vector<Edit> out;
  add_install_edits(request, out);
  add_undo_edits(request, "sglang", kBackendSettings, out);
  add_option_undo_edits(request, out);
  add_kv_dtype_edits(request, kKvDtypes, out);
  add_page_size_edits(request, {.sizes = kPageSizes, .setting = "page_size"}, out);
  add_tp_edits(request, "tp_size", out);
  const std::vector<Edit> devices = device_edits(request);
  out.insert(out.end(), devices.begin(), devices.end());
  return out;
}

}  // namespace

Result<Engine::WhyNot> why_not(const Request& request, std::string_view name,
                               const Profile& profile) {
  KERNELPATH_TRY(candidate, find_candidate(profile, name));
  const Request asked = asking_for(request, candidate);
  const Resolution resolution = resolve(asked, profile);
  Engine::WhyNot out;
  out.admitted = is_admitted(resolution, candidate);
  if (out.admitted) return out;
  out.refusals = refusals_of(resolution);
  const std::vector<Edit> edits = edits_of(asked);
  const auto admitted = [&, &candidate = candidate](const Request& changed) {
    return is_admitted(resolve(changed, profile), candidate);
  };
  out.remedies = find_remedies(asked, edits, admitted, {.most_attempts = 1000});
  return out;
}

}  // namespace kernelpath::engines::sglang
