#include "model/workspace.h"

#include "kernels/ops.h"
#include "model/shard.h"

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

void carve_tensor_ranks(const DecoderSpec& spec, const comm::Placement& ranks, const StepSize& size,
                        Carver& carver, Buffers& out) {
  const std::int64_t logits = size.logit_rows * widest_vocabulary(spec.vocab_size, ranks.tp);
  out.rank_tokens = carver.take<std::int32_t>(size.tokens);
  out.rank_logits = carver.floats(logits);
  out.all_logits = carver.floats(ranks.tp * logits);
  if (spec.qk_norm != QkNorm::kWhole) return;
  const std::int64_t q = size.tokens * spec.q_width();
  out.norm_part = carver.floats(q);
  out.norm_parts = carver.floats(ranks.tp * q);
  out.norm_rows = carver.floats(ranks.tp * q);
}

void carve_context_ranks(const DecoderSpec& spec, const comm::Placement& ranks,
                         const StepSize& size, Carver& carver, Buffers& out) {
  const std::int64_t rows = size.tokens * spec.num_heads;
  const std::int64_t dim = spec.mla ? spec.mla->kv_lora_rank : spec.head_dim;
  out.lse = carver.floats(rows);
  out.shard_o = carver.floats(ranks.dcp * rows * dim);
  out.shard_lse = carver.floats(ranks.dcp * rows);
  if (spec.index) out.index_slots = carver.take<std::int64_t>(size.tokens);
}

struct Carving {
  const DecoderSpec& spec;
  const comm::Placement& ranks;
  const StepSize& size;
};

std::int64_t carve(const Carving& what, std::byte* start, Buffers& out) {
  const auto& [spec, ranks, size] = what;
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
  if (ranks.tp > 1) carve_tensor_ranks(spec, ranks, size, carver, out);
  if (ranks.dcp > 1) carve_context_ranks(spec, ranks, size, carver, out);
  return carver.used();
}

}  // namespace

std::int64_t Workspace::bytes(const DecoderSpec& spec, const comm::Placement& ranks,
                              const StepSize& size) {
  Buffers none;
  return carve({spec, ranks, size}, nullptr, none);
}

Result<void> Workspace::prepare(const DecoderSpec& spec, const comm::Placement& ranks,
                                const StepSize& size) {
  const std::int64_t needed = bytes(spec, ranks, size);
  if (needed > memory_.bytes()) {
    memory_ = HugeMemory();  // before there are two
    KERNELPATH_TRY(memory, HugeMemory::allocate(needed, "activations"));
    memory_ = std::move(memory);
  }
  carve({spec, ranks, size}, memory_.data(), buffers_);
  return {};
}

}  // namespace kernelpath::model
