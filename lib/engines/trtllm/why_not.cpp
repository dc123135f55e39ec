#include "engines/trtllm/why_not.h"

#include "base/text.h"
#include "engines/remedy_search.h"
#include "engines/trtllm/arguments.h"
#include "engines/trtllm/dispatch.h"
#include "engines/trtllm/fmha_libraries.h"
#include "engines/trtllm/packages.h"
#include "engines/trtllm/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::engines::trtllm {
namespace {

struct Candidate {
  std::string name;  // "FLASHINFER" or "cute_dsl_mla"
  bool is_backend = true;
};

std::optional<Candidate> find_candidate(std::string_view name) {
  for (const std::string_view backend : outer_backend_names()) {
    if (equal_ignoring_case(backend, name)) return Candidate{std::string(backend), true};
  }
  for (const FmhaLibrary& library : fmha_libraries()) {
    if (equal_ignoring_case(library.name, name)) return Candidate{std::string(library.name), false};
  }
  return std::nullopt;
}

Error unknown_candidate(std::string_view name) {
  std::vector<std::string_view> names(outer_backend_names().begin(), outer_backend_names().end());
  for (const FmhaLibrary& library : fmha_libraries()) names.push_back(library.name);
  return {.code = ErrorCode::kUsageUnknown,
          .message = "trtllm has no backend and no FMHA library of this name",
          .where = "--why-not",
          .value = shorten(name, 64),
          .hint = "llm-inspect --list backends --engine trtllm prints them",
          .near_matches = near_matches(name, names)};
}

// The request with the candidate asked for by name.
Request asking_for(const Request& request, const Candidate& candidate) {
  Request out = request;
  remove_setting(out, "attn_backend");
  out.deployment.backend = candidate.is_backend ? candidate.name : "TRTLLM";
  return out;
}

bool runs(const LayerGroup& group, std::string_view library) {
  return group.prefill.kernel.rfind(library, 0) == 0 || group.decode.kernel.rfind(library, 0) == 0;
}

bool is_admitted(const Resolution& resolution, const Candidate& candidate) {
  if (resolution.error || resolution.status == Status::kFallback) return false;
  if (candidate.is_backend) return resolution.selected_backend == candidate.name;
  return std::any_of(resolution.layers.begin(), resolution.layers.end(),
                     [&](const LayerGroup& group) { return runs(group, candidate.name); });
}

// Everything in a resolution that speaks against the candidate.
std::vector<Step> refusals_of(const Resolution& resolution, const Candidate& candidate) {
  std::vector<Step> out;
  for (const Step& step : resolution.steps) {
    const bool refused = step.verdict == Verdict::kRejected &&
                         (candidate.is_backend ? step.severity != Severity::kInfo
                                               : step.candidate == candidate.name);
    const bool stopped = resolution.error && step.severity == Severity::kError;
    if (refused || stopped || step.rule == "TRT-ATTN-FALLBACK") out.push_back(step);
  }
  return out;
}

void add_package_edits(const Request& request, std::vector<Edit>& edits) {
  for (const std::string& package : request.environment.lacks) {
    const Package* known = find_package(package);
    edits.push_back({package,
                     {fmt::format("install {} (without --lacks {})",
                                  known == nullptr ? package : known->pip_name, package),
                      fmt::format("{} is there", package)},
                     [package](Request& out) { std::erase(out.environment.lacks, package); }});
  }
}

void add_setting_edits(const Request& request, std::vector<Edit>& edits) {
  constexpr std::array<std::string_view, 1> kKept = {"attn_backend"};
  add_undo_edits(request, "trtllm", kKept, edits);
  if (!request.deployment.speculative) return;
  edits.push_back({"speculative", {"without --speculative", "no draft tokens"}, [](Request& out) {
                     out.deployment.speculative.reset();
                     out.deployment.draft_tokens.reset();
                   }});
}

void add_value_edits(const Request& request, std::vector<Edit>& edits) {
  for (const std::string_view kv : {"auto", "fp8", "nvfp4"}) {
    if (request.deployment.kv_dtype.value_or("auto") == kv) continue;
    edits.push_back(
        {"kv", {fmt::format("--kv {}", kv), fmt::format("KV cache in {}", kv)}, [kv](Request& out) {
           remove_setting(out, "kv_cache_config.dtype");
           out.deployment.kv_dtype = std::string(kv);
         }});
  }
  constexpr std::array<std::int64_t, 4> kPageSizes = {32, 64, 128, 16};
  add_page_size_edits(request,
                      {.sizes = kPageSizes,
                       .setting = "kv_cache_config.tokens_per_block",
                       .unit = "block",
                       .usual = 32},
                      edits);
  add_tp_edits(request, "tensor_parallel_size", edits);
  for (const std::int64_t batch : {1, 8, 16, 64}) {
    if (request.deployment.batch_size == batch) continue;
    edits.push_back({"batch size",
                     {fmt::format("--batch-size {}", batch), fmt::format("{} requests", batch)},
                     [batch](Request& out) { out.deployment.batch_size = batch; }});
  }
}

std::vector<Edit> edits_for(const Request& request, const Candidate& candidate) {
  std::vector<Edit> edits;
  add_package_edits(request, edits);
  add_setting_edits(request, edits);
  if (!candidate.is_backend) add_value_edits(request, edits);
  const std::vector<Edit> devices = device_edits(request);
  edits.insert(edits.end(), devices.begin(), devices.end());
  return edits;
}

}  // namespace

Result<Engine::WhyNot> why_not(const Request& request, std::string_view name,
                               const Profile& profile) {
  const std::optional<Candidate> candidate = find_candidate(name);
  if (!candidate) return fail(unknown_candidate(name));
  const Request asked = asking_for(request, *candidate);
  const Resolution resolution = resolve(asked, profile);
  Engine::WhyNot out;
  out.admitted = is_admitted(resolution, *candidate);
  if (out.admitted) return out;
  out.refusals = refusals_of(resolution, *candidate);
  out.remedies = find_remedies(asked, edits_for(asked, *candidate), [&](const Request& changed) {
    return is_admitted(resolve(changed, profile), *candidate);
  });
  return out;
}

}  // namespace kernelpath::engines::trtllm
