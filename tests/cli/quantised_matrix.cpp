#include "../unit/checkpoint/build_gguf.h"
#include "base/float_types.h"
#include "model_files.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kernelpath::testing {
namespace {

using checkpoint::little;

std::string without_weight(const std::string& name) {
  return name.substr(0, name.size() - std::strlen(".weight"));
}

// fp8 values with a scale for blocks of rows × cols, as numbers.
struct Fp8 {
  std::string codes;
  std::vector<float> scales;  // row by row
  std::vector<float> values;
};
Fp8 encode_fp8(const PlainTensor& matrix, std::int64_t rows, std::int64_t cols) {
  const std::int64_t height = matrix.shape[0];
  const std::int64_t width = matrix.shape[1];
  const std::int64_t across = (width + cols - 1) / cols;
  Fp8 out;
  out.scales.assign(static_cast<std::size_t>((height + rows - 1) / rows * across), 0.0F);
  const auto scale_of = [&](std::int64_t index) -> float& {
    return out
        .scales[static_cast<std::size_t>(index / width / rows * across + index % width / cols)];
  };
  constexpr float kLargest = 448.0F;
  const std::int64_t count = height * width;
  for (std::int64_t i = 0; i < count; ++i) {
    float& scale = scale_of(i);
    scale = std::max(scale, std::abs(matrix.values[static_cast<std::size_t>(i)]) / kLargest);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float scale = scale_of(i);
    const std::uint8_t code = f32_to_e4m3(matrix.values[static_cast<std::size_t>(i)] / scale);
    out.codes += static_cast<char>(code);
    out.values.push_back(e4m3_to_f32(code) * scale);
  }
  return out;
}

QuantisedMatrix fp8(const PlainTensor& matrix, std::int64_t rows, std::int64_t cols,
                    const std::string& scale_name, const std::vector<std::int64_t>& scale_shape) {
  Fp8 encoded = encode_fp8(matrix, rows, cols);
  return {.parts = {{matrix.name, "F8_E4M3", matrix.shape, std::move(encoded.codes)},
                    {without_weight(matrix.name) + "." + scale_name, "F32", scale_shape,
                     encode_ggml("f32", encoded.scales).bytes}},
          .stands_for = {matrix.name, matrix.shape, std::move(encoded.values)}};
}

}  // namespace

QuantisedMatrix fp8_per_channel(const PlainTensor& matrix) {
  return fp8(matrix, 1, matrix.shape[1], "weight_scale", {matrix.shape[0], 1});
}

QuantisedMatrix fp8_per_tensor(const PlainTensor& matrix) {
  return fp8(matrix, matrix.shape[0], matrix.shape[1], "weight_scale", {});
}

QuantisedMatrix fp8_per_block(const PlainTensor& matrix, std::int64_t rows, std::int64_t cols) {
  return fp8(matrix, rows, cols, "weight_scale_inv",
             {(matrix.shape[0] + rows - 1) / rows, (matrix.shape[1] + cols - 1) / cols});
}

QuantisedMatrix nvfp4(const PlainTensor& matrix, bool modelopt) {
  constexpr std::size_t kBlock = 16;
  constexpr float kLargest = 6.0F;
  // One scale for all, so that those of blocks fit e4m3.
  const float common = largest_of(matrix.values) / (kLargest * 448.0F);
  std::string codes;
  std::string scales;
  std::vector<float> values;
  for (std::size_t at = 0; at < matrix.values.size(); at += kBlock) {
    const std::span<const float> block = std::span(matrix.values).subspan(at, kBlock);
    const std::uint8_t scale_code = f32_to_e4m3(largest_of(block) / kLargest / common);
    const float scale = e4m3_to_f32(scale_code) * common;
    scales += static_cast<char>(scale_code);
    for (std::size_t i = 0; i < kBlock; i += 2) {
      const auto code = [&](float value) {
        return scale == 0 ? std::uint8_t{0} : f32_to_e2m1(value / scale);
      };
      const std::uint8_t low = code(block[i]);
      const std::uint8_t high = code(block[i + 1]);
      codes += static_cast<char>(low | (high << 4));
      values.push_back(e2m1_to_f32(low) * scale);
      values.push_back(e2m1_to_f32(high) * scale);
    }
  }
  const std::string module = without_weight(matrix.name);
  const std::int64_t rows = matrix.shape[0];
  const std::int64_t cols = matrix.shape[1];
  std::vector<FilePart> parts = {
      {module + (modelopt ? ".weight" : ".weight_packed"), "U8", {rows, cols / 2}, codes},
      {module + ".weight_scale", "F8_E4M3", {rows, cols / 16}, scales}};
  if (modelopt) {
    parts.push_back({module + ".weight_scale_2", "F32", {}, little(common)});
  } else {
    parts.push_back({module + ".weight_global_scale", "F32", {1}, little(1.0F / common)});
  }
  return {.parts = std::move(parts), .stands_for = {matrix.name, matrix.shape, std::move(values)}};
}

}  // namespace kernelpath::testing
