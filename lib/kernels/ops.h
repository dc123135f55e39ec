#pragma once

#include "attention/params.h"
#include "kernels/weight_matrix.h"

#include <cstdint>
#include <functional>
#include <span>

// The operations that a model is made of, on plain pointers. Activations are float32. Strides count
// elements between tokens (rows), and rows may be wider than what an operation reads.
namespace kernelpath::kernels {

// y[i, :] = W x[i, :] + bias for i < n. `x_rows` and `y_rows`, where given, say which rows of x are
// read and of y are written in place of row i.
struct MatmulPart {
  WeightMatrix w;
  const float* bias = nullptr;  // [rows]; null: none
  std::int64_t n = 0;
  const float* x = nullptr;  // [n, cols]
  std::int64_t x_stride = 0;
  float* y = nullptr;  // [n, rows]
  std::int64_t y_stride = 0;
  const std::int32_t* x_rows = nullptr;  // [n]
  const std::int32_t* y_rows = nullptr;  // [n]
};

enum class NormKind : std::uint8_t {
  kRms,    // x * rsqrt(mean(x^2) + eps)
  kLayer,  // (x - mean) / sqrt(var + eps)
  kL2,     // x / sqrt(sum(x^2) + eps)
};

// y = norm(x) * (weight + weight_offset) + bias over `dim` elements, for each of `groups` heads of
// each of n tokens. May work in place.
struct NormParams {
  NormKind kind = NormKind::kRms;
  std::int64_t n = 0;
  std::int64_t groups = 1;
  std::int64_t dim = 0;
  const float* x = nullptr;  // [n, groups, dim]
  std::int64_t x_stride = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t group_stride = 0;  // between heads, of x and y; 0: dim
  const float* weight = nullptr;  // [dim]; null: none
  const float* bias = nullptr;    // [dim]; null: none
  float weight_offset = 0.0F;     // 1 for Gemma
  float eps = 0.0F;
  float scale = 1.0F;                    // of the result
  const std::int32_t* x_rows = nullptr;  // [n]: rows of x to read; null: i
};

// Copies `width` elements of each head, the first `rotary` of them rotated by the token's angles.
// In place where src = dst (then width = rotary is enough). rotary = 0 copies.
struct RopeParams {
  std::int64_t n = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
  std::int64_t rotary = 0;   // even
  bool interleaved = false;  // pairs (2i, 2i + 1); else (i, i + rotary / 2)
  const float* src = nullptr;
  std::int64_t src_stride = 0;
  std::int64_t src_head_stride = 0;
  float* dst = nullptr;
  std::int64_t dst_stride = 0;
  std::int64_t dst_head_stride = 0;
  const float* cos = nullptr;  // [n, rotary / 2], the attention factor included
  const float* sin = nullptr;  // [n, rotary / 2]
};

// x[i, :] *= factors[i] over `dim` elements.
struct ScaleRowsParams {
  std::int64_t n = 0;
  std::int64_t dim = 0;
  const float* factors = nullptr;  // [n]
  float* x = nullptr;
  std::int64_t stride = 0;
};

enum class Activation : std::uint8_t {
  kSilu,      // g * sigmoid(g) * u
  kGeluTanh,  // gelu of g by its tanh approximation, * u
  kGelu,      // exact gelu of g, * u
  kRelu,      // max(g, 0) * u
  kSigmoid,   // sigmoid(g) * u
  kClamped,   // gpt-oss: min(g, limit) * sigmoid(alpha * g) * (clamp(u, -limit, limit) + 1)
};

// y[i, j] = activation(gate[i, j]) * up[i, j].
struct GateParams {
  Activation activation = Activation::kSilu;
  std::int64_t n = 0;
  std::int64_t dim = 0;
  const float* gate = nullptr;
  const float* up = nullptr;
  std::int64_t stride = 0;   // between tokens, of gate and up
  std::int64_t element = 1;  // between elements, of gate and up (2: interleaved)
  float* y = nullptr;
  std::int64_t y_stride = 0;
  float limit = 0.0F;
  float alpha = 0.0F;
};

enum class RouterKind : std::uint8_t {
  kSoftmax,      // softmax over all experts, the top k of it
  kTopKSoftmax,  // the top k logits, softmax over those
  kSigmoid,      // sigmoid of each logit, the top k of it (+ correction bias for the choice)
};
enum class GroupScore : std::uint8_t { kNone, kMax, kSumOfTop2 };

// Chooses the experts of each token; equal scores go to the lower index.
struct RouteParams {
  RouterKind kind = RouterKind::kSoftmax;
  GroupScore group_score = GroupScore::kNone;
  std::int64_t n = 0;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t groups = 1;
  std::int64_t top_groups = 1;
  bool normalize = false;         // divide the weights by their sum
  float normalize_eps = 0.0F;     // added to that sum
  float scaling = 1.0F;           // of the weights, at the end
  const float* logits = nullptr;  // [n, experts]
  std::int64_t logits_stride = 0;
  const float* correction = nullptr;  // [experts]; added to the scores for the choice only
  std::int32_t* ids = nullptr;        // [n, top_k]
  float* weights = nullptr;           // [n, top_k]
};

// The matrices of one expert. `gate_up` holds both halves where the file has them in one matrix
// (gate rows first, or alternating), and then `up` is not used.
struct Expert {
  WeightMatrix gate;
  WeightMatrix up;
  WeightMatrix down;
  const float* gate_bias = nullptr;
  const float* up_bias = nullptr;
  const float* down_bias = nullptr;
};

enum class GateUpLayout : std::uint8_t { kSeparate, kHalves, kInterleaved };

// y[i, :] = sum over the chosen experts e of weight * expert_e(x[i, :]); with `scale_input` the
// weight multiplies the expert's input and not its output (Llama 4).
struct ExpertsParams {
  std::span<const Expert> experts;
  GateUpLayout layout = GateUpLayout::kSeparate;
  Activation activation = Activation::kSilu;
  float limit = 0.0F;
  float alpha = 0.0F;
  bool scale_input = false;
  std::int64_t n = 0;
  std::int64_t top_k = 0;
  std::int64_t hidden = 0;
  std::int64_t inter = 0;
  const std::int32_t* ids = nullptr;  // [n, top_k]
  const float* weights = nullptr;     // [n, top_k]
  const float* x = nullptr;           // [n, hidden]
  std::int64_t x_stride = 0;
  float* y = nullptr;  // [n, hidden], overwritten
  std::int64_t y_stride = 0;
  float* scratch = nullptr;      // [experts_scratch_floats()]
  std::int32_t* rows = nullptr;  // [experts_scratch_rows()]
};
constexpr std::int64_t experts_scratch_floats(std::int64_t n, std::int64_t top_k,
                                              std::int64_t hidden, std::int64_t inter) {
  return n * top_k * (3 * inter + 2 * hidden);
}
constexpr std::int64_t experts_scratch_rows(std::int64_t n, std::int64_t top_k,
                                            std::int64_t experts) {
  return 2 * n * top_k + 2 * experts + 2;
}

// Index-sparse attention: score(t) = sum_j weights[i, j] * relu(q[i, j] . k[t]) over the causal
// keys of the token's request; the top_k of them by score, equal scores to the lower position.
struct IndexParams {
  attention::BatchView batch;
  std::int64_t num_tokens = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;
  float scale = 1.0F;                // of q . k
  const float* q = nullptr;          // [num_tokens, heads, head_dim]
  const float* weights = nullptr;    // [num_tokens, heads]
  attention::PagedRows k;            // one head, this step's keys included
  std::int32_t* selected = nullptr;  // [num_tokens, top_k]: ascending positions, -1 behind them
  float* scratch = nullptr;          // [threads, scratch_stride]
  std::int64_t scratch_stride = 0;   // at least the longest seq_len
};

// Where the recurrent state of each request of a step lies. A request whose first token has
// position 0 starts from zero, whatever its slot holds.
struct StateView {
  float* data = nullptr;
  std::int64_t slot_stride = 0;         // elements between slots
  const std::int32_t* slots = nullptr;  // [num_requests]
};

// y[i, c] = silu(sum_j weight[c, j] * x[i - kernel + 1 + j, c]), causal within the request; the
// state holds the last kernel - 1 inputs [kernel - 1, channels] and is updated.
struct ShortConvParams {
  attention::BatchView batch;
  StateView state;
  std::int64_t channels = 0;
  std::int64_t kernel = 0;
  const float* weight = nullptr;  // [channels, kernel]
  const float* x = nullptr;       // [tokens, channels]
  std::int64_t x_stride = 0;
  float* y = nullptr;  // not x
  std::int64_t y_stride = 0;
};

// Gated delta rule with a decay per channel (Kimi delta attention), for each head:
//   g = -exp(a_log) * softplus(g + dt_bias), b = sigmoid(beta)
//   S = diag(exp g) S; S += k (b (v - S^T k))^T; o = S^T q
// State: [heads, key_dim, value_dim].
struct DeltaRuleParams {
  attention::BatchView batch;
  StateView state;
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  const float* q = nullptr;        // [tokens, heads, key_dim], scaled
  const float* k = nullptr;        // [tokens, heads, key_dim]
  const float* v = nullptr;        // [tokens, heads, value_dim]
  const float* g = nullptr;        // [tokens, heads, key_dim]
  const float* beta = nullptr;     // [tokens, heads]
  const float* a_log = nullptr;    // [heads]
  const float* dt_bias = nullptr;  // [heads, key_dim]
  float* o = nullptr;              // [tokens, heads, value_dim]
};

// o[i, h, :] of attention over all keys from attention over disjoint parts of them (the shards of a
// cache that several ranks hold). A part without keys (lse -inf) does not count, and `sinks`, which
// are not in the parts, join once.
struct MergeParams {
  std::int64_t parts = 0;
  std::int64_t n = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  const float* parts_o = nullptr;    // [parts, n, heads, dim]
  const float* parts_lse = nullptr;  // [parts, n, heads], base e
  const float* sinks = nullptr;      // [heads]; null: none
  float* o = nullptr;                // [n, heads, dim]
};

// A step's body runs as one program on every thread of a team: all threads call the same
// operations with the same arguments in the same order. An operation does the calling thread's
// share and returns when all shares are done, so that what it wrote can be read. Sums do not depend
// on the number of threads nor on the other tokens of a batch.
class Ops : public attention::Kernels {
 public:
  // y[i, :] = scale * table[tokens[i], :], or 0 for a token below 0. `y` is [n, table.cols].
  virtual void embed(const WeightMatrix& table, std::span<const std::int32_t> tokens, float scale,
                     float* y) = 0;
  // The parts are independent of each other: fused projections are one call.
  virtual void matmul(std::span<const MatmulPart> parts) = 0;
  virtual void norm(const NormParams& params) = 0;
  // y += scale * x.
  virtual void add(std::int64_t count, const float* x, float scale, float* y) = 0;
  virtual void scale_rows(const ScaleRowsParams& params) = 0;
  // x = cap * tanh(scale * x / cap); cap 0: x *= scale.
  virtual void scale_and_cap(std::int64_t count, float scale, float cap, float* x) = 0;
  virtual void rope(const RopeParams& params) = 0;
  virtual void gate(const GateParams& params) = 0;
  virtual void route(const RouteParams& params) = 0;
  virtual void experts(const ExpertsParams& params) = 0;
  virtual void index_select(const IndexParams& params) = 0;
  virtual void short_conv(const ShortConvParams& params) = 0;
  virtual void delta_rule(const DeltaRuleParams& params) = 0;
  virtual void merge(const MergeParams& params) = 0;
  // Runs `body` on the thread that called Executor::run, while the others wait.
  virtual void once(const std::function<void()>& body) = 0;
};

// Runs bodies on a device: once per thread of a team on the CPU.
class Executor {
 public:
  virtual ~Executor() = default;
  [[nodiscard]] virtual int threads() const = 0;
  // Returns when every thread has returned from `body`.
  virtual void run(const std::function<void(Ops&)>& body) = 0;
};

}  // namespace kernelpath::kernels
