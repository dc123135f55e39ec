#pragma once

#include "attention/data_type.h"
#include "base/result.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/stream.h"
#include "kernels/weight_matrix.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

// y = W x for a few tokens: the matrix products of a decoding step.
namespace kernelpath::kernels::cuda {

inline constexpr std::int64_t kGemvTokens = 8;  // at most
inline constexpr std::int32_t kGemvMinSm = 80;  // compute capability times ten

// What weights the kernel has, and what belongs to each.
struct GemvFormat {
  WeightFormat weights;
  std::string_view name;     // "fp8_e4m3"
  attention::DataType type;  // of x and y
  std::int64_t piece_cols;   // columns in 16 bytes
  std::int64_t cols_multiple;
  ScaleFormat scales;             // kNone: there are none
  std::int64_t block_cols;        // columns that share a scale: multiples of this one
  std::string_view scales_words;  // for refusals
};
inline constexpr std::array kGemvFormats = {
    GemvFormat{WeightFormat::kBf16, "bf16", attention::DataType::kBf16, 8, 8, ScaleFormat::kNone, 0,
               "none"},
    GemvFormat{WeightFormat::kF16, "f16", attention::DataType::kF16, 8, 8, ScaleFormat::kNone, 0,
               "none"},
    GemvFormat{WeightFormat::kFp8E4m3, "fp8_e4m3", attention::DataType::kBf16, 16, 16,
               ScaleFormat::kF32, 64,
               "none, or f32 for whole rows or for blocks of a multiple of 64 columns"},
    GemvFormat{WeightFormat::kE2m1, "e2m1", attention::DataType::kBf16, 32, 64, ScaleFormat::kE4m3,
               16, "e4m3 for 16 columns of a row (nvfp4)"},
};

// All pointers are the device's.
struct GemvParams {
  WeightMatrix weight = {};
  std::int64_t num_tokens = 1;
  const void* x = nullptr;    // [num_tokens, cols] in the type of the format
  std::int64_t x_stride = 0;  // elements between tokens; 0: cols
  void* y = nullptr;          // [num_tokens, rows] in the same type
  std::int64_t y_stride = 0;  // elements between tokens; 0: rows
  // The weights do not change while the launches before this one on the stream are under way. They
  // are then read before those have ended (x is not); needs compute capability 9.0, else ignored.
  bool weights_are_settled = false;
};

// Refuses (kUnavailable) devices, formats, sizes, strides and alignments that the kernel does not
// have, with what it has.
Result<void> check_gemv(const GemvParams& params, const DeviceInfo& device);
// One launch; sums in float32, in an order that neither the number of tokens nor chance changes.
Result<void> launch_gemv(const GemvParams& params, const DeviceInfo& device, StreamView stream);
// "sm80_gemv<bf16>"; "none" where check_gemv() refuses the format.
std::string gemv_kernel_name(WeightFormat format);

}  // namespace kernelpath::kernels::cuda
