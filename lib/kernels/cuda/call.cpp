#include "kernels/cuda/call.h"

#include <algorithm>
#include <limits>

namespace kernelpath::kernels::cuda {

using attention::DataType;

namespace {
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int32_t>::max();
}  // namespace

void check_side(Findings& findings, std::string_view name, const attention::PagedRows& rows,
                std::int64_t dim) {
  const auto unit = std::int64_t{16} * 8 / std::max(attention::bits_of(rows.type), 1);
  for (const std::int64_t stride : {rows.page_stride, rows.token_stride, rows.head_stride}) {
    findings.require(stride % unit == 0,
                     "a stride of {} is {} elements; multiples of {} (16 bytes) are supported",
                     name, stride, unit);
    findings.require(stride >= 0 && attention::data_bytes(rows.type, stride) <= kMostBytes,
                     "a stride of {} is {} elements; up to 2 GiB are supported", name, stride);
  }
  const bool block_scaled = rows.type == DataType::kNvfp4;
  const std::int64_t multiple = block_scaled ? 64 : 16;
  findings.require(dim > 0 && dim <= 256 && dim % multiple == 0,
                   "the head size of {} is {}; multiples of {} up to 256 are supported for {}",
                   name, dim, multiple, attention::data_type_name(rows.type));
  findings.require(!block_scaled || rows.block_scales != nullptr, "{} has no block scales", name);
}

sm80::SideParams side_of(const attention::PagedRows& rows, std::int64_t dim,
                         const float* head_scales) {
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::uint32_t>(attention::data_bytes(rows.type, elements));
  };
  return {.data = rows.data,
          .block_scales = rows.block_scales,
          .page_bytes = bytes(rows.page_stride),
          .token_bytes = bytes(rows.token_stride),
          .head_bytes = bytes(rows.head_stride),
          .chunks = static_cast<std::int32_t>(bytes(dim) / 16),
          .scale = rows.scale,
          .head_scales = head_scales};
}

}  // namespace kernelpath::kernels::cuda
