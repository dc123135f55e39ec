#pragma once

#include "kernels/cpu/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

#include <cstdint>
#include <functional>
#include <span>

namespace kernelpath::kernels::cpu {

// The operations on one thread of a team.
class CpuOps : public Ops {
 public:
  // `attention` is the team's, and outlives the operations.
  CpuOps(const Team& team, Isa isa, AttentionWorkspace& attention)
      : team_(team),
        isa_(isa),
        rows_(matmul_rows(isa)),
        units_(&elementwise_unit(isa)),
        attention_(&attention) {}

  void embed(const WeightMatrix& table, std::span<const std::int32_t> tokens, float scale,
             float* y) override;
  void matmul(std::span<const MatmulPart> parts) override;
  void norm(const NormParams& params) override;
  void add(std::int64_t count, const float* x, float scale, float* y) override;
  void scale_rows(const ScaleRowsParams& params) override;
  void scale_and_cap(std::int64_t count, float scale, float cap, float* x) override;
  void rope(const RopeParams& params) override;
  void gate(const GateParams& params) override;
  void append(const attention::AppendParams& params) override;
  void attention(const attention::AttentionParams& params) override;
  void route(const RouteParams& params) override;
  void experts(const ExpertsParams& params) override;
  void index_select(const IndexParams& params) override;
  void short_conv(const ShortConvParams& params) override;
  void delta_rule(const DeltaRuleParams& params) override;
  void merge(const MergeParams& params) override;
  void once(const std::function<void()>& body) override;

 private:
  Team team_;
  Isa isa_;
  MatmulRows rows_;
  const ElementwiseUnit* units_;
  AttentionWorkspace* attention_;
};

}  // namespace kernelpath::kernels::cpu
