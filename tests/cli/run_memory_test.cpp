// The ledgers of a plan against what a run really takes.
#include "model_files.h"
#include "run_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::int64_t at(const json::Value& document, const std::string& part, const std::string& name) {
  return document.find(part)->find(name)->as_integer();
}

// About 160 MB of weights, so that the program itself is little beside them.
const ModelShape kLarge = {.layers = 4,
                           .hidden = 1024,
                           .intermediate = 2048,
                           .heads = 16,
                           .kv_heads = 4,
                           .head_dim = 64,
                           .vocabulary = 4096};

// It takes a while where the machine has other work.
Outcome run_patiently(std::vector<std::string> arguments) {
  return run_program("llm-run", {.arguments = std::move(arguments), .timeout_s = 600});
}

class LargeModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kUnderSanitizer) GTEST_SKIP() << "a sanitizer maps memory of its own";
  }

  static json::Value document_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out, "out").value().root;
  }

  // Half of all that was predicted must be the model's, and the rest within a twentieth, and
  // `allowed_bytes` more.
  static void expect_predicted(const json::Value& document, double allowed_bytes = 0) {
    const std::int64_t model = at(document, "plan", "construction_bytes");
    const std::int64_t before = at(document, "environment", "memory_before_bytes");
    const std::int64_t measured = at(document, "environment", "memory_construction_peak_bytes");
    const auto predicted = static_cast<double>(before + model);
    EXPECT_GT(model, before);
    EXPECT_LT(std::abs(predicted - static_cast<double>(measured)), 0.05 * predicted + allowed_bytes)
        << "predicted " << before << " + " << model << ", measured " << measured;
  }

  TemporaryFolder folder_;
};

TEST_F(LargeModel, ConstructionPeak_IsWithinFivePercentOfWhatWasMeasured) {
  write_model(folder_.path("model"), kLarge, random_tensors(kLarge));
  const Outcome outcome = run_patiently({folder_.path("model"), "--prompt-tokens", "1,2,3", "-n",
                                         "1", "--ignore-eos", "--json", "--stats"});
  expect_predicted(document_of(outcome));
  EXPECT_THAT(outcome.err, HasSubstr("memory until the model was built: "));
}

// Blocks of q8_0 are taken apart while they are read: more than what stays.
TEST_F(LargeModel, ConstructionPeakOfConvertedWeights_IsToo) {
  write_gguf(folder_.path("m.gguf"), kLarge, random_tensors(kLarge), "q8_0");
  const Outcome outcome = run_patiently({folder_.path("m.gguf"), "--prompt-tokens", "1,2,3", "-n",
                                         "1", "--ignore-eos", "--json", "--threads", "2"});
  const json::Value document = document_of(outcome);
  EXPECT_GT(at(document, "plan", "construction_bytes"), at(document, "plan", "weight_bytes"));
  // Runs of so small a model differ in steps of a huge page, by three of them: whether the ends of
  // an area lie in one is up to the system.
  expect_predicted(document, 3.0 * (2U << 20U));
}

TEST(DryRun, PrintsAllLedgers_AsTheRunHasThem) {
  const std::vector<std::string> asked = {checkpoint(kLlama), "-p", "Hello", "-n", "4",
                                          "--ignore-eos"};
  std::vector<std::string> dry = asked;
  dry.emplace_back("--dry-run");
  const Outcome text = run(dry);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("weights "), HasSubstr("KV cache "), HasSubstr("construction "),
                    HasSubstr("the most while"), HasSubstr("kernels ")));
  dry.emplace_back("--json");
  std::vector<std::string> real = asked;
  real.emplace_back("--json");
  const json::Value planned = json::parse(run(dry).out, "out").value().root;
  const json::Value run_document = json::parse(run(real).out, "out").value().root;
  EXPECT_EQ(*planned.find("plan"), *run_document.find("plan"));
  EXPECT_TRUE(planned.find("results")->items().empty());
}

// Blocks with scales inside stay as the file has them: what they take is what the file holds.
TEST(DryRun, MixtureOfBlocks_TakesWhatItsFileHolds) {
  const TemporaryFolder folder;
  const ModelShape shape;
  const std::string file = folder.path("m.gguf");
  write_gguf(file, shape, random_tensors(shape), "Q4_K_M");
  const std::vector<std::string> asked = {file, "--prompt-tokens", "1", "-n", "1", "--json"};
  std::vector<std::string> dry = asked;
  dry.emplace_back("--dry-run");
  const json::Value planned = json::parse(run(dry).out, "out").value().root;
  const json::Value run_document = json::parse(run(asked).out, "out").value().root;
  EXPECT_EQ(*planned.find("plan"), *run_document.find("plan"));
  // Beside them the file has its header and padding.
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(file));
  const std::int64_t weights = at(planned, "plan", "weight_bytes");
  EXPECT_LE(weights, bytes);
  EXPECT_GT(weights, bytes - 4096);
}

}  // namespace
}  // namespace kernelpath::testing
