#pragma once

#include "engines/llamacpp/cache.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

// Which memory a model gets.
enum class MemoryKind : std::uint8_t {
  kNone,          // encoders and diffusion models
  kCache,         // one cache
  kWindow,        // full and sliding layers apart
  kSparseBlocks,  // a cache and an indexer's (MiniMax-M3)
  kSparse,        // a cache and an indexer's (DeepSeek V3.2, GLM-5)
  kSparseWindow,  // the same with sliding layers
  kDeepseek4,
  kRecurrent,
  kHybrid,
  kHybridWindow,
  kHybridIndexed,
};
// "kv", "iswa", "dsa": the engine's classes.
std::string_view memory_kind_name(MemoryKind kind);

// The recurrent state of all layers that keep one, always f32.
struct RecurrentState {
  std::int64_t cells = 0;  // sequences
  std::vector<std::int64_t> layers = {};
  std::int64_t r_bytes = 0;  // convolutions and token shifts
  std::int64_t s_bytes = 0;
  std::int64_t p_bytes = 0;  // convolution of a layer with token n-grams
  [[nodiscard]] std::int64_t bytes() const;
};

struct MemoryPlan {
  MemoryKind kind = MemoryKind::kNone;
  std::vector<Cache> caches;
  std::optional<RecurrentState> state;
  std::size_t state_place = 0;  // in the engine's order: behind so many caches
  // Compressor states of DeepSeek-V4, which the engine keeps beside its caches, f32.
  std::int64_t compressor_bytes = 0;
  [[nodiscard]] std::int64_t kv_bytes() const;
};

// Source: llama.cpp 0c1e5709, src/llama-model.cpp, llama_model::create_memory, for a default
// context (prediction layers are left out).
MemoryPlan plan_memory(const LoadedModel& model, const ContextParams& params,
                       const ContextPlan& plan);

}  // namespace kernelpath::engines::llamacpp
