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
  std::int64_t stored_bytes = 0;
  std::int64_t tensors = 0;
  std::vector<json::Warning> warnings;
};

// Finds every need among the tensors of `files`, reads them with some threads, and binds them.
// Errors: kCheckpoint, naming all missing, unknown, misshaped and mistyped tensors at once;
// kResource; those of TensorFiles::read.
struct LoadRequest {
  std::int64_t num_layers = 0;
  bool tied = false;  // an lm_head in the file is a copy of the embedding
  int threads = 1;
};
Result<WeightStore> load_weights(const checkpoint::TensorFiles& files, std::span<const Need> needs,
                                 const LoadRequest& request);

}  // namespace kernelpath::model
