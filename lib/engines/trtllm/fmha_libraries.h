#pragma once

#include "engines/resolution.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// Element types that FMHA libraries look at.
enum class DataType : std::uint8_t { kFp32, kFp16, kBf16, kFp8, kNvfp4 };
std::string_view data_type_name(DataType type);  // "bf16"
// "bf16"/"bfloat16"/"torch.bfloat16", "fp8"/"float8_e4m3fn" …; nothing for an unknown name.
std::optional<DataType> parse_data_type(std::string_view name);
// The names that parse_data_type knows, without "torch.".
std::vector<std::string_view> data_type_names();

// What is fixed for a layer once its quantisation is known.
struct FmhaLayer {
  int sm = 90;
  bool mla = false;
  std::int64_t num_heads = 0;     // per rank
  std::int64_t num_kv_heads = 0;  // per rank
  std::int64_t head_dim = 0;      // MLA: of the instance asked, 576 for generation
  std::optional<std::int64_t> kv_lora_rank;
  std::optional<std::int64_t> qk_rope_head_dim;
  std::string sparse_algorithm;          // empty: dense
  std::string kv_cache_dtype = "auto";   // kv_cache_config.dtype; only "fp8_ds_mla" matters here
  double skip_correction_threshold = 0;  // as asked; its own rule may drop it
  bool flashinfer_available = true;
  bool cute_dsl_available = true;
  bool native_ops_available = true;  // the fused preprocessing ops of the engine's build
};

enum class FmhaInput : std::uint8_t { kMixed, kContextOnly, kGenerationOnly };
enum class FmhaPhase : std::uint8_t { kWhole, kContext, kGeneration };

// One forward call.
struct FmhaRequest {
  DataType q = DataType::kBf16;
  DataType kv = DataType::kBf16;
  DataType output = DataType::kBf16;
  std::int64_t tokens_per_block = 32;
  std::int64_t num_contexts = 0;
  std::int64_t num_generations = 0;
  FmhaInput input = FmhaInput::kMixed;
  std::int64_t seq_len_q = 1;  // query tokens of one generation request
  std::int64_t beam_width = 1;
  bool fused_qkv = true;
  bool paged = true;
  bool update_kv_cache = true;
  bool custom_mask = false;
  bool alibi = false;
  bool helix = false;
  bool spec_tree = false;  // a tree mask of speculative decoding
  bool relative_attention_bias = false;
  bool paged_context = false;               // use_paged_context_fmha
  bool fused_context_kernel_exists = true;  // this build has the context kernel of the layer
};

// One FMHA library: its place in the list, and whether requests can be split by phase.
struct FmhaLibrary {
  std::string_view name;
  bool phased;
  bool on_by_default;
  bool supports_skip_correction;
  std::string_view needs;  // availability, in words
  std::string_view file;   // below tensorrt_llm/_torch/attention/backends/fmha/
};

// All libraries, in the engine's order. Source: backends/fmha/registry.py, 241e6ec8.
std::span<const FmhaLibrary> fmha_libraries();
const FmhaLibrary* find_fmha_library(std::string_view name);

// The value of TLLM_FMHA_LIBS, read.
struct FmhaList {
  std::vector<std::string> names;
  std::optional<EngineError> error;  // "FMHA-ENV-MIXED", "FMHA-ENV-EMPTY", "FMHA-ENV-UNKNOWN:name"
};
FmhaList parse_fmha_libs(const std::optional<std::string>& value);

// Why a library cannot serve a layer; empty where it can.
std::string fmha_unavailable_reason(std::string_view library, const FmhaLayer& layer,
                                    bool custom_mask);

// Why a library refuses a request (in this phase of it): a stable id such as "CTX-HEAD-DIM"; empty
// where it accepts. Source: backends/fmha/{flashinfer_trtllm_gen (05412d19), cute_dsl_mla
// (0361ae4a), fallback (017aa0ca), triton_custom_mask}.py.
std::string_view fmha_refusal(std::string_view library, const FmhaLayer& layer,
                              const FmhaRequest& request, FmhaPhase phase);

}  // namespace kernelpath::engines::trtllm
