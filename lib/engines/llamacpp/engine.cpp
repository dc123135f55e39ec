#include "engines/llamacpp/engine.h"

#include "base/text.h"
#include "engines/llamacpp/answer.h"
#include "engines/llamacpp/arguments.h"
#include "engines/llamacpp/profile.h"
#include "engines/llamacpp/resolve.h"
#include "engines/llamacpp/rules.h"
#include "engines/remedy_search.h"
#include "engines/table_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kName = "llamacpp";
// What --backend takes: flash attention is the one choice of an attention backend.
constexpr std::array<std::string_view, 3> kBackends = {"auto", "on", "off"};

std::optional<Profile>& profile_override() {
  static std::optional<Profile> profile;
  return profile;
}

const Profile& active_profile() {
  return profile_override() ? *profile_override() : built_in_profile();
}

std::string yes_no(bool value) { return value ? "yes" : "no"; }

std::vector<TableRow> architecture_rows() {
  std::vector<TableRow> out;
  for (const ConverterRow& row : active_profile().converter) {
    out.push_back({row.architecture,
                   {{"gguf", row.gguf}, {"converter", row.converter}, {"module", row.module}}});
  }
  return out;
}

std::vector<TableRow> gguf_rows() {
  std::vector<TableRow> out;
  for (const ArchitectureRow& row : active_profile().architectures) {
    out.push_back({row.name,
                   {{"class", row.class_name.empty() ? "-" : row.class_name},
                    {"recurrent", yes_no(row.recurrent)},
                    {"hybrid", yes_no(row.hybrid)},
                    {"memory", yes_no(!row.no_memory)},
                    {"tensor split", yes_no(!row.no_tensor_split)}}});
  }
  return out;
}

std::vector<TableRow> backend_rows() {
  return {{"auto", {{"about", "on where every layer's device serves the operation"}}},
          {"on", {{"about", "ggml_flash_attn_ext; never probed"}}},
          {"off", {{"about", "matrix products and ggml_soft_max_ext"}}}};
}

std::vector<TableRow> kernel_rows() {
  return {{"fattn-vec", {{"about", "one or two tokens, head sizes 64, 128 and 256"}}},
          {"fattn-tile", {{"about", "no tensor cores, or head sizes 40 and 72"}}},
          {"fattn-mma-f16", {{"about", "tensor cores since Volta, matrix cores of AMD"}}}};
}

std::vector<TableRow> cache_type_rows() {
  std::vector<TableRow> out;
  for (const std::string& name : active_profile().cache_types) {
    const checkpoint::GgmlType* type = checkpoint::find_ggml_type(name);
    out.push_back({name,
                   {{"elements of a block", std::to_string(type->block)},
                    {"bytes of a block", std::to_string(type->bytes)}}});
  }
  return out;
}

std::vector<TableRow> type_rows() {
  std::vector<TableRow> out;
  for (const checkpoint::GgmlType& type : checkpoint::ggml_types()) {
    out.push_back({std::string(type.name),
                   {{"elements of a block", std::to_string(type.block)},
                    {"bytes of a block", std::to_string(type.bytes)}}});
  }
  return out;
}

std::vector<TableRow> setting_rows() {
  std::vector<TableRow> out;
  for (const SettingInfo& row : setting_table()) {
    out.push_back({std::string(row.name),
                   {{"default", std::string(row.default_value)},
                    {"option", std::string(row.option)},
                    {"about", std::string(row.about)}}});
  }
  return out;
}

std::vector<TableRow> variable_rows() {
  std::vector<TableRow> out = {
      {"LLAMA_ATTN_ROT_DISABLE", {{"about", "quantised caches are not rotated"}}},
      {"CUDA_VISIBLE_DEVICES", {{"about", "the GPUs that the engine sees"}}}};
  for (const SettingInfo& row : setting_table()) {
    if (row.variable.empty()) continue;
    out.push_back({std::string(row.variable), {{"about", fmt::format("states {}", row.name)}}});
    if (row.name == "kv_unified" || row.name == "kv_offload") {
      std::string negative(row.variable);
      negative.replace(0, std::string_view("LLAMA_ARG_").size(), "LLAMA_ARG_NO_");
      out.push_back({negative, {{"about", fmt::format("turns {} off, whatever it is", row.name)}}});
    }
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
    {"gguf-architectures", gguf_rows},
    {"backends", backend_rows},
    {"kernels", kernel_rows},
    {"gguf-types", type_rows},
    {"kv-dtypes", cache_type_rows},
    {"packages", [] { return std::vector<TableRow>{}; }},
    {"settings", setting_rows},
    {"variables", variable_rows},
    {"sources", source_rows},
});

// --- why not -------------------------------------------------------------------------------------

bool is_admitted(const Resolution& resolution, std::string_view backend) {
  if (resolution.error) return false;
  if (resolution.status == Status::kFallback) return false;
  return backend == "auto" || resolution.selected_backend == backend;
}

std::vector<Step> refusals_of(const Resolution& resolution) {
  std::vector<Step> out;
  for (const Step& step : resolution.steps) {
    const bool decides = step.rule == resolution.fallback_rule;
    if (step.severity == Severity::kError || decides) out.push_back(step);
  }
  return out;
}

std::vector<Edit> edits_for(const Request& request) {
  std::vector<Edit> out;
  add_undo_edits(request, kName, {}, out);
  for (const std::string& type : active_profile().cache_types) {
    if (request.deployment.kv_dtype.value_or("f16") == type) continue;
    out.push_back({.subject = "kv",
                   .change = {"--kv-cache-dtype " + type, "K and V in " + type},
                   .apply = [type](Request& changed) {
                     remove_setting(changed, "cache_type_k");
                     remove_setting(changed, "cache_type_v");
                     changed.deployment.kv_dtype = type;
                   }});
  }
  const std::vector<Edit> devices = device_edits(request);
  out.insert(out.end(), devices.begin(), devices.end());
  return out;
}

// How the comparison of engines (--list engines) describes this one.
constexpr Descriptor kDescriptor = {
    .dispatch_key = "general.architecture of the GGUF file, which the converter wrote",
    .registry_form = "an enumeration and a table of names, compiled in",
    .lazy_import = "does not apply",
    .external_models = "none: a new build",
    .backend_selection =
        "an operation at a time, by device, types and shape; flash attention by "
        "option flash_attn",
    .kv_dtype = "options cache_type_k and cache_type_v",
    .compatibility = "when the context is created and its graph is built",
    .on_mismatch = "another kernel or the CPU, or an error",
    .files = "src/llama-arch.cpp, src/llama-context.cpp, ggml/src/ggml-cuda/fattn.cu",
};

class LlamacppEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::string_view version() const override { return active_profile().version; }
  [[nodiscard]] const Descriptor& descriptor() const override { return kDescriptor; }

  [[nodiscard]] Resolution resolve(const Request& request) const override {
    return llamacpp::resolve(request, active_profile());
  }

  [[nodiscard]] Result<void> check(const Deployment& deployment,
                                   const Environment& environment) const override {
    KERNELPATH_CHECK_OK(Arguments::read(active_profile(), deployment, environment));
    return {};
  }

  [[nodiscard]] Result<WhyNot> why_not(const Request& request,
                                       std::string_view backend) const override {
    const std::string wanted = to_lower(backend);
    if (std::ranges::find(kBackends, wanted) == kBackends.end()) {
      return fail({.code = ErrorCode::kUsageUnknown,
                   .message = "llamacpp has auto, on and off: whether flash attention is used",
                   .where = "--why-not",
                   .value = shorten(backend, 64),
                   .near_matches = near_matches(wanted, kBackends)});
    }
    Request asked = request;
    remove_setting(asked, "flash_attn");
    asked.deployment.backend = wanted;
    const Resolution resolution = resolve(asked);
    WhyNot out;
    out.admitted = is_admitted(resolution, wanted);
    if (out.admitted) return out;
    out.refusals = refusals_of(resolution);
    const auto admitted = [&](const Request& changed) {
      return is_admitted(resolve(changed), wanted);
    };
    out.remedies = find_remedies(asked, edits_for(asked), admitted, {.most_attempts = 500});
    return out;
  }

  [[nodiscard]] Result<json::Value> answer(std::string_view op,
                                           const json::Value& in) const override {
    return answer_op(active_profile(), op, in);
  }

  [[nodiscard]] std::span<const RuleInfo> rules() const override { return rule_table(); }

  [[nodiscard]] std::vector<std::string> table_kinds() const override { return kinds_of(kTables); }

  [[nodiscard]] std::vector<TableRow> table(std::string_view kind) const override {
    return rows_of(kTables, kind);
  }
};

}  // namespace

const Engine& engine() {
  static const LlamacppEngine kEngine;
  return kEngine;
}

Result<void> use_profile_folder(const std::string& folder) {
  KERNELPATH_TRY(profile, load_profile(folder));
  profile_override() = std::move(profile);
  return {};
}

}  // namespace kernelpath::engines::llamacpp
