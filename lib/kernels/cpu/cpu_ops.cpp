#include "kernels/cpu/cpu_ops.h"

#include "base/assert.h"
#include "kernels/cpu/append.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/executor.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/index.h"
#include "kernels/cpu/merge.h"
#include "kernels/cpu/state.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

// Elements that a thread takes at once: whole cache lines, so that threads do not share any.
constexpr std::int64_t kGrain = 16;

}  // namespace

void CpuOps::embed(const WeightMatrix& table, std::span<const std::int32_t> tokens, float scale,
                   float* y) {
  const auto [begin, end] = team_.share(static_cast<std::int64_t>(tokens.size()));
  for (std::int64_t i = begin; i < end; ++i) {
    float* const row = y + i * table.cols;
    const std::int32_t token = tokens[static_cast<std::size_t>(i)];
    if (token < 0) {
      std::fill_n(row, table.cols, 0.0F);
      continue;
    }
    dequantize_row(table, token, row);
    if (scale != 1.0F) scale_and_cap_elements(scale, 0.0F, row, table.cols);
  }
  team_.barrier();
}

void CpuOps::matmul(std::span<const MatmulPart> parts) {
  matmul_share(team_, parts, rows_);
  team_.barrier();
}

void CpuOps::norm(const NormParams& params) {
  const auto [begin, end] = team_.share(params.n * params.groups);
  units_->norm(params, begin, end);
  team_.barrier();
}

void CpuOps::add(std::int64_t count, const float* x, float scale, float* y) {
  const auto [begin, end] = team_.share(count, kGrain);
  for (std::int64_t i = begin; i < end; ++i) y[i] += scale * x[i];
  team_.barrier();
}

void CpuOps::scale_rows(const ScaleRowsParams& params) {
  const auto [begin, end] = team_.share(params.n);
  for (std::int64_t i = begin; i < end; ++i) {
    scale_and_cap_elements(params.factors[i], 0.0F, params.x + i * params.stride, params.dim);
  }
  team_.barrier();
}

void CpuOps::scale_and_cap(std::int64_t count, float scale, float cap, float* x) {
  const auto [begin, end] = team_.share(count, kGrain);
  scale_and_cap_elements(scale, cap, x + begin, end - begin);
  team_.barrier();
}

void CpuOps::rope(const RopeParams& params) {
  const auto [begin, end] = team_.share(params.n * params.heads);
  units_->rope(params, begin, end);
  team_.barrier();
}

void CpuOps::gate(const GateParams& params) {
  const auto [begin, end] = team_.share(params.n * params.dim, kGrain);
  units_->gate(params, begin, end);
  team_.barrier();
}

void CpuOps::route(const RouteParams& params) {
  const auto [begin, end] = team_.share(params.n);
  route_rows(params, begin, end);
  team_.barrier();
}

void CpuOps::experts(const ExpertsParams& params) {
  const ExpertGroups groups = expert_groups(params);
  if (team_.thread == 0) group_by_expert(params, groups);
  const std::int64_t pairs = params.n * params.top_k;
  if (params.scale_input) {
    const auto [begin, end] = team_.share(pairs);
    scale_expert_inputs(params, begin, end);
  }
  team_.barrier();
  std::vector<MatmulPart> parts;
  gate_up_parts(params, groups, parts);
  matmul(parts);
  gate(expert_gate(params));
  down_parts(params, groups, parts);
  matmul(parts);
  const auto [begin, end] = team_.share(params.n);
  combine_experts(params, begin, end);
  team_.barrier();
}

// As many queries at a time as there are threads: all score the keys of all of them, then each
// thread chooses for one.
void CpuOps::index_select(const IndexParams& params) {
  for (std::int64_t first = 0; first < params.num_tokens; first += team_.threads) {
    const std::int64_t last = std::min<std::int64_t>(first + team_.threads, params.num_tokens);
    for (std::int64_t token = first; token < last; ++token) {
      const IndexQuery query = index_query(params, token);
      const auto [begin, end] = team_.share(query.keys, kGrain);
      score_index_keys(params, query, begin, end,
                       params.scratch + (token - first) * params.scratch_stride);
    }
    team_.barrier();
    if (first + team_.thread < last) {
      select_index_keys(params, index_query(params, first + team_.thread),
                        params.scratch + team_.thread * params.scratch_stride);
    }
    team_.barrier();
  }
}

void CpuOps::short_conv(const ShortConvParams& params) {
  const auto [begin, end] = team_.share(params.channels, kGrain);
  short_conv_channels(params, begin, end);
  team_.barrier();
}

void CpuOps::delta_rule(const DeltaRuleParams& params) {
  const auto [begin, end] = team_.share(params.batch.num_requests * params.heads);
  delta_rule_items(params, begin, end);
  team_.barrier();
}

void CpuOps::merge(const MergeParams& params) {
  using attention::LogBase;
  const auto [begin, end] = team_.share(params.n);
  std::vector<AttentionPart<LogBase::kE>> parts(static_cast<std::size_t>(params.parts));
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t p = 0; p < params.parts; ++p) {
      const std::int64_t row = (p * params.n + i) * params.heads;
      parts[static_cast<std::size_t>(p)] = {
          .o = params.parts_o + row * params.dim,
          .lse = attention::ConstLse<LogBase::kE>(params.parts_lse + row)};
    }
    merge_attention<LogBase::kE>(parts, {.rows = params.heads, .dim = params.dim}, params.sinks,
                                 {.o = params.o + i * params.heads * params.dim, .lse = {}});
  }
  team_.barrier();
}

void CpuOps::once(const std::function<void()>& body) {
  if (team_.thread == 0) body();
  team_.barrier();
}

void CpuOps::append(const attention::AppendParams& params) { paged_append(team_, params); }

void CpuOps::attention(const attention::AttentionParams& params) {
  paged_attention(team_, isa_, params, *attention_);
}

CpuExecutor::CpuExecutor(int threads, Isa isa)
    : pool_(threads),
      isa_(isa),
      attention_(pool_.threads()),
      scratch_(HugeMemory::allocate(scratch_bytes(pool_.threads()),
                                    "what the matrix kernels of all threads work in")) {}

Result<void> CpuExecutor::ready() const {
  if (!scratch_) return fail(scratch_.error());
  return {};
}

void CpuExecutor::run(const std::function<void(Ops&)>& body) {
  KERNELPATH_ASSERT(scratch_.has_value());
  pool_.run([&](const Team& team) {
    use_matmul_scratch(scratch_->data() + team.thread * kMatmulScratchBytes);
    CpuOps ops(team, isa_, attention_);
    body(ops);
  });
}

}  // namespace kernelpath::kernels::cpu
