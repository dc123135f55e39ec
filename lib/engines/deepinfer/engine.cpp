#include "engines/deepinfer/engine.h"

#include "base/text.h"
#include "engines/deepinfer/answer.h"
#include "engines/deepinfer/packages.h"
#include "engines/deepinfer/request.h"
#include "engines/deepinfer/resolve.h"
#include "engines/deepinfer/rules.h"
#include "engines/remedy_search.h"
#include "engines/table_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::deepinfer {
namespace {

std::vector<TableRow> architecture_rows() {
  const RegisteredModel& model = registered_model();
  return {{std::string(model.architecture),
           {{"class", std::string(model.class_name)}, {"module", std::string(model.module)}}}};
}

std::vector<TableRow> backend_rows() {
  return {{std::string(kBackend), {{"about", "all attention; there is no option for it"}}}};
}

// Of FlashMLA. Source: its C++ entry points.
std::vector<TableRow> kernel_rows() {
  const auto row = [](std::string name, std::string phase, std::string platforms,
                      std::string heads) {
    return TableRow{std::move(name),
                    {{"phase", std::move(phase)},
                     {"platforms", std::move(platforms)},
                     {"heads", std::move(heads)},
                     {"capability", "sm100 sm103"}}};
  };
  return {row("fused_norm_rope_attn_rope_cast_fwd", "prefill", "cuda", "64 128"),
          row("fused_norm_rope_attn_rope_cast_decode", "decode", "cuda", "64 128"),
          row("sparse_prefill_fwd", "prefill", "cuda ascend", "64 128; ascend 64"),
          row("sparse_decode_fwd", "decode", "cuda ascend", "64 128; ascend 64")};
}

std::vector<TableRow> cache_format_rows() {
  return {
      {"window", {{"bytes per token", "528"}, {"data", "512 e4m3"}, {"scales", "16 ue8m0"}}},
      {"main fp4", {{"bytes per token", "288"}, {"data", "512 e2m1"}, {"scales", "32 e4m3"}}},
      {"main mxfp8", {{"bytes per token", "528"}, {"data", "512 e4m3"}, {"scales", "16 ue8m0"}}},
      {"index", {{"bytes per token", "68"}, {"data", "128 e2m1"}, {"scales", "4 ue8m0"}}}};
}

std::vector<TableRow> dtype_rows() {
  return {{"bfloat16", {{"about", "the only one, as config.json must state it"}}}};
}

std::vector<TableRow> package_rows() {
  std::vector<TableRow> out;
  out.reserve(kPackages.size());
  for (const Package& package : kPackages) {
    out.push_back(
        {std::string(package.option),
         {{"package", std::string(package.name)}, {"about", std::string(package.about)}}});
  }
  return out;
}

std::vector<TableRow> setting_rows() {
  std::vector<TableRow> out;
  for (const ArgumentInfo& info : argument_table()) {
    out.push_back({std::string(info.name),
                   {{"default", std::string(info.fallback)},
                    {"option", info.option.empty() ? "-" : std::string(info.option)},
                    {"about", std::string(info.about)}}});
  }
  return out;
}

std::vector<TableRow> variable_rows() {
  std::vector<TableRow> out;
  for (const VariableInfo& info : variables()) {
    const std::string_view fallback = info.fallback.empty() ? "-" : info.fallback;
    out.push_back({std::string(info.name),
                   {{"default", std::string(fallback)}, {"about", std::string(info.about)}}});
  }
  return out;
}

constexpr auto kTables = std::to_array<TableMaker<>>({
    {"architectures", architecture_rows},
    {"backends", backend_rows},
    {"kernels", kernel_rows},
    {"kv-formats", cache_format_rows},
    {"dtypes", dtype_rows},
    {"packages", package_rows},
    {"settings", setting_rows},
    {"variables", variable_rows},
});

// How the comparison of engines (--list engines) describes this one.
constexpr Descriptor kDescriptor = {
    .dispatch_key = "architectures, exactly one, and model_type",
    .registry_form = "a literal map of one row: architecture to (module, class)",
    .lazy_import = "yes: after config.json is judged",
    .external_models = "none",
    .backend_selection =
        "no option: a predicate of each layer; the platform is an abstraction of "
        "its own",
    .kv_dtype = "field of config.json",
    .compatibility = "values of config.json at load, kernels at the first call, the GPU model last",
    .on_mismatch = "stops, often at an assertion without text",
    .files = "models/registry.py, attention_backend.py, platform.py",
};

class DeepinferEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "deepinfer"; }
  [[nodiscard]] std::string_view version() const override { return "0.1.0"; }
  [[nodiscard]] const Descriptor& descriptor() const override { return kDescriptor; }

  [[nodiscard]] Resolution resolve(const Request& request) const override {
    return deepinfer::resolve(request);
  }

  // Options that the engine has no argument for are its own refusal, told by resolve().
  [[nodiscard]] Result<void> check(const Deployment& deployment,
                                   const Environment& environment) const override {
    KERNELPATH_CHECK_OK(read_launch(deployment, environment));
    return {};
  }

  [[nodiscard]] Result<WhyNot> why_not(const Request& request,
                                       std::string_view backend) const override {
    if (!equal_ignoring_case(backend, kBackend)) {
      return fail({.code = ErrorCode::kUsageUnknown,
                   .message = "deepinfer has no attention backend to choose: all attention is "
                              "FlashMLA's",
                   .value = shorten(backend, 64),
                   .near_matches = {std::string(kBackend)}});
    }
    const auto admitted = [](const Request& changed) {
      return deepinfer::resolve(changed).status == Status::kOk;
    };
    WhyNot out;
    out.admitted = admitted(request);
    if (out.admitted) return out;
    for (const Step& step : deepinfer::resolve(request).steps) {
      if (step.severity == Severity::kError) out.refusals.push_back(step);
    }
    std::vector<Edit> edits = device_edits(request);
    add_undo_edits(request, "deepinfer", {}, edits);
    out.remedies = find_remedies(request, edits, admitted);
    return out;
  }

  [[nodiscard]] Result<json::Value> answer(std::string_view /*op*/,
                                           const json::Value& in) const override {
    return deepinfer::answer(in);
  }

  [[nodiscard]] std::span<const RuleInfo> rules() const override { return deepinfer::rules(); }

  [[nodiscard]] std::vector<std::string> table_kinds() const override { return kinds_of(kTables); }

  [[nodiscard]] std::vector<TableRow> table(std::string_view kind) const override {
    return rows_of(kTables, kind);
  }
};

}  // namespace

const Engine& engine() {
  static const DeepinferEngine kEngine;
  return kEngine;
}

}  // namespace kernelpath::engines::deepinfer
