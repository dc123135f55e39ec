#pragma once

#include "engines/kernelpath/launch.h"
#include "engines/kernelpath/layers.h"
#include "engines/request.h"
#include "engines/resolution.h"

#include <cstdint>

namespace kernelpath::engines::kernelpath {

// Model class, attention backend of each group of layers, and sizes, by the registry and the
// capability table that the runtime executes.
Resolution resolve(const Request& request);

// Bytes that a token takes in one layer's caches on a rank that keeps it.
KvParts token_parts(const OwnLayers& layers, attention::DataType type);

// Sizes of one rank.
Memory resolve_memory(const Request& request, const Launch& launch, const OwnModelLayers& layers,
                      Resolution& out);

}  // namespace kernelpath::engines::kernelpath
