#pragma once

#include "engines/llamacpp/attention_layers.h"
#include "engines/llamacpp/placement.h"
#include "engines/request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::llamacpp {

// What one GPU, or the host, holds of a model.
struct DeviceShare {
  std::int64_t device = kHost;
  std::vector<std::int64_t> layers = {};
  bool output = false;
  std::int64_t weight_bytes = 0;
  std::int64_t kv_bytes = 0;
  std::int64_t kv_bytes_per_token = 0;
  std::int64_t state_bytes = 0;
  [[nodiscard]] std::int64_t total() const;
};

struct DeviceMemory {
  std::vector<DeviceShare> shares;                  // the host first, then the GPUs
  std::optional<std::string> weights_unknown = {};  // why no weights are counted
  std::string weight_source = {};
  bool weights_exact = false;  // tensor by tensor
  // The GPU that holds the most; the host where no GPU holds anything.
  [[nodiscard]] const DeviceShare& fullest() const;
};

// Layers, caches, states and weights, device by device.
// Source: llama.cpp 0c1e5709, src/llama-model.cpp (load_tensors, create_tensor),
// src/llama-kv-cache.cpp, src/llama-memory-recurrent.cpp.
struct SpreadQuestion {
  const Request& request;
  const AttentionQuestion& question;
  const Arguments& arguments;
};
DeviceMemory spread_memory(const SpreadQuestion& spread);

}  // namespace kernelpath::engines::llamacpp
