#pragma once

#include "engines/llamacpp/arguments.h"
#include "engines/llamacpp/hparams.h"

#include <cstdint>
#include <vector>

namespace kernelpath::engines::llamacpp {

inline constexpr std::int64_t kHost = -1;  // the CPU's memory

// Where layers lie. With SplitMode::kTensor every layer lies on all GPUs.
struct Placement {
  std::int64_t devices = 0;               // GPUs in use
  std::vector<std::int64_t> layers = {};  // of each layer: its GPU, or kHost
  std::int64_t output = kHost;            // of the output layer; the input layer is on the host
  bool tensor_split = false;
};

// `free_bytes`: memory of one GPU, by which layers are spread where no shares are given.
// Source: llama.cpp 0c1e5709, src/llama-model.cpp, llama_model_base::load_tensors; src/llama.cpp,
// llama_prepare_model_devices.
Placement place_layers(const Hparams& hparams, const Arguments& arguments, std::int64_t free_bytes);

// How many of `elements` each GPU holds of a tensor that is split along heads or columns in steps
// of `step`; rounding begins at the GPU `rotation`.
// Source: src/llama-model.cpp, llama_meta_device_get_split_state.
struct SplitRow {
  std::int64_t elements = 0;
  std::int64_t step = 1;
  std::int64_t rotation = 0;
};
std::vector<std::int64_t> split_row(const SplitRow& row, const SplitParams& split);

// The same for a layer's keys and values, whose heads go where the rows of its output projection
// go; `block` is that of the projection's type.
struct SplitHeads {
  std::vector<std::int64_t> k;
  std::vector<std::int64_t> v;
};
SplitHeads split_heads(const Hparams& hparams, std::int64_t layer, std::int64_t block,
                       const SplitParams& split);

}  // namespace kernelpath::engines::llamacpp
