// Cases from public reports (tests/data/cases): what users met must be found by the programs, where
// a version that this build covers behaves so. A row of an engine that this build does not have is
// named and left out; every row of vLLM is in the table below.

#include "json/document.h"
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;

std::vector<json::Value> read_rows() {
  std::vector<json::Value> out;
  std::ifstream file(std::string(KERNELPATH_GOLDEN_DIR) + "/../cases/cases.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto document = json::parse_object(line, "cases.jsonl");
    EXPECT_TRUE(document.has_value());
    if (document) out.push_back(std::move(document->root));
  }
  return out;
}

struct Expected {
  std::string id;           // of the row
  std::string engine = {};  // whose behaviour is asked; empty: none here behaves so
  std::vector<std::string> options = {};
  std::string folder = {};                 // of tests/data/configs; empty: the combination alone
  std::vector<std::string> findings = {};  // each as "LEVEL ID"
  std::string mentions = {};               // by the first of them
  std::string not_here = {};               // why no version of this build behaves so
};

const std::vector<Expected>& expected() {
  static const std::vector<Expected> rows = {
      {.id = "silent-01",
       .engine = "vllm",
       .options = {"--env", "VLLM_ATTENTION_BACKEND=TRITON_ATTN", "--sm", "86"},
       .findings = {"warn VLLM-ENV-BACKEND-UNREAD"},
       .mentions = "attention_backend"},
      {.id = "silent-06",
       .engine = "vllm",
       .options = {"--backend", "TRITON_ATTN", "--set", "vllm.speculative_config.method=dflash",
                   "--sm", "89"},
       .findings = {"warn VLLM-SPEC-DRAFT-BACKEND"},
       .mentions = "binds the target only"},
      {.id = "silent-11",
       .engine = "vllm@0.25.1",
       .options = {"--backend", "FLASHINFER", "--speculative", "mtp", "--draft-tokens", "2", "--sm",
                   "121"},
       .findings = {"warn VLLM-GRAPHS-FLASHINFER-SPECULATION"},
       .mentions = "PIECEWISE"},
      {.id = "silent-12",
       .engine = "vllm",
       .options = {"--backend", "FLASH_ATTN", "--kv", "fp8", "--sm", "80"},
       .findings = {"error VLLM-BACKEND-KV-TYPE"},
       .mentions = "FLASH_ATTN does not take a fp8 cache"},
      {.id = "reject-01", .not_here = "FLASHINFER takes heads of 512 in the versions here"},
      {.id = "reject-02",
       .engine = "vllm",
       .options = {"--page-size", "8"},
       .findings = {"error VLLM-BLOCK-SIZE-NONE"},
       .mentions = "block_size 8"},
      {.id = "reject-03", .not_here = "no finding: the engine moves the block size by itself"},
      {.id = "reject-04",
       .engine = "vllm",
       .options = {"--backend", "TRITON_ATTN", "--kv", "fp8", "--sm", "86"},
       .findings = {"error VLLM-TRITON-FP8-CAPABILITY"},
       .mentions = "8.6"},
      {.id = "reject-05", .not_here = "TRITON_MLA takes fp8 in the versions here"},
      {.id = "reject-06",
       .engine = "vllm",
       .options = {"--tp", "8", "--sm", "80"},
       .folder = "nvidia__GLM-5.1-NVFP4",
       .findings = {"error VLLM-BACKEND-NONE-VALID"}},
      {.id = "reject-07",
       .engine = "vllm",
       .options = {"--dtype", "bfloat16", "--sm", "75"},
       .findings = {"error VLLM-BF16-CAPABILITY"},
       .mentions = "8.0"},
      {.id = "reject-08", .not_here = "no finding: TRITON_ATTN serves the model"},
      {.id = "arch-02", .not_here = "the class is there in the versions here"},
      {.id = "arch-03", .not_here = "a base class runs through an adapter in the versions here"},
      {.id = "arch-04", .not_here = "no finding: the file can be read"},
      {.id = "config-02", .not_here = "rope_type is read in the versions here"},
      {.id = "config-03", .not_here = "no finding: the file can be read"},
      {.id = "config-04", .not_here = "the layers are counted right in the versions here"},
      {.id = "config-05", .not_here = "no finding: the file can be read"},
      {.id = "kv-02",
       .engine = "vllm",
       .options = {"--set", "vllm.disable_hybrid_kv_cache_manager=true"},
       .folder = "openai__gpt-oss-120b",
       .findings = {"note VLLM-HYBRID-MANAGER-DISABLED"},
       .mentions = "whole sequence"},
      {.id = "kv-03", .not_here = "no finding: a size, which llm-inspect prints"},
      {.id = "feat-01", .not_here = "a crash of 0.20 to 0.22"},
      {.id = "feat-02",
       .engine = "vllm@0.25.1",
       .options = {"--kv", "fp8", "--speculative", "eagle3"},
       .findings = {"note VLLM-SPEC-DRAFT-KV"},
       .mentions = "draft"},
      {.id = "feat-05",
       .engine = "vllm",
       .options = {"--tp", "3", "--kv", "fp8", "--set", "vllm.enable_expert_parallel=true"},
       .folder = "deepseek-ai__DeepSeek-V4-Flash",
       .findings = {"error VLLM-TP-HEADS", "error VLLM-DSV4-EXPERTS"},
       .mentions = "3"},
      {.id = "wrong-02",
       .engine = "vllm@0.25.1",
       .options = {"--backend", "FLASHINFER_MLA", "--tp", "8", "--dcp", "4", "--kv", "fp8", "--sm",
                   "100"},
       .findings = {"warn VLLM-DCP-LSE-BASE"},
       .mentions = "base 2"},
  };
  return rows;
}

class PublicCase : public ::testing::TestWithParam<Expected> {};

TEST_P(PublicCase, IsFound) {
  const Expected& row = GetParam();
  if (!row.not_here.empty()) GTEST_SKIP() << row.id << ": " << row.not_here;
  std::vector<std::string> arguments = {"--engine", row.engine, "--fail-on", "never"};
  if (!row.folder.empty()) arguments.push_back(config_folder(row.folder));
  arguments.insert(arguments.end(), row.options.begin(), row.options.end());
  const json::Value document = validate_document(arguments, 0);
  for (const std::string& finding : row.findings) {
    const std::size_t space = finding.find(' ');
    const auto found = findings_of(document, finding.substr(space + 1));
    ASSERT_EQ(found.size(), 1U) << row.id << ": " << finding;
    EXPECT_EQ(text_of(found[0], "level"), finding.substr(0, space)) << row.id;
    if (&finding == &row.findings.front()) {
      EXPECT_THAT(text_of(found[0], "message"), HasSubstr(row.mentions));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vllm, PublicCase, ::testing::ValuesIn(expected()), [](const auto& row) {
  std::string name = row.param.id;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

TEST(PublicCases, EveryRowOfVllm_IsInTheTable) {
  std::set<std::string> known;
  for (const Expected& row : expected()) known.insert(row.id);
  std::size_t rows = 0;
  for (const json::Value& row : read_rows()) {
    if (text_of(row, "engine") != "vllm") continue;
    ++rows;
    EXPECT_TRUE(known.contains(text_of(row, "id"))) << text_of(row, "id");
  }
  EXPECT_EQ(rows, known.size());
}

TEST(PublicCases, RowsOfOtherEngines_AreNamed) {
  std::map<std::string, int> skipped;
  for (const json::Value& row : read_rows()) {
    if (text_of(row, "engine") != "vllm") ++skipped[text_of(row, "engine")];
  }
  std::string text;
  for (const auto& [engine, count] : skipped) text += " " + engine + " " + std::to_string(count);
  GTEST_SKIP() << "not run here:" << text;
}

}  // namespace
}  // namespace kernelpath::testing
