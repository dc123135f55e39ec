// What the Resolution says of several ranks is what is built, refused and kept.
#include "base/file.h"
#include "config/load.h"
#include "engines/kernelpath/engine.h"
#include "engines/resolution.h"
#include "hardware/device.h"
#include "kernels/cpu/executor.h"
#include "model/model.h"
#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kernelpath::runtime {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string kFolder = std::string(KERNELPATH_TEST_DATA) + "/checkpoints";

engines::Request request_of(const std::string& name, std::int64_t tp, std::int64_t dcp) {
  engines::Request request;
  request.model = config::load_model(kFolder + "/" + name).value();
  request.device = *hardware::find_device("cpu");
  request.deployment.tp = tp;
  request.deployment.dcp = dcp;
  return request;
}

SessionOptions options_of(const std::string& name, std::int64_t tp, std::int64_t dcp) {
  SessionOptions options{.weights = kFolder + "/" + name};
  options.limits.max_sequences = 2;
  options.limits.max_batched_tokens = 64;
  options.kv_tokens = 160;
  options.ranks = {.tp = tp, .dcp = dcp};
  return options;
}

std::vector<std::string> rules_of(const engines::Resolution& resolution) {
  std::vector<std::string> out;
  for (const engines::Step& step : resolution.steps) out.push_back(step.rule);
  return out;
}

class Ranks : public testing::TestWithParam<std::string> {};

TEST_P(Ranks, ResolutionRefusesWhatCannotBeBuilt_AndNothingElse) {
  for (std::int64_t tp = 2; tp <= 6; ++tp) {
    const engines::Resolution resolution =
        engines::kernelpath::engine().resolve(request_of(GetParam(), tp, 1));
    const auto plan = plan_session(request_of(GetParam(), tp, 1), options_of(GetParam(), tp, 1));
    EXPECT_EQ(resolution.status == engines::Status::kOk, plan.has_value())
        << "tp " << tp << ": " << (plan ? "built" : plan.error().text()) << "; "
        << (resolution.error ? resolution.error->message : "resolved");
    if (plan) {
      EXPECT_THAT(rules_of(resolution), Contains("KP-TENSOR-PARALLEL"));
      continue;
    }
    EXPECT_EQ(resolution.error->code, "KP-PARALLEL");
    EXPECT_THAT(resolution.error->message, HasSubstr("; --tp can be 1"));
  }
}

// The cache of a rank, to the byte, with heads and tokens divided.
TEST_P(Ranks, CacheOfTheResolution_IsThatOfARank) {
  for (const auto& [tp, dcp] : {std::pair<std::int64_t, std::int64_t>{2, 1}, {1, 2}, {2, 3}}) {
    const engines::Request request = request_of(GetParam(), tp, dcp);
    const engines::Resolution resolution = engines::kernelpath::engine().resolve(request);
    if (resolution.status != engines::Status::kOk) continue;
    const auto plan = plan_session(request, options_of(GetParam(), tp, dcp));
    ASSERT_TRUE(plan) << plan.error().text();
    constexpr std::int64_t kPage = 16;
    EXPECT_EQ(resolution.memory.kv_bytes_per_token.value() * kPage, plan->kv_block_bytes);
    EXPECT_EQ(resolution.memory.state_bytes_per_sequence.value_or(0) * 2, plan->state_bytes);
    EXPECT_EQ(plan->block_tokens, kPage * dcp);
    if (dcp > 1) {
      EXPECT_THAT(rules_of(resolution), Contains("KP-CONTEXT-PARALLEL"));
    }
    // Norms are kept as float32, biases of sums by every rank.
    const std::int64_t stored = resolution.memory.weight_bytes.value();
    EXPECT_GE(plan->weight_bytes + plan->weight_bytes / 50, stored);
    EXPECT_LT(plan->weight_bytes, stored + stored / 3);
  }
}

std::vector<std::string> names() {
  auto found = list_folder(kFolder);
  return found ? *found : std::vector<std::string>{};
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Ranks, testing::ValuesIn(names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace kernelpath::runtime
