#include "model/pass.h"

#include <array>

namespace kernelpath::model {
namespace {

void dense(const LayerPass& at, const MlpWeights& w, const float* x, float* y) {
  const Pass& pass = at.pass;
  const Buffers& b = pass.buffers;
  const std::int64_t inner = w.down.in;
  if (w.gate_up.exists()) {
    const std::array parts{project(w.gate_up, pass.n, x, b.gate_up)};
    pass.ops.matmul(parts);
  } else {
    const std::array parts{project(w.gate, pass.n, x, b.gate_up, 2 * inner),
                           project(w.up, pass.n, x, b.gate_up + inner, 2 * inner)};
    pass.ops.matmul(parts);
  }
  pass.ops.gate({.activation = pass.spec.activation,
                 .n = pass.n,
                 .dim = inner,
                 .gate = b.gate_up,
                 .up = b.gate_up + inner,
                 .stride = 2 * inner,
                 .y = b.inner,
                 .y_stride = inner});
  const std::array down{project(w.down, pass.n, b.inner, y)};
  pass.ops.matmul(down);
}

void route(const LayerPass& at, const float* x) {
  const Pass& pass = at.pass;
  const MoeSpec& moe = *pass.spec.moe;
  const Buffers& b = pass.buffers;
  const std::array parts{project(at.layer.moe.router, pass.n, x, b.router)};
  pass.ops.matmul(parts);
  pass.ops.route({.kind = moe.router,
                  .group_score = moe.group_score,
                  .n = pass.n,
                  .experts = moe.experts,
                  .top_k = moe.top_k,
                  .groups = moe.groups,
                  .top_groups = moe.top_groups,
                  .normalize = moe.normalize,
                  .normalize_eps = moe.normalize_eps,
                  .scaling = moe.scaling,
                  .logits = b.router,
                  .logits_stride = moe.experts,
                  .correction = at.layer.moe.correction.data,
                  .ids = b.expert_ids,
                  .weights = b.expert_weights});
}

void mixture(const LayerPass& at, const float* x, float* y) {
  const Pass& pass = at.pass;
  const MoeSpec& moe = *pass.spec.moe;
  const Buffers& b = pass.buffers;
  route(at, x);
  pass.ops.experts({.experts = at.layer.moe.views,
                    .layout = moe.layout,
                    .activation = moe.activation,
                    .limit = moe.limit,
                    .alpha = moe.alpha,
                    .scale_input = moe.scale_input,
                    .n = pass.n,
                    .top_k = moe.top_k,
                    .hidden = pass.spec.hidden_size,
                    .inter = moe.intermediate_size,
                    .ids = b.expert_ids,
                    .weights = b.expert_weights,
                    .x = x,
                    .x_stride = pass.spec.hidden_size,
                    .y = y,
                    .y_stride = pass.spec.hidden_size,
                    .scratch = b.expert_scratch,
                    .rows = b.expert_rows});
  if (!at.layer.moe.shared.exists()) return;
  dense(at, at.layer.moe.shared, x, b.y2);
  pass.ops.add(pass.n * pass.spec.hidden_size, b.y2, 1.0F, y);
}

}  // namespace

void feed_forward(const LayerPass& at, const float* x, float* y) {
  if (at.spec.moe) {
    mixture(at, x, y);
  } else {
    dense(at, at.layer.mlp, x, y);
  }
}

}  // namespace kernelpath::model
