#pragma once

#include "run_checkpoint.h"

#include <string>
#include <vector>

namespace kernelpath::testing {

// The logits of three greedy steps behind a prompt, [3, vocabulary], as llm-run writes them.
std::vector<float> logits_of(const std::string& model,
                             const std::vector<std::string>& options = {});

// The same numbers but for the order of sums: the kernels of one model against those of another
// with the same weights. Logits of random models are between -10 and 10.
void expect_same_logits(const std::vector<float>& found, const std::vector<float>& expected);

}  // namespace kernelpath::testing
