#include "engines/llamacpp/cache.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::int64_t kCellPadding = 256;
constexpr std::int64_t kRotationBlock = 64;

std::int64_t total(const std::vector<std::int64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}, saturating_sum);
}

std::int64_t tensor_bytes(const checkpoint::GgmlType& type, std::int64_t row,
                          const CacheShape& shape) {
  const auto row_bytes = checkpoint::ggml_row_bytes(type, row);
  if (!row_bytes) return kTooLarge;
  return saturating_product({*row_bytes, shape.cells, shape.streams});
}

// The length that all layers of a cache have; 0 for a cache without layers, -1 if they differ.
class CommonLength {
 public:
  void add(std::int64_t length) {
    if (length_ == 0) {
      length_ = length;
    } else if (length_ != length) {
      length_ = -1;
    }
  }
  [[nodiscard]] bool common() const { return length_ > 0; }

 private:
  std::int64_t length_ = 0;
};

// The indexers of these classes always rotate their keys.
bool has_rotating_indexer(std::string_view constant) {
  constexpr auto kClasses = std::to_array<std::string_view>(
      {"LLM_ARCH_DEEPSEEK32", "LLM_ARCH_DEEPSEEK4", "LLM_ARCH_GLM_DSA", "LLM_ARCH_DOTS3NOTE"});
  return std::ranges::find(kClasses, constant) != kClasses.end();
}

void set_rotation(const CacheShape& shape, bool common_k, bool common_v, Cache& cache) {
  const Hparams& hparams = shape.hparams;
  cache.rotates_k =
      common_k && shape.params.type_k->quantized && hparams.n_embd_head_k() % kRotationBlock == 0;
  if (has_rotating_indexer(shape.constant) &&
      hparams.n_embd_head_k_full == hparams.indexer_head_size) {
    cache.rotates_k = true;
  }
  cache.rotates_v =
      common_v && shape.params.type_v->quantized && hparams.n_embd_head_v() % kRotationBlock == 0;
}

}  // namespace

std::int64_t Cache::k_total() const { return total(k_bytes); }
std::int64_t Cache::v_total() const { return total(v_bytes); }

Cache make_cache(std::string role, const CacheShape& shape, const LayerFilter& filter) {
  const Hparams& hparams = shape.hparams;
  Cache cache{.role = std::move(role),
              .cells = shape.cells,
              .streams = shape.streams,
              .v_transposed = shape.plan.v_transposed};
  CommonLength keys;
  CommonLength values;
  // Transposed, all layers get the width of the widest.
  const std::int64_t widest = cache.v_transposed ? hparams.n_embd_v_gqa_max() : 0;
  for (std::int64_t layer = 0; layer < hparams.n_layer_all; ++layer) {
    if (!hparams.has_kv(layer) || !filter(layer)) continue;
    keys.add(hparams.n_embd_head_k(layer));
    if (!hparams.is_mla()) values.add(hparams.n_embd_head_v(layer));
    const std::int64_t v_row = cache.v_transposed ? widest : hparams.n_embd_v_gqa(layer);
    cache.layers.push_back(layer);
    cache.k_bytes.push_back(tensor_bytes(*shape.params.type_k, hparams.n_embd_k_gqa(layer), shape));
    cache.v_bytes.push_back(hparams.is_mla() ? 0
                                             : tensor_bytes(*shape.params.type_v, v_row, shape));
  }
  set_rotation(shape, keys.common(), values.common(), cache);
  return cache;
}

std::int64_t window_cells(const Hparams& hparams, const ContextParams& params,
                          const ContextSizes& sizes, bool unified) {
  if (params.swa_full) return sizes.n_ctx_seq;
  const std::int64_t sequences = unified ? std::max<std::int64_t>(1, params.n_seq_max) : 1;
  const std::int64_t wanted =
      saturating_sum(saturating_product({hparams.n_swa, sequences}), sizes.n_ubatch);
  const std::int64_t cells = std::min(sizes.n_ctx_seq, wanted);
  return (cells + kCellPadding - 1) / kCellPadding * kCellPadding;
}

}  // namespace kernelpath::engines::llamacpp
