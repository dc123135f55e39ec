#include "engines/sglang/engine.h"

#include "base/text.h"
#include "engines/sglang/answer_select.h"
#include "engines/sglang/engine_rows.h"
#include "engines/sglang/profile.h"
#include "engines/sglang/request.h"
#include "engines/sglang/resolve.h"
#include "engines/sglang/rules.h"
#include "engines/sglang/why_not.h"

#include <array>

namespace kernelpath::engines::sglang {
namespace {

constexpr std::array<std::string_view, 1> kOps = {"select"};

// How the comparison of engines (--list engines) describes this one.
constexpr Descriptor kDescriptor = {
    .dispatch_key = "architectures, the first supported one; else Transformers' own class",
    .registry_form = "built by scanning the models package for EntryClass attributes",
    .lazy_import = "no: the whole package at the first use; a module that fails is left out",
    .external_models = "a package in SGLANG_EXTERNAL_MODEL_PACKAGE, whose names win",
    .backend_selection =
        "option attention_backend (prefill and decode apart), else rules by "
        "architecture and capability",
    .kv_dtype = "option kv_cache_dtype; auto: the checkpoint's, else the model's",
    .compatibility = "when the server's arguments are resolved, then when the backend is built",
    .on_mismatch = "an argument is rewritten with a log line, or an error",
    .files = "srt/models/registry.py, srt/server_args.py, srt/arg_groups/",
};

class SglangEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "sglang"; }
  [[nodiscard]] std::string_view version() const override { return built_in_profile().version; }
  [[nodiscard]] const Descriptor& descriptor() const override { return kDescriptor; }

  [[nodiscard]] Resolution resolve(const Request& request) const override {
    return sglang::resolve(request, built_in_profile());
  }

  [[nodiscard]] Result<void> check(const Deployment& deployment,
                                   const Environment& /*environment*/) const override {
    KERNELPATH_CHECK_OK(read_arguments(built_in_profile(), deployment));
    return {};
  }

  [[nodiscard]] std::optional<std::string> draft_model(
      const Deployment& deployment) const override {
    if (deployment.draft_model) return deployment.draft_model;
    const std::string* const stated = deployment.setting("speculative_draft_model_path");
    return stated == nullptr ? std::nullopt : std::optional(*stated);
  }

  [[nodiscard]] Result<WhyNot> why_not(const Request& request,
                                       std::string_view backend) const override {
    return sglang::why_not(request, backend, built_in_profile());
  }

  [[nodiscard]] Result<json::Value> answer(std::string_view op,
                                           const json::Value& in) const override {
    if (op == kOps.front()) return answer_select(built_in_profile(), in);
    return fail({.code = ErrorCode::kBatchRequest,
                 .message = "sglang answers no such op",
                 .where = "/op",
                 .value = shorten(op, 64),
                 .near_matches = near_matches(op, kOps)});
  }

  [[nodiscard]] std::span<const RuleInfo> rules() const override { return all_rules(); }

  [[nodiscard]] std::vector<std::string> table_kinds() const override {
    return sglang::table_kinds();
  }

  [[nodiscard]] std::vector<TableRow> table(std::string_view kind) const override {
    return table_rows(built_in_profile(), kind);
  }
};

}  // namespace

const Engine& engine() {
  static const SglangEngine sglang_engine;
  return sglang_engine;
}

}  // namespace kernelpath::engines::sglang
