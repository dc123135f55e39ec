#include "memory/format.h"

#include <array>
#include <utility>

namespace kernelpath::memory {
namespace {

// What a name stands for; the layouts are those of the checkpoints that the named tools write.
enum class Layout : std::uint8_t {
  kTensorScale8,  // 8-bit elements, one scale a tensor (modelopt FP8, INT8)
  kRowScale8,  // 8-bit elements, one float32 scale a row (compressed-tensors, FBGEMM, SmoothQuant)
  kBlockScale8,  // fp8 elements, one float32 scale a block (DeepSeek-V3)
  kMx8,          // fp8 elements, one e8m0 scale for 32
  kMx4,          // fp4 elements, one e8m0 scale for 32 (OCP microscaling)
  kNv4,        // fp4 elements, one fp8 scale for 16, float32 scales of the tensor and of its input
               // (NVFP4)
  kNv4Weight,  // the same without a scale of the input
  kGroup4,     // 4-bit integers, one 16-bit scale a group, zero points where the method has them
  kGroup8,     // the same with 8 bits
};

constexpr std::array<std::pair<std::string_view, Layout>, 27> kAlgorithms = {{
    {"FP8", Layout::kTensorScale8},
    {"INT8", Layout::kTensorScale8},
    {"W8A8_SQ_PER_TENSOR_PLUGIN", Layout::kTensorScale8},
    {"FP8_PER_CHANNEL_PER_TOKEN", Layout::kRowScale8},
    {"W8A16", Layout::kRowScale8},
    {"W8A8_SQ_PER_CHANNEL", Layout::kRowScale8},
    {"W8A8_SQ_PER_CHANNEL_PER_TENSOR_PLUGIN", Layout::kRowScale8},
    {"W8A8_SQ_PER_CHANNEL_PER_TOKEN_PLUGIN", Layout::kRowScale8},
    {"W8A8_SQ_PER_TENSOR_PER_TOKEN_PLUGIN", Layout::kTensorScale8},
    {"FP8_BLOCK_SCALES", Layout::kBlockScale8},
    {"FP8_PB_WO", Layout::kBlockScale8},
    {"MXFP8", Layout::kMx8},
    {"MXFP4", Layout::kMx4},
    {"W4A16_MXFP4", Layout::kMx4},
    {"W4A8_MXFP4_FP8", Layout::kMx4},
    {"W4A8_MXFP4_MXFP8", Layout::kMx4},
    {"NVFP4", Layout::kNv4},
    {"NVFP4_ARC", Layout::kNv4},
    {"NVFP4_AWQ", Layout::kNv4},
    {"W4A16_NVFP4", Layout::kNv4Weight},
    {"W4A8_NVFP4_FP8", Layout::kNv4},
    {"W4A16", Layout::kGroup4},
    {"W4A16_AWQ", Layout::kGroup4},
    {"W4A16_GPTQ", Layout::kGroup4},
    {"W4A8_AWQ", Layout::kGroup4},
    {"W4A8_QSERVE_PER_GROUP", Layout::kGroup4},
    {"W8A16_GPTQ", Layout::kGroup8},
}};

std::int64_t block_size(const config::Quantization& quantization, std::size_t axis) {
  const auto& sizes = quantization.weight_block_size;
  return axis < sizes.size() && sizes[axis] > 0 ? sizes[axis] : 128;
}

// AWQ and GPTQ keep zero points and GPTQ an index of each column's group; modelopt's and
// compressed-tensors' symmetric formats do neither.
Format grouped(std::int64_t bits, const config::Quantization& quantization) {
  const std::string method = quantization.method.value_or("");
  Format format{
      .bits = bits, .group_columns = quantization.group_size.value_or(128), .group_scale_bytes = 2};
  if (method == "awq" || method == "gptq") format.group_zero_bits = bits;
  if (method == "gptq") format.column_bytes = 4;
  return format;
}

Format format_for(Layout layout, const config::Quantization& quantization) {
  switch (layout) {
    case Layout::kTensorScale8: {
      const bool dynamic = quantization.activation_scheme.value_or("") == "dynamic";
      return {.bits = 8, .tensor_bytes = dynamic ? 4 : 8};
    }
    case Layout::kRowScale8: {
      // compressed-tensors keeps these scales at the model's dtype, the others in float32.
      const bool narrow = quantization.method.value_or("") == "compressed-tensors";
      return {.bits = 8, .row_bytes = narrow ? 2 : 4};
    }
    case Layout::kBlockScale8:
      return {.bits = 8,
              .block_rows = block_size(quantization, 0),
              .block_columns = block_size(quantization, 1),
              .block_scale_bytes = 4};
    case Layout::kMx8:
      return {.bits = 8, .group_columns = 32, .group_scale_bytes = 1};
    case Layout::kMx4:
      return {.bits = 4, .group_columns = 32, .group_scale_bytes = 1};
    case Layout::kNv4:
      return {.bits = 4, .group_columns = 16, .group_scale_bytes = 1, .tensor_bytes = 8};
    case Layout::kNv4Weight:
      return {.bits = 4, .group_columns = 16, .group_scale_bytes = 1, .tensor_bytes = 4};
    case Layout::kGroup4:
      return grouped(4, quantization);
    case Layout::kGroup8:
      return grouped(8, quantization);
  }
  return {};
}

Size bits_to_bytes(Size elements, std::int64_t bits) { return ceil_div(elements * bits, 8); }

}  // namespace

Size stored_bytes(const Format& format, Size rows, Size columns) {
  Size bytes = bits_to_bytes(rows * columns, format.bits);
  if (format.group_columns > 0) {
    const Size groups = rows * ceil_div(columns, format.group_columns);
    bytes += groups * format.group_scale_bytes;
    bytes += bits_to_bytes(groups, format.group_zero_bits);
  }
  if (format.block_rows > 0 && format.block_columns > 0) {
    bytes += ceil_div(rows, format.block_rows) * ceil_div(columns, format.block_columns) *
             format.block_scale_bytes;
  }
  return bytes + rows * format.row_bytes + columns * format.column_bytes +
         Size(format.tensor_bytes);
}

std::optional<Format> format_of(std::string_view algo, const config::Quantization& quantization) {
  for (const auto& [name, layout] : kAlgorithms) {
    if (name == algo) return format_for(layout, quantization);
  }
  return std::nullopt;
}

std::optional<Format> format_from_bits(const config::Quantization& quantization) {
  if (!quantization.weight_bits) return std::nullopt;
  const std::int64_t bits = *quantization.weight_bits;
  if (bits < 1 || bits > 16) return std::nullopt;
  return grouped(bits, quantization);
}

std::optional<std::int64_t> dtype_bytes(std::string_view dtype) {
  if (dtype == "float32" || dtype == "float") return 4;
  if (dtype == "bfloat16" || dtype == "float16" || dtype == "half") return 2;
  if (dtype == "float64") return 8;
  if (dtype.substr(0, 6) == "float8") return 1;
  return std::nullopt;
}

}  // namespace kernelpath::memory
