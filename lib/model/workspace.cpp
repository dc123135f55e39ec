#include "model/workspace.h"

#include "kernels/ops.h"

#include <algorithm>
#include <utility>

namespace kernelpath::model {
namespace {

// Hands out memory from `start` on, in whole cache lines; without memory it only counts.
class Carver {
 public:
  explicit Carver(std::byte* start) : start_(start) {}

  template <class T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kLine = 64;
    std::byte* const place = start_ == nullptr ? nullptr : start_ + used_;
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    used_ += (bytes + kLine - 1) / kLine * kLine;
    return reinterpret_cast<T*>(place);
  }
  float* floats(std::int64_t count) { return take<float>(count); }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  std::byte* start_;
  std::int64_t used_ = 0;
};

void carve_latent(const DecoderSpec& spec, const StepSize& size, Carver& carver, Buffers& out) {
  const MlaSpec& mla = *spec.mla;
  const std::int64_t n = size.tokens;
  out.q_a = carver.floats(n * mla.q_lora_rank);
  out.q = carver.floats(n * spec.num_heads * (mla.nope + mla.rope));
  out.latent = carver.floats(n * mla.row());
  out.absorbed = carver.floats(n * spec.num_heads * mla.row());
  out.latent_out = carver.floats(n * spec.num_heads * mla.kv_lora_rank);
  if (!spec.index) return;
  out.index_q = carver.floats(n * spec.index->heads * spec.index->head_dim);
  out.index_k = carver.floats(n * spec.index->head_dim);
  out.index_weights = carver.floats(n * spec.index->heads);
  out.index_scores = carver.floats(size.threads * size.longest);
  out.selected = carver.take<std::int32_t>(n * spec.index->top_k);
}

void carve_delta(const DecoderSpec& spec, std::int64_t n, Carver& carver, Buffers& out) {
  const DeltaSpec& delta = *spec.delta;
  out.delta_in = carver.floats(3 * n * delta.width());
  out.delta = carver.floats(3 * n * delta.width());
  out.delta_low = carver.floats(2 * n * delta.head_dim);
  out.delta_decay = carver.floats(n * delta.width());
  out.delta_gate = carver.floats(n * delta.width());
  out.delta_beta = carver.floats(n * delta.heads);
  out.delta_out = carver.floats(n * delta.width());
}

void carve_moe(const DecoderSpec& spec, std::int64_t n, Carver& carver, Buffers& out) {
  const MoeSpec& moe = *spec.moe;
  out.router = carver.floats(n * moe.experts);
  out.expert_ids = carver.take<std::int32_t>(n * moe.top_k);
  out.expert_weights = carver.floats(n * moe.top_k);
  out.expert_scratch = carver.floats(
      kernels::experts_scratch_floats(n, moe.top_k, spec.hidden_size, moe.intermediate_size));
  out.expert_rows =
      carver.take<std::int32_t>(kernels::experts_scratch_rows(n, moe.top_k, moe.experts));
}

std::int64_t widest_mlp(const DecoderSpec& spec) {
  std::int64_t widest = spec.moe ? spec.moe->shared_intermediate_size : 0;
  for (const LayerSpec& layer : spec.layers) {
    if (!layer.moe) widest = std::max(widest, layer.intermediate_size);
  }
  return widest;
}

std::int64_t carve(const DecoderSpec& spec, const StepSize& size, std::byte* start, Buffers& out) {
  Carver carver(start);
  const std::int64_t n = size.tokens;
  for (float** buffer : {&out.x, &out.h, &out.y, &out.y2}) {
    *buffer = carver.floats(n * spec.hidden_size);
  }
  out.last = carver.floats(size.logit_rows * spec.hidden_size);
  const std::int64_t v_head_dim = spec.mla ? spec.mla->v_head_dim : spec.head_dim;
  out.o = carver.floats(n * spec.num_heads * v_head_dim);
  if (spec.mla) {
    carve_latent(spec, size, carver, out);
  } else {
    out.qkv = carver.floats(n * (spec.q_width() + 2 * spec.kv_width()));
  }
  if (spec.delta) carve_delta(spec, n, carver, out);
  if (spec.moe) carve_moe(spec, n, carver, out);
  const std::int64_t widest = widest_mlp(spec);
  out.gate_up = carver.floats(2 * n * widest);
  out.inner = carver.floats(n * widest);
  out.cos.clear();
  out.sin.clear();
  for (const RopeSpec& rope : spec.ropes) {
    out.cos.push_back(carver.floats(n * rope.dims / 2));
    out.sin.push_back(carver.floats(n * rope.dims / 2));
  }
  out.temperature = carver.floats(n);
  out.rope_lengths = carver.take<std::int64_t>(n);
  return carver.used();
}

}  // namespace

std::int64_t Workspace::bytes(const DecoderSpec& spec, const StepSize& size) {
  Buffers none;
  return carve(spec, size, nullptr, none);
}

Result<void> Workspace::prepare(const DecoderSpec& spec, const StepSize& size) {
  const std::int64_t needed = bytes(spec, size);
  if (needed > memory_.bytes()) {
    memory_ = HugeMemory();  // before there are two
    KERNELPATH_TRY(memory, HugeMemory::allocate(needed, "activations"));
    memory_ = std::move(memory);
  }
  carve(spec, size, memory_.data(), buffers_);
  return {};
}

}  // namespace kernelpath::model
