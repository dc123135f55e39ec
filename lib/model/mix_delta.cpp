#include "model/pass.h"

#include <array>
#include <cmath>

// Kimi delta attention: no cache that grows, a convolution window and a matrix per head instead.
namespace kernelpath::model {
namespace {

constexpr float kL2Eps = 1e-6F;

// One of q, k and v: its projection, and its place in the buffers and in the state.
struct Stream {
  float* in = nullptr;
  float* out = nullptr;
  const Vector* conv = nullptr;
  std::int64_t state_offset = 0;
};

std::array<Stream, 3> streams(const LayerPass& at) {
  const DeltaSpec& delta = *at.pass.spec.delta;
  const DeltaWeights& w = at.layer.delta;
  const std::int64_t rows = at.pass.n * delta.width();
  std::array<Stream, 3> out;
  const std::array convs{&w.q_conv, &w.k_conv, &w.v_conv};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    out[i] = {.in = at.pass.buffers.delta_in + place * rows,
              .out = at.pass.buffers.delta + place * rows,
              .conv = convs[i],
              .state_offset = place * delta.conv_floats()};
  }
  return out;
}

kernels::StateView state_at(const LayerPass& at, std::int64_t offset) {
  return {.data = at.cache.state + offset,
          .slot_stride = at.cache.state_stride,
          .slots = at.pass.step.state_slots.data()};
}

void project_inputs(const LayerPass& at, const float* x, const std::array<Stream, 3>& qkv) {
  const Pass& pass = at.pass;
  const DeltaWeights& w = at.layer.delta;
  const Buffers& b = pass.buffers;
  float* const decay_low = b.delta_low;
  float* const gate_low = b.delta_low + pass.n * pass.spec.delta->head_dim;
  const std::array first{
      project(w.q, pass.n, x, qkv[0].in),  project(w.k, pass.n, x, qkv[1].in),
      project(w.v, pass.n, x, qkv[2].in),  project(w.f_a, pass.n, x, decay_low),
      project(w.g_a, pass.n, x, gate_low), project(w.beta, pass.n, x, b.delta_beta)};
  pass.ops.matmul(first);
  const std::array second{project(w.f_b, pass.n, decay_low, b.delta_decay),
                          project(w.g_b, pass.n, gate_low, b.delta_gate)};
  pass.ops.matmul(second);
}

void convolve(const LayerPass& at, const Stream& stream) {
  const DeltaSpec& delta = *at.pass.spec.delta;
  at.pass.ops.short_conv({.batch = at.pass.batch,
                          .state = state_at(at, stream.state_offset),
                          .channels = delta.width(),
                          .kernel = delta.conv_kernel,
                          .weight = stream.conv->data,
                          .x = stream.in,
                          .x_stride = delta.width(),
                          .y = stream.out,
                          .y_stride = delta.width()});
}

void norm_heads(const LayerPass& at, kernels::NormParams params, float* rows) {
  const DeltaSpec& delta = *at.pass.spec.delta;
  params.n = at.pass.n;
  params.groups = delta.heads;
  params.dim = delta.head_dim;
  params.x = rows;
  params.x_stride = delta.width();
  params.y = rows;
  params.y_stride = delta.width();
  at.pass.ops.norm(params);
}

}  // namespace

void mix_delta(const LayerPass& at, const float* x, float* y) {
  const Pass& pass = at.pass;
  const DeltaSpec& delta = *pass.spec.delta;
  const DeltaWeights& w = at.layer.delta;
  const Buffers& b = pass.buffers;
  const std::array<Stream, 3> qkv = streams(at);
  project_inputs(at, x, qkv);
  for (const Stream& stream : qkv) convolve(at, stream);
  const float q_scale = 1.0F / std::sqrt(static_cast<float>(delta.head_dim));
  norm_heads(at, {.kind = kernels::NormKind::kL2, .eps = kL2Eps, .scale = q_scale}, qkv[0].out);
  norm_heads(at, {.kind = kernels::NormKind::kL2, .eps = kL2Eps}, qkv[1].out);
  pass.ops.delta_rule({.batch = pass.batch,
                       .state = state_at(at, 3 * delta.conv_floats()),
                       .heads = delta.heads,
                       .key_dim = delta.head_dim,
                       .value_dim = delta.head_dim,
                       .q = qkv[0].out,
                       .k = qkv[1].out,
                       .v = qkv[2].out,
                       .g = b.delta_decay,
                       .beta = b.delta_beta,
                       .a_log = w.a_log.data,
                       .dt_bias = w.dt_bias.data,
                       .o = b.delta_out});
  norm_heads(at, {.kind = kernels::NormKind::kRms, .weight = w.o_norm.data, .eps = pass.spec.eps},
             b.delta_out);
  pass.ops.gate({.activation = kernels::Activation::kSigmoid,
                 .n = pass.n,
                 .dim = delta.width(),
                 .gate = b.delta_gate,
                 .up = b.delta_out,
                 .stride = delta.width(),
                 .y = b.delta_out,
                 .y_stride = delta.width()});
  const std::array parts{project(w.o, pass.n, b.delta_out, y)};
  pass.ops.matmul(parts);
}

}  // namespace kernelpath::model
