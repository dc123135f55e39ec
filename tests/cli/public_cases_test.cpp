// Cases from public reports (tests/data/cases): what users met must be found by the programs, where
// a version that this build covers behaves so. Every row of vLLM is in the table below; those of
// other engines are in public_cases_engines_test.cpp.

#include "public_cases.h"

#include "base/text.h"
#include "json/document.h"
#include "run_program.h"
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;

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
      {.id = "reject-02",
       .engine = "vllm",
       .options = {"--page-size", "8"},
       .findings = {"error VLLM-BLOCK-SIZE-NONE"},
       .mentions = "block_size 8"},
      {.id = "reject-04",
       .engine = "vllm",
       .options = {"--backend", "TRITON_ATTN", "--kv", "fp8", "--sm", "86"},
       .findings = {"error VLLM-TRITON-FP8-CAPABILITY"},
       .mentions = "8.6"},
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
      {.id = "kv-02",
       .engine = "vllm",
       .options = {"--set", "vllm.disable_hybrid_kv_cache_manager=true"},
       .folder = "openai__gpt-oss-120b",
       .findings = {"note VLLM-HYBRID-MANAGER-DISABLED"},
       .mentions = "whole sequence"},
      {.id = "feat-01",
       .not_here = "a crash in kernels of 0.20 to 0.22, which no check of the engine foresaw"},
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

// What llm-inspect answers where nothing is wrong, or where the refusal has another reason in the
// versions here than in the report.
struct Answer {
  std::string path;  // of the engine's answer; "step RULE": its candidates; "value NAME": of --show
  std::string value;
};

struct Inspected {
  std::string id;
  std::vector<std::string> options = {};
  std::string folder = {};  // of tests/data/configs; empty: `config` is the model
  std::string config = {};
  std::vector<Answer> answers = {};
};

// Layers that slide from max_window_layers on: of 28 none.
const char* const kQwen2 = R"({
  "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584,
  "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28,
  "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 32768,
  "max_window_layers": 28, "sliding_window": 32768, "use_sliding_window": true,
  "torch_dtype": "bfloat16"})";

// 50 sliding and 10 full layers, of other heads each.
std::string gemma4() {
  std::string kinds;
  for (int i = 0; i < 60; ++i) {
    kinds += i == 0 ? "" : ", ";
    kinds += i % 6 == 5 ? "\"full_attention\"" : "\"sliding_attention\"";
  }
  return R"({"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text",
    "num_hidden_layers": 60, "hidden_size": 5376, "intermediate_size": 21504,
    "num_attention_heads": 32, "num_key_value_heads": 16, "num_global_key_value_heads": 4,
    "head_dim": 256, "global_head_dim": 512, "sliding_window": 1024, "vocab_size": 262144,
    "max_position_embeddings": 262144, "attention_k_eq_v": true, "torch_dtype": "bfloat16",
    "layer_types": [)" +
         kinds + "]}";
}

std::vector<Inspected> inspected() {
  return {
      // Heads of 512 are served since; what is left is that an image's tokens see each other.
      {.id = "reject-01",
       .options = {"--backend", "FLASHINFER", "--sm", "120"},
       .folder = "google__gemma-4-26B-A4B",
       .answers = {{"status", "error"},
                   {"error/code", "BACKEND-INVALID"},
                   {"step VLLM-SEL-MM-PREFIX", "FLASHINFER"}}},
      {.id = "reject-03",
       .options = {"--backend", "FLASHINFER_MLA", "--sm", "100"},
       .folder = "deepseek-ai__DeepSeek-V2-Lite",
       .answers = {{"status", "ok"},
                   {"attention/selected", "FLASHINFER_MLA"},
                   {"layers/0/kv/page_size", "32"},
                   {"step VLLM-KV-BLOCK-PREFERRED", "FLASHINFER_MLA"}}},
      // The checkpoint's fp8 is taken up as before, and TRITON_MLA reads it since.
      {.id = "reject-05",
       .options = {"--tp", "8", "--sm", "120"},
       .folder = "nvidia__DeepSeek-V3.1-NVFP4",
       .answers = {{"status", "ok"},
                   {"attention/selected", "TRITON_MLA"},
                   {"layers/0/kv/dtype", "fp8_e4m3"},
                   {"step VLLM-KV-DTYPE-CHECKPOINT", "kv_cache_dtype"}}},
      {.id = "reject-08",
       .options = {"--dtype", "float16", "--sm", "75"},
       .folder = "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
       .answers = {{"status", "ok"},
                   {"attention/selected", "TRITON_ATTN"},
                   {"step VLLM-SEL-CAPABILITY", "FLASHINFER"},
                   {"step VLLM-SEL-CAPABILITY", "FLASH_ATTN"}}},
      {.id = "arch-02",
       .options = {"--sm", "80"},
       .folder = "Qwen__Qwen3-8B",
       .answers = {{"status", "ok"}, {"model_class", "Qwen3ForCausalLM"}}},
      // A base class is served by the class of its family.
      {.id = "arch-03",
       .options = {"--sm", "80", "--set", "vllm.runner=pooling"},
       .folder = "intfloat__e5-mistral-7b-instruct",
       .answers = {{"status", "ok"}, {"model_class", "LlamaForCausalLM"}}},
      {.id = "arch-04",
       .options = {"--sm", "90"},
       .folder = "mistralai__Devstral-Small-2-24B-Instruct-2512",
       .answers = {{"status", "ok"}, {"model_class", "Mistral3ForConditionalGeneration"}}},
      {.id = "config-02",
       .options = {"--sm", "80"},
       .folder = "meta-llama__Llama-3.2-3B-Instruct",
       .answers = {{"status", "ok"}, {"value rope_type", "llama3"}, {"value factor", "32"}}},
      {.id = "config-03",
       .options = {"--sm", "90"},
       .folder = "mistralai__Devstral-Small-2-24B-Instruct-2512",
       .answers = {{"value rope_theta", "100000000"}, {"value rope_type", "yarn"}}},
      {.id = "config-04",
       .options = {"--sm", "80"},
       .config = kQwen2,
       .answers = {{"status", "ok"}, {"layers/0/kind", "full"}, {"value layers", "28 full"}}},
      {.id = "config-05",
       .options = {"--sm", "80"},
       .folder = "transformers-default__qwen2_5_omni",
       .answers = {{"status", "ok"},
                   {"value num_attention_heads", "28"},
                   {"value language model", "/thinker_config/text_config"}}},
      {.id = "kv-03",
       .options = {"--sm", "90", "--tp", "4"},
       .config = gemma4(),
       .answers = {{"layers/0/kind", "sliding"},
                   {"layers/0/kv_bytes_per_token", "204800"},
                   {"layers/1/kv_bytes_per_token", "20480"},
                   {"memory/kv_bytes_per_token", "225280"}}},
  };
}

std::string scalar_text(const json::Value& value) {
  if (value.is_string()) return value.as_string();
  return value.is_integer() ? std::to_string(value.as_integer()) : "";
}

// The values at a path of an answer: several for steps of one rule.
std::vector<std::string> values_at(const json::Value& input, const std::string& path) {
  const json::Value& engine = input.find("engines")->items()[0];
  std::vector<std::string> out;
  if (path.starts_with("step ")) {
    for (const json::Value& step : engine.find("steps")->items()) {
      const json::Value* candidate = step.find("candidate");
      const bool asked = text_of(step, "rule") == path.substr(5);
      if (asked && candidate != nullptr) out.push_back(scalar_text(*candidate));
    }
    return out;
  }
  if (path.starts_with("value ")) {
    for (const json::Value& value : input.find("values")->items()) {
      if (text_of(value, "name") == path.substr(6)) out.push_back(text_of(value, "value"));
    }
    return out;
  }
  const json::Value* at = &engine;
  for (const std::string& part : split(path, '/')) {
    if (at == nullptr) return out;
    const bool index = at->is_array();
    if (index && std::stoul(part) >= at->items().size()) return out;
    at = index ? &at->items()[std::stoul(part)] : at->find(part);
  }
  if (at != nullptr) out.push_back(scalar_text(*at));
  return out;
}

class InspectedCase : public ::testing::TestWithParam<std::tuple<Inspected, std::string>> {};

TEST_P(InspectedCase, IsAnswered) {
  const auto& [row, version] = GetParam();
  Call call;
  call.arguments = {row.folder.empty() ? "-" : config_folder(row.folder),
                    "--engine",
                    "vllm@" + version,
                    "--json",
                    "--why",
                    "--show",
                    "all"};
  call.arguments.insert(call.arguments.end(), row.options.begin(), row.options.end());
  call.input = row.config;
  const Outcome outcome = run_program("llm-inspect", call);
  const auto document = json::parse(outcome.out, "");
  ASSERT_TRUE(document) << outcome.out.substr(0, 200) << outcome.err;
  const json::Value& input = document->root.find("inputs")->items()[0];
  for (const Answer& answer : row.answers) {
    EXPECT_THAT(values_at(input, answer.path), ::testing::Contains(answer.value)) << answer.path;
  }
}

INSTANTIATE_TEST_SUITE_P(Vllm, InspectedCase,
                         ::testing::Combine(::testing::ValuesIn(inspected()),
                                            ::testing::Values("0.25.1", "0.33.0")));

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
  for (const Inspected& row : inspected()) known.insert(row.id);
  std::size_t rows = 0;
  for (const json::Value& row : public_cases()) {
    if (text_of(row, "engine") != "vllm") continue;
    ++rows;
    EXPECT_TRUE(known.contains(text_of(row, "id"))) << text_of(row, "id");
  }
  EXPECT_EQ(rows, known.size());
}

}  // namespace
}  // namespace kernelpath::testing
