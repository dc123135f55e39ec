// Times the value matrix: nanoseconds a combination on one thread, setting up included.
//
// usage: features_bench [RUNS]      (scripts/bench-validate builds and runs it)
#include "features/matrix.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using kernelpath::features::Context;
using kernelpath::features::find_axis;
using kernelpath::features::find_rule_table;
using kernelpath::features::judge_matrix;
using kernelpath::features::MatrixAxis;

// Twelve thousand combinations of options that many rules read.
std::vector<MatrixAxis> axes() {
  std::vector<MatrixAxis> out;
  for (const char* name : {"backend", "kv", "speculative", "prefill_cuda_graph_backend",
                           "enable_mla_skip_correction", "enable_lora", "enable_attention_dp",
                           "kv_cache_config.use_kv_cache_manager_v2", "load_format"}) {
    out.push_back(*find_axis(*find_rule_table("trtllm"), name));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 11;
  const Context context(*find_rule_table("trtllm"));
  std::vector<double> per_combination;
  std::size_t combinations = 0;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const auto matrix = judge_matrix(context, axes());
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    combinations = matrix->cells.size();
    per_combination.push_back(took.count() / static_cast<double>(combinations));
  }
  std::sort(per_combination.begin(), per_combination.end());
  const double median = per_combination[per_combination.size() / 2];
  std::printf("combinations %zu  median %.0f ns each  best %.0f ns  10000 take %.1f ms\n",
              combinations, median, per_combination.front(), median / 100.0);
  return 0;
}
