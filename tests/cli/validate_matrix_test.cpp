#include "base/text.h"
#include "json/document.h"
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

// --matrix: the documented table of features, and verdicts over values.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ValidateMatrix, Features_AreTheDocumentedTable) {
  const Outcome text = validate({"--matrix", "--engine", "trtllm"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("18 LoRA"));
  EXPECT_THAT(text.out, HasSubstr("[ours]"));
  EXPECT_THAT(validate({"--matrix", "--format", "html"}).out, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(validate({"--matrix", "--format", "md"}).out, HasSubstr("| 18 LoRA |"));
  EXPECT_THAT(validate({"--matrix", "--json"}).out, HasSubstr("\"kernelpath/feature-matrix\""));
}

// The matrix of TensorRT-LLM.
json::Value matrix_of(std::vector<std::string> call) {
  call.insert(call.end(), {"--engine", "trtllm", "--json"});
  const Outcome outcome = validate(call);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Result<json::Document> document = json::parse_object(outcome.out, "stdout");
  if (document) return document->root.find("engines")->items()[0];
  ADD_FAILURE() << document.error().text();
  return json::Value::object({});
}

TEST(ValidateMatrix, Values_GiveTheRegionsOfEqualVerdict) {
  const json::Value matrix =
      matrix_of({"--matrix=backend,kv", config_folder("meta-llama__Meta-Llama-3.1-8B")});
  EXPECT_EQ(matrix.find("combinations")->as_integer(), 15);
  std::int64_t total = 0;
  for (const json::Value& region : matrix.find("regions")->items()) {
    total += region.find("combinations")->as_integer();
  }
  EXPECT_EQ(total, 15);
}

TEST(ValidateMatrix, GivenValues_AreJudgedLikeTheOptions) {
  const std::string model = config_folder("meta-llama__Meta-Llama-3.1-8B");
  const Outcome outcome = validate({"--matrix=tp=2|3|4", model, "--engine", "trtllm"});
  EXPECT_THAT(outcome.out, HasSubstr("HEADS-NOT-DIVISIBLE"));
  EXPECT_THAT(outcome.out, HasSubstr("2 of 3 combinations are valid"));
}

TEST(ValidateMatrix, Html_IsAPlainTable) {
  const Outcome outcome =
      validate({"--matrix=backend,kv", "--engine", "trtllm", "--format", "html"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(outcome.out, HasSubstr("<th>backend</th><th>kv</th>"));
  EXPECT_THAT(outcome.out, HasSubstr("<td class=\"error\">"));
}

TEST(ValidateMatrix, EnginesWithoutTheAxis_AreLeftOutAndNamed) {
  const Outcome outcome = validate({"--matrix=enable_mla_skip_correction", "--verbose"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("trtllm "));
  EXPECT_EQ(validate({"--matrix=no_such_axis"}).exit_code, 2);
}

// One value of every axis, by axis.
using Choice = std::map<std::string, std::string>;

std::string verdict_in(const json::Value& matrix, const Choice& choice) {
  const auto axes = matrix.find("axes")->items();
  for (const json::Value& region : matrix.find("regions")->items()) {
    bool inside = true;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::string& wanted = choice.at(text_of(axes[a], "name"));
      bool found = false;
      for (const json::Value& value : region.find("values")->items()[a].items()) {
        found = found || value.as_string() == "*" || value.as_string() == wanted;
      }
      inside = inside && found;
    }
    if (inside) return text_of(region, "verdict");
  }
  return "none";
}

// Weights and KV cache that do not fit count, as they do in the report of one combination.
TEST(ValidateMatrix, EveryCell_IsTheVerdictOfThatCombination) {
  const std::string model = config_folder("meta-llama__Meta-Llama-3.1-70B");
  const json::Value matrix =
      matrix_of({"--matrix=tp=1|3|4|8,kv=auto|fp8,max-model-len=8192|131072,batch-size=1|16", model,
                 "--device", "h100-sxm"});
  std::size_t errors = 0;
  for (const std::string tp : {"1", "3", "4", "8"}) {
    for (const std::string kv : {"auto", "fp8"}) {
      for (const std::string length : {"8192", "131072"}) {
        for (const std::string batch : {"1", "16"}) {
          const Outcome one =
              validate({model, "--device", "h100-sxm", "--engine", "trtllm", "--tp", tp, "--kv", kv,
                        "--max-model-len", length, "--batch-size", batch});
          const std::string cell = verdict_in(
              matrix, {{"tp", tp}, {"kv", kv}, {"max-model-len", length}, {"batch-size", batch}});
          EXPECT_EQ(cell == "error", one.exit_code == 1) << tp << kv << length << " " << batch;
          errors += cell == "error" ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(errors, 8U);
  EXPECT_LT(errors, 32U);
}

}  // namespace
}  // namespace kernelpath::testing
