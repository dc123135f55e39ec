#include "engines/trtllm/engine.h"

#include "base/text.h"
#include "engines/table_list.h"
#include "engines/trtllm/answer_backend.h"
#include "engines/trtllm/answer_resolve.h"
#include "engines/trtllm/arguments.h"
#include "engines/trtllm/backend_contract.h"
#include "engines/trtllm/dispatch.h"
#include "engines/trtllm/fmha_libraries.h"
#include "engines/trtllm/kv_dtype.h"
#include "engines/trtllm/modeling_v2.h"
#include "engines/trtllm/packages.h"
#include "engines/trtllm/profile.h"
#include "engines/trtllm/resolve.h"
#include "engines/trtllm/rules_backend.h"
#include "engines/trtllm/rules_engine.h"
#include "engines/trtllm/rules_resolve.h"
#include "engines/trtllm/why_not.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace kernelpath::engines::trtllm {
namespace {

std::optional<Profile>& profile_override() {
  static std::optional<Profile> profile;
  return profile;
}

const Profile& active_profile() {
  return profile_override() ? *profile_override() : built_in_profile();
}

std::string_view yes_no(bool value) { return value ? "yes" : "no"; }

std::vector<TableRow> architecture_rows() {
  std::vector<TableRow> out;
  for (const ArchitectureRow& row : active_profile().architectures) {
    out.push_back(
        {row.architecture,
         {{"module", row.module},
          {"class", row.class_name.value_or("-")},
          {"established by", row.established_by},
          {"kinds", join(row.kinds, " ")},
          {"vision encoder", row.vision_encoder ? row.vision_encoder->class_name : "-"}}});
  }
  return out;
}

std::vector<TableRow> backend_rows() {
  std::vector<TableRow> out;
  for (const BackendCapability& row : backend_capabilities()) {
    out.push_back({std::string(row.backend_class),
                   {{"base", row.base_class.empty() ? "-" : std::string(row.base_class)},
                    {"fused rope", std::string(yes_no(row.fused_rope))},
                    {"fused qkv", std::string(yes_no(row.fused_qkv))},
                    {"mla", std::string(yes_no(row.mla))},
                    {"chunked attention", std::string(yes_no(row.chunked_attention))},
                    {"kv layout", std::string(row.kv_layout)},
                    {"file", std::string(row.file)}}});
  }
  return out;
}

std::vector<TableRow> backend_name_rows() {
  std::vector<TableRow> out;
  for (const std::string_view name : outer_backend_names()) out.push_back({std::string(name), {}});
  return out;
}

std::vector<TableRow> dtype_rows() {
  std::vector<TableRow> out = {{"auto", {{"about", "the model's"}}}};
  for (const std::string_view name : data_type_names()) {
    const DataType type = parse_data_type(name).value();
    out.push_back({std::string(name), {{"about", std::string(data_type_name(type))}}});
  }
  return out;
}

std::vector<TableRow> kv_dtype_rows() {
  std::vector<TableRow> out;
  for (const std::string_view name : kv_dtype_names()) out.push_back({std::string(name), {}});
  return out;
}

std::vector<TableRow> library_rows() {
  std::vector<TableRow> out;
  for (const FmhaLibrary& row : fmha_libraries()) {
    out.push_back({std::string(row.name),
                   {{"on by default", std::string(yes_no(row.on_by_default))},
                    {"split by phase", std::string(yes_no(row.phased))},
                    {"skip correction", std::string(yes_no(row.supports_skip_correction))},
                    {"needs", std::string(row.needs)},
                    {"file", std::string(row.file)}}});
  }
  return out;
}

std::vector<TableRow> setting_rows() {
  std::vector<TableRow> out;
  for (const ArgumentInfo& row : argument_table()) {
    const std::string_view value = row.default_value.empty() ? "null" : row.default_value;
    out.push_back({std::string(row.name),
                   {{"default", std::string(value)},
                    {"option", row.option.empty() ? "-" : std::string(row.option)},
                    {"about", std::string(row.about)}}});
  }
  return out;
}

std::vector<TableRow> package_rows() {
  std::vector<TableRow> out;
  out.reserve(kPackages.size());
  for (const Package& row : kPackages) {
    out.push_back({std::string(row.name),
                   {{"package", std::string(row.pip_name)}, {"about", std::string(row.about)}}});
  }
  return out;
}

// Environment variables that the resolution or a rule reads; any other one has no effect.
std::vector<TableRow> variable_rows() {
  return {
      {"TLLM_FMHA_LIBS",
       {{"about", "FMHA libraries of TRTLLM in order (a,b), or changes of the default (+a,-b)"}}},
      {"TRTLLM_SKIP_KV_CACHE_ESTIMATION",
       {{"about", "1: the run that sizes the KV pool is left out"}}}};
}

std::vector<TableRow> config_type_rows() {
  std::vector<TableRow> out;
  for (const ConfigTypeRow& row : active_profile().config_types) {
    out.push_back({row.model_type, {{"config class", row.config_class}}});
  }
  return out;
}

std::vector<TableRow> index_rows(const registry::IndexTable& table, std::string_view column) {
  std::vector<TableRow> out;
  for (const auto& [name, module] : table.rows()) {
    out.push_back({name, {{std::string(column), module}}});
  }
  return out;
}

std::vector<TableRow> source_rows() {
  std::vector<TableRow> out;
  for (const TableSource& row : active_profile().sources) {
    out.push_back(
        {row.file, {{"tag", row.tag}, {"repository", row.repository}, {"commit", row.commit}}});
  }
  return out;
}

constexpr auto kTables = std::to_array<TableMaker<>>({
    {"architectures", architecture_rows},
    {"backends", backend_name_rows},
    {"backend-classes", backend_rows},
    {"dtypes", dtype_rows},
    {"kv-dtypes", kv_dtype_rows},
    {"fmha-libraries", library_rows},
    {"packages", package_rows},
    {"settings", setting_rows},
    {"variables", variable_rows},
    {"spec-modes", [] { return index_rows(active_profile().index.spec_modes, "module"); }},
    {"model-classes", [] { return index_rows(active_profile().index.classes, "module"); }},
    {"config-types", config_type_rows},
    {"sources", source_rows},
});

// What the engine itself does with a backend name that it does not know.
Error unknown_backend(const std::string& name, const std::string& where) {
  std::vector<std::string> names(outer_backend_names().begin(), outer_backend_names().end());
  return {
      .code = ErrorCode::kUsageUnknown,
      .message = fmt::format(
          "trtllm has no backend of this name; it has {}. The engine does not check the name: it "
          "would warn and run TRTLLM, and drop sparse attention [TRT-ATTN-FALLBACK]",
          join_words(names)),
      .where = where,
      .value = shorten(name, 64),
      .near_matches = near_matches(name, outer_backend_names())};
}

Result<void> check_backend(const Arguments& arguments) {
  const std::string name = arguments.text("attn_backend").value_or("");
  const auto names = outer_backend_names();
  const bool known = std::any_of(names.begin(), names.end(), [&](std::string_view backend) {
    return equal_ignoring_case(backend, name);
  });
  if (known) return {};
  return fail(unknown_backend(name, arguments.set_by("attn_backend")));
}

// How the comparison of engines (--list engines) describes this one.
constexpr Descriptor kDescriptor = {
    .dispatch_key = "architectures[0], rewritten by suffix and for drafts",
    .registry_form = "static index of modules, and tables that decorators fill on import",
    .lazy_import = "yes: the one module that the index names, when its class is asked for",
    .external_models = "declared modules, which win their slot",
    .backend_selection =
        "option attn_backend, dispatched by name; the inner kernel by a chain of "
        "FMHA libraries at each call",
    .kv_dtype = "option kv_cache_config.dtype; auto: the checkpoint's quantisation",
    .compatibility = "at dispatch and when the attention module is built, then at each call",
    .on_mismatch = "falls back with a log line, or an error",
    .files =
        "_torch/models/modeling_auto.py, _torch/models/_arch_index.py, "
        "_torch/attention/backends/utils.py",
};

class TrtllmEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "trtllm"; }
  [[nodiscard]] std::string_view version() const override { return active_profile().version; }
  [[nodiscard]] const Descriptor& descriptor() const override { return kDescriptor; }

  [[nodiscard]] Resolution resolve(const Request& request) const override {
    return trtllm::resolve(request, active_profile());
  }

  [[nodiscard]] Result<void> check(const Deployment& deployment,
                                   const Environment& /*environment*/) const override {
    KERNELPATH_TRY(arguments, Arguments::read(deployment));
    KERNELPATH_CHECK_OK(check_backend(arguments));
    KERNELPATH_CHECK_OK(parse_modeling_v2(arguments.text("modeling_v2").value_or("off")));
    return {};
  }

  [[nodiscard]] Result<WhyNot> why_not(const Request& request,
                                       std::string_view backend) const override {
    return trtllm::why_not(request, backend, active_profile());
  }

  [[nodiscard]] Result<json::Value> answer(std::string_view op,
                                           const json::Value& in) const override {
    const json::Value* inner = in.find("op");
    const std::string asked =
        inner != nullptr && inner->is_string() ? inner->as_string() : std::string(op);
    const auto ops = backend_ops();
    if (std::find(ops.begin(), ops.end(), asked) != ops.end()) return answer_backend(in);
    if (is_resolve_op(asked)) return answer_resolve(in, active_profile());
    return fail({.code = ErrorCode::kBatchRequest,
                 .message = "trtllm answers no such op",
                 .where = "/in/op",
                 .value = shorten(asked, 64),
                 .near_matches = near_matches(asked, ops)});
  }

  [[nodiscard]] std::span<const RuleInfo> rules() const override {
    static const std::vector<RuleInfo> kRules = [] {
      std::vector<RuleInfo> all(resolve_rules().begin(), resolve_rules().end());
      all.insert(all.end(), backend_rules().begin(), backend_rules().end());
      all.insert(all.end(), engine_rules().begin(), engine_rules().end());
      return all;
    }();
    return kRules;
  }

  [[nodiscard]] std::vector<std::string> table_kinds() const override { return kinds_of(kTables); }

  [[nodiscard]] std::vector<TableRow> table(std::string_view kind) const override {
    return rows_of(kTables, kind);
  }
};

}  // namespace

const Engine& engine() {
  static const TrtllmEngine kEngine;
  return kEngine;
}

Result<void> use_profile_folder(const std::string& folder) {
  KERNELPATH_TRY(profile, load_profile(folder));
  profile_override() = std::move(profile);
  return {};
}

}  // namespace kernelpath::engines::trtllm
