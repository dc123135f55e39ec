#include "run_logits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace kernelpath::testing {

std::vector<float> logits_of(const std::string& model, const std::vector<std::string>& options) {
  const TemporaryFolder folder;
  const std::string file = folder.path("logits.bin");
  std::vector<std::string> arguments = {model,
                                        "--prompt-tokens",
                                        "5,17,300,42,8,8,120,1,2,3,77,250,31,64,128,200,11,13",
                                        "-n",
                                        "3",
                                        "--ignore-eos",
                                        "--dump-logits",
                                        file};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string bytes = read_file(file);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

void expect_same_logits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(found.size(), expected.size());
  float largest = 0.0F;
  float difference = 0.0F;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(std::isfinite(found[i])) << i;
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(found[i] - expected[i]));
  }
  EXPECT_GT(largest, 1.0F) << "a model whose logits say nothing";
  EXPECT_LT(difference, 2e-3F);
}

}  // namespace kernelpath::testing
