#include "json/document.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// What llm-bench says about the machine that it is on.
namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Bench, ListOfDevices_IsThisMachines) {
  const Outcome outcome = run_program("llm-bench", {.arguments = {"--list", "devices", "--json"}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::Value document = json::parse(outcome.out, "out").value().root;
  const auto rows = document.find("rows")->items();
  ASSERT_GE(rows.size(), 2U);
  EXPECT_EQ(rows[0].find("name")->as_string(), "cpu");
  EXPECT_EQ(rows[0].find("columns")->find("here")->as_string(), "yes");
  // Either a device, or why there is none.
  EXPECT_THAT(rows[1].find("name")->as_string(), StartsWith("cuda"));
  EXPECT_THAT(rows[1].find("columns")->find("kernels")->as_string(), Not(IsEmpty()));
  // The other programs' question is about any device.
  EXPECT_THAT(inspect({"--list", "devices"}).out, HasSubstr("h100-sxm"));
}

TEST(Bench, AutoWithoutAGpu_SaysThatTheCpuIsMeasured) {
  const Outcome outcome = run_program(
      "llm-bench", {.arguments = {"kv-append", "--heads", "4:2", "--threads", "1", "--min-samples",
                                  "1", "--min-time", "0", "--timeout", "1", "--warm"}});
  if (!outcome.out.starts_with("cpu  ")) GTEST_SKIP() << "a GPU is here";
  EXPECT_THAT(outcome.err, HasSubstr("no CUDA device, the CPU is measured: "));
}

}  // namespace
}  // namespace kernelpath::testing
