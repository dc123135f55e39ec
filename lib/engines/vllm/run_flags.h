#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::engines::vllm {

// Of speculative_config, beside the method and the number of tokens.
struct SpeculativeFlags {
  std::optional<std::string> model = {};  // the draft, as written
  std::optional<std::string> backend = {};
  std::optional<std::string> kv_cache_dtype = {};  // since 0.33
  std::optional<std::int64_t> tp = {};             // draft_tensor_parallel_size
  std::optional<std::int64_t> max_model_len = {};
  bool unpadded = false;           // disable_padded_drafter_batch
  bool parallel_drafting = false;  // all tokens of a step at once
  bool other_vocabulary = false;   // use_heterogeneous_vocab
  bool samples = false;            // draft_sample_method is not greedy
  bool dynamic = false;            // num_speculative_tokens_per_batch_size
  std::optional<std::int64_t> lookup_min = {};
  std::optional<std::int64_t> lookup_max = {};
  std::int64_t tree_depth = 24;  // suffix_decoding_max_tree_depth
  bool assumes_tokens = false;   // a common option asks for the method and says no number
};

// What the user decides, by the engine's own names; nothing: the engine's default.
// Source: vllm/engine/arg_utils.py, vllm/config/*.py, vllm/envs.py.
struct RunFlags {
  std::string model_impl = "auto";
  std::string runner = "auto";
  std::string convert = "auto";
  std::string dtype = "auto";
  std::optional<std::int64_t> max_model_len = {};
  bool allow_deprecated_quantization = false;
  bool has_pooling_config = false;  // the checkpoint brings Sentence Transformers' pooling file

  std::string kv_cache_dtype = "auto";
  std::vector<std::string> skip_layers = {};
  std::optional<std::int64_t> block_size = {};
  std::optional<bool> enable_prefix_caching = {};
  std::string mamba_cache_mode = "none";
  std::optional<std::int64_t> mamba_block_size = {};
  std::string mamba_cache_dtype = "auto";
  std::string mamba_ssm_cache_dtype = "auto";
  std::optional<bool> hybrid_manager_off = {};

  std::optional<std::string> attention_backend = {};         // --attention-backend
  std::optional<std::string> attention_config_backend = {};  // attention_config.backend
  std::vector<std::pair<std::string, std::string>> backend_per_kind = {};
  std::optional<std::int64_t> flash_attn_version = {};
  std::optional<bool> use_trtllm_attention = {};
  bool use_non_causal = false;
  std::optional<std::string> mla_prefill_backend = {};

  std::optional<std::string> cudagraph_mode = {};
  std::optional<std::string> compilation_mode = {};  // "NONE", "VLLM_COMPILE" or a number
  std::int64_t optimization_level = 2;
  bool enforce_eager = false;

  std::optional<std::int64_t> max_num_seqs = {};
  std::optional<std::int64_t> max_num_batched_tokens = {};
  // What the two are where nobody says anything: of the configuration's class, or by the device.
  std::int64_t default_num_seqs = 128;
  std::int64_t default_batched_tokens = 2048;
  bool throughput_mode = false;  // performance_mode: both are doubled
  bool batched_experts = false;  // experts exchange batches of fixed size among data-parallel ranks
  std::optional<bool> chunked_prefill = {};
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t dcp = 1;
  std::int64_t pcp = 1;
  std::int64_t cp_interleave = 1;

  std::string speculative_method = {};  // empty: none, or what the draft's name says
  std::int64_t speculative_tokens = 0;  // 0: not given
  SpeculativeFlags speculative = {};
  std::optional<bool> v2_runner = {};  // VLLM_USE_V2_MODEL_RUNNER
  std::optional<bool> async_scheduling = {};

  bool kv_connector = false;

  // Of the process: VLLM_BATCH_INVARIANT, VLLM_MLA_DISABLE, and
  // VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE.
  bool batch_invariant = false;
  std::optional<bool> batch_invariant_at_import = {};  // when modules were read; nothing: the same
  bool mla_disabled = false;
  bool chunked_with_hybrid_manager = true;
};

}  // namespace kernelpath::engines::vllm
