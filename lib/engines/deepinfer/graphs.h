#pragma once

#include "engines/deepinfer/arguments.h"
#include "engines/deepinfer/fault.h"
#include "engines/deepinfer/variables.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernelpath::engines::deepinfer {

// Sizes (in tokens, ascending) that decode graphs are captured for. Fault "graph-interval-zero".
// Source: cuda_graph_runner.py, build_graph_batch_sizes.
Checked<std::vector<std::int64_t>> graph_sizes(std::int64_t largest, std::int64_t interval,
                                               std::string_view stage);

struct GraphPlan {
  bool main = false;
  bool draft = false;
  std::optional<std::vector<std::int64_t>> main_sizes = {};
  std::optional<std::vector<std::int64_t>> draft_sizes = {};
};

// Prefill is never captured.
Checked<GraphPlan> plan_graphs(const Arguments& arguments, const Limits& limits,
                               const Variables& variables);

}  // namespace kernelpath::engines::deepinfer
