#include "kernels/cpu/experts.h"

#include <algorithm>

namespace kernelpath::kernels::cpu {
namespace {

struct Group {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

Group group_of(const ExpertGroups& groups, std::size_t expert) {
  const std::int64_t first = groups.offsets[expert];
  return {first, groups.offsets[expert + 1] - first};
}

}  // namespace

ExpertGroups expert_groups(const ExpertsParams& p) {
  const auto pairs = static_cast<std::size_t>(p.n * p.top_k);
  const std::size_t edges = p.experts.size() + 1;
  return {.pairs = {p.rows, pairs},
          .tokens = {p.rows + pairs, pairs},
          .offsets = {p.rows + 2 * pairs, edges},
          .cursor = {p.rows + 2 * pairs + edges, edges}};
}

void group_by_expert(const ExpertsParams& p, const ExpertGroups& groups) {
  std::fill(groups.offsets.begin(), groups.offsets.end(), 0);
  const std::int64_t pairs = p.n * p.top_k;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    ++groups.offsets[static_cast<std::size_t>(p.ids[pair]) + 1];
  }
  for (std::size_t e = 1; e < groups.offsets.size(); ++e) {
    groups.offsets[e] += groups.offsets[e - 1];
  }
  std::copy(groups.offsets.begin(), groups.offsets.end(), groups.cursor.begin());
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const auto place =
        static_cast<std::size_t>(groups.cursor[static_cast<std::size_t>(p.ids[pair])]++);
    groups.pairs[place] = static_cast<std::int32_t>(pair);
    groups.tokens[place] = static_cast<std::int32_t>(pair / p.top_k);
  }
}

ExpertBuffers expert_buffers(const ExpertsParams& p) {
  const std::int64_t pairs = p.n * p.top_k;
  ExpertBuffers out;
  out.gate_up = p.scratch;
  out.inner = out.gate_up + pairs * 2 * p.inter;
  out.outer = out.inner + pairs * p.inter;
  out.input = out.outer + pairs * p.hidden;
  return out;
}

void gate_up_parts(const ExpertsParams& p, const ExpertGroups& groups,
                   std::vector<MatmulPart>& out) {
  out.clear();
  const ExpertBuffers buffers = expert_buffers(p);
  for (std::size_t e = 0; e < p.experts.size(); ++e) {
    const Group group = group_of(groups, e);
    if (group.count == 0) continue;
    const Expert& expert = p.experts[e];
    const std::int32_t* const pairs = groups.pairs.data() + group.first;
    MatmulPart part{.w = expert.gate,
                    .bias = expert.gate_bias,
                    .n = group.count,
                    .x = p.scale_input ? buffers.input : p.x,
                    .x_stride = p.scale_input ? p.hidden : p.x_stride,
                    .y = buffers.gate_up,
                    .y_stride = 2 * p.inter,
                    .x_rows = p.scale_input ? pairs : groups.tokens.data() + group.first,
                    .y_rows = pairs};
    out.push_back(part);
    if (p.layout != GateUpLayout::kSeparate) continue;
    part.w = expert.up;
    part.bias = expert.up_bias;
    part.y += p.inter;
    out.push_back(part);
  }
}

void down_parts(const ExpertsParams& p, const ExpertGroups& groups, std::vector<MatmulPart>& out) {
  out.clear();
  const ExpertBuffers buffers = expert_buffers(p);
  for (std::size_t e = 0; e < p.experts.size(); ++e) {
    const Group group = group_of(groups, e);
    if (group.count == 0) continue;
    const std::int32_t* const pairs = groups.pairs.data() + group.first;
    out.push_back({.w = p.experts[e].down,
                   .bias = p.experts[e].down_bias,
                   .n = group.count,
                   .x = buffers.inner,
                   .x_stride = p.inter,
                   .y = buffers.outer,
                   .y_stride = p.hidden,
                   .x_rows = pairs,
                   .y_rows = pairs});
  }
}

GateParams expert_gate(const ExpertsParams& p) {
  const ExpertBuffers buffers = expert_buffers(p);
  const bool interleaved = p.layout == GateUpLayout::kInterleaved;
  return {.activation = p.activation,
          .n = p.n * p.top_k,
          .dim = p.inter,
          .gate = buffers.gate_up,
          .up = buffers.gate_up + (interleaved ? 1 : p.inter),
          .stride = 2 * p.inter,
          .element = interleaved ? 2 : 1,
          .y = buffers.inner,
          .y_stride = p.inter,
          .limit = p.limit,
          .alpha = p.alpha};
}

void scale_expert_inputs(const ExpertsParams& p, std::int64_t begin, std::int64_t end) {
  float* const input = expert_buffers(p).input;
  for (std::int64_t pair = begin; pair < end; ++pair) {
    const float* const x = p.x + pair / p.top_k * p.x_stride;
    float* const out = input + pair * p.hidden;
    for (std::int64_t i = 0; i < p.hidden; ++i) out[i] = p.weights[pair] * x[i];
  }
}

void combine_experts(const ExpertsParams& p, std::int64_t begin, std::int64_t end) {
  const float* const outer = expert_buffers(p).outer;
  for (std::int64_t token = begin; token < end; ++token) {
    float* const y = p.y + token * p.y_stride;
    std::fill(y, y + p.hidden, 0.0F);
    for (std::int64_t choice = 0; choice < p.top_k; ++choice) {
      const std::int64_t pair = token * p.top_k + choice;
      const float weight = p.scale_input ? 1.0F : p.weights[pair];
      const float* const from = outer + pair * p.hidden;
      for (std::int64_t i = 0; i < p.hidden; ++i) y[i] += weight * from[i];
    }
  }
}

}  // namespace kernelpath::kernels::cpu
