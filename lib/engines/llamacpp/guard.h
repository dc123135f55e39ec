#pragma once

#include "base/result.h"
#include "engines/llamacpp/hparams.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

// A condition under which a class reads a key, as the table of reads has it: terms joined by &&,
// perhaps negated as a whole. Terms: found(KEY), NAME > N, NAME == N, arch == CONSTANT, and the
// named ones that are C++ here (is_lite, type == LLM_TYPE_13B).
struct Guard {
  enum class Kind : std::uint8_t {
    kFound,
    kAbove,
    kEqual,
    kArchitecture,
    kLite,  // DeepSeek-V2-Lite and its like
    kType13B
  };
  struct Term {
    Kind kind = Kind::kFound;
    bool negated = false;
    std::string name = {};  // key, member or constant
    std::int64_t value = 0;
  };
  bool negated = false;
  std::vector<Term> terms;
};

// Error kInputSchema for a condition that this build cannot evaluate.
Result<Guard> parse_guard(std::string_view text);

// What guards look at.
struct GuardState {
  const Hparams& hparams;
  const std::vector<std::string>& found;  // keys that were read, as the table spells them
  std::string_view architecture;          // LLM_ARCH_…
};
bool holds(const Guard& guard, const GuardState& state);

}  // namespace kernelpath::engines::llamacpp
