#include "engines/memory_account.h"

#include "config/load.h"
#include "engines/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

// What makes an engine's sizes differ from the plain ones, in every engine on every recorded
// config.

namespace kernelpath::engines {
namespace {

using ::testing::HasSubstr;

std::int64_t sum_of(const MemoryAccount& account) {
  std::int64_t sum = account.plain_bytes;
  for (const MemoryAccount::Row& row : account.rows) sum += row.bytes;
  return sum;
}

const MemoryAccount* account_of(const Memory& memory, std::string_view figure) {
  const auto found = std::ranges::find(memory.accounts, figure, &MemoryAccount::figure);
  return found == memory.accounts.end() ? nullptr : &*found;
}

std::int64_t bytes_by(const MemoryAccount& account, std::string_view cause) {
  const auto found = std::ranges::find(account.rows, cause, &MemoryAccount::Row::cause);
  return found == account.rows.end() ? 0 : found->bytes;
}

TEST(AccountBuilder, RowsOfOneCause_AreOneRow) {
  AccountBuilder builder("kv_pool_bytes", "what is left", 100);
  builder.add(memory_cause::kPages, 0, "nothing");
  builder.add(memory_cause::kPages, -10, "whole blocks").add(memory_cause::kPages, -5, "again");
  const MemoryAccount account = builder.finish(85);
  ASSERT_EQ(account.rows.size(), 1U);
  EXPECT_EQ(account.rows[0].bytes, -15);
  EXPECT_EQ(account.rows[0].reason, "whole blocks");
  EXPECT_EQ(account.total_bytes, 85);
}

TEST(AccountBuilder, WhatIsMissing_IsSaidToBe) {
  const MemoryAccount account = AccountBuilder("kv_pool_bytes", "what is left", 100).finish(90);
  ASSERT_EQ(account.rows.size(), 1U);
  EXPECT_EQ(account.rows[0].cause, memory_cause::kNotExplained);
  EXPECT_EQ(account.rows[0].bytes, -10);
}

TEST(MemoryCauses, Names_AreDistinct) {
  std::vector<std::string_view> names(memory_causes().begin(), memory_causes().end());
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(MemoryCauses, EveryOne_IsDocumented) {
  std::ifstream file(std::string(KERNELPATH_TEST_DATA) + "/../../docs/memory.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const std::string_view cause : memory_causes()) {
    if (cause == memory_cause::kNotExplained) continue;
    EXPECT_THAT(text, HasSubstr("| " + std::string(cause) + " |"));
  }
}

struct Case {
  std::string name;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::string kv = {};
};

Request request_of(const std::string& config, const Case& asked) {
  Request request;
  auto model =
      config::load_model(std::string(KERNELPATH_TEST_DATA) + "/configs/" + config + "/config.json");
  EXPECT_TRUE(model) << config;
  if (model) request.model = std::move(*model);
  request.device = *hardware::find_device("h200");
  request.deployment.tp = asked.tp;
  request.deployment.pp = asked.pp;
  if (!asked.kv.empty()) request.deployment.kv_dtype = asked.kv;
  return request;
}

Resolution resolve(const std::string& engine, const std::string& config, const Case& asked = {}) {
  return (*find_engine(engine))->resolve(request_of(config, asked));
}

std::vector<std::string> all_configs() {
  std::vector<std::string> out;
  const std::filesystem::path folder = std::string(KERNELPATH_TEST_DATA) + "/configs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (exists(entry.path() / "config.json")) out.push_back(entry.path().filename());
  }
  std::ranges::sort(out);
  return out;
}

class AllConfigs : public ::testing::TestWithParam<Case> {};

// Every figure that is known has an account, it sums up, and nothing in it is unexplained; what
// groups keep by parts is what they keep in all.
TEST_P(AllConfigs, EverySize_IsExplained) {
  std::map<std::string, int> explained;
  for (const std::string& config : all_configs()) {
    const Request request = request_of(config, GetParam());
    for (const Engine* engine : all_engines()) {
      const Resolution resolution = engine->resolve(request);
      const Memory& memory = resolution.memory;
      const std::string where =
          std::string(engine->name()) + "@" + std::string(engine->version()) + " " + config;
      for (const LayerGroup& group : resolution.layers) {
        if (GetParam().pp > 1) continue;  // a group may have layers of other stages
        EXPECT_EQ(bytes_of(group.kv_parts), group.kv_bytes_per_token) << where;
      }
      for (const MemoryAccount& account : memory.accounts) {
        EXPECT_EQ(sum_of(account), account.total_bytes) << where << account.figure;
        EXPECT_EQ(bytes_by(account, memory_cause::kNotExplained), 0) << where << account.figure;
        for (const MemoryAccount::Row& row : account.rows) {
          EXPECT_FALSE(row.reason.empty()) << where << row.cause;
          EXPECT_NE(std::ranges::find(memory_causes(), row.cause), memory_causes().end());
        }
        ++explained[account.figure];
      }
      EXPECT_EQ(memory.weight_bytes.has_value(), account_of(memory, "weight_bytes") != nullptr)
          << where;
      if (memory.kv_bytes_per_token.value_or(0) > 0) {
        EXPECT_NE(account_of(memory, "kv_bytes_per_token"), nullptr) << where;
      }
    }
  }
  for (const char* figure :
       {"weight_bytes", "kv_bytes_per_token", "kv_bytes_per_sequence", "kv_pool_bytes"}) {
    EXPECT_GT(explained[figure], 150) << figure;
  }
}

INSTANTIATE_TEST_SUITE_P(Deployments, AllConfigs,
                         ::testing::Values(Case{"plain"}, Case{"tp8", 8}, Case{"pp2", 1, 2},
                                           Case{"fp8", 2, 1, "fp8"}, Case{"q8", 1, 1, "q8_0"}),
                         [](const auto& row) { return row.param.name; });

TEST(KvAccount, ReplicatedHeads_AreNamed) {
  // Two KV heads of 256 in ten layers; eight ranks keep one head each.
  const Resolution resolution =
      resolve("vllm", "nvidia__Qwen3.6-35B-A3B-NVFP4", {.name = "", .tp = 8, .kv = "bf16"});
  const MemoryAccount* account = account_of(resolution.memory, "kv_bytes_per_token");
  ASSERT_NE(account, nullptr);
  EXPECT_EQ(account->plain_bytes, 20480);
  EXPECT_EQ(bytes_by(*account, memory_cause::kRankShare), 2560 - 20480);
  EXPECT_EQ(bytes_by(*account, memory_cause::kReplicated), 10240 - 2560);
  EXPECT_EQ(account->total_bytes, 10240);
}

TEST(KvAccount, LatentOnEveryRank_IsNamed) {
  for (const char* engine : {"trtllm", "vllm", "sglang"}) {
    const Resolution resolution =
        resolve(engine, "deepseek-ai__DeepSeek-V3", {.name = "", .tp = 8});
    const MemoryAccount* account = account_of(resolution.memory, "kv_bytes_per_token");
    ASSERT_NE(account, nullptr) << engine;
    EXPECT_EQ(account->plain_bytes, 70272) << engine;
    EXPECT_EQ(bytes_by(*account, memory_cause::kRankShare), 8784 - 70272) << engine;
    EXPECT_EQ(bytes_by(*account, memory_cause::kLatentReplicated), 70272 - 8784) << engine;
    EXPECT_EQ(account->total_bytes, 70272) << engine;
  }
}

TEST(KvAccount, QuantisedCache_IsItsDtypeAndItsScales) {
  const Resolution resolution =
      resolve("llamacpp", "meta-llama__Meta-Llama-3.1-8B", {.name = "", .kv = "q8_0"});
  const MemoryAccount* account = account_of(resolution.memory, "kv_bytes_per_token");
  ASSERT_NE(account, nullptr);
  EXPECT_EQ(account->plain_bytes, 131072);
  EXPECT_EQ(bytes_by(*account, memory_cause::kDtype), -65536);
  EXPECT_EQ(bytes_by(*account, memory_cause::kScales), 65536 / 32 * 2);  // 34 bytes for 32 values
}

TEST(KvAccount, WindowCaches_SaveOfASequence) {
  const Resolution vllm = resolve("vllm", "openai__gpt-oss-120b");
  const MemoryAccount* account = account_of(vllm.memory, "kv_bytes_per_sequence");
  ASSERT_NE(account, nullptr);
  EXPECT_LT(bytes_by(*account, memory_cause::kWindow), 0);
  const Resolution llamacpp = resolve("llamacpp", "openai__gpt-oss-120b");
  account = account_of(llamacpp.memory, "kv_bytes_per_sequence");
  ASSERT_NE(account, nullptr);
  EXPECT_LT(bytes_by(*account, memory_cause::kWindow), 0);
  // TensorRT-LLM's estimate of a sequence charges every layer in full.
  const Resolution trtllm = resolve("trtllm", "openai__gpt-oss-120b");
  account = account_of(trtllm.memory, "kv_bytes_per_sequence");
  ASSERT_NE(account, nullptr);
  EXPECT_TRUE(account->rows.empty());
}

TEST(KvAccount, BlocksWithoutAttention_HaveACacheInSglangOnly) {
  constexpr const char* kConfig = "nvidia__Llama-3_3-Nemotron-Super-49B-v1";  // 49 of 80 attend
  for (const char* engine : {"trtllm", "vllm", "llamacpp"}) {
    EXPECT_EQ(resolve(engine, kConfig).memory.kv_bytes_per_token, 200704) << engine;
  }
  const Resolution sglang = resolve("sglang", kConfig);
  EXPECT_EQ(sglang.memory.kv_bytes_per_token, 327680);
  const MemoryAccount* account = account_of(sglang.memory, "kv_bytes_per_token");
  ASSERT_NE(account, nullptr);
  EXPECT_EQ(bytes_by(*account, memory_cause::kShape), 327680 - 200704);
}

TEST(PoolAccount, EachEngine_TakesItsShare) {
  std::map<std::string, std::string> reasons;
  for (const char* engine : {"trtllm", "vllm", "sglang", "llamacpp"}) {
    const Resolution resolution = resolve(engine, "meta-llama__Meta-Llama-3.1-8B");
    const MemoryAccount* account = account_of(resolution.memory, "kv_pool_bytes");
    ASSERT_NE(account, nullptr) << engine;
    ASSERT_FALSE(account->rows.empty()) << engine;
    reasons[engine] = account->rows.front().reason;
  }
  EXPECT_THAT(reasons["trtllm"], HasSubstr("free_gpu_memory_fraction 0.9"));
  EXPECT_THAT(reasons["vllm"], HasSubstr("gpu_memory_utilization 0.92"));
  EXPECT_THAT(reasons["sglang"], HasSubstr("mem_fraction_static"));
  EXPECT_THAT(reasons["llamacpp"], HasSubstr("n_ctx 131072"));
}

}  // namespace
}  // namespace kernelpath::engines
