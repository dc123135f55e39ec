#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernelpath::runtime {

// A prompt with the greedy tokens that it must give (a golden.json of tests/data/checkpoints).
struct ExpectedRun {
  std::int64_t id = 0;
  std::optional<std::string> text = {};  // must encode to prompt_ids, where it is there
  std::vector<std::int32_t> prompt_ids;
  std::vector<std::int32_t> output_ids;
  std::vector<double> gaps;  // largest logit minus the next one, per step; as long as output_ids
};

struct Expectation {
  std::string name;
  std::vector<ExpectedRun> runs;
};

// Steps whose two best logits are nearer than this may go either way, and everything behind them.
inline constexpr double kNearTie = 1e-3;

// Errors: those of read_file and json::parse; kInputSchema with the JSON pointer in `where`.
Result<Expectation> load_expectation(const std::string& path);
// The same of a file's text; `path` names it in errors.
Result<Expectation> parse_expectation(std::string text, const std::string& path);

// Where a run leaves what was expected: the first step before any near tie whose token differs, or
// that is missing.
struct Difference {
  std::int64_t step = 0;
  std::int32_t expected = 0;
  std::optional<std::int32_t> found = {};  // nothing: the run ended before
  double gap = 0;
};
std::optional<Difference> first_difference(const ExpectedRun& expected,
                                           std::span<const std::int32_t> found);

}  // namespace kernelpath::runtime
