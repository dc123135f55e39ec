#pragma once

#include "engines/llamacpp/attention_layers.h"
#include "engines/llamacpp/cache.h"
#include "engines/request.h"
#include "engines/resolution.h"

namespace kernelpath::engines::llamacpp {

// What a cell takes in one of the cache's layers (`place` is its index in cache.layers), by parts.
KvParts cell_parts(const AttentionQuestion& question, const Cache& cache, std::size_t place);

// Why the sizes of Resolution::memory are what they are. Call it when they are filled in.
void explain_memory(const Request& request, const AttentionQuestion& question, Resolution& out);

}  // namespace kernelpath::engines::llamacpp
