#include "model/absorb.h"

#include "base/assert.h"

#include <cstring>
#include <utility>
#include <vector>

namespace kernelpath::model {
namespace {

using kernels::WeightFormat;
using kernels::WeightMatrix;

bool is_plain(const WeightMatrix& w) {
  return w.format == WeightFormat::kF32 || w.format == WeightFormat::kBf16 ||
         w.format == WeightFormat::kF16;
}

WeightFormat format_of(const WeightMatrix& w) {
  return is_plain(w) ? w.format : WeightFormat::kF32;
}

std::int64_t element_bytes(const WeightMatrix& w) {
  return format_of(w) == WeightFormat::kF32 ? 4 : 2;
}

// Row `row` of kv_b_proj in the type that it is kept in.
void copy_row(const WeightMatrix& w, std::int64_t row, std::byte* out) {
  if (is_plain(w)) {
    std::memcpy(out, w.data + row * w.row_bytes, static_cast<std::size_t>(w.row_bytes));
  } else {
    dequantize_row(w, row, reinterpret_cast<float*>(out));
  }
}

// One layer's matrices, written from `place` on; returns the place behind them.
class Splitter {
 public:
  Splitter(const MlaSpec& mla, LatentWeights& weights)
      : mla_(mla), weights_(weights), size_(element_bytes(weights.kv_b.w)) {}

  std::byte* run(std::int64_t heads, std::byte* place) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t first = head * (mla_.nope + mla_.v_head_dim);
      weights_.absorb_k.push_back(transposed(first, place));
      place += mla_.nope * mla_.kv_lora_rank * size_;
      weights_.absorb_v.push_back(copied(first + mla_.nope, place));
      place += mla_.v_head_dim * mla_.kv_lora_rank * size_;
    }
    return place;
  }

 private:
  [[nodiscard]] WeightMatrix matrix(std::int64_t rows, std::int64_t cols,
                                    const std::byte* data) const {
    WeightMatrix out{.format = format_of(weights_.kv_b.w), .rows = rows, .cols = cols};
    out.data = data;
    out.row_bytes = cols * size_;
    return out;
  }

  WeightMatrix transposed(std::int64_t first, std::byte* place) {
    row_.resize(static_cast<std::size_t>(mla_.kv_lora_rank * size_));
    for (std::int64_t i = 0; i < mla_.nope; ++i) {
      copy_row(weights_.kv_b.w, first + i, row_.data());
      for (std::int64_t j = 0; j < mla_.kv_lora_rank; ++j) {
        std::memcpy(place + (j * mla_.nope + i) * size_, row_.data() + j * size_,
                    static_cast<std::size_t>(size_));
      }
    }
    return matrix(mla_.kv_lora_rank, mla_.nope, place);
  }

  [[nodiscard]] WeightMatrix copied(std::int64_t first, std::byte* place) const {
    for (std::int64_t i = 0; i < mla_.v_head_dim; ++i) {
      copy_row(weights_.kv_b.w, first + i, place + i * mla_.kv_lora_rank * size_);
    }
    return matrix(mla_.v_head_dim, mla_.kv_lora_rank, place);
  }

  const MlaSpec& mla_;
  LatentWeights& weights_;
  std::int64_t size_;
  std::vector<std::byte> row_;
};

}  // namespace

std::int64_t absorbed_bytes(const Parameters& parameters) {
  std::int64_t bytes = 0;
  for (const Layer& layer : parameters.layers) {
    const Linear& kv_b = layer.latent.kv_b;
    if (kv_b.exists()) bytes += kv_b.out * kv_b.in * element_bytes(kv_b.w);
  }
  return bytes;
}

Result<HugeMemory> absorb_latent_weights(const DecoderSpec& spec, Parameters& parameters) {
  KERNELPATH_TRY(memory, HugeMemory::allocate(absorbed_bytes(parameters), "weights"));
  std::byte* place = memory.data();
  for (Layer& layer : parameters.layers) {
    if (!layer.latent.kv_b.exists()) continue;
    KERNELPATH_ASSERT(place != nullptr);  // absorbed_bytes() counted this layer
    place = Splitter(*spec.mla, layer.latent).run(spec.num_heads, place);
    layer.latent.kv_b.w.data = nullptr;
  }
  return std::move(memory);
}

}  // namespace kernelpath::model
