#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kernelpath::model {

enum class RopeKind : std::uint8_t {
  kDefault,
  kLinear,
  kDynamic,
  kLlama3,
  kYarn,
  kLongrope,
  kProportional,
};

// Everything that the angles of one rotary table depend on. Names are those of the config fields.
struct RopeSpec {
  RopeKind kind = RopeKind::kDefault;
  std::int64_t dims = 0;  // rotated dimensions of a head, even
  double theta = 10000.0;
  double factor = 1.0;
  double original_max_position_embeddings = 0.0;
  double max_position_embeddings = 0.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;
  std::optional<double> attention_factor = {};
  double mscale = 0.0;
  double mscale_all_dim = 0.0;
  double partial_rotary_factor = 1.0;          // kProportional
  std::vector<double> frequency_factors = {};  // each frequency is divided by its own, at the end
  std::vector<double> short_factor = {};
  std::vector<double> long_factor = {};
};

// 1 for scale <= 1, else 0.1 * mscale * ln(scale) + 1.
double yarn_mscale(double scale, double mscale);

// The angles of one rotary table.
class RopeTable {
 public:
  explicit RopeTable(RopeSpec spec);

  [[nodiscard]] const RopeSpec& spec() const { return spec_; }
  // Whether the frequencies of a token depend on the length of the call that it came in.
  [[nodiscard]] bool depends_on_length() const {
    return spec_.kind == RopeKind::kDynamic || spec_.kind == RopeKind::kLongrope;
  }
  // The frequencies for a call of that many tokens, [dims / 2].
  [[nodiscard]] std::vector<float> frequencies(std::int64_t length) const;
  // What cos and sin are multiplied with.
  [[nodiscard]] float attention_factor() const { return attention_factor_; }

  // cos and sin, [n, dims / 2] each, of tokens at `positions` that came in calls of `lengths`.
  void fill(std::span<const std::int64_t> positions, std::span<const std::int64_t> lengths,
            float* cos, float* sin) const;

 private:
  [[nodiscard]] std::vector<float> unscaled(std::int64_t length) const;
  // Two calls of equal class have equal frequencies.
  [[nodiscard]] std::int64_t length_class(std::int64_t length) const;

  RopeSpec spec_;
  float attention_factor_ = 1.0F;
  std::vector<float> fixed_;  // where the length does not matter
};

}  // namespace kernelpath::model
