#pragma once

#include "engines/deepinfer/fault.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::deepinfer {

// The one model that the engine has. Source: the registry in its models package.
struct RegisteredModel {
  std::string_view architecture;
  std::string_view class_name;
  std::string_view module;
};
const RegisteredModel& registered_model();

// Yarn scaling or none: only its presence decides anything here.
struct CandidateSettings {
  std::int64_t source_layer = 0;
  std::int64_t topk_blocks = 0;
  std::int64_t block_size = 0;
};

struct EngramSettings {
  std::vector<std::int64_t> layers;
  std::int64_t max_ngram = 0;
  bool compressed_tokenizer = false;
};

// What the engine takes from config.json, after it has judged its fixed values.
// Source: config.py, load_hf_model_config.
struct Model {
  std::int64_t num_layers = 0;                // backbone
  std::int64_t num_draft_layers = 0;          // after it
  std::vector<std::int64_t> compress_ratios;  // of all layers; 0: sliding window only
  std::int64_t boundary = 0;                  // first layer of ratio 1: where consumers begin
  std::vector<std::int64_t> index_sources;
  std::vector<std::int64_t> index_k_sources;
  std::vector<std::int64_t> kv_sources;
  std::optional<CandidateSettings> candidates;
  std::int64_t num_attention_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t o_groups = 0;
  std::int64_t hc_mult = 0;
  std::int64_t sliding_window = 0;
  std::int64_t index_topk = 0;
  std::int64_t index_n_heads = 0;
  std::int64_t index_head_dim = 0;
  bool fp4_main_cache = true;
  std::int64_t routed_experts = 0;
  std::string scoring_func;
  std::string topk_method;
  bool norm_topk_prob = true;
  std::vector<std::int64_t> draft_target_layers;
  std::int64_t draft_markov_rank = 0;
  std::int64_t draft_routed_experts = 0;
  EngramSettings engram;

  [[nodiscard]] std::int64_t all_layers() const { return num_layers + num_draft_layers; }
  // Of a backbone layer; draft layers have sliding windows whatever their ratio says.
  [[nodiscard]] bool compressed(std::int64_t layer) const {
    return layer < num_layers && compress_ratios[static_cast<std::size_t>(layer)] != 0;
  }
  [[nodiscard]] bool any_compressed() const;
};

// `config` is config.json; null pointer where there is none. `folder` stands for the model's folder
// in the engine's texts.
Checked<Model> read_model(const json::Value* config, std::string_view folder);

// The whole name of the architecture, once config.json has passed the first tests.
Checked<std::string> read_architecture(const json::Value* config, std::string_view folder);

}  // namespace kernelpath::engines::deepinfer
