#pragma once

#include "engines/llamacpp/arguments.h"
#include "engines/llamacpp/memory_plan.h"
#include "engines/resolution.h"
#include "hardware/device.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines::llamacpp {

// Where layers run, as far as the choice of a kernel asks.
enum class Place : std::uint8_t { kCpu, kCuda, kHip, kOther };

struct Machine {
  Place place = Place::kCpu;
  std::int64_t cc = 0;  // of a GPU
};
// The device of the layers; the CPU where no layer is on a GPU.
Machine machine_of(const hardware::Device& device, const Arguments& arguments);

// A layer's attention operation in one phase.
struct AttentionQuestion {
  const LoadedModel& model;
  const ContextParams& params;
  const ContextPlan& plan;
  const MemoryPlan& memory;
};

// The call that a layer makes whose keys are in `cache`; nothing where the numbers of heads make no
// groups (an assertion of the engine).
std::optional<AttentionCall> attention_call(const AttentionQuestion& question, const Cache& cache,
                                            std::int64_t layer, Phase phase);

// Does every layer's device serve its operation, for one token a sequence over the full cache? The
// layer that does not, or nothing.
std::optional<std::int64_t> unserved_layer(const AttentionQuestion& question,
                                           const Machine& machine, const CudaBuild& build);

}  // namespace kernelpath::engines::llamacpp
