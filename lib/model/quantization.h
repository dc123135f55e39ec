#pragma once

#include "base/result.h"
#include "config/model_config.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::model {

// How a projection's weights are stored.
enum class SchemeKind : std::uint8_t {
  kPlain,        // .weight as it is
  kFp8Block,     // .weight e4m3, .weight_scale_inv [rows / block, columns / block], multiplied
  kFp8Channel,   // .weight e4m3, .weight_scale [rows, 1]
  kFp8Tensor,    // .weight e4m3, .weight_scale of one element
  kNvfp4,        // .weight_packed, .weight_scale [rows, columns / 16], .weight_global_scale, which
                 // divides (compressed-tensors)
  kNvfp4Scale2,  // .weight packed, .weight_scale, .weight_scale_2, which multiplies (ModelOpt)
  kMxfp4,        // stacked experts: _blocks [experts, rows, columns / 32, 16] and _scales
};

struct Scheme {
  SchemeKind kind = SchemeKind::kPlain;
  std::int64_t block_rows = 0;  // kFp8Block
  std::int64_t block_cols = 0;
};

// Which scheme each module of a checkpoint has. Built from the configuration alone; a module that
// is listed to stay as it is is plain, and one with an algorithm of its own has that.
class QuantizationPlan {
 public:
  // Error kUnavailable: an algorithm that no kernel reads.
  static Result<QuantizationPlan> make(const config::Quantization& quantization);

  // `module` is the dotted path: "model.layers.0.mlp.down_proj".
  [[nodiscard]] Scheme scheme_of(std::string_view module) const;
  // Experts in stacked tensors: mxfp4 or plain.
  [[nodiscard]] Scheme stacked_scheme_of(std::string_view module) const;

 private:
  [[nodiscard]] bool excluded(std::string_view module) const;

  Scheme common_;
  std::vector<std::string> excluded_;
  std::vector<std::pair<std::string, Scheme>> own_;  // module → scheme
};

// Whether an entry of a list of modules stands for `module`: the module itself, one that it lies
// in, a part of its path ("lm_head"), a pattern with *, or "re:" and a regular expression that
// matches from the start on.
bool module_matches(std::string_view pattern, std::string_view module);

}  // namespace kernelpath::model
