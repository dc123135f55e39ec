#include "kernels/cpu/append.h"

#include "base/float_types.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kernelpath::kernels::cpu {
namespace {

using attention::AppendParams;
using attention::DataType;
using attention::PagedRows;

// One side of the tokens.
struct Side {
  const PagedRows& rows;
  const float* values = nullptr;
  std::int64_t stride = 0;
  std::int64_t dim = 0;
};

template <class Code, class Narrow>
void store_row(const float* values, std::int64_t dim, float divisor, std::byte* out,
               Narrow narrow) {
  for (std::int64_t d = 0; d < dim; ++d) {
    const Code code = narrow(divisor == 1.0F ? values[d] : values[d] / divisor);
    std::memcpy(out + d * static_cast<std::int64_t>(sizeof(Code)), &code, sizeof(Code));
  }
}

void store_nvfp4_row(const float* values, std::int64_t dim, float tensor_scale, std::byte* codes,
                     std::byte* scales) {
  for (std::int64_t first = 0; first < dim; first += attention::kNvfp4Block) {
    const float* block = values + first;
    float largest = 0.0F;
    for (std::int64_t i = 0; i < attention::kNvfp4Block; ++i) {
      largest = std::max(largest, std::abs(block[i]));
    }
    const std::uint8_t scale = nvfp4_block_scale(largest, tensor_scale);
    const float divisor = e4m3_to_f32(scale) * tensor_scale;
    const auto code_of = [&](float value) -> std::uint32_t {
      return divisor == 0.0F ? 0U : f32_to_e2m1(value / divisor);
    };
    scales[first / attention::kNvfp4Block] = static_cast<std::byte>(scale);
    for (std::int64_t i = 0; i < attention::kNvfp4Block; i += 2) {
      codes[(first + i) / 2] =
          static_cast<std::byte>(code_of(block[i]) | code_of(block[i + 1]) << 4U);
    }
  }
}

void store(const Side& side, const float* values, std::int64_t element) {
  const PagedRows& rows = side.rows;
  std::byte* out = rows.data + attention::data_bytes(rows.type, element);
  switch (rows.type) {
    case DataType::kF32:
      store_row<float>(values, side.dim, rows.scale, out, [](float v) { return v; });
      break;
    case DataType::kBf16:
      store_row<std::uint16_t>(values, side.dim, rows.scale, out, f32_to_bf16);
      break;
    case DataType::kF16:
      store_row<std::uint16_t>(values, side.dim, rows.scale, out, f32_to_f16);
      break;
    case DataType::kFp8E4m3:
      store_row<std::uint8_t>(values, side.dim, rows.scale, out,
                              [](float v) { return f32_to_e4m3(v); });
      break;
    case DataType::kFp8E5m2:
      store_row<std::uint8_t>(values, side.dim, rows.scale, out,
                              [](float v) { return f32_to_e5m2(v); });
      break;
    case DataType::kNvfp4:
      store_nvfp4_row(values, side.dim, rows.scale, out,
                      rows.block_scales + element / attention::kNvfp4Block);
      break;
  }
}

void store_token(const AppendParams& params, const Side& side, std::int64_t token) {
  const std::int64_t slot = params.slot_mapping[token];
  const std::int64_t row = slot / params.page_size * side.rows.page_stride +
                           slot % params.page_size * side.rows.token_stride;
  for (std::int64_t head = 0; head < params.num_kv_heads; ++head) {
    store(side, side.values + token * side.stride + head * side.dim,
          row + head * side.rows.head_stride);
  }
}

}  // namespace

void paged_append(const Team& team, const AppendParams& params) {
  const auto stride_of = [&](std::int64_t stride, std::int64_t dim) {
    return stride != 0 ? stride : params.num_kv_heads * dim;
  };
  const Side k{.rows = params.k_rows,
               .values = params.k,
               .stride = stride_of(params.k_stride, params.head_dim),
               .dim = params.head_dim};
  const Side v{.rows = params.v_rows,
               .values = params.v,
               .stride = stride_of(params.v_stride, params.v_head_dim),
               .dim = params.v_head_dim};
  const auto [first, last] = team.share(params.num_tokens);
  for (std::int64_t token = first; token < last; ++token) {
    if (params.slot_mapping[token] < 0) continue;
    store_token(params, k, token);
    if (params.v_head_dim > 0) store_token(params, v, token);
  }
  team.barrier();
}

}  // namespace kernelpath::kernels::cpu
