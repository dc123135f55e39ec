#include "report/memory.h"

#include "json/document.h"
#include "report/diff.h"
#include "report/inspect.h"
#include "sample_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::report {
namespace {

using testing::HasSubstr;
using testing::Not;

engines::MemoryAccount sample_account() {
  return {.figure = "kv_pool_bytes",
          .plain = "what the weights leave of 80 GiB",
          .plain_bytes = std::int64_t{65} << 30,
          .rows = {{.cause = "share of the device",
                    .bytes = -(std::int64_t{6} << 30),
                    .reason = "gpu_memory_utilization 0.92"}},
          .total_bytes = std::int64_t{59} << 30};
}

// Two engines, one of them with a difference.
InputAnswer two_engines() {
  InputAnswer answer = sample_answer();
  answer.engines.push_back(answer.engines.front());
  engines::Resolution& second = answer.engines.back().resolution;
  second.engine = "vllm";
  second.version = "0.33.0";
  second.memory.accounts = {sample_account()};
  second.memory.kv_pool_bytes = std::int64_t{59} << 30;
  second.memory.kv_pool_tokens = 483328;
  second.memory.notes = {"the pool counts weights only"};
  return answer;
}

TEST(MemoryReport, SeveralEngines_StandInOneTable) {
  const std::string text = inspect_text(two_engines(), {});
  EXPECT_THAT(text, HasSubstr("one rank  weights   KV per token  KV a sequence"));
  EXPECT_THAT(text, HasSubstr("trtllm    15.0 GiB  128 KiB       16 GiB of 131072 tokens  -"));
  EXPECT_THAT(text, HasSubstr("59 GiB   483328\n"));
  EXPECT_THAT(text, HasSubstr("vllm: the pool counts weights only\n"));
  EXPECT_THAT(text, Not(HasSubstr("of KV per token;")));
}

TEST(MemoryReport, Differences_StandUnderTheTable) {
  const std::string text = inspect_text(two_engines(), {});
  EXPECT_THAT(text, HasSubstr("size     engine  adds    memory difference    why\n"
                              "KV pool  vllm    -6 GiB  share of the device  "
                              "gpu_memory_utilization 0.92\n"));
  // One engine shows them where they are asked for.
  InputAnswer one = two_engines();
  one.engines.erase(one.engines.begin());
  EXPECT_THAT(inspect_text(one, {}), Not(HasSubstr("memory difference")));
  EXPECT_THAT(inspect_text(one, {.show = {"memory"}}), HasSubstr("memory difference"));
  EXPECT_THAT(inspect_markdown(two_engines(), {}), HasSubstr("| share of the device |"));
}

TEST(MemoryReport, TwoVersionsOfAnEngine_AreToldApart) {
  InputAnswer answer = two_engines();
  answer.engines.front().resolution.engine = "vllm";
  answer.engines.front().resolution.version = "0.25.1";
  const std::string text = inspect_text(answer, {});
  EXPECT_THAT(text, HasSubstr("vllm@0.25.1  15.0 GiB"));
  EXPECT_THAT(text, HasSubstr("vllm@0.33.0  15.0 GiB"));
}

TEST(MemoryReport, Json_HasTheAccounts) {
  const std::string text = inspect_json({"llm-inspect", "0.1.0"}, {two_engines()}, {});
  EXPECT_THAT(text, HasSubstr("\"cause\": \"share of the device\""));
  EXPECT_THAT(text, HasSubstr("\"bytes\": -6442450944"));
  EXPECT_THAT(text, HasSubstr("\"plain_bytes\": 69793218560"));
}

TEST(MemoryReport, Diff_ShowsWhatTheSizesAreMadeOf) {
  const InputAnswer answer = two_engines();
  DiffAnswer diff{.model = "M",
                  .path = "M/config.json",
                  .device = "h100-sxm",
                  .from = answer.engines[0].resolution,
                  .to = answer.engines[1].resolution,
                  .differences = {}};
  const std::string text = diff_text({diff}, {});
  EXPECT_THAT(text, HasSubstr("size     made of              trtllm@2026-11  vllm@0.33.0\n"));
  EXPECT_THAT(text, HasSubstr("KV pool  share of the device  +0 B            -6 GiB\n"));
  EXPECT_THAT(diff_json({"llm-inspect", "0.1.0"}, {diff}),
              HasSubstr("\"from_bytes\": 0,\n          \"to_bytes\": -6442450944"));
  diff.to = diff.from;
  EXPECT_THAT(diff_text({diff}, {}), Not(HasSubstr("made of")));
}

TEST(SignedBytes, EveryNumber_HasASign) {
  EXPECT_EQ(signed_bytes(0), "+0 B");
  EXPECT_EQ(signed_bytes(-1024), "-1 KiB");
  EXPECT_THAT(signed_bytes(INT64_MIN), HasSubstr("-8"));
}

}  // namespace
}  // namespace kernelpath::report
