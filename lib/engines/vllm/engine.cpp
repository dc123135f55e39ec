#include "engines/vllm/engine.h"

#include "base/text.h"
#include "engines/vllm/answer_end_to_end.h"
#include "engines/vllm/answer_select.h"
#include "engines/vllm/arguments.h"
#include "engines/vllm/engine_rows.h"
#include "engines/vllm/release_tables.h"
#include "engines/vllm/resolve.h"
#include "engines/vllm/rules.h"
#include "engines/vllm/run_request.h"
#include "engines/vllm/why_not.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::array<std::string_view, 2> kOps = {"select", "end_to_end"};

// How the comparison of engines (--list engines) describes this one.
constexpr Descriptor kDescriptor = {
    .dispatch_key = "architectures, the first usable one; aliases and conversions by suffix",
    .registry_form = "literal maps: architecture to (module, class)",
    .lazy_import = "yes: the class is inspected in a process of its own, then imported",
    .external_models = "ModelRegistry.register_model in a plug-in of vllm.general_plugins",
    .backend_selection =
        "option attention_backend, else the first admitted one of the platform's "
        "priority list",
    .kv_dtype = "option kv_cache_dtype; auto: the checkpoint's, else the model's",
    .compatibility = "before a layer is built, in the selector, with a reason for every candidate",
    .on_mismatch = "the next candidate, or an error with all reasons",
    .files = "model_executor/models/registry.py, v1/attention/selector.py, platforms/",
};

class VllmEngine final : public Engine {
 public:
  explicit VllmEngine(std::string version) : version_(std::move(version)) {}
  explicit VllmEngine(std::unique_ptr<LoadedTables> loaded)
      : version_(loaded->profile.version), loaded_(std::move(loaded)) {}

  [[nodiscard]] std::string_view name() const override { return "vllm"; }
  [[nodiscard]] std::string_view version() const override { return version_; }
  [[nodiscard]] const Descriptor& descriptor() const override { return kDescriptor; }

  [[nodiscard]] Resolution resolve(const Request& request) const override {
    return vllm::resolve(request, tables());
  }

  [[nodiscard]] Result<void> check(const Deployment& deployment,
                                   const Environment& /*environment*/) const override {
    KERNELPATH_CHECK_OK(Arguments::read(tables().settings, deployment));
    return {};
  }

  [[nodiscard]] std::optional<std::string> draft_model(
      const Deployment& deployment) const override {
    const auto arguments = Arguments::read(tables().settings, deployment);
    return arguments ? draft_model_of(*arguments) : std::nullopt;
  }

  [[nodiscard]] Result<WhyNot> why_not(const Request& request,
                                       std::string_view backend) const override {
    return vllm::why_not(request, backend, tables());
  }

  [[nodiscard]] Result<json::Value> answer(std::string_view op,
                                           const json::Value& in) const override {
    if (op == "select") return answer_select(tables().profile, in);
    if (op == "end_to_end") return answer_end_to_end(tables().profile, tables().registry, in);
    return fail({.code = ErrorCode::kBatchRequest,
                 .message = "vllm answers no such op",
                 .where = "/op",
                 .value = shorten(op, 64),
                 .near_matches = near_matches(op, kOps)});
  }

  [[nodiscard]] std::span<const RuleInfo> rules() const override { return rules_of(version_); }

  [[nodiscard]] std::vector<std::string> table_kinds() const override {
    return vllm::table_kinds();
  }

  [[nodiscard]] std::vector<TableRow> table(std::string_view kind) const override {
    return table_rows(tables(), kind);
  }

 private:
  [[nodiscard]] ReleaseTables tables() const {
    return loaded_ != nullptr ? loaded_->view() : built_in_tables(version_);
  }

  std::string version_;
  std::unique_ptr<LoadedTables> loaded_;  // null pointer: the build's own
};

std::vector<std::unique_ptr<VllmEngine>>& engine_list() {
  static std::vector<std::unique_ptr<VllmEngine>> list = [] {
    std::vector<std::unique_ptr<VllmEngine>> out;
    for (const std::string& version : built_in_versions()) {
      out.push_back(std::make_unique<VllmEngine>(version));
    }
    return out;
  }();
  return list;
}

}  // namespace

std::vector<const Engine*> engines() {
  std::vector<const Engine*> out;
  for (const auto& engine : engine_list()) out.push_back(engine.get());
  return out;
}

Result<void> use_profile_folder(const std::string& folder) {
  KERNELPATH_TRY(loaded, load_tables(folder));
  auto added = std::make_unique<VllmEngine>(std::move(loaded));
  auto& list = engine_list();
  const auto place = std::find_if(list.begin(), list.end(), [&](const auto& engine) {
    return parse_release(engine->version()) >= parse_release(added->version());
  });
  if (place != list.end() && (*place)->version() == added->version()) {
    *place = std::move(added);
  } else {
    list.insert(place, std::move(added));
  }
  return {};
}

}  // namespace kernelpath::engines::vllm
