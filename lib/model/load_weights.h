#pragma once

#include "base/huge_memory.h"
#include "base/result.h"
#include "checkpoint/tensor_files.h"
#include "json/document.h"
#include "model/needs.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kernelpath::model {

// The memory that a model's weights lie in.
struct WeightStore {
  HugeMemory kept;
  HugeMemory temporary;  // to be dropped when nothing points into it any more
  std::vector<json::Warning> warnings;
};

// What weights take before any of them is read.
struct WeightSizes {
  std::int64_t stored = 0;      // as the files hold them
  std::int64_t kept = 0;        // in memory
  std::int64_t temporary = 0;   // in memory until the model is complete
  std::int64_t conversion = 0;  // buffers of tensors that are converted
  std::int64_t tensors = 0;
};

struct LoadRequest {
  std::int64_t num_layers = 0;
  bool tied = false;  // an lm_head in the file is a copy of the embedding
  int threads = 1;
};

// Finds every need among the tensors of `files` and adds up what they take; the needs' owners learn
// formats, and no place. Error kCheckpoint, naming all missing, unknown, misshaped and mistyped
// tensors at once.
Result<WeightSizes> measure_weights(const checkpoint::TensorFiles& files,
                                    std::span<const Need> needs, const LoadRequest& request);

// Reads them with some threads and binds them. Errors: those of measure_weights; kResource; those
// of TensorFiles::read.
Result<WeightStore> load_weights(const checkpoint::TensorFiles& files, std::span<const Need> needs,
                                 const LoadRequest& request);

}  // namespace kernelpath::model
