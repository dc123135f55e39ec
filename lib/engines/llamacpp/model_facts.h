#pragma once

#include "engines/llamacpp/context.h"
#include "engines/llamacpp/device_memory.h"
#include "engines/llamacpp/memory_plan.h"
#include "engines/resolution.h"

#include <string>
#include <vector>

namespace kernelpath::engines::llamacpp {

// What is known; null pointers for what was not reached.
struct ModelFactsInput {
  const LoadedModel* model = nullptr;
  const EngineError* refusal = nullptr;
  const Arguments* arguments = nullptr;
  const ContextPlan* context = nullptr;
  const MemoryPlan* memory = nullptr;
  const DeviceMemory* devices = nullptr;
  std::string unserved = {};  // the layer whose attention no kernel serves, and why; empty: none
};

// Facts for the rules in data/rules/llamacpp.json, "gguf.…".
std::vector<Resolution::Fact> model_facts(const ModelFactsInput& input);

// Those of the model alone, where the arguments cannot be read.
std::vector<Resolution::Fact> facts_of_model(const Profile& profile,
                                             const config::ModelConfig& config);

// What load_model() reads of a config.json, as converted, or of a GGUF file; empty where the
// converter refuses it.
LoadedModel load_config(const Profile& profile, const config::ModelConfig& config);

}  // namespace kernelpath::engines::llamacpp
