#include "kernels/cpu/state.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kernelpath::kernels::cpu {
namespace {

// A request's rows and state.
struct Run {
  std::int64_t first = 0;  // token row
  std::int64_t count = 0;
  float* state = nullptr;
  bool fresh = false;  // starts at position 0
};

Run run_of(const attention::BatchView& batch, const StateView& state, std::int64_t request) {
  const std::int64_t first = batch.query_start[request];
  const std::int64_t count = batch.query_start[request + 1] - first;
  return {.first = first,
          .count = count,
          .state = state.data + state.slots[request] * state.slot_stride,
          .fresh = batch.seq_lens[request] == count};
}

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

float softplus(float x) {
  constexpr float kLinearFrom = 20.0F;  // exp(-x) is below float's last place there
  return x > kLinearFrom ? x : std::log1p(std::exp(x));
}

// One channel of one request: `history` is a ring of the last inputs, oldest first.
void convolve(const ShortConvParams& p, const Run& run, std::int64_t channel,
              std::vector<float>& history) {
  const std::int64_t past = p.kernel - 1;
  for (std::int64_t j = 0; j < past; ++j) {
    history[static_cast<std::size_t>(j)] = run.fresh ? 0.0F : run.state[j * p.channels + channel];
  }
  const float* const weight = p.weight + channel * p.kernel;
  for (std::int64_t i = run.first; i < run.first + run.count; ++i) {
    const float x = p.x[i * p.x_stride + channel];
    float sum = weight[past] * x;
    for (std::int64_t j = 0; j < past; ++j) sum += weight[j] * history[static_cast<std::size_t>(j)];
    p.y[i * p.y_stride + channel] = sum * sigmoid(sum);
    std::rotate(history.begin(), history.begin() + 1, history.end());
    history.back() = x;
  }
  for (std::int64_t j = 0; j < past; ++j) {
    run.state[j * p.channels + channel] = history[static_cast<std::size_t>(j)];
  }
}

// One head of one request. `seen` is [value_dim].
class DeltaHead {
 public:
  DeltaHead(const DeltaRuleParams& params, std::int64_t head)
      : p_(params), head_(head), seen_(static_cast<std::size_t>(params.value_dim)) {}

  void step(std::int64_t token, float* state) {
    const std::int64_t row = token * p_.heads + head_;
    const float* const q = p_.q + row * p_.key_dim;
    const float* const k = p_.k + row * p_.key_dim;
    const float* const v = p_.v + row * p_.value_dim;
    float* const o = p_.o + row * p_.value_dim;
    decay(p_.g + row * p_.key_dim, state);
    std::fill(seen_.begin(), seen_.end(), 0.0F);
    for (std::int64_t i = 0; i < p_.key_dim; ++i) add(k[i], state + i * p_.value_dim, seen_.data());
    const float beta = sigmoid(p_.beta[row]);
    for (std::int64_t j = 0; j < p_.value_dim; ++j) {
      float& value = seen_[static_cast<std::size_t>(j)];
      value = beta * (v[j] - value);
    }
    for (std::int64_t i = 0; i < p_.key_dim; ++i) add(k[i], seen_.data(), state + i * p_.value_dim);
    std::fill(o, o + p_.value_dim, 0.0F);
    for (std::int64_t i = 0; i < p_.key_dim; ++i) add(q[i], state + i * p_.value_dim, o);
  }

 private:
  void add(float factor, const float* from, float* to) const {
    for (std::int64_t j = 0; j < p_.value_dim; ++j) to[j] += factor * from[j];
  }

  void decay(const float* g, float* state) const {
    const float rate = std::exp(p_.a_log[head_]);
    const float* const bias = p_.dt_bias + head_ * p_.key_dim;
    for (std::int64_t i = 0; i < p_.key_dim; ++i) {
      const float factor = std::exp(-rate * softplus(g[i] + bias[i]));
      for (std::int64_t j = 0; j < p_.value_dim; ++j) state[i * p_.value_dim + j] *= factor;
    }
  }

  const DeltaRuleParams& p_;
  std::int64_t head_;
  std::vector<float> seen_;
};

}  // namespace

void short_conv_channels(const ShortConvParams& params, std::int64_t begin, std::int64_t end) {
  std::vector<float> history(
      static_cast<std::size_t>(std::max<std::int64_t>(params.kernel - 1, 1)));
  for (std::int64_t request = 0; request < params.batch.num_requests; ++request) {
    const Run run = run_of(params.batch, params.state, request);
    if (run.count == 0) continue;
    for (std::int64_t c = begin; c < end; ++c) convolve(params, run, c, history);
  }
}

void delta_rule_items(const DeltaRuleParams& params, std::int64_t begin, std::int64_t end) {
  const std::int64_t state_size = params.key_dim * params.value_dim;
  for (std::int64_t item = begin; item < end; ++item) {
    const Run run = run_of(params.batch, params.state, item / params.heads);
    if (run.count == 0) continue;
    const std::int64_t head = item % params.heads;
    float* const state = run.state + head * state_size;
    if (run.fresh) std::fill(state, state + state_size, 0.0F);
    DeltaHead steps(params, head);
    for (std::int64_t i = run.first; i < run.first + run.count; ++i) steps.step(i, state);
  }
}

}  // namespace kernelpath::kernels::cpu
