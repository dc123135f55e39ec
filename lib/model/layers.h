#pragma once

#include "kernels/ops.h"
#include "model/quantization.h"
#include "model/spec.h"
#include "model/split.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// The parameters of a decoder. Layers are made empty: names and shapes without data; then each
// projection learns how it is quantised; then the weights are bound and read.
namespace kernelpath::model {

// A vector (or small tensor) that is kept as float32.
struct Vector {
  std::string name = {};   // of the tensor; empty: there is none
  std::string alias = {};  // another name in some files
  std::vector<std::int64_t> shape = {};
  const float* data = nullptr;
  Split split = {};  // what of the file's tensor has `shape`

  [[nodiscard]] bool exists() const { return !name.empty(); }
  [[nodiscard]] std::int64_t size() const;
};

// A projection y = W x + b. Of one that is split among ranks, `out` and `in` are this rank's.
struct Linear {
  std::string module = {};  // "model.layers.0.self_attn.q_proj"; empty: there is none
  std::string alias = {};   // another name of the module in some files
  std::int64_t out = 0;
  std::int64_t in = 0;
  bool has_bias = false;
  bool quantizable = true;
  Scheme scheme = {};
  kernels::WeightMatrix w = {};
  const float* bias = nullptr;
  Split split = {};  // of the file's rows (dim 0) or columns (dim 1)

  [[nodiscard]] bool exists() const { return !module.empty(); }
  // Sizes in the file.
  [[nodiscard]] std::int64_t stored_out() const { return splits(0) ? split.whole : out; }
  [[nodiscard]] std::int64_t stored_in() const { return splits(1) ? split.whole : in; }
  [[nodiscard]] bool splits(std::size_t dim) const { return split.exists() && split.dim == dim; }
};

// Experts in one tensor [experts, in, out], or in mxfp4 blocks [experts, out, in / 32, 16].
struct StackedLinear {
  std::string module = {};  // "model.layers.0.mlp.experts.gate_up_proj"; empty: there is none
  std::int64_t experts = 0;
  std::int64_t out = 0;
  std::int64_t in = 0;
  bool has_bias = false;
  Scheme scheme = {};
  std::vector<kernels::WeightMatrix> w = {};  // one per expert
  const float* bias = nullptr;                // [experts, out]
  Split split = {};                           // of outputs (dim 0) or inputs (dim 1)

  [[nodiscard]] bool exists() const { return !module.empty(); }
  [[nodiscard]] std::int64_t stored_out() const { return splits(0) ? split.whole : out; }
  [[nodiscard]] std::int64_t stored_in() const { return splits(1) ? split.whole : in; }
  [[nodiscard]] bool splits(std::size_t dim) const { return split.exists() && split.dim == dim; }
};

struct HeadsWeights {
  Linear qkv;  // in one, or q, k and v
  Linear q;
  Linear k;
  Linear v;
  Linear o;
  Vector q_norm;
  Vector k_norm;
  Vector sinks;
};

struct IndexWeights {
  Linear q;  // from the latent of q
  Linear k;
  Linear weights;
  Vector k_norm;
  Vector k_norm_bias;
};

struct LatentWeights {
  Linear q;  // plain, or q_a, q_a_norm and q_b
  Linear q_a;
  Vector q_a_norm;
  Linear q_b;
  Linear kv_a;
  Vector kv_a_norm;
  Linear kv_b;  // read, then split by head into the two that absorb it, and dropped
  Linear o;
  IndexWeights index;
  std::vector<kernels::WeightMatrix> absorb_k;  // per head: [kv_lora_rank, nope], W_UK transposed
  std::vector<kernels::WeightMatrix> absorb_v;  // per head: [v_head_dim, kv_lora_rank]
};

struct DeltaWeights {
  Linear q;
  Linear k;
  Linear v;
  Vector q_conv;
  Vector k_conv;
  Vector v_conv;
  Linear f_a;
  Linear f_b;
  Linear g_a;
  Linear g_b;
  Linear beta;
  Linear o;
  Vector a_log;
  Vector dt_bias;
  Vector o_norm;
};

struct MlpWeights {
  Linear gate_up;  // in one, or gate and up
  Linear gate;
  Linear up;
  Linear down;
  [[nodiscard]] bool exists() const { return down.exists(); }
};

struct MoeWeights {
  Linear router;
  Vector correction;
  std::vector<MlpWeights> experts;  // or stacked
  StackedLinear gate_up;
  StackedLinear down;
  MlpWeights shared;
  std::vector<kernels::Expert> views;  // what the kernel reads; made when the weights are there
};

struct Layer {
  Vector attn_in;
  Vector attn_out;
  Vector mlp_in;
  Vector mlp_out;
  HeadsWeights heads;
  LatentWeights latent;
  DeltaWeights delta;
  MlpWeights mlp;
  MoeWeights moe;
};

struct Parameters {
  Linear embedding;
  std::vector<Layer> layers;
  Vector norm;
  Linear lm_head;  // absent where the embedding is tied
};

// Layers without data: every name and shape that the class asks for.
Parameters make_parameters(const DecoderSpec& spec);

// Calls `visit` for every projection (stacked ones apart), in the order of the layers.
template <class Visit>
void for_each_mlp_linear(MlpWeights& mlp, const Visit& visit) {
  for (Linear* linear : {&mlp.gate_up, &mlp.gate, &mlp.up, &mlp.down}) {
    if (linear->exists()) visit(*linear);
  }
}

template <class Visit>
void for_each_linear(Parameters& parameters, const Visit& visit) {
  const auto all = [&](std::initializer_list<Linear*> list) {
    for (Linear* linear : list) {
      if (linear->exists()) visit(*linear);
    }
  };
  all({&parameters.embedding});
  for (Layer& layer : parameters.layers) {
    HeadsWeights& h = layer.heads;
    LatentWeights& m = layer.latent;
    DeltaWeights& d = layer.delta;
    all({&h.qkv, &h.q, &h.k, &h.v, &h.o});
    all({&m.q, &m.q_a, &m.q_b, &m.kv_a, &m.kv_b, &m.o});
    all({&m.index.q, &m.index.k, &m.index.weights});
    all({&d.q, &d.k, &d.v, &d.f_a, &d.f_b, &d.g_a, &d.g_b, &d.beta, &d.o});
    for_each_mlp_linear(layer.mlp, visit);
    all({&layer.moe.router});
    for (MlpWeights& expert : layer.moe.experts) for_each_mlp_linear(expert, visit);
    for_each_mlp_linear(layer.moe.shared, visit);
  }
  all({&parameters.lm_head});
}

template <class Visit>
void for_each_vector(Parameters& parameters, const Visit& visit) {
  const auto all = [&](std::initializer_list<Vector*> list) {
    for (Vector* vector : list) {
      if (vector->exists()) visit(*vector);
    }
  };
  for (Layer& layer : parameters.layers) {
    LatentWeights& m = layer.latent;
    DeltaWeights& d = layer.delta;
    all({&layer.attn_in, &layer.attn_out, &layer.mlp_in, &layer.mlp_out});
    all({&layer.heads.q_norm, &layer.heads.k_norm, &layer.heads.sinks});
    all({&m.q_a_norm, &m.kv_a_norm, &m.index.k_norm, &m.index.k_norm_bias});
    all({&d.q_conv, &d.k_conv, &d.v_conv, &d.a_log, &d.dt_bias, &d.o_norm});
    all({&layer.moe.correction});
  }
  all({&parameters.norm});
}

template <class Visit>
void for_each_stacked(Parameters& parameters, const Visit& visit) {
  for (Layer& layer : parameters.layers) {
    for (StackedLinear* stacked : {&layer.moe.gate_up, &layer.moe.down}) {
      if (stacked->exists()) visit(*stacked);
    }
  }
}

}  // namespace kernelpath::model
