#pragma once

#include "bench/cuda_machine.h"

#include <memory>

namespace kernelpath::bench {

// gqa-decode.
Result<std::unique_ptr<Job>> make_cuda_decode_job(CudaMachine& machine, const Shape& shape,
                                                  bool cold);
// prefill.
Result<std::unique_ptr<Job>> make_cuda_prefill_job(CudaMachine& machine, const Shape& shape,
                                                   bool cold);
// matrix-rate.
Result<std::unique_ptr<Job>> make_cuda_matrix_job(CudaMachine& machine, const Shape& shape);
// gemv.
Result<std::unique_ptr<Job>> make_cuda_gemv_job(CudaMachine& machine, const Shape& shape,
                                                bool cold);
// kv-append.
Result<std::unique_ptr<Job>> make_cuda_append_job(CudaMachine& machine, const Shape& shape,
                                                  bool cold);
// read-ceiling and copy.
Result<std::unique_ptr<Job>> make_cuda_memory_job(CudaMachine& machine, const Shape& shape,
                                                  bool cold);

}  // namespace kernelpath::bench
