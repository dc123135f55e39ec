#pragma once

#include "config/model_config.h"
#include "engines/resolution.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::trtllm {

// A sparse-attention config as the user gives it; set fields were set explicitly.
struct SparseOptions {
  std::string algorithm;
  std::optional<std::int64_t> index_n_heads;
  std::optional<std::int64_t> index_head_dim;
  std::optional<std::int64_t> index_topk;
  std::optional<std::int64_t> window_size;
  std::vector<std::int64_t> compress_ratios;  // empty: not given
};

// The sparse attention that a model runs with, its geometry resolved once.
struct SparseSettings {
  std::string algorithm;   // "dsa", "deepseek_v4", "csa2" or what the user asked for
  bool automatic = false;  // the engine built it without being asked
  std::optional<std::int64_t> index_n_heads;
  std::optional<std::int64_t> index_head_dim;
  std::optional<std::int64_t> index_topk;
  std::optional<std::int64_t> window_size;
  std::vector<std::int64_t> compress_ratios;  // one a layer; 1 = uncompressed
};

struct ModelConfigOptions {
  std::optional<SparseOptions> sparse;
  std::int64_t mtp_layers = 0;  // layers of a one-model MTP draft; 0: none
  std::int64_t max_num_tokens = 8192;
  std::int64_t dp_size = 1;
  std::optional<std::int64_t> moe_max_num_tokens;
  std::string allreduce_strategy = "AUTO";  // any case
  bool mm_encoder_only = false;
};

// What ModelConfig knows once it is built; it is frozen afterwards.
struct ModelConfigDecision {
  bool is_generation = true;
  bool is_encoder_decoder = false;
  std::string dtype;       // "bfloat16"
  std::string dtype_from;  // "config" or "default"
  std::int64_t moe_max_num_tokens = 0;
  bool moe_max_num_tokens_is_default = false;
  std::string allreduce_strategy;
  bool allreduce_strategy_unknown = false;  // the name was not known: AUTO, silently
  std::optional<SparseSettings> sparse;
  std::optional<EngineError> error;  // "V4-NO-COMPRESS-RATIOS", "DSA-NO-INDEXER"
};

// Source: _torch/model_config.py, 008e0af8; csa2 from the article.
ModelConfigDecision model_config_post_init(const config::ModelConfig& model,
                                           const ModelConfigOptions& options);
void append_steps(const ModelConfigDecision& decision, std::vector<Step>& steps);

struct MaxSeqLenRequest {
  std::optional<std::int64_t> max_position_embeddings;
  std::string rope_type;  // empty: no rope scaling
  double rope_factor = 1.0;
};

struct MaxSeqLenDecision {
  std::int64_t max_seq_len = 0;
  bool from_default = false;  // 2048: the config states no length
  bool scaled = false;        // multiplied by the rope factor, rounded up
};

// Source: _torch/models/modeling_utils.py.
MaxSeqLenDecision infer_max_seq_len(const MaxSeqLenRequest& request);
MaxSeqLenDecision infer_max_seq_len(const config::ModelConfig& model);
void append_steps(const MaxSeqLenDecision& decision, std::vector<Step>& steps);

}  // namespace kernelpath::engines::trtllm
