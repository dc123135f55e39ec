#pragma once

#include "engines/llamacpp/attention_layers.h"
#include "engines/request.h"
#include "engines/resolution.h"

#include <vector>

namespace kernelpath::engines::llamacpp {

struct MemoryContext {
  const Request& request;
  const AttentionQuestion& question;
  const std::vector<LayerGroup>& groups;
};

// Fills Resolution::memory: weights, cache, state, and whether they fit the device together.
void report_memory(const MemoryContext& context, Resolution& out);

}  // namespace kernelpath::engines::llamacpp
