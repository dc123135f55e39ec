// What a session takes is what its plan says, to the byte.
#include "runtime/session.h"

#include "base/file.h"
#include "config/load.h"
#include "engines/kernelpath/engine.h"
#include "engines/resolution.h"
#include "hardware/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kernelpath::runtime {
namespace {

const std::string kFolder = std::string(KERNELPATH_TEST_DATA) + "/checkpoints";

engines::Request request_of(const std::string& name) {
  engines::Request request;
  request.model = config::load_model(kFolder + "/" + name).value();
  request.device = *hardware::find_device("cpu");
  return request;
}

SessionOptions options_of(const std::string& name) {
  SessionOptions options{.weights = kFolder + "/" + name};
  options.limits.max_sequences = 2;
  options.limits.max_batched_tokens = 64;
  options.kv_tokens = 160;
  return options;
}

class Ledger : public testing::TestWithParam<std::string> {};

TEST_P(Ledger, WeightsAndCache_AreExactlyWhatThePlanSays) {
  const engines::Request request = request_of(GetParam());
  const SessionOptions options = options_of(GetParam());
  const auto plan = plan_session(request, options);
  ASSERT_TRUE(plan) << plan.error().text();
  const auto session = Session::open(request, options, nullptr, {});
  ASSERT_TRUE(session) << session.error().text();
  EXPECT_EQ(plan->weight_bytes, (*session)->model().weight_bytes().resident);
  EXPECT_EQ(plan->construction_bytes, (*session)->model().weight_bytes().construction_peak);
  EXPECT_EQ(plan->kv_bytes, (*session)->storage().bytes());
  EXPECT_EQ(plan->kv_blocks, (*session)->storage().num_blocks());
  EXPECT_EQ(plan->kernel_bytes, options_of(GetParam()).threads * (std::int64_t{2} << 20));
  EXPECT_EQ(plan->total(), plan->weight_bytes + plan->kv_bytes + plan->state_bytes +
                               plan->workspace_bytes + plan->kernel_bytes);
}

// What llm-inspect says of the cache is what a block of the run takes.
TEST_P(Ledger, CacheOfTheResolution_IsThatOfTheRun) {
  const engines::Request request = request_of(GetParam());
  const engines::Resolution resolution = engines::kernelpath::engine().resolve(request);
  const auto plan = plan_session(request, options_of(GetParam()));
  ASSERT_TRUE(plan) << plan.error().text();
  constexpr std::int64_t kPage = 16;
  EXPECT_EQ(resolution.memory.kv_bytes_per_token.value() * kPage, plan->kv_block_bytes);
  EXPECT_EQ(resolution.memory.state_bytes_per_sequence.value_or(0) * 2, plan->state_bytes);
  // Norms are kept as float32 and tensors begin at whole cache lines: never less than the files.
  const std::int64_t stored = resolution.memory.weight_bytes.value();
  EXPECT_GE(plan->weight_bytes, stored);
  EXPECT_LT(plan->weight_bytes, stored + stored / 4);
}

std::vector<std::string> names() {
  auto found = list_folder(kFolder);
  return found ? *found : std::vector<std::string>{};
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Ledger, testing::ValuesIn(names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace kernelpath::runtime
