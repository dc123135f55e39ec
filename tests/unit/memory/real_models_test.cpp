// Against parameter counts that transformers' own models have (scripts/record-parameter-counts) and
// against the safetensors headers of small checkpoints (scripts/record-checkpoint-sizes).
#include "config/load.h"
#include "json/document.h"
#include "memory/family.h"
#include "memory/state.h"
#include "memory/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace kernelpath::memory {
namespace {

std::vector<json::Document> read_lines(const std::string& name) {
  std::ifstream file(std::string(KERNELPATH_TEST_DATA) + "/memory/" + name);
  std::vector<json::Document> rows;
  for (std::string line; std::getline(file, line);) {
    auto row = json::parse(line, name);
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

Result<config::ModelConfig> load_config(const std::string& name) {
  return config::load_model(std::string(KERNELPATH_TEST_DATA) + "/configs/" + name);
}

// Where the yardstick itself is not the checkpoint that the config belongs to.
struct Exception {
  std::string_view config;
  std::string_view reason;
};
constexpr std::array kExceptions = {
    Exception{
        "stepfun-ai__Step-3.7-Flash",
        "the file's vocab_size stands outside of text_config, where transformers overlooks it"},
    Exception{"transformers-default__internvl",
              "transformers ties as the outer config says, against the text config"},
    Exception{"transformers-default__longcat_flash",
              "transformers gives experts without weights a gate and up projection"},
};

bool is_draft(const config::ModelConfig& model) {
  return model.draft.has_draft_vocab_size || model.draft.has_dflash_config ||
         model.draft.has_eagle_config;
}

bool is_compared(const std::string& name, const config::ModelConfig& model) {
  const Family* family = find_family(model.text_model_type);
  if (family == nullptr || !family->caveat.empty() || is_draft(model)) return false;
  if (name.find("eagle3") != std::string::npos || name.find("ealge3") != std::string::npos) {
    return false;
  }
  const bool classifier = !model.architectures.empty() &&
                          model.architectures.front().find("Classification") != std::string::npos;
  return !classifier && std::none_of(kExceptions.begin(), kExceptions.end(),
                                     [&](const Exception& e) { return e.config == name; });
}

std::int64_t text_parameters(const WeightLedger& ledger) {
  std::int64_t out = ledger.parameters;
  for (const WeightItem& item : ledger.items) {
    if (item.part == Part::kVision) out -= item.parameters;
  }
  return out;
}

TEST(CountWeights, RealConfigs_HaveTheParametersThatTransformersBuilds) {
  int compared = 0;
  for (const json::Document& row : read_lines("parameters.jsonl")) {
    const std::string& name = row.root.find("config")->as_string();
    const auto model = load_config(name);
    if (!model || !is_compared(name, *model)) continue;
    const auto ledger = count_weights(*model);
    ASSERT_TRUE(ledger.has_value()) << name << ": " << ledger.error().text();
    EXPECT_EQ(text_parameters(*ledger), row.root.find("parameters")->as_integer()) << name;
    ++compared;
  }
  EXPECT_GE(compared, 185);
}

// What the families without a layout of their own, the encoders and the towers lose in exactness.
TEST(CountWeights, RealConfigs_AreNeverExactWithoutALayout) {
  for (const json::Document& row : read_lines("parameters.jsonl")) {
    const std::string& name = row.root.find("config")->as_string();
    const auto model = load_config(name);
    if (!model) continue;
    const auto ledger = count_weights(*model);
    if (!ledger) continue;
    const bool has_layout = find_family(model->text_model_type) != nullptr;
    if (!has_layout || model->has_vision || is_draft(*model)) {
      EXPECT_FALSE(ledger->exact) << name;
      EXPECT_FALSE(ledger->reasons.empty()) << name;
    }
  }
}

TEST(CountWeights, RealVisionTowers_AreWithinAFactorOfThree) {
  int compared = 0;
  for (const json::Document& row : read_lines("parameters.jsonl")) {
    const json::Value* vision = row.root.find("vision");
    const std::string& name = row.root.find("config")->as_string();
    const auto model = load_config(name);
    if (vision == nullptr || !model || model->vision_integers.empty()) continue;
    const auto ledger = count_weights(*model);
    if (!ledger) continue;
    for (const WeightItem& item : ledger->items) {
      if (item.part != Part::kVision) continue;
      EXPECT_LT(item.parameters, 3 * vision->as_integer()) << name;
      EXPECT_GT(3 * item.parameters, vision->as_integer()) << name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 15);
}

TEST(CountWeights, SmallCheckpoints_HaveTheBytesOfTheirHeaders) {
  const auto rows = read_lines("checkpoints.jsonl");
  EXPECT_GE(rows.size(), 38U);
  for (const json::Document& row : rows) {
    const std::string& name = row.root.find("checkpoint")->as_string();
    const auto model = config::from_value(*row.root.find("config"), {});
    ASSERT_TRUE(model.has_value()) << name << ": " << model.error().text();
    const auto ledger = count_weights(*model);
    ASSERT_TRUE(ledger.has_value()) << name;
    EXPECT_TRUE(ledger->exact) << name;
    // This one keeps in 2 bytes what the published Kimi-Linear keeps in float32: A_log, dt_bias and
    // the router's score correction.
    const std::int64_t stored = name == "kimi-linear" ? 792 : 0;
    EXPECT_EQ(ledger->bytes - stored, row.root.find("bytes")->as_integer()) << name;
  }
}

struct Published {
  const char* config;
  std::int64_t parameters;
};

// Model cards and the totals that the publishers' checkpoints show.
TEST(CountWeights, PublishedModels_HaveThePublishedTotals) {
  constexpr std::array kPublished = {
      Published{"meta-llama__Meta-Llama-3.1-8B", 8'030'261'248},
      Published{"meta-llama__Meta-Llama-3.1-70B", 70'553'706'496},
      Published{"meta-llama__Meta-Llama-3.1-405B", 405'853'388'800},
      Published{"Qwen__Qwen2.5-7B", 7'615'616'512},
      Published{"Qwen__Qwen3-0.6B", 596'049'920},
      Published{"Qwen__Qwen3-8B", 8'190'735'360},
      Published{"Qwen__Qwen3-30B-A3B", 30'532'122'624},
      Published{"Qwen__Qwen3-235B-A22B", 235'093'634'560},
      Published{"mistralai__Mistral-7B-v0.1", 7'241'732'096},
      Published{"mistralai__Mixtral-8x7B-v0.1", 46'702'792'704},
      Published{"deepseek-ai__DeepSeek-V3", 671'026'419'200},
      Published{"google__gemma-2-2b", 2'614'341'888},
      Published{"01-ai__Yi-34B", 34'388'917'248},
      Published{"microsoft__Phi-3-small-8k-instruct", 7'392'272'384},
      Published{"nvidia__Llama-3_3-Nemotron-Super-49B-v1", 49'867'145'216},
      Published{"openai__gpt-oss-120b", 116'829'156'672},
      Published{"nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31'577'940'288},
  };
  for (const Published& published : kPublished) {
    const auto model = load_config(published.config);
    ASSERT_TRUE(model.has_value()) << published.config;
    EXPECT_EQ(count_weights(*model)->parameters, published.parameters) << published.config;
  }
}

// 671 B parameters in FP8 over 8 GPUs: more than an 80 GB device holds.
TEST(CountWeights, DeepSeekV3OverEightRanks_TakesAbout84GigabytesEach) {
  const auto model = load_config("deepseek-ai__DeepSeek-V3");
  ASSERT_TRUE(model.has_value());
  const auto ledger = count_weights(*model, {.parallel = {.tp = 8}});
  ASSERT_TRUE(ledger.has_value());
  EXPECT_GT(ledger->rank_bytes, 84'000'000'000);
  EXPECT_LT(ledger->rank_bytes, 88'000'000'000);
  // The MTP layer: 11.6 B parameters besides the shared embedding and output projection.
  EXPECT_GT(ledger->mtp_parameters, 11'500'000'000);
  EXPECT_LT(ledger->mtp_parameters, 11'700'000'000);
}

TEST(CountWeights, GptOss120B_TakesTheBytesOfItsCard) {
  const auto model = load_config("openai__gpt-oss-120b");
  ASSERT_TRUE(model.has_value());
  // The card: a checkpoint of 60.8 GiB.
  const double gib = static_cast<double>(count_weights(*model)->bytes) / (1 << 30);
  EXPECT_NEAR(gib, 60.8, 0.1);
}

TEST(StateBytes, RealHybrids_KeepTheStateOfTheirLinearLayers) {
  const auto next = load_config("transformers-default__qwen3_next");
  ASSERT_TRUE(next.has_value());
  const auto state = state_bytes(*next);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->layers, 36);
  EXPECT_EQ(state->conv_bytes, 3 * (2 * 16 * 128 + 32 * 128) * 2);
  EXPECT_EQ(state->state_bytes, 32 * 128 * 128 * 4);
  EXPECT_EQ(state->bytes_per_sequence, 36 * (state->conv_bytes + state->state_bytes));
  const auto llama = load_config("meta-llama__Meta-Llama-3.1-8B");
  EXPECT_EQ(state_bytes(*llama)->bytes_per_sequence, 0);
}

}  // namespace
}  // namespace kernelpath::memory
