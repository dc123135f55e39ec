#pragma once

#include "config/model_config.h"
#include "memory/family.h"
#include "memory/size.h"
#include "memory/weights.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kernelpath::memory {

// How ranks of a tensor-parallel group share a tensor.
enum class Split : std::uint8_t {
  kNone,     // every rank holds it
  kRows,     // output features are divided (column-parallel layer)
  kColumns,  // input features are divided (row-parallel layer); a bias is held by every rank
};

enum class Storage : std::uint8_t {
  kLinear,   // the weight of a linear layer: what quantisation is about
  kHead,     // the output projection: quantised only where the checkpoint names it
  kPlain,    // stays at the model's dtype
  kFloat32,  // float32 whatever the dtype
};

// `count` equal tensors [rows, columns]; a vector has one column.
struct Tensor {
  Part part = Part::kAttention;
  std::string_view module = {};  // "self_attn"; empty outside of layers
  std::string_view name = {};    // "q_proj"
  Size rows = 0;
  Size columns = 1;
  Split split = Split::kNone;
  std::int64_t units = 0;  // pieces that sharding must not cut (heads); 0: any row or column
  Storage storage = Storage::kLinear;
  bool bias = false;       // `rows` more values at the model's dtype
  std::int64_t count = 1;  // experts; norms of a layer
  bool routed = false;     // distributed by expert parallelism
};

// A model and how its family lays out weights.
struct Geometry {
  const config::ModelConfig& model;
  const Family& family;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t attention_input = 0;  // width of what Q, K and V read: hidden; 2 * hidden in EAGLE-3

  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view field) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view field, std::int64_t other) const;
  [[nodiscard]] bool flag(const Flag& flag) const;
};

// What tells two layers apart as far as weights go. Layers of equal shape are counted once.
struct LayerShape {
  config::Layer layer;
  bool indexer = false;             // has an indexer of its own (sparse attention)
  std::int64_t compress_ratio = 0;  // DeepSeek-V4
  bool hashed_router = false;       // DeepSeek-V4: no correction bias
};
bool operator==(const LayerShape& a, const LayerShape& b);
LayerShape layer_shape(const Geometry& geometry, std::size_t index);

// True where the embedding is the output projection as well.
bool is_tied(const Geometry& geometry);
// True where a classifier stands in place of the output projection.
bool has_classifier(const config::ModelConfig& model);

// The tensors of one layer; of what comes before, and after, all layers.
std::vector<Tensor> layer_tensors(const Geometry& geometry, const LayerShape& shape);
std::vector<Tensor> input_tensors(const Geometry& geometry);
std::vector<Tensor> output_tensors(const Geometry& geometry);
// One multi-token-prediction layer beside the decoder layer that it contains.
std::vector<Tensor> mtp_tensors(const Geometry& geometry);
// Layers that a draft model adds to those of its family.
void append_draft_input(const Geometry& geometry, std::vector<Tensor>& out);
std::vector<Tensor> vision_tensors(const Geometry& geometry);

// Pieces of layer_tensors().
void append_attention(const Geometry& geometry, const LayerShape& shape, std::vector<Tensor>& out);
void append_state(const Geometry& geometry, const config::Layer& layer, std::vector<Tensor>& out);
void append_mlp(const Geometry& geometry, const LayerShape& shape, std::vector<Tensor>& out);
std::vector<Tensor> deepseek_v4_layer(const Geometry& geometry, const LayerShape& shape);

}  // namespace kernelpath::memory
