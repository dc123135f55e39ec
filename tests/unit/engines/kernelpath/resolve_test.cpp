#include "engines/kernelpath/resolve.h"

#include "attention/backend_table.h"
#include "config/load.h"
#include "engines/kernelpath/engine.h"
#include "engines/memory_account.h"
#include "hardware/device.h"
#include "registry/own_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::engines {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string config_path(const std::string& config) {
  return std::string(KERNELPATH_TEST_DATA) + "/configs/" + config + "/config.json";
}

Request request_of(const std::string& config, const std::string& device = "cpu") {
  Request request;
  auto model = config::load_model(config_path(config));
  EXPECT_TRUE(model) << config;
  if (model) request.model = std::move(*model);
  request.device = *hardware::find_device(device);
  return request;
}

Resolution resolve(const Request& request) { return kernelpath::engine().resolve(request); }

std::vector<std::string> rules_of(const Resolution& resolution, Verdict verdict) {
  std::vector<std::string> out;
  for (const Step& step : resolution.steps) {
    if (step.verdict == verdict) out.push_back(step.rule);
  }
  return out;
}

constexpr const char* kLlama = "meta-llama__Meta-Llama-3.1-8B";

TEST(KernelpathResolve, Llama_RunsOnFused) {
  const Resolution resolution = resolve(request_of(kLlama));
  EXPECT_EQ(resolution.status, Status::kOk);
  EXPECT_EQ(resolution.model_class, "LlamaForCausalLM");
  EXPECT_EQ(resolution.model_module, "kernelpath.models.llama");
  EXPECT_EQ(resolution.selected_backend, "FUSED");
  ASSERT_EQ(resolution.layers.size(), 1U);
  const LayerGroup& group = resolution.layers[0];
  EXPECT_EQ(group.layers.size(), 32U);
  EXPECT_EQ(group.kv.dtype, "f32");
  EXPECT_EQ(group.kv.layout, "HND");
  EXPECT_EQ(group.cuda_graph, "never");
  // 32 layers, 8 heads of 128, K and V, four bytes.
  EXPECT_EQ(resolution.memory.kv_bytes_per_token, 32 * 8 * 128 * 2 * 4);
}

TEST(KernelpathResolve, Nvfp4_CountsItsScales) {
  Request request = request_of(kLlama);
  request.deployment.kv_dtype = "nvfp4";
  const Resolution resolution = resolve(request);
  EXPECT_EQ(resolution.memory.kv_bytes_per_token, 32 * 8 * 2 * (64 + 8));
}

TEST(KernelpathResolve, Gpu_IsRefusedByEveryBackendWithItsReason) {
  const Resolution resolution = resolve(request_of(kLlama, "h200"));
  EXPECT_EQ(resolution.status, Status::kUnsupported);
  ASSERT_TRUE(resolution.error);
  EXPECT_EQ(resolution.error->code, "KP-NO-BACKEND");
  EXPECT_THAT(
      rules_of(resolution, Verdict::kRejected),
      ElementsAre("KP-PLATFORM", "KP-BUILD", "KP-KV-DTYPE", "KP-PLATFORM", "KP-NO-BACKEND"));
}

TEST(KernelpathResolve, UnknownArchitecture_NamesThoseThatAreServed) {
  Request request = request_of(kLlama);
  request.model.architectures = {"LlamaForCausalLN"};
  const Resolution resolution = resolve(request);
  EXPECT_EQ(resolution.status, Status::kUnsupported);
  ASSERT_TRUE(resolution.error);
  EXPECT_EQ(resolution.error->code, "KP-MODEL-UNKNOWN");
  EXPECT_THAT(resolution.error->message, HasSubstr("MistralForCausalLM"));
  EXPECT_THAT(resolution.error->near_matches, Contains("LlamaForCausalLM"));
}

TEST(KernelpathResolve, ExternalProvider_WinsOverTheBuiltInClass) {
  Request request = request_of(kLlama);
  request.environment.external_models = {
      {.module = "acme.models", .architecture = "LlamaForCausalLM", .model_class = "AcmeLlama"},
      {.module = "zeta.models", .architecture = "LlamaForCausalLM", .model_class = "ZetaLlama"}};
  EXPECT_EQ(resolve(request).model_class, "ZetaLlama") << "the last one";
  EXPECT_EQ(resolve(request).model_module, "zeta.models");
}

TEST(KernelpathResolve, ClassOfAProviderThatIsNotBuiltIn_IsRefused) {
  Request request = request_of(kLlama);
  request.environment.external_models = {{.module = "acme.models",
                                          .architecture = "LlamaForCausalLM",
                                          .model_class = "MistralForCausalLM"}};
  EXPECT_EQ(resolve(request).status, Status::kOk);
  request.environment.external_models.front().model_class = "MistralForCausalLN";
  const Resolution resolution = resolve(request);
  EXPECT_EQ(resolution.status, Status::kUnsupported);
  ASSERT_TRUE(resolution.error);
  EXPECT_EQ(resolution.error->code, "KP-MODEL-FOREIGN");
  EXPECT_THAT(resolution.error->near_matches, Contains("MistralForCausalLM"));
}

TEST(KernelpathResolve, SpeculationOverAState_IsRefused) {
  Request request = request_of(kLlama);
  request.deployment.speculative = "ngram";
  EXPECT_EQ(resolve(request).status, Status::kOk);
  request = request_of("../checkpoints/kimi-linear");
  EXPECT_EQ(resolve(request).status, Status::kOk);
  request.deployment.speculative = "ngram";
  const Resolution resolution = resolve(request);
  EXPECT_EQ(resolution.status, Status::kUnsupported);
  ASSERT_TRUE(resolution.error);
  EXPECT_EQ(resolution.error->code, "KP-SPECULATIVE-STATE");
}

TEST(KernelpathResolve, OtherEnginesBackend_StandsForFused) {
  Request request = request_of(kLlama);
  request.deployment.backend = "TRTLLM";
  const Resolution resolution = resolve(request);
  EXPECT_EQ(resolution.selected_backend, "FUSED");
  EXPECT_THAT(rules_of(resolution, Verdict::kApplied), Contains("KP-BACKEND-ALIAS"));
  request.deployment.backend = "fused";
  EXPECT_THAT(rules_of(resolve(request), Verdict::kApplied), Not(Contains("KP-BACKEND-ALIAS")));
}

TEST(KernelpathResolve, NamedBackendThatIsMissing_IsRefused) {
  Request request = request_of(kLlama);
  request.deployment.backend = "FLASHINFER";
  const Resolution resolution = resolve(request);
  EXPECT_EQ(resolution.status, Status::kUnsupported);
  EXPECT_THAT(rules_of(resolution, Verdict::kRejected), Contains("KP-BUILD"));
}

TEST(KernelpathResolve, OptionsThatTheRuntimeLacks_AreAllNamed) {
  Request request = request_of(kLlama);
  request.deployment.pp = 2;
  request.deployment.ep = 2;
  request.deployment.speculative = "eagle3";
  request.deployment.dtype = "bfloat16";
  const Resolution resolution = resolve(request);
  EXPECT_EQ(resolution.status, Status::kUnsupported);
  EXPECT_THAT(rules_of(resolution, Verdict::kRejected),
              ElementsAre("KP-OPTION", "KP-OPTION", "KP-OPTION", "KP-OPTION"));
  request.deployment = {};
  request.deployment.dtype = "float32";
  request.deployment.speculative = "ngram";
  EXPECT_EQ(resolve(request).status, Status::kOk);
}

TEST(KernelpathResolve, Ranks_DivideHeadsOrKeepThem) {
  Request request = request_of(kLlama);
  request.deployment.tp = 16;
  const Resolution resolution = resolve(request);
  EXPECT_EQ(resolution.status, Status::kOk);
  EXPECT_EQ(resolution.memory.kv_bytes_per_token, 32 * 1 * 128 * 2 * 4);
  request.deployment.tp = 3;
  const Resolution refused = resolve(request);
  EXPECT_THAT(rules_of(refused, Verdict::kRejected), Each("KP-PARALLEL"));
  ASSERT_TRUE(refused.error);
  EXPECT_THAT(
      refused.error->message,
      HasSubstr("32 heads cannot be divided among 3 ranks; --tp can be 1, 2, 4, 8, 16, 32"));
}

Deployment with(std::optional<std::string> Deployment::*field, const std::string& value) {
  Deployment out;
  out.*field = value;
  return out;
}

Deployment with_setting(const std::string& field, const std::string& value) {
  Deployment out;
  out.settings = {{field, value}};
  return out;
}

TEST(KernelpathResolve, SizesBeyondAnyModel_AreRefused) {
  Request request = request_of(kLlama);
  for (config::Layer& layer : request.model.layers) {
    layer.num_key_value_heads = std::int64_t{1} << 60;
    layer.num_attention_heads = std::int64_t{1} << 60;
  }
  const Resolution resolution = resolve(request);
  ASSERT_TRUE(resolution.error);
  EXPECT_EQ(resolution.error->code, "KP-LAYER-SIZE");
  Request page = request_of(kLlama);
  page.deployment.page_size = std::int64_t{1} << 62;
  page.deployment.max_model_len = (std::int64_t{1} << 62) + 1;
  EXPECT_FALSE(resolve(page).memory.kv_bytes_per_sequence);
}

TEST(KernelpathCheck, UnknownNames_AreWrongUse) {
  for (const Deployment& deployment :
       {with(&Deployment::backend, "FUSSED"), with(&Deployment::kv_dtype, "int8"),
        with_setting("kv_order", "NHD"), with_setting("kv_layout", "DNH")}) {
    const auto checked = kernelpath::engine().check(deployment, {});
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, ErrorCode::kUsageUnknown);
  }
  for (const Deployment& deployment :
       {with(&Deployment::backend, "vanilla"), with(&Deployment::kv_dtype, "fp8"),
        with_setting("kv_layout", "nhd")}) {
    EXPECT_TRUE(kernelpath::engine().check(deployment, {}));
  }
}

TEST(KernelpathWhyNot, Gpu_IsToldToUseTheCpu) {
  const auto why = kernelpath::engine().why_not(request_of(kLlama, "h200"), "FUSED");
  ASSERT_TRUE(why);
  EXPECT_FALSE(why->admitted);
  EXPECT_FALSE(why->refusals.empty());
  ASSERT_FALSE(why->remedies.empty());
  EXPECT_EQ(why->remedies[0][0].option, "--device cpu");
  const auto on_cpu = kernelpath::engine().why_not(request_of(kLlama), "VANILLA");
  ASSERT_TRUE(on_cpu);
  EXPECT_TRUE(on_cpu->admitted);
}

bool served(const Request& request) {
  const std::string name = request.model.architectures.empty()
                               ? request.model.inferred_architecture.value_or("")
                               : request.model.architectures.front();
  return std::ranges::any_of(registry::own_models(), [&](const registry::OwnModel& model) {
    return model.architecture == name;
  });
}

// Every published configuration: answered in full, or refused with its reason.
TEST(KernelpathResolve, EveryConfig_IsAnsweredOrRefusedWithItsReason) {
  int answered = 0;
  int refused = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(KERNELPATH_TEST_DATA) + "/configs")) {
    if (!exists(entry.path() / "config.json")) continue;
    const std::string config = entry.path().filename();
    SCOPED_TRACE(config);
    const Request request = request_of(config);
    const Resolution resolution = resolve(request);
    if (resolution.status != Status::kOk) {
      ++refused;
      ASSERT_TRUE(resolution.error);
      EXPECT_FALSE(resolution.error->message.empty());
      if (!served(request)) {
        EXPECT_EQ(resolution.error->code, "KP-MODEL-UNKNOWN");
      }
      continue;
    }
    ++answered;
    EXPECT_TRUE(served(request));
    std::size_t layers = 0;
    for (const LayerGroup& group : resolution.layers) {
      layers += group.layers.size();
      EXPECT_FALSE(group.backend.empty());
      EXPECT_FALSE(group.decode.kernel.empty());
      EXPECT_EQ(bytes_of(group.kv_parts), group.kv_bytes_per_token);
    }
    EXPECT_EQ(layers, request.model.layers.size());
    EXPECT_GT(resolution.memory.kv_bytes_per_token.value_or(0), 0);
    for (const MemoryAccount& account : resolution.memory.accounts) {
      for (const MemoryAccount::Row& row : account.rows) {
        EXPECT_NE(row.cause, memory_cause::kNotExplained) << account.figure;
      }
    }
  }
  EXPECT_GT(answered, 15);
  EXPECT_GT(refused, 15);
}

TEST(KernelpathRules, RefusalsOfTheTable_AreAllListed) {
  const auto rules = kernelpath::engine().rules();
  for (const attention::RefusalRule& rule : attention::refusal_rules()) {
    if (rule.id == "KP-GEOMETRY") continue;  // told as KP-LAYER-SIZE
    EXPECT_TRUE(std::ranges::any_of(rules, [&](const RuleInfo& info) {
      return info.id == rule.id;
    })) << rule.id;
  }
}

TEST(KernelpathTables, EveryKind_HasRows) {
  for (const std::string& kind : kernelpath::engine().table_kinds()) {
    EXPECT_FALSE(kernelpath::engine().table(kind).empty()) << kind;
  }
}

}  // namespace
}  // namespace kernelpath::engines
