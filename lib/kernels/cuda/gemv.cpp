#include "kernels/cuda/gemv.h"

#include "base/checked.h"
#include "kernels/cuda/call.h"
#include "kernels/cuda/sm80/gemv/kernel.h"
#include "kernels/cuda/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace kernelpath::kernels::cuda {
namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
constexpr std::int64_t kPieceBytes = 16;

using Launch = cudaError_t (*)(const sm80::GemvKernelParams&, cudaStream_t);

// The kernel of each row of kGemvFormats.
Launch launch_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kBf16:
      return &sm80::launch_gemv_kernel<WeightFormat::kBf16>;
    case WeightFormat::kF16:
      return &sm80::launch_gemv_kernel<WeightFormat::kF16>;
    case WeightFormat::kFp8E4m3:
      return &sm80::launch_gemv_kernel<WeightFormat::kFp8E4m3>;
    case WeightFormat::kE2m1:
      return &sm80::launch_gemv_kernel<WeightFormat::kE2m1>;
    default:
      return nullptr;
  }
}

const GemvFormat* find_format(WeightFormat format) {
  const auto* const found = std::ranges::find_if(
      kGemvFormats, [&](const GemvFormat& one) { return one.weights == format; });
  return found == kGemvFormats.end() ? nullptr : found;
}

std::string known_formats() {
  std::string out;
  for (const GemvFormat& format : kGemvFormats) {
    out += (out.empty() ? "" : ", ") + std::string(format.name);
  }
  return out;
}

bool is_aligned(const void* pointer, std::int64_t stride_bytes, std::int64_t unit) {
  return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(unit) == 0 &&
         stride_bytes % unit == 0;
}

// Of the formats that have scales, those that this one has.
bool has_scales(const GemvFormat& format, const WeightMatrix& w) {
  if (w.scale_format != format.scales) return false;
  if (format.weights == WeightFormat::kE2m1) {
    return w.block_rows == 1 && w.block_cols == format.block_cols &&
           is_aligned(w.scales, w.scale_row_bytes, 4);
  }
  const bool blocks = w.block_cols % format.block_cols == 0 || w.scales_whole_rows();
  return blocks && w.block_rows >= 1 && w.block_cols >= 1 &&
         is_aligned(w.scales, w.scale_row_bytes, scale_bytes(format.scales));
}

void require_sizes(Findings& findings, const GemvFormat& format, const GemvParams& params) {
  const WeightMatrix& w = params.weight;
  findings.require(params.num_tokens >= 1 && params.num_tokens <= kGemvTokens,
                   "{} tokens; 1 to {} are supported", params.num_tokens, kGemvTokens);
  findings.require(w.rows >= 1 && w.rows <= kMostRows, "{} rows; 1 to {} are supported", w.rows,
                   kMostRows);
  findings.require(w.cols >= 1 && w.cols % format.cols_multiple == 0 && w.cols <= kMostRows,
                   "{} columns; multiples of {} up to {} are supported for {}", w.cols,
                   format.cols_multiple, kMostRows, format.name);
  findings.require(is_aligned(w.data, w.row_bytes, kPieceBytes),
                   "rows of weights start at multiples of 16 bytes, and {} bytes apart do not",
                   w.row_bytes);
  findings.require(is_aligned(params.x, params.x_stride * 2, kPieceBytes),
                   "rows of x start at multiples of 16 bytes, and {} elements apart do not",
                   params.x_stride);
}

void require_scales(Findings& findings, const GemvFormat& format, const WeightMatrix& w) {
  const bool without =
      w.scale_format == ScaleFormat::kNone && format.weights != WeightFormat::kE2m1;
  findings.require(without || has_scales(format, w),
                   "the scales of {} weights are others; {} are supported", format.name,
                   format.scales_words);
}

sm80::GemvKernelParams kernel_params(const GemvParams& params, const GemvFormat& format,
                                     const DeviceInfo& device) {
  const WeightMatrix& w = params.weight;
  const std::int64_t pieces = w.cols / format.piece_cols;
  const std::int64_t x_stride = params.x_stride > 0 ? params.x_stride : w.cols;
  const std::int64_t y_stride = params.y_stride > 0 ? params.y_stride : w.rows;
  // Blocks that reach beyond the row are one.
  const std::int64_t block_cols = std::min(std::max<std::int64_t>(w.block_cols, 1), w.cols);
  const bool settled = params.weights_are_settled && device.sm >= 90;
  sm80::GemvKernelParams out;
  out.weights = w.data;
  out.row_bytes = w.row_bytes;
  out.rows = static_cast<std::int32_t>(w.rows);
  out.pieces = static_cast<std::int32_t>(pieces);
  out.x = static_cast<const std::byte*>(params.x);
  out.x_token_bytes = x_stride * 2;
  out.y = static_cast<std::byte*>(params.y);
  out.y_token_bytes = y_stride * 2;
  out.tokens = static_cast<std::int32_t>(params.num_tokens);
  out.scales = w.scale_format == ScaleFormat::kNone ? nullptr : w.scales;
  out.scale_row_bytes = w.scale_row_bytes;
  out.block_rows = sm80::FastDivisor(static_cast<std::uint32_t>(std::min(w.block_rows, w.rows)));
  out.block_pieces = sm80::FastDivisor(static_cast<std::uint32_t>(
      std::max<std::int64_t>(ceil_div(block_cols, format.piece_cols), 1)));
  out.scale = w.scale;
  out.warps = sm80::gemv_warps(w.rows, pieces, device.num_sms);
  out.overlap_launches = settled ? 1 : 0;
  return out;
}

}  // namespace

Result<void> check_gemv(const GemvParams& params, const DeviceInfo& device) {
  Findings findings("matrix-vector");
  findings.require(device.sm >= kGemvMinSm,
                   "compute capability {}.{}; {}.{} and newer are supported", device.sm / 10,
                   device.sm % 10, kGemvMinSm / 10, kGemvMinSm % 10);
  const GemvFormat* const format = find_format(params.weight.format);
  findings.require(format != nullptr, "the weights have another format; {} are supported",
                   known_formats());
  if (format != nullptr) {
    require_sizes(findings, *format, params);
    require_scales(findings, *format, params.weight);
  }
  Result<void> out = findings.result();
  if (!out) out.error().hint = "choose another weight type or size, or run on the CPU";
  return out;
}

Result<void> launch_gemv(const GemvParams& params, const DeviceInfo& device, StreamView stream) {
  KERNELPATH_CHECK_OK(check_gemv(params, device));
  const GemvFormat& format = *find_format(params.weight.format);
  return check_status(launch_of(format.weights)(kernel_params(params, format, device),
                                                static_cast<cudaStream_t>(stream.handle)),
                      "the launch of the matrix-vector kernel");
}

std::string gemv_kernel_name(WeightFormat format) {
  const GemvFormat* const found = find_format(format);
  return found == nullptr ? "none" : fmt::format("sm80_gemv<{}>", found->name);
}

}  // namespace kernelpath::kernels::cuda
