#include "config/load.h"
#include "engines/deepinfer/engine.h"
#include "engines/deepinfer/python.h"
#include "hardware/device.h"
#include "json/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace kernelpath::engines::deepinfer {
namespace {

using testing::HasSubstr;

// The config of the first recorded case: the one model that the engine has.
const json::Value& model_config() {
  static const json::Value kConfig = [] {
    std::ifstream file(std::string(KERNELPATH_GOLDEN_DIR) + "/deepinfer-0.1.0/resolve.jsonl");
    std::string line;
    std::getline(file, line);
    return *json::parse(line, "case")->root.find("in")->find("config");
  }();
  return kConfig;
}

Request request_on(const std::string& device) {
  Request request;
  request.model = *config::from_value(model_config(), {.read_siblings = false});
  request.device = *hardware::find_device(device);
  return request;
}

bool has_step(const Resolution& resolution, std::string_view rule) {
  return std::ranges::any_of(resolution.steps, [&](const Step& step) { return step.rule == rule; });
}

TEST(DeepinferEngine, OwnModelOnBlackwell_IsServedByFusedKernels) {
  const Resolution answer = engine().resolve(request_on("b200"));
  EXPECT_EQ(answer.status, Status::kOk) << (answer.error ? answer.error->message : "");
  EXPECT_EQ(answer.model_class, "DeepseekVLForCausalLM");
  EXPECT_EQ(answer.selected_backend, "FLASHMLA");
  ASSERT_FALSE(answer.layers.empty());
  EXPECT_EQ(answer.layers.front().prefill.kernel, "fused_norm_rope_attn_rope_cast_fwd");
  EXPECT_EQ(answer.memory.kv_bytes_per_token, 891);
}

TEST(DeepinferEngine, Groups_ShareTheTokenCost) {
  const Resolution answer = engine().resolve(request_on("b200"));
  std::int64_t layers = 0;
  std::int64_t bytes = 0;
  for (const LayerGroup& group : answer.layers) {
    layers += static_cast<std::int64_t>(group.layers.size());
    bytes += group.kv_bytes_per_token;
  }
  EXPECT_EQ(layers, 40);
  EXPECT_EQ(bytes, 890);  // a block's padding of 128 bytes is one byte a token
}

TEST(DeepinferEngine, Hopper_IsRefusedByTheKernelBeforeTheThroughputIsAskedFor) {
  const Resolution answer = engine().resolve(request_on("h100-sxm"));
  EXPECT_EQ(answer.status, Status::kError);
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->code, "DI-KERNEL");
  EXPECT_THAT(answer.error->message, HasSubstr("SM100f"));
  EXPECT_THAT(answer.error->message, HasSubstr("after it has loaded the weights"));
}

TEST(DeepinferEngine, Ascend_RunsUnfusedKernels) {
  const Resolution answer = engine().resolve(request_on("ascend-910b"));
  EXPECT_EQ(answer.status, Status::kOk) << (answer.error ? answer.error->message : "");
  EXPECT_EQ(answer.layers.front().decode.kernel, "sparse_decode_fwd");
}

TEST(DeepinferEngine, OtherModel_IsUnsupportedAndTheAnswerSaysWhichThereIs) {
  Request request = request_on("b200");
  request.model = *config::load_model(std::string(KERNELPATH_TEST_DATA) +
                                      "/configs/meta-llama__Meta-Llama-3.1-8B/config.json");
  const Resolution answer = engine().resolve(request);
  EXPECT_EQ(answer.status, Status::kUnsupported);
  ASSERT_TRUE(answer.error);
  EXPECT_THAT(answer.error->message, HasSubstr("DeepseekV41ForCausalLM"));
}

TEST(DeepinferEngine, OptionsThatItDoesNotHave_AreAllNamed) {
  Request request = request_on("b200");
  request.deployment.backend = "flashinfer";
  request.deployment.kv_dtype = "fp8";
  request.deployment.tp = 8;
  const Resolution answer = engine().resolve(request);
  EXPECT_EQ(answer.status, Status::kOk);
  EXPECT_EQ(std::ranges::count(answer.steps, "DI-NO-OPTION", &Step::rule), 3);
}

TEST(DeepinferEngine, MissingPackage_StopsTheImport) {
  Request request = request_on("b200");
  request.environment.lacks = {"deep_gemm"};
  const Resolution answer = engine().resolve(request);
  EXPECT_EQ(answer.status, Status::kError);
  EXPECT_EQ(answer.error->code, "DI-PACKAGE");
}

TEST(DeepinferEngine, ModelLengthLeftAlone_WarnsThatTheModelsOwnIsNotRead) {
  EXPECT_TRUE(has_step(engine().resolve(request_on("b200")), "DI-MODEL-LEN-DEFAULT"));
  Request request = request_on("b200");
  request.deployment.max_model_len = 65536;
  EXPECT_FALSE(has_step(engine().resolve(request), "DI-MODEL-LEN-DEFAULT"));
}

TEST(DeepinferEngine, DraftTokens_SetTheVariableUnlessItIsGiven) {
  Request request = request_on("b200");
  request.deployment.draft_tokens = 1;
  const Resolution answer = engine().resolve(request);
  const auto length =
      std::ranges::find(answer.options, "runtime_max_model_len", &Resolution::Option::name);
  ASSERT_NE(length, answer.options.end());
  EXPECT_EQ(length->value, "4100");
}

TEST(DeepinferEngine, UnknownSetting_IsAnErrorWithNearMatches) {
  Deployment deployment;
  deployment.settings = {{"max_model_length", "4096"}};
  const auto checked = engine().check(deployment, {});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kUsageUnknown);
  EXPECT_THAT(checked.error().near_matches, testing::Contains("max_model_len"));
}

TEST(DeepinferEngine, OptionAndSettingThatDiffer_Conflict) {
  Deployment deployment;
  deployment.page_size = 64;
  deployment.settings = {{"tokens_per_block", "128"}};
  const auto checked = engine().check(deployment, {});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kUsageConflict);
}

TEST(DeepinferEngine, WhyNotOnHopper_NamesADeviceThatIsAdmitted) {
  const Request request = request_on("h200");
  const auto answer = engine().why_not(request, "flashmla");
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->admitted);
  ASSERT_FALSE(answer->remedies.empty());
  EXPECT_THAT(answer->remedies.front().front().option, HasSubstr("--device"));
}

TEST(DeepinferEngine, WhyNotOfAnotherBackend_IsRefused) {
  EXPECT_FALSE(engine().why_not(request_on("b200"), "fa3"));
}

TEST(DeepinferEngine, HostileSizes_AreRefusedAndNotComputed) {
  for (const std::string_view name : {"max_num_seqs", "max_model_len", "data_parallel_size"}) {
    Request request = request_on("b200");
    request.deployment.settings = {{std::string(name), "9223372036854775807"}};
    const Resolution answer = engine().resolve(request);
    EXPECT_EQ(answer.status, Status::kError) << name;
    ASSERT_TRUE(answer.error) << name;
    EXPECT_EQ(answer.error->code, "DI-ARGUMENT-TOO-LARGE") << name;
  }
}

TEST(DeepinferEngine, CacheBeyond32Bits_IsCounted) {
  Request request = request_on("b200");
  request.deployment.max_model_len = std::int64_t{1} << 29;
  EXPECT_EQ(engine().resolve(request).memory.kv_bytes_per_sequence, (std::int64_t{1} << 29) * 891);
}

TEST(PythonRepr, Values_AreSpeltAsPythonDoes) {
  const auto repr = [](const std::string& text) {
    return python_repr(json::parse(text, "x")->root);
  };
  EXPECT_EQ(repr(R"([1, "a", null, true, 1.5])"), "[1, 'a', None, True, 1.5]");
  EXPECT_EQ(repr(R"({"a": "it's"})"), R"({'a': "it's"})");
}

TEST(PythonInt, Spellings_AreThoseOfPython) {
  EXPECT_EQ(python_int(" 1_000 "), 1000);
  EXPECT_EQ(python_int("+7"), 7);
  EXPECT_EQ(python_int("-7"), -7);
  EXPECT_FALSE(python_int("1__0"));
  EXPECT_FALSE(python_int("_1"));
  EXPECT_FALSE(python_int("1.0"));
  EXPECT_FALSE(python_int("+-1"));
  EXPECT_FALSE(python_int(""));
}

TEST(PythonFloat, Spellings_AreThoseOfPython) {
  EXPECT_EQ(python_float("1e-3"), 1e-3);
  EXPECT_EQ(python_float("1_0.5"), 10.5);
  EXPECT_FALSE(python_float("1.0f"));
  EXPECT_FALSE(python_float("nan(1)"));
}

TEST(FloorDivide, NegativeNumbers_RoundDown) {
  EXPECT_EQ(floor_divide(-7, 2), -4);
  EXPECT_EQ(floor_remainder(-7, 2), 1);
  EXPECT_EQ(floor_divide(7, -2), -4);
  EXPECT_EQ(floor_remainder(7, -2), -1);
}

}  // namespace
}  // namespace kernelpath::engines::deepinfer
