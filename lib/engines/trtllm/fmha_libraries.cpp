#include "engines/trtllm/fmha_libraries.h"

#include "base/text.h"
#include "engines/trtllm/attention_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::engines::trtllm {
namespace {

constexpr std::array kLibraries = {
    FmhaLibrary{"triton_custom_mask", true, true, false,
                "two native ops, heads divisible by KV heads; serves 16-bit custom-mask context",
                "triton_custom_mask.py"},
    FmhaLibrary{"prims_ts", true, false, false, "off by default; its checks were not read",
                "prims_ts.py"},
    FmhaLibrary{"cute_dsl_mla", true, true, false,
                "package nvidia-cutlass-dsl, SM100 or SM103, dense MLA of 512 + 64, at most 128 "
                "heads",
                "cute_dsl_mla.py"},
    FmhaLibrary{"msa_sparse_gqa", false, true, false,
                "called by its own sparse backend only; refuses every ordinary request",
                "msa_sparse_gqa.py"},
    FmhaLibrary{"flashinfer_sparse_mla", false, true, false,
                "SM120 or SM121, MLA, KV cache dtype fp8_ds_mla, dsa or deepseek_v4",
                "flashinfer_sparse_mla.py"},
    FmhaLibrary{"flashinfer_trtllm_gen", true, true, false,
                "package flashinfer, native ops, SM100 or SM103, no skip-softmax, heads divisible "
                "by KV heads",
                "flashinfer_trtllm_gen.py"},
    FmhaLibrary{"fallback", true, true, true,
                "not dsa or deepseek_v4 with fp8_ds_mla or on SM120 and SM121", "fallback.py"},
};

struct TypeName {
  std::string_view name;
  DataType type;
};

// The first spelling of each type is the one that is printed.
constexpr std::array kTypeNames = {
    TypeName{"bf16", DataType::kBf16},         TypeName{"bfloat16", DataType::kBf16},
    TypeName{"fp16", DataType::kFp16},         TypeName{"float16", DataType::kFp16},
    TypeName{"half", DataType::kFp16},         TypeName{"fp8", DataType::kFp8},
    TypeName{"float8_e4m3fn", DataType::kFp8}, TypeName{"fp8_e4m3", DataType::kFp8},
    TypeName{"nvfp4", DataType::kNvfp4},       TypeName{"fp4", DataType::kNvfp4},
    TypeName{"fp32", DataType::kFp32},         TypeName{"float32", DataType::kFp32},
};

bool is_sm100_or_103(int sm) { return sm == 100 || sm == 103; }
bool is_sm120_or_121(int sm) { return sm == 120 || sm == 121; }
bool is_16_bit(DataType type) { return type == DataType::kFp16 || type == DataType::kBf16; }

bool heads_divisible(const FmhaLayer& layer) {
  return layer.num_heads > 0 && layer.num_kv_heads > 0 && layer.num_heads % layer.num_kv_heads == 0;
}

bool has_latent_sparse(const FmhaLayer& layer) {
  return layer.sparse_algorithm == "dsa" || layer.sparse_algorithm == "deepseek_v4";
}

EngineError env_error(std::string code, std::string message) {
  return EngineError{.type = "ValueError",
                     .code = std::move(code),
                     .message = std::move(message),
                     .near_matches = {}};
}

EngineError unknown_library(std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(kLibraries.size());
  for (const FmhaLibrary& library : kLibraries) names.push_back(library.name);
  EngineError error = env_error(
      fmt::format("FMHA-ENV-UNKNOWN:{}", name),
      fmt::format("TLLM_FMHA_LIBS names '{}'; known are {}", name, fmt::join(names, ", ")));
  error.near_matches = near_matches(name, names);
  return error;
}

bool is_delta(std::string_view entry) { return entry.front() == '+' || entry.front() == '-'; }

FmhaList apply_deltas(std::span<const std::string> entries) {
  std::array<bool, kLibraries.size()> enabled{};
  for (std::size_t i = 0; i < kLibraries.size(); ++i) enabled[i] = kLibraries[i].on_by_default;
  for (const std::string& entry : entries) {
    const std::string_view name = trim(std::string_view(entry).substr(1));
    if (name.empty()) {
      return {{},
              env_error("FMHA-ENV-EMPTY",
                        fmt::format("TLLM_FMHA_LIBS has '{}' without a library name", entry))};
    }
    const FmhaLibrary* library = find_fmha_library(name);
    if (library == nullptr) return {{}, unknown_library(name)};
    enabled[static_cast<std::size_t>(library - kLibraries.data())] = entry.front() == '+';
  }
  FmhaList list;
  for (std::size_t i = 0; i < kLibraries.size(); ++i) {
    if (enabled[i]) list.names.emplace_back(kLibraries[i].name);
  }
  return list;
}

FmhaList exact_list(std::span<const std::string> entries) {
  FmhaList list;
  for (const std::string& entry : entries) {
    if (find_fmha_library(entry) == nullptr) return {{}, unknown_library(entry)};
    if (std::find(list.names.begin(), list.names.end(), entry) == list.names.end()) {
      list.names.push_back(entry);
    }
  }
  return list;
}

std::string cute_dsl_unavailable(const FmhaLayer& layer) {
  if (!layer.cute_dsl_available) return "package nvidia-cutlass-dsl is not installed";
  if (!is_sm100_or_103(layer.sm)) return fmt::format("needs SM100 or SM103, not SM{}", layer.sm);
  if (!layer.mla) return "serves MLA only";
  if (!layer.sparse_algorithm.empty()) return "cannot follow sparse attention's indices";
  if (layer.kv_lora_rank != 512 || layer.qk_rope_head_dim != 64) {
    return "kernels exist for kv_lora_rank 512 with qk_rope_head_dim 64 only";
  }
  if (layer.num_heads > 128) return fmt::format("at most 128 heads, not {}", layer.num_heads);
  return {};
}

std::string sparse_mla_unavailable(const FmhaLayer& layer) {
  if (!layer.mla || layer.kv_cache_dtype != "fp8_ds_mla") return "needs MLA with fp8_ds_mla cache";
  if (!has_latent_sparse(layer)) return "serves dsa and deepseek_v4 only";
  if (!is_sm120_or_121(layer.sm)) return fmt::format("needs SM120 or SM121, not SM{}", layer.sm);
  if (!layer.flashinfer_available) return "package flashinfer is not installed";
  return {};
}

std::string trtllm_gen_unavailable(const FmhaLayer& layer) {
  if (!layer.flashinfer_available) return "package flashinfer is not installed";
  if (!layer.native_ops_available) return "this build lacks the fused native ops";
  if (!is_sm100_or_103(layer.sm)) return fmt::format("needs SM100 or SM103, not SM{}", layer.sm);
  if (layer.sparse_algorithm == "skip_softmax") return "does not serve skip_softmax";
  if (!heads_divisible(layer)) {
    return fmt::format("{} heads do not divide by {} KV heads", layer.num_heads,
                       layer.num_kv_heads);
  }
  return {};
}

std::string fallback_unavailable(const FmhaLayer& layer) {
  if (!has_latent_sparse(layer)) return {};
  if (layer.kv_cache_dtype == "fp8_ds_mla") return "cannot read the fp8_ds_mla cache";
  if (is_sm120_or_121(layer.sm)) return "has no sparse MLA kernels for SM120 and SM121";
  return {};
}

std::string custom_mask_unavailable(const FmhaLayer& layer, bool custom_mask) {
  if (!custom_mask) return "serves context requests with a custom mask only";
  if (!layer.native_ops_available) return "this build lacks the fused native ops";
  if (!heads_divisible(layer)) return "heads do not divide by KV heads";
  return {};
}

// --- flashinfer_trtllm_gen
// ------------------------------------------------------------------------

constexpr std::int64_t kMaxHeadsRatio = 32;
constexpr std::int64_t kMinTokensPerBlock = 8;
constexpr std::int64_t kSmallContextBatch = 4;

bool is_low_precision(DataType type) { return type == DataType::kFp8 || type == DataType::kNvfp4; }

bool is_context(const FmhaRequest& request, FmhaPhase phase) {
  if (phase == FmhaPhase::kWhole) return request.input != FmhaInput::kGenerationOnly;
  return phase == FmhaPhase::kContext;
}

bool is_generation(const FmhaRequest& request, FmhaPhase phase) {
  if (phase == FmhaPhase::kWhole) return request.input != FmhaInput::kContextOnly;
  return phase == FmhaPhase::kGeneration;
}

bool dtypes_supported(DataType q, const FmhaRequest& request, bool generation) {
  const DataType kv = request.kv;
  const DataType out = request.output;
  if (is_16_bit(q)) {
    return out == q && (kv == q || (generation && kv == DataType::kFp8));
  }
  return q == DataType::kFp8 && is_low_precision(kv) && (is_16_bit(out) || out == DataType::kFp8);
}

// The small-batch rule keeps the time to first token; it does not apply where the fallback could
// not serve the request (head_dim 512) or would lose (cache of 8 or 4 bits).
bool is_small_bf16_context(const FmhaLayer& layer, const FmhaRequest& request, FmhaPhase phase) {
  return phase != FmhaPhase::kGeneration && !is_low_precision(request.kv) &&
         request.q == DataType::kBf16 && request.num_contexts > 0 &&
         request.num_contexts <= kSmallContextBatch && request.num_generations == 0 &&
         layer.head_dim != 512;
}

std::string_view trtllm_gen_common(const FmhaLayer& layer, const FmhaRequest& request,
                                   FmhaPhase phase) {
  if (is_small_bf16_context(layer, request, phase)) return "SMALL-BF16-CONTEXT";
  if (request.helix) return "HELIX";
  if (!layer.sparse_algorithm.empty()) return "SPARSE";
  if (request.relative_attention_bias) return "REL-BIAS";
  if (request.spec_tree) return "SPEC-TREE";
  if (layer.mla && is_context(request, phase)) return "MLA-CONTEXT";
  if (!request.paged) return "NON-PAGED";
  if (!layer.mla && !request.fused_qkv) return "NEEDS-FUSED-QKV";
  if (request.q != DataType::kFp8 && !is_16_bit(request.q)) return "INPUT-DTYPE";
  if (request.kv == DataType::kFp32) return "KV-DTYPE";
  if (request.output != DataType::kFp8 && !is_16_bit(request.output)) return "OUTPUT-DTYPE";
  return {};
}

std::string_view trtllm_gen_context(const FmhaLayer& layer, const FmhaRequest& request,
                                    DataType q) {
  if (layer.head_dim == 72 || layer.head_dim == 80 || layer.head_dim == 96) return "CTX-HEAD-DIM";
  if (request.custom_mask) return "CTX-CUSTOM-MASK";
  if (request.alibi) return "CTX-ALIBI";
  if (!dtypes_supported(q, request, /*generation=*/false)) return "CTX-DTYPES";
  return {};
}

std::string_view trtllm_gen_mla(const FmhaLayer& layer, const FmhaRequest& request) {
  const std::int64_t rank = layer.kv_lora_rank.value_or(0);
  const std::int64_t rope = layer.qk_rope_head_dim.value_or(0);
  const bool known = (rank == 512 && rope == 64) || (rank == 256 && rope == 64);
  if (!known || layer.head_dim != rank + rope) return "MLA-DIMS";
  if (rank == 512 && request.tokens_per_block == 32) return "MLA-SLOWER-32";
  return {};
}

std::string_view trtllm_gen_generation(const FmhaLayer& layer, const FmhaRequest& request,
                                       DataType q) {
  if (request.beam_width != 1) return "GEN-BEAM";
  if (request.tokens_per_block < kMinTokensPerBlock) return "GEN-BLOCK";
  if (!layer.mla &&
      layer.num_heads / std::max<std::int64_t>(layer.num_kv_heads, 1) > kMaxHeadsRatio) {
    return "GEN-GQA-RATIO";
  }
  if (request.alibi) return "GEN-ALIBI";
  if (!dtypes_supported(q, request, /*generation=*/true)) return "GEN-DTYPES";
  if (layer.mla) return trtllm_gen_mla(layer, request);
  return {};
}

std::string_view trtllm_gen_refusal(const FmhaLayer& layer, const FmhaRequest& request,
                                    FmhaPhase phase) {
  if (const auto id = trtllm_gen_common(layer, request, phase); !id.empty()) return id;
  const bool context = is_context(request, phase);
  const bool fp8_query = request.output == DataType::kFp8 || request.kv == DataType::kNvfp4 ||
                         (request.kv == DataType::kFp8 && context);
  const DataType q = fp8_query ? DataType::kFp8 : request.q;
  if (context && !layer.mla) {
    if (const auto id = trtllm_gen_context(layer, request, q); !id.empty()) return id;
  }
  if (is_generation(request, phase)) {
    if (const auto id = trtllm_gen_generation(layer, request, q); !id.empty()) return id;
  }
  const std::int64_t block = request.tokens_per_block;
  if (block != 16 && block != 32 && block != 64) return "TOKENS-PER-BLOCK";
  return {};
}

// --- cute_dsl_mla
// ---------------------------------------------------------------------------------

struct MinimumBatch {
  std::int64_t num_heads;
  std::int64_t seq_len_q;
  std::int64_t batch;
};

// Where the FP8 kernel was measured to win; other shapes go to the next library.
constexpr std::array kFp8MinimumBatch = {
    MinimumBatch{6, 1, 1},    MinimumBatch{12, 1, 1},   MinimumBatch{16, 2, 64},
    MinimumBatch{16, 4, 32},  MinimumBatch{16, 8, 16},  MinimumBatch{96, 1, 1},
    MinimumBatch{128, 1, 64}, MinimumBatch{128, 2, 32},
};
constexpr std::array<std::int64_t, 4> kHeads16Bit = {6, 12, 16, 96};

std::string_view cute_dsl_performance(const FmhaLayer& layer, const FmhaRequest& request) {
  if (request.kv != DataType::kFp8) {
    const bool listed =
        std::find(kHeads16Bit.begin(), kHeads16Bit.end(), layer.num_heads) != kHeads16Bit.end();
    return listed ? std::string_view() : "PERF-HEADS";
  }
  const auto* row = std::find_if(
      kFp8MinimumBatch.begin(), kFp8MinimumBatch.end(), [&](const MinimumBatch& entry) {
        return entry.num_heads == layer.num_heads && entry.seq_len_q == request.seq_len_q;
      });
  if (row == kFp8MinimumBatch.end()) return "PERF-SHAPE";
  return request.num_generations < row->batch ? "PERF-BATCH" : std::string_view();
}

std::string_view cute_dsl_refusal(const FmhaLayer& layer, const FmhaRequest& request,
                                  FmhaPhase phase) {
  if (phase == FmhaPhase::kContext || request.input != FmhaInput::kGenerationOnly) return "PHASE";
  // 96 heads are let in: the next library may choose a tile that does not divide them.
  const bool context_rows = request.num_contexts != 0 && layer.num_heads != 96;
  if (context_rows || request.num_generations <= 0) return "MIXED-BATCH";
  if (request.beam_width != 1) return "BEAM";
  if (request.custom_mask || request.spec_tree) return "TREE";
  if (request.helix && request.seq_len_q != 1) return "HELIX-QUERY";
  if (const auto id = cute_dsl_performance(layer, request); !id.empty()) return id;
  if (request.kv == DataType::kFp8) return {};
  if (!is_16_bit(request.q)) return "INPUT-DTYPE";
  return request.kv == request.q ? std::string_view() : "KV-DTYPE";
}

// --- the others
// -----------------------------------------------------------------------------------

std::string_view custom_mask_refusal(const FmhaLayer& layer, const FmhaRequest& request,
                                     FmhaPhase phase) {
  if (phase != FmhaPhase::kContext) return "PHASE";
  if (!request.custom_mask) return "NO-CUSTOM-MASK";
  if (!request.paged) return "NON-PAGED";
  if (layer.mla) return "MLA-CONTEXT";
  if (!request.fused_qkv) return "NEEDS-FUSED-QKV";
  if (!is_16_bit(request.q)) return "INPUT-DTYPE";
  if (request.output != request.q) return "OUTPUT-DTYPE";
  if (!is_16_bit(request.kv)) return "KV-DTYPE";
  return {};
}

std::string_view fallback_refusal(const FmhaRequest& request) {
  if (request.q == DataType::kFp8) return "FP8-QUERY";
  if (request.custom_mask) return "CTX-CUSTOM-MASK";
  if (!request.update_kv_cache) return "NO-CACHE-UPDATE";
  return {};
}

}  // namespace

std::string_view data_type_name(DataType type) {
  const auto* row = std::find_if(kTypeNames.begin(), kTypeNames.end(),
                                 [&](const TypeName& entry) { return entry.type == type; });
  return row->name;
}

std::optional<DataType> parse_data_type(std::string_view name) {
  constexpr std::string_view kTorch = "torch.";
  if (name.substr(0, kTorch.size()) == kTorch) name.remove_prefix(kTorch.size());
  const auto* row = std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const TypeName& entry) {
    return equal_ignoring_case(entry.name, name);
  });
  if (row == kTypeNames.end()) return std::nullopt;
  return row->type;
}

std::vector<std::string_view> data_type_names() {
  std::vector<std::string_view> out;
  out.reserve(kTypeNames.size());
  for (const TypeName& entry : kTypeNames) out.push_back(entry.name);
  return out;
}

std::span<const FmhaLibrary> fmha_libraries() { return kLibraries; }

const FmhaLibrary* find_fmha_library(std::string_view name) {
  const auto* row = std::find_if(kLibraries.begin(), kLibraries.end(),
                                 [&](const FmhaLibrary& entry) { return entry.name == name; });
  return row == kLibraries.end() ? nullptr : row;
}

FmhaList parse_fmha_libs(const std::optional<std::string>& value) {
  std::vector<std::string> entries;
  for (const std::string& part : split(value.value_or(""), ',')) {
    const std::string_view entry = trim(part);
    if (!entry.empty()) entries.emplace_back(entry);
  }
  const auto deltas = std::count_if(entries.begin(), entries.end(), is_delta);
  if (deltas == static_cast<std::ptrdiff_t>(entries.size())) return apply_deltas(entries);
  if (deltas == 0) return exact_list(entries);
  return {{},
          env_error("FMHA-ENV-MIXED",
                    "TLLM_FMHA_LIBS mixes +/- entries with plain names; it takes either an exact "
                    "list or +/- entries only")};
}

std::string fmha_unavailable_reason(std::string_view library, const FmhaLayer& layer,
                                    bool custom_mask) {
  const FmhaLibrary* row = find_fmha_library(library);
  const double threshold =
      skip_correction_threshold(layer.sm, layer.mla, layer.skip_correction_threshold).effective;
  if (row != nullptr && threshold > 0 && !row->supports_skip_correction) {
    return "skip-correction is on, which only fallback supports";
  }
  if (library == "triton_custom_mask") return custom_mask_unavailable(layer, custom_mask);
  if (library == "cute_dsl_mla") return cute_dsl_unavailable(layer);
  if (library == "flashinfer_sparse_mla") return sparse_mla_unavailable(layer);
  if (library == "flashinfer_trtllm_gen") return trtllm_gen_unavailable(layer);
  if (library == "fallback") return fallback_unavailable(layer);
  return row == nullptr ? "no such library" : std::string(row->needs);
}

std::string_view fmha_refusal(std::string_view library, const FmhaLayer& layer,
                              const FmhaRequest& request, FmhaPhase phase) {
  if (library == "flashinfer_trtllm_gen") return trtllm_gen_refusal(layer, request, phase);
  if (library == "cute_dsl_mla") return cute_dsl_refusal(layer, request, phase);
  if (library == "triton_custom_mask") return custom_mask_refusal(layer, request, phase);
  if (library == "fallback") return fallback_refusal(request);
  return {};
}

}  // namespace kernelpath::engines::trtllm
