#pragma once

#include "kernels/ops.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kernelpath::kernels::cpu {

// The (token, choice) pairs of a step, grouped by expert: a pair's number is token * top_k +
// choice.
struct ExpertGroups {
  std::span<std::int32_t> pairs;    // [n * top_k], by expert, ascending within one
  std::span<std::int32_t> tokens;   // [n * top_k]: pairs / top_k
  std::span<std::int32_t> offsets;  // [experts + 1]: of the experts' pairs
  std::span<std::int32_t> cursor;   // [experts + 1]
};

// The groups' places in params.rows.
ExpertGroups expert_groups(const ExpertsParams& params);
// Fills them; one thread does it.
void group_by_expert(const ExpertsParams& params, const ExpertGroups& groups);

// Where the intermediate rows of all pairs lie in params.scratch.
struct ExpertBuffers {
  float* gate_up = nullptr;  // [n * top_k, 2 * inter]
  float* inner = nullptr;    // [n * top_k, inter]
  float* outer = nullptr;    // [n * top_k, hidden]
  float* input = nullptr;    // [n * top_k, hidden], with scale_input
};
ExpertBuffers expert_buffers(const ExpertsParams& params);

// The products of all experts that have tokens.
void gate_up_parts(const ExpertsParams& params, const ExpertGroups& groups,
                   std::vector<MatmulPart>& out);
void down_parts(const ExpertsParams& params, const ExpertGroups& groups,
                std::vector<MatmulPart>& out);

GateParams expert_gate(const ExpertsParams& params);
// input[pair] = weight * x[token], for pairs [begin, end).
void scale_expert_inputs(const ExpertsParams& params, std::int64_t begin, std::int64_t end);
// y[token] = sum over its choices in their order, for tokens [begin, end).
void combine_experts(const ExpertsParams& params, std::int64_t begin, std::int64_t end);

}  // namespace kernelpath::kernels::cpu
