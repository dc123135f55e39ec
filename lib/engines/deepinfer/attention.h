#pragma once

#include "engines/deepinfer/arguments.h"
#include "engines/deepinfer/fault.h"
#include "engines/deepinfer/model.h"
#include "engines/deepinfer/topology.h"
#include "engines/deepinfer/variables.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::deepinfer {

// The engine has no attention backend to choose: its Platform stands where others dispatch.
enum class Platform : std::uint8_t { kCuda, kAscend };

struct Machine {
  Platform platform = Platform::kCuda;
  std::optional<int> sm = {};  // CUDA: major * 10 + minor
  bool arm_cpu = false;        // aarch64 or arm64
};

// How a layer computes attention. Source: attention_backend.py, index_attn.py.
struct LayerAttention {
  bool draft = false;
  std::int64_t ratio = 0;
  bool sparse = false;
  bool fused = false;
  bool kv_source = false;
  bool index_source = false;
  bool index_k_source = false;
  std::string indexer = {};  // "full", "candidate_source", "candidate_consumer"; empty: none
  std::int64_t index_chunk = 0;
  bool consumer = false;     // from the boundary on, if that is a backbone layer
  std::string prefill = {};  // kernel; empty: never runs
  std::string decode = {};   // kernel; empty: never runs
  std::optional<std::int64_t> padded_heads = {};  // where they differ from the model's
  friend bool operator==(const LayerAttention&, const LayerAttention&) = default;
};

// Fault "heads-above-128".
Checked<std::int64_t> padded_heads(std::int64_t heads, std::string_view stage);

// Assertions of the parameter tree. Source: mla_attn.py, moe.py, heads.py, engram_metadata.py.
Checked<bool> check_parameter_tree(const Model& model, const Topology& topology);

// What the layers' attention follows from.
struct AttentionInput {
  const Model& model;
  const Topology& topology;
  const Arguments& arguments;
  const Limits& limits;
  const Variables& variables;
  const Machine& machine;
};

// Backbone layers, then draft layers.
Checked<std::vector<LayerAttention>> build_attention(const AttentionInput& input);

// What FlashMLA refuses when one of its kernels is called. `kernel` is "fused_prefill",
// "fused_decode", "sparse_prefill" or "sparse_decode"; `topk` is the length of the index list.
struct KernelQuestion {
  std::string kernel;
  std::int64_t heads = 0;
  std::optional<std::int64_t> topk = {};
  std::optional<std::int64_t> kv_bytes_per_token = {};  // of the first cache
};
struct KernelAnswer {
  std::optional<Fault> fault = {};
  std::string implementation = {};                // where several serve; else empty
  std::optional<std::int64_t> padded_heads = {};  // before the kernel sees them
};
KernelAnswer check_kernel(const KernelQuestion& question, const Machine& machine);

}  // namespace kernelpath::engines::deepinfer
