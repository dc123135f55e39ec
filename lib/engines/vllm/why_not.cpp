#include "engines/vllm/why_not.h"

#include "base/text.h"
#include "engines/remedy_search.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/packages.h"
#include "engines/vllm/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

// Arguments that name a backend: --why-not asks for another one.
constexpr std::array<std::string_view, 2> kBackendSettings = {"attention_backend",
                                                              "attention_config.backend"};
constexpr std::string_view kRegister = "register_backend.";
constexpr std::array<std::string_view, 7> kKvDtypes = {
    "auto", "bfloat16", "fp8", "fp8_e4m3", "turboquant_k8v4", "nvfp4", "int8_per_token_head"};
constexpr std::array<std::string_view, 3> kDtypes = {"bfloat16", "float16", "float32"};
constexpr std::array<std::int64_t, 4> kPageSizes = {16, 32, 64, 128};

// A backend by the names that it goes by.
struct Candidate {
  std::string member;
  std::string reported;  // of its class; may differ from the member's
};

Result<Candidate> find_candidate(const Request& request, std::string_view name,
                                 const ReleaseTables& tables) {
  const std::string wanted = to_upper(name);
  const BackendMember* member = tables.profile.find_member(wanted);
  if (member != nullptr) {
    const std::string& reported =
        member->backend != nullptr ? member->backend->reported_name : wanted;
    return Candidate{wanted, reported};
  }
  if (request.deployment.setting(std::string(kRegister) + wanted) != nullptr) {
    return Candidate{wanted, wanted};
  }
  // The arguments know the error, with the version that has the name.
  Deployment asking;
  asking.backend = wanted;
  const Result<Arguments> refused = Arguments::read(tables.settings, asking);
  Error error = refused ? Error{.code = ErrorCode::kUsageUnknown} : refused.error();
  error.where = "--why-not";
  error.hint = fmt::format("llm-inspect --list backends --engine vllm@{} prints them",
                           tables.profile.version);
  return fail(std::move(error));
}

Request asking_for(const Request& request, const Candidate& candidate) {
  Request out = request;
  for (const std::string_view field : kBackendSettings) remove_setting(out, field);
  std::erase_if(out.deployment.settings, [](const auto& pair) {
    return pair.first.starts_with("attention_config.backend_per_kind");
  });
  out.deployment.backend = candidate.member;
  return out;
}

bool is_admitted(const Resolution& resolution, const Candidate& candidate) {
  if (resolution.error) return false;
  const auto is_it = [&](std::string_view name) {
    return name == candidate.member || name == candidate.reported;
  };
  return is_it(resolution.selected_backend) ||
         std::any_of(resolution.layers.begin(), resolution.layers.end(),
                     [&](const LayerGroup& group) { return !group.draft && is_it(group.backend); });
}

// Everything that speaks against the candidate; where layers just run on another one, a step that
// says so.
std::vector<Step> refusals_of(const Resolution& resolution, const Candidate& candidate) {
  std::vector<Step> out;
  for (const Step& step : resolution.steps) {
    const bool against =
        step.verdict == engines::Verdict::kRejected && step.candidate == candidate.member;
    if (against || step.severity == Severity::kError) out.push_back(step);
  }
  if (!out.empty() || resolution.error) return out;
  for (const Step& step : resolution.steps) {
    if (step.verdict == engines::Verdict::kSelected && step.rule == "VLLM-SEL-CHOSEN")
      out.push_back(step);
  }
  return out;
}

// Collects the changes that are tried, cheapest first.
class Edits {
 public:
  Edits(const Request& request, const ReleaseTables& tables) : request_(request), tables_(tables) {}

  std::vector<Edit> make(const Candidate& candidate) {
    add_packages();
    add_registration(candidate);
    add_undo_edits(request_, "vllm", kBackendSettings, out_);
    add_option_undo_edits(request_, out_);
    add_kv_dtype_edits(request_, kKvDtypes, out_);
    add_dtypes();
    add_page_size_edits(request_, {.sizes = kPageSizes, .setting = "block_size", .unit = "block"},
                        out_);
    add_tp_edits(request_, "tensor_parallel_size", out_);
    add_mla();
    const std::vector<Edit> devices = device_edits(request_);
    out_.insert(out_.end(), devices.begin(), devices.end());
    return std::move(out_);
  }

 private:
  void add(std::string subject, std::string option, std::string effect,
           std::function<void(Request&)> apply) {
    out_.push_back({std::move(subject), {std::move(option), std::move(effect)}, std::move(apply)});
  }

  void add_packages() {
    add_install_edits(request_, out_);
    for (const PackageInfo& info : kPackages) {
      const std::string name(info.name);
      if (Packages{}.*(info.member) || !request_.environment.available(name) ||
          request_.environment.available(name, false)) {
        continue;
      }
      add(name, "--has " + name, name + " is installed",
          [name](Request& out) { out.environment.has.push_back(name); });
    }
  }

  void add_registration(const Candidate& candidate) {
    const BackendMember* member = tables_.profile.find_member(candidate.member);
    const std::string field = std::string(kRegister) + candidate.member;
    if (member == nullptr || !member->path.empty() ||
        request_.deployment.setting(field) != nullptr) {
      return;
    }
    add("registration", fmt::format("--set vllm.{}=module.Class", field),
        "a plugin registers a class that refuses nothing more than the engine's base class",
        [field](Request& out) { out.deployment.settings.emplace_back(field, "module.Class"); });
  }

  void add_dtypes() {
    for (const std::string_view dtype : kDtypes) {
      if (request_.deployment.dtype.value_or("") == dtype) continue;
      add("dtype", fmt::format("--dtype {}", dtype), fmt::format("activations in {}", dtype),
          [dtype](Request& out) {
            remove_setting(out, "dtype");
            out.deployment.dtype = std::string(dtype);
          });
    }
  }

  void add_mla() {
    if (!request_.model.mla || request_.environment.variable("VLLM_MLA_DISABLE") != nullptr) {
      return;
    }
    add("mla", "--env VLLM_MLA_DISABLE=1", "latent attention runs as plain attention",
        [](Request& out) { out.environment.variables.emplace_back("VLLM_MLA_DISABLE", "1"); });
  }

  const Request& request_;
  const ReleaseTables& tables_;
  std::vector<Edit> out_;
};

}  // namespace

Result<Engine::WhyNot> why_not(const Request& request, std::string_view name,
                               const ReleaseTables& tables) {
  KERNELPATH_TRY(candidate, find_candidate(request, name, tables));
  const Request asked = asking_for(request, candidate);
  const Resolution resolution = resolve(asked, tables);
  Engine::WhyNot out;
  out.admitted = is_admitted(resolution, candidate);
  if (out.admitted) return out;
  out.refusals = refusals_of(resolution, candidate);
  const std::vector<Edit> edits = Edits(asked, tables).make(candidate);
  const auto admitted = [&, &candidate = candidate](const Request& changed) {
    return is_admitted(resolve(changed, tables), candidate);
  };
  out.remedies = find_remedies(asked, edits, admitted, {.most_attempts = 1000});
  return out;
}

}  // namespace kernelpath::engines::vllm
