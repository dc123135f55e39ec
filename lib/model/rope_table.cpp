#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace kernelpath::model {
namespace {

// theta^(2i/d), in float32 as the reference computes it.
std::vector<float> periods(double theta, std::int64_t dims) {
  std::vector<float> out(static_cast<std::size_t>(dims / 2));
  const auto base = static_cast<float>(theta);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::pow(base, static_cast<float>(2 * i) / static_cast<float>(dims));
  }
  return out;
}

std::vector<float> inverse(std::vector<float> values, float factor = 1.0F) {
  for (float& value : values) value = 1.0F / (factor * value);
  return values;
}

std::vector<float> llama3(const RopeSpec& spec) {
  std::vector<float> out = inverse(periods(spec.theta, spec.dims));
  const double old = spec.original_max_position_embeddings;
  for (float& f : out) {
    const double frequency = f;
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    if (wavelength > old / spec.low_freq_factor) {
      f = static_cast<float>(frequency / spec.factor);
    } else if (wavelength >= old / spec.high_freq_factor) {
      const double smooth = (old / wavelength - spec.low_freq_factor) /
                            (spec.high_freq_factor - spec.low_freq_factor);
      f = static_cast<float>((1.0 - smooth) * frequency / spec.factor + smooth * frequency);
    }
  }
  return out;
}

std::vector<float> yarn(const RopeSpec& spec) {
  const auto dims = static_cast<double>(spec.dims);
  const auto dimension_of = [&](double rotations) {
    return dims *
           std::log(spec.original_max_position_embeddings / (rotations * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(spec.theta));
  };
  double low = dimension_of(spec.beta_fast);
  double high = dimension_of(spec.beta_slow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1.0);
  if (low == high) high += 0.001;
  std::vector<float> out = inverse(periods(spec.theta, spec.dims));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double extrapolated = out[i];
    out[i] = static_cast<float>(extrapolated / spec.factor * ramp + extrapolated * (1.0 - ramp));
  }
  return out;
}

std::vector<float> longrope(const RopeSpec& spec, bool beyond) {
  std::vector<float> out = periods(spec.theta, spec.dims);
  const std::vector<double>& factors = beyond ? spec.long_factor : spec.short_factor;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] *= static_cast<float>(factors[i]);
  return inverse(std::move(out));
}

std::vector<float> proportional(const RopeSpec& spec) {
  std::vector<float> out = inverse(periods(spec.theta, spec.dims), static_cast<float>(spec.factor));
  const auto rotated =
      static_cast<std::size_t>(spec.partial_rotary_factor * static_cast<double>(spec.dims) / 2.0);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(std::min(rotated, out.size())), out.end(),
            0.0F);
  return out;
}

// The base of a dynamic table for a call of `length` tokens.
double dynamic_theta(const RopeSpec& spec, std::int64_t length) {
  const double limit = spec.max_position_embeddings;
  const double tokens = std::max(static_cast<double>(length), limit);
  const auto dims = static_cast<double>(spec.dims);
  return spec.theta *
         std::pow(spec.factor * tokens / limit - (spec.factor - 1.0), dims / (dims - 2.0));
}

float attention_factor_of(const RopeSpec& spec) {
  if (spec.kind != RopeKind::kYarn && spec.kind != RopeKind::kLongrope) return 1.0F;
  if (spec.attention_factor) return static_cast<float>(*spec.attention_factor);
  if (spec.kind == RopeKind::kLongrope) {
    if (spec.factor <= 1.0) return 1.0F;
    const double original = std::log(spec.original_max_position_embeddings);
    return static_cast<float>(std::sqrt(1.0 + std::log(spec.factor) / original));
  }
  if (spec.mscale != 0.0 && spec.mscale_all_dim != 0.0) {
    return static_cast<float>(yarn_mscale(spec.factor, spec.mscale) /
                              yarn_mscale(spec.factor, spec.mscale_all_dim));
  }
  return static_cast<float>(yarn_mscale(spec.factor, 1.0));
}

}  // namespace

double yarn_mscale(double scale, double mscale) {
  return scale <= 1.0 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

RopeTable::RopeTable(RopeSpec spec)
    : spec_(std::move(spec)), attention_factor_(attention_factor_of(spec_)) {
  if (!depends_on_length()) fixed_ = frequencies(0);
}

std::vector<float> RopeTable::frequencies(std::int64_t length) const {
  if (!fixed_.empty()) return fixed_;
  std::vector<float> out = unscaled(length);
  for (std::size_t i = 0; i < std::min(out.size(), spec_.frequency_factors.size()); ++i) {
    out[i] = static_cast<float>(out[i] / spec_.frequency_factors[i]);
  }
  return out;
}

std::vector<float> RopeTable::unscaled(std::int64_t length) const {
  switch (spec_.kind) {
    case RopeKind::kDefault:
      return inverse(periods(spec_.theta, spec_.dims));
    case RopeKind::kLinear:
      return inverse(periods(spec_.theta, spec_.dims), static_cast<float>(spec_.factor));
    case RopeKind::kDynamic:
      return inverse(periods(dynamic_theta(spec_, length), spec_.dims));
    case RopeKind::kLlama3:
      return llama3(spec_);
    case RopeKind::kYarn:
      return yarn(spec_);
    case RopeKind::kLongrope:
      return longrope(spec_, length_class(length) != 0);
    case RopeKind::kProportional:
      return proportional(spec_);
  }
  return {};
}

std::int64_t RopeTable::length_class(std::int64_t length) const {
  const auto tokens = static_cast<double>(length);
  if (spec_.kind == RopeKind::kDynamic) return tokens <= spec_.max_position_embeddings ? 0 : length;
  if (spec_.kind == RopeKind::kLongrope) {
    return tokens > spec_.original_max_position_embeddings ? 1 : 0;
  }
  return 0;
}

void RopeTable::fill(std::span<const std::int64_t> positions, std::span<const std::int64_t> lengths,
                     float* cos, float* sin) const {
  std::vector<float> own;
  std::int64_t own_class = -1;
  const auto half = static_cast<std::size_t>(spec_.dims / 2);
  for (std::size_t token = 0; token < positions.size(); ++token) {
    if (own_class != length_class(lengths[token]) || own.empty()) {
      own_class = length_class(lengths[token]);
      own = frequencies(lengths[token]);
    }
    const auto position = static_cast<float>(positions[token]);
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = position * own[i];
      cos[token * half + i] = std::cos(angle) * attention_factor_;
      sin[token * half + i] = std::sin(angle) * attention_factor_;
    }
  }
}

}  // namespace kernelpath::model
