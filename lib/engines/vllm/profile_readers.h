#pragma once

#include "engines/json_fields.h"
#include "engines/vllm/profile.h"

// The three tables of a profile; each function reads one and adds it to the profile.
namespace kernelpath::engines::vllm {

Result<void> read_backends(const JsonFields& table, Profile& profile);
Result<void> read_priorities(const JsonFields& table, Profile& profile);
Result<void> read_mla_prefill(const JsonFields& table, Profile& profile);

// Adds the shapes of a backend's cache and their order in memory. Error kInputSchema.
Result<void> read_cache_shapes(const JsonFields& row, BackendClass& backend);

}  // namespace kernelpath::engines::vllm
