#include "engines/kernelpath/engine.h"

#include "attention/backend_table.h"
#include "attention/selector.h"
#include "base/text.h"
#include "engines/kernelpath/launch.h"
#include "engines/kernelpath/resolve.h"
#include "engines/kernelpath/rules.h"
#include "engines/remedy_search.h"
#include "engines/table_list.h"
#include "registry/own_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::kernelpath {
namespace {

std::vector<TableRow> architecture_rows() {
  std::vector<TableRow> out;
  out.reserve(registry::own_models().size());
  for (const registry::OwnModel& model : registry::own_models()) {
    out.push_back(
        {std::string(model.architecture),
         {{"class", std::string(model.class_name)}, {"module", std::string(model.module)}}});
  }
  return out;
}

std::string type_list(const attention::BackendRow& row) {
  std::vector<std::string> names;
  for (const attention::DataType type : attention::kDataTypes) {
    if (row.kv_types.has(type)) names.emplace_back(short_name(type));
  }
  return join(names, " ");
}

std::string feature_list(const attention::BackendRow& row) {
  std::vector<std::string> names;
  for (const attention::Feature feature : attention::kFeatures) {
    if (row.features.has(feature)) names.emplace_back(attention::feature_name(feature));
  }
  return join(names, ", ");
}

std::vector<TableRow> backend_rows() {
  std::vector<TableRow> out;
  for (const attention::BackendRow& row : attention::backend_table()) {
    const std::string lse =
        row.lse_base ? "base " + std::string(attention::log_base_name(*row.lse_base)) : "none";
    out.push_back({std::string(row.name),
                   {{"platform", std::string(hardware::platform_name(row.platform))},
                    {"kernels", std::string(row.kernels)},
                    {"KV dtypes", type_list(row)},
                    {"head sizes", fmt::format("{} to {}", row.min_head_dim, row.max_head_dim)},
                    {"features", feature_list(row)},
                    {"CUDA graphs", std::string(attention::graph_level_name(row.graph_level))},
                    {"log-sum-exp", lse},
                    {"missing", row.missing.empty() ? "-" : std::string(row.missing)}}});
  }
  return out;
}

// Names of other engines' backends that --backend takes.
std::vector<TableRow> alias_rows() {
  std::vector<TableRow> out;
  out.reserve(attention::kBackendAliases.size());
  for (const attention::BackendAlias& alias : attention::kBackendAliases) {
    out.push_back({std::string(alias.name),
                   {{"stands for", std::string(attention::backend_row(alias.id).name)}}});
  }
  return out;
}

std::vector<TableRow> dtype_rows() {
  std::vector<TableRow> out;
  out.reserve(attention::kDataTypes.size());
  for (const attention::DataType type : attention::kDataTypes) {
    out.push_back(
        {std::string(short_name(type)),
         {{"bits", std::to_string(attention::bits_of(type))},
          {"about", type == attention::DataType::kNvfp4 ? "one e4m3 scale for 16 values" : "-"}}});
  }
  return out;
}

std::vector<TableRow> setting_rows() {
  std::vector<TableRow> out;
  for (const SettingInfo& info : settings()) {
    out.push_back({std::string(info.name),
                   {{"default", std::string(info.fallback)}, {"about", std::string(info.about)}}});
  }
  return out;
}

constexpr auto kTables = std::to_array<TableMaker<>>({
    {"architectures", architecture_rows},
    {"backends", backend_rows},
    {"backend-names", alias_rows},
    {"dtypes", dtype_rows},
    {"settings", setting_rows},
});

// How the comparison of engines (--list engines) describes this one.
constexpr Descriptor kDescriptor = {
    .dispatch_key = "architectures[0]",
    .registry_form = "static index of modules, and a registry that loading them fills",
    .lazy_import = "yes: a look-up loads the provider first",
    .external_models = "shared objects of --custom-module-dirs; the last one wins",
    .backend_selection = "the first row of the capability table that claims what a layer needs",
    .kv_dtype = "--kv; f32 without it",
    .compatibility = "the capability table, before a layer is built",
    .on_mismatch = "refuses, with every reason of every backend",
    .files = "lib/attention/backend_table.h, lib/registry/own_models.cpp",
};

bool admits(const Request& request, attention::BackendId wanted) {
  const Resolution resolution = resolve(request);
  return resolution.status == Status::kOk &&
         resolution.selected_backend == attention::backend_row(wanted).name;
}

// The device that this build has kernels for.
void add_cpu_edit(const Request& request, std::vector<Edit>& edits) {
  const auto cpu = hardware::find_device("cpu");
  if (!cpu || request.device.platform == hardware::Platform::kCpu) return;
  edits.push_back({.subject = "device",
                   .change = {.option = "--device cpu", .effect = "runs on the CPU"},
                   .apply = [device = *cpu](Request& changed) { changed.device = device; }});
}

class KernelpathEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "kernelpath"; }
  [[nodiscard]] std::string_view version() const override { return "0.1.0"; }
  [[nodiscard]] const Descriptor& descriptor() const override { return kDescriptor; }

  [[nodiscard]] Resolution resolve(const Request& request) const override {
    return kernelpath::resolve(request);
  }

  [[nodiscard]] Result<void> check(const Deployment& deployment,
                                   const Environment& /*environment*/) const override {
    KERNELPATH_CHECK_OK(read_launch(deployment));
    return {};
  }

  [[nodiscard]] Result<WhyNot> why_not(const Request& request,
                                       std::string_view backend) const override {
    KERNELPATH_TRY(named, attention::find_backend(backend));
    Request asked = request;
    asked.deployment.backend = std::string(backend);
    const auto admitted = [id = named.id](const Request& changed) { return admits(changed, id); };
    WhyNot out;
    out.admitted = admitted(asked);
    if (out.admitted) return out;
    for (const Step& step : kernelpath::resolve(asked).steps) {
      if (step.verdict == Verdict::kRejected) out.refusals.push_back(step);
    }
    static constexpr auto kNames =
        std::to_array<std::string_view>({"f32", "bf16", "f16", "fp8_e4m3", "fp8_e5m2", "nvfp4"});
    std::vector<Edit> edits;
    add_cpu_edit(asked, edits);
    add_kv_dtype_edits(asked, kNames, edits);
    add_option_undo_edits(asked, edits);
    out.remedies = find_remedies(asked, edits, admitted);
    return out;
  }

  // There are no recorded answers of another engine to be compared with.
  [[nodiscard]] Result<json::Value> answer(std::string_view op,
                                           const json::Value& /*in*/) const override {
    return fail({.code = ErrorCode::kUsageUnknown,
                 .message = "kernelpath answers no recorded questions: ask for a resolution",
                 .where = "/op",
                 .value = shorten(op, 64)});
  }

  [[nodiscard]] std::span<const RuleInfo> rules() const override { return kernelpath::rules(); }

  [[nodiscard]] std::vector<std::string> table_kinds() const override { return kinds_of(kTables); }

  [[nodiscard]] std::vector<TableRow> table(std::string_view kind) const override {
    return rows_of(kTables, kind);
  }
};

}  // namespace

const Engine& engine() {
  static const KernelpathEngine kEngine;
  return kEngine;
}

}  // namespace kernelpath::engines::kernelpath
