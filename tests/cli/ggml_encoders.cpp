#include "../unit/checkpoint/build_gguf.h"
#include "base/float_types.h"
#include "checkpoint/ggml_type.h"
#include "model_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

namespace kernelpath::testing {
namespace {

using checkpoint::little;

// The value of the largest magnitude, with its sign.
float extreme_of(std::span<const float> values) {
  float extreme = 0.0F;
  for (const float value : values) {
    if (std::abs(value) > std::abs(extreme)) extreme = value;
  }
  return extreme;
}

void append_f16(Encoded& out, float value) { out.bytes += little(f32_to_f16(value)); }

Encoded encode_floats(std::string_view type, std::span<const float> values) {
  Encoded out;
  for (const float value : values) {
    if (type == "f32") {
      out.bytes += little(value);
      out.values.push_back(value);
    } else if (type == "f16") {
      append_f16(out, value);
      out.values.push_back(f16_to_f32(f32_to_f16(value)));
    } else {
      out.bytes += little(f32_to_bf16(value));
      out.values.push_back(bf16_to_f32(f32_to_bf16(value)));
    }
  }
  return out;
}

void encode_q8_0(std::span<const float> block, Encoded& out) {
  const float scale = f16_to_f32(f32_to_f16(largest_of(block) / 127.0F));
  append_f16(out, scale);
  for (const float value : block) {
    const float code = scale == 0 ? 0 : std::clamp(std::round(value / scale), -127.0F, 127.0F);
    out.bytes += static_cast<char>(static_cast<std::int8_t>(code));
    out.values.push_back(code * scale);
  }
}

void encode_q4_0(std::span<const float> block, Encoded& out) {
  const float extreme = extreme_of(block);
  const float scale = f16_to_f32(f32_to_f16(extreme / -8.0F));
  append_f16(out, scale);
  std::vector<int> codes;
  for (const float value : block) {
    const float code = scale == 0 ? 8 : std::clamp(std::round(value / scale) + 8, 0.0F, 15.0F);
    codes.push_back(static_cast<int>(code));
    out.values.push_back((code - 8) * scale);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    out.bytes += static_cast<char>(codes[i] | (codes[i + 16] << 4));
  }
}

// `extreme` becomes the code 0: 32 codes of 5 bits around 16.
void encode_q5_0(std::span<const float> block, Encoded& out) {
  const float extreme = extreme_of(block);
  const float scale = f16_to_f32(f32_to_f16(extreme / -16.0F));
  append_f16(out, scale);
  std::vector<unsigned> codes;
  std::uint32_t fifth = 0;
  for (const float value : block) {
    const float code = scale == 0 ? 16 : std::clamp(std::round(value / scale) + 16, 0.0F, 31.0F);
    fifth |= (static_cast<unsigned>(code) >> 4U) << codes.size();
    codes.push_back(static_cast<unsigned>(code));
    out.values.push_back((code - 16) * scale);
  }
  out.bytes += little(fifth);
  for (std::size_t i = 0; i < 16; ++i) {
    out.bytes += static_cast<char>((codes[i] & 15U) | (codes[i + 16] & 15U) << 4U);
  }
}

// The eight sub-blocks of q4_K and q5_K: 32 values each, with a scale and a minimum of 6 bits.
// Writes the scales; returns the codes, from 0 to `largest`.
std::vector<unsigned> encode_sub_blocks(std::span<const float> block, float largest, Encoded& out) {
  std::array<float, 8> scales{};
  std::array<float, 8> minima{};
  for (std::size_t s = 0; s < 8; ++s) {
    const auto [low, high] = std::ranges::minmax(block.subspan(s * 32, 32));
    minima[s] = std::max(0.0F, -low);
    scales[s] = (high + minima[s]) / largest;
  }
  const float scale = f16_to_f32(f32_to_f16(std::ranges::max(scales) / 63.0F));
  const float minimum = f16_to_f32(f32_to_f16(std::ranges::max(minima) / 63.0F));
  std::array<int, 8> scale_codes{};
  std::array<int, 8> minimum_codes{};
  std::vector<unsigned> codes;
  for (std::size_t s = 0; s < 8; ++s) {
    const auto six_bits = [](float value, float unit) {
      return unit == 0 ? 0 : std::clamp(static_cast<int>(std::round(value / unit)), 0, 63);
    };
    scale_codes[s] = six_bits(scales[s], scale);
    minimum_codes[s] = six_bits(minima[s], minimum);
    const float step = scale * static_cast<float>(scale_codes[s]);
    const float offset = minimum * static_cast<float>(minimum_codes[s]);
    for (const float value : block.subspan(s * 32, 32)) {
      const float code =
          step == 0 ? 0 : std::clamp(std::round((value + offset) / step), 0.0F, largest);
      codes.push_back(static_cast<unsigned>(code));
      out.values.push_back(code * step - offset);
    }
  }
  append_f16(out, scale);
  append_f16(out, minimum);
  std::array<int, 12> packed{};
  for (std::size_t s = 0; s < 4; ++s) {
    packed[s] = scale_codes[s] | ((scale_codes[s + 4] >> 4) << 6);
    packed[s + 4] = minimum_codes[s] | ((minimum_codes[s + 4] >> 4) << 6);
    packed[s + 8] = (scale_codes[s + 4] & 15) | ((minimum_codes[s + 4] & 15) << 4);
  }
  for (const int byte : packed) out.bytes += static_cast<char>(byte);
  return codes;
}

void append_halves(std::span<const unsigned> codes, std::size_t distance, Encoded& out) {
  for (std::size_t first = 0; first < codes.size(); first += 2 * distance) {
    for (std::size_t i = first; i < first + distance; ++i) {
      out.bytes += static_cast<char>((codes[i] & 15U) | (codes[i + distance] & 15U) << 4U);
    }
  }
}

void encode_q4_k(std::span<const float> block, Encoded& out) {
  append_halves(encode_sub_blocks(block, 15.0F, out), 32, out);
}

void encode_q5_k(std::span<const float> block, Encoded& out) {
  const std::vector<unsigned> codes = encode_sub_blocks(block, 31.0F, out);
  for (std::size_t i = 0; i < 32; ++i) {
    unsigned fifth = 0;
    for (std::size_t s = 0; s < 8; ++s) fifth |= (codes[s * 32 + i] >> 4U) << s;
    out.bytes += static_cast<char>(fifth);
  }
  append_halves(codes, 32, out);
}

// Sixteen sub-blocks of 16 values, each with a scale of 8 bits and its sign.
void encode_q6_k(std::span<const float> block, Encoded& out) {
  std::array<float, 16> extremes{};
  for (std::size_t s = 0; s < 16; ++s) extremes[s] = extreme_of(block.subspan(s * 16, 16));
  const float scale = f16_to_f32(f32_to_f16(largest_of(extremes) / 32.0F / 127.0F));
  std::vector<unsigned> codes;
  std::string scales;
  for (std::size_t s = 0; s < 16; ++s) {
    const float wish = scale == 0 ? 0 : std::round(extremes[s] / -32.0F / scale);
    const auto own = static_cast<std::int8_t>(std::clamp(wish, -127.0F, 127.0F));
    const float step = scale * static_cast<float>(own);
    scales += static_cast<char>(own);
    for (const float value : block.subspan(s * 16, 16)) {
      const float code = step == 0 ? 32 : std::clamp(std::round(value / step) + 32, 0.0F, 63.0F);
      codes.push_back(static_cast<unsigned>(code));
      out.values.push_back((code - 32) * step);
    }
  }
  append_halves(codes, 64, out);
  for (const std::size_t half : {std::size_t{0}, std::size_t{128}}) {
    for (std::size_t i = half; i < half + 32; ++i) {
      unsigned upper = 0;
      for (std::size_t q = 0; q < 4; ++q) upper |= (codes[i + q * 32] >> 4U) << (2 * q);
      out.bytes += static_cast<char>(upper);
    }
  }
  out.bytes += scales;
  append_f16(out, scale);
}

using BlockEncoder = std::function<void(std::span<const float>, Encoded&)>;
const BlockEncoder& block_encoder(std::string_view type) {
  static const std::map<std::string_view, BlockEncoder> kEncoders = {
      {"q8_0", encode_q8_0}, {"q4_0", encode_q4_0}, {"q5_0", encode_q5_0},
      {"q4_K", encode_q4_k}, {"q5_K", encode_q5_k}, {"q6_K", encode_q6_k}};
  return kEncoders.at(type);
}

}  // namespace

float largest_of(std::span<const float> values) {
  float out = 0.0F;
  for (const float value : values) out = std::max(out, std::abs(value));
  return out;
}

Encoded encode_ggml(std::string_view type, std::span<const float> values) {
  if (!type.starts_with("q")) return encode_floats(type, values);
  const auto block = static_cast<std::size_t>(checkpoint::find_ggml_type(type)->block);
  Encoded out;
  for (std::size_t at = 0; at < values.size(); at += block) {
    block_encoder(type)(values.subspan(at, block), out);
  }
  return out;
}

}  // namespace kernelpath::testing
