#pragma once

#include "bench/cpu_machine.h"

#include <memory>

namespace kernelpath::bench {

// gqa-decode and prefill.
Result<std::unique_ptr<Job>> make_cpu_attention_job(CpuMachine& machine, const Shape& shape,
                                                    bool cold);
// kv-append.
Result<std::unique_ptr<Job>> make_cpu_append_job(CpuMachine& machine, const Shape& shape,
                                                 bool cold);
// gemv and matrix-rate.
Result<std::unique_ptr<Job>> make_cpu_matrix_job(CpuMachine& machine, const Shape& shape,
                                                 bool cold);

}  // namespace kernelpath::bench
