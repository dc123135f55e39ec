#include "engines/sglang/engine_rows.h"

#include "base/text.h"
#include "engines/sglang/arguments.h"
#include "engines/sglang/packages.h"
#include "engines/table_list.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::sglang {
namespace {

std::string or_dash(std::string text) { return text.empty() ? "-" : std::move(text); }

std::vector<TableRow> architecture_rows(const Profile& profile) {
  std::vector<TableRow> out;
  for (const ArchitectureRow& row : profile.architectures) {
    const auto rules = profile.overrides.find(row.architecture);
    out.push_back({row.architecture,
                   {{"module", row.module},
                    {"rules", rules == profile.overrides.end() ? "-" : join(rules->second, " ")}}});
  }
  return out;
}

std::vector<TableRow> backend_rows(const Profile& profile) {
  std::vector<TableRow> out;
  for (const BackendRow& row : profile.backends) {
    out.push_back({row.name,
                   {{"builds", or_dash(join(row.builds, " "))},
                    {"refuses", or_dash(join(row.refuses, " "))}}});
  }
  return out;
}

std::vector<TableRow> choice_rows(const Profile& profile, std::string_view argument,
                                  std::initializer_list<std::string_view> short_names) {
  std::vector<TableRow> out;
  const ArgumentRow* row = profile.find_argument(argument);
  if (row == nullptr) return out;
  for (const std::string& name : row->choices) {
    out.push_back({name, {{"about", name == "auto" ? "the model's" : "-"}}});
  }
  for (const std::string_view name : short_names) {
    out.push_back({std::string(name), {{"about", "this program's short name"}}});
  }
  return out;
}

std::vector<TableRow> dtype_rows(const Profile& profile) {
  return choice_rows(profile, "dtype", {"bf16", "fp16", "f16", "fp32"});
}

std::vector<TableRow> kv_dtype_rows(const Profile& profile) {
  return choice_rows(profile, "kv_cache_dtype", {"fp8"});
}

std::vector<TableRow> package_rows(const Profile& /*profile*/) {
  std::vector<TableRow> out;
  out.reserve(kPackages.size());
  for (const Package& package : kPackages) {
    out.push_back({std::string(package.name), {{"about", std::string(package.about)}}});
  }
  return out;
}

std::vector<TableRow> setting_rows(const Profile& profile) {
  std::vector<TableRow> out;
  for (const ArgumentRow& row : profile.arguments) {
    if (row.name.starts_with("_")) continue;
    const std::string value = row.default_value.is_string() ? row.default_value.as_string()
                                                            : python_json(row.default_value);
    out.push_back({row.name,
                   {{"default", or_dash(value)},
                    {"type", row.type},
                    {"choices", or_dash(join(row.choices, " "))}}});
  }
  return out;
}

// Variables that some rule here reads.
std::vector<TableRow> variable_rows(const Profile& /*profile*/) {
  using Row = std::pair<std::string_view, std::string_view>;
  constexpr std::array kRead = {
      Row{"SGLANG_AITER_KV_CACHE_LAYOUT", "vectorized_5d: pages of 64 tokens on ROCm"},
      Row{"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
          "1: a context longer than the model's is no error"},
      Row{"SGLANG_DISABLE_M3_FP8_ATTN_GEMM", "1: MiniMax M3 keeps its attention in bfloat16"},
      Row{"SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS",
          "refused: the release reads --sampling-mask-max-tokens"},
      Row{"SGLANG_DISAGG_STAGING_BUFFER", "1: transfers go through a staging buffer"},
      Row{"SGLANG_DSV4_FP4_DEQUANT", "1: DeepSeek-V4's FP4 experts are unpacked"},
      Row{"SGLANG_ENABLE_POST_CAPTURE_KV_SIZING",
          "1: the cache is sized after the graphs are captured, so that no room is estimated"},
      Row{"SGLANG_EXPERIMENTAL_LORA_OPTI", "1: older correction kernels of LoRA"},
      Row{"SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16", "1: CuteDSL runs NVFP4 experts as W4A16"},
      Row{"SGLANG_GRPC_PORT", "port of the native gRPC server"},
      Row{"SGLANG_M3_ALLOW_CUSTOM_AR", "1: MiniMax M3 keeps the engine's own all-reduce"},
      Row{"SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK",
          "tokens that MegaMoE's buffer holds"},
      Row{"SGLANG_RAGGED_VERIFY_MODE", "how DSPARK's verification packs requests"},
      Row{"SGLANG_RUST_SERVER", "1: the front end is the Rust one"},
      Row{"SGLANG_SKIP_SOFTMAX_PREFILL_THRESHOLD_SCALE_FACTOR",
          "trtllm_mha's prefill skips small softmax terms, which SM120 refuses"},
      Row{"SGLANG_SYMM_MEM_PREALLOC_GB_SIZE", "GB that symmetric memory takes in advance"},
      Row{"SGLANG_USE_AITER", "1: AITER's kernels on AMD devices"},
      Row{"SGLANG_USE_AITER_UNIFIED_ATTN", "1: AITER's unified attention on AMD devices"},
      Row{"SGLANG_USE_IPC_POOL_HANDLE_CACHE", "0: no cache of CUDA IPC handles"}};
  std::vector<TableRow> out;
  out.reserve(kRead.size());
  for (const auto& [name, effect] : kRead) {
    out.push_back({std::string(name), {{"effect here", std::string(effect)}}});
  }
  return out;
}

constexpr auto kTables = std::to_array<TableMaker<Profile>>({
    {"architectures", architecture_rows},
    {"backends", backend_rows},
    {"dtypes", dtype_rows},
    {"kv-dtypes", kv_dtype_rows},
    {"packages", package_rows},
    {"settings", setting_rows},
    {"variables", variable_rows},
});

}  // namespace

std::vector<std::string> table_kinds() { return kinds_of(kTables); }

std::vector<TableRow> table_rows(const Profile& profile, std::string_view kind) {
  return rows_of(kTables, kind, profile);
}

}  // namespace kernelpath::engines::sglang
