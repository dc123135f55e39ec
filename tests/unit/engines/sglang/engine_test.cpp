// SGLang as an engine: arguments, the whole way on real configs, remedies, tables.
#include "engines/sglang/engine.h"

#include "config/load.h"
#include "engines/sglang/profile.h"
#include "engines/sglang/request.h"
#include "engines/sglang/rules.h"
#include "json/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpath::engines::sglang {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

hardware::Device device(std::string_view name) {
  auto found = hardware::find_device(name);
  EXPECT_TRUE(found) << name;
  return found ? *found : hardware::Device{};
}

config::ModelConfig model_of(const std::string& name) {
  const std::string path = std::string(KERNELPATH_TEST_DATA) + "/configs/" + name;
  auto model = config::load_model(path + "/config.json", {.read_siblings = false});
  EXPECT_TRUE(model) << path;
  return model ? *model : config::ModelConfig{};
}

// What the user decides, set field by field.
template <class Change>
Deployment deploying(Change change) {
  Deployment out;
  change(out);
  return out;
}

Request request_of(const std::string& model, std::string_view gpu, Deployment deployment = {}) {
  return {.model = model_of(model),
          .device = device(gpu),
          .deployment = std::move(deployment),
          .environment = {}};
}

std::string option_of(const Resolution& resolution, std::string_view name) {
  for (const Resolution::Option& option : resolution.options) {
    if (option.name == name) return option.value + " by " + option.set_by;
  }
  return {};
}

// --- the whole way -------------------------------------------------------------------------------

TEST(SglangEngine, DenseModelOnHopper_RunsFlashAttention3) {
  const Resolution resolution = engine().resolve(request_of("Qwen__Qwen3-8B", "h100-sxm"));
  ASSERT_FALSE(resolution.error);
  EXPECT_EQ(resolution.status, Status::kOk);
  EXPECT_EQ(resolution.model_class, "Qwen3ForCausalLM");
  EXPECT_EQ(resolution.selected_backend, "fa3");
  EXPECT_EQ(resolution.backend_class, "FlashAttentionBackend");
  ASSERT_EQ(resolution.layers.size(), 1U);
  EXPECT_EQ(resolution.layers.front().kv.dtype, "bfloat16");
  EXPECT_EQ(resolution.layers.front().kv.page_size, 1);
  // 36 layers, 8 KV heads of 128, keys and values of 2 bytes.
  EXPECT_EQ(resolution.memory.kv_bytes_per_token, 36 * 8 * 128 * 2 * 2);
  EXPECT_EQ(option_of(resolution, "attention_backend"), "fa3 by SGL-ATTENTION-DEFAULT");
}

TEST(SglangEngine, TensorParallel_SplitsTheCache) {
  const Resolution one = engine().resolve(request_of("Qwen__Qwen3-8B", "h100-sxm"));
  const Resolution four = engine().resolve(
      request_of("Qwen__Qwen3-8B", "h100-sxm", deploying([](auto& d) { d.tp = 4; })));
  ASSERT_TRUE(one.memory.kv_bytes_per_token && four.memory.kv_bytes_per_token);
  EXPECT_EQ(*one.memory.kv_bytes_per_token, 4 * *four.memory.kv_bytes_per_token);
  EXPECT_EQ(option_of(four, "tp_size"), "4 by --tp");
}

TEST(SglangEngine, LatentAttention_StoresLatents) {
  const Resolution resolution = engine().resolve(
      request_of("deepseek-ai__DeepSeek-V3", "h100-sxm", deploying([](auto& d) { d.tp = 8; })));
  ASSERT_FALSE(resolution.error);
  EXPECT_EQ(resolution.memory.kv_bytes_per_token, 61 * (512 + 64) * 2);
}

TEST(SglangEngine, FlashAttention3OnBlackwell_IsRefusedWhenItIsBuilt) {
  const Resolution resolution = engine().resolve(
      request_of("Qwen__Qwen3-8B", "b200", deploying([](auto& d) { d.backend = "fa3"; })));
  ASSERT_TRUE(resolution.error);
  EXPECT_EQ(resolution.status, Status::kError);
  EXPECT_EQ(resolution.error->code, "BUILD-FA3");
  EXPECT_EQ(resolution.steps.back().stage, Stage::kConstruction);
}

TEST(SglangEngine, UnknownArchitecture_IsUnsupported) {
  Request request = request_of("Qwen__Qwen3-8B", "h100-sxm");
  const auto document =
      json::parse_object(R"({"architectures": ["NoSuchForCausalLM"], "model_type": "nosuch",
      "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 8,
      "max_position_embeddings": 64})",
                         "config.json");
  ASSERT_TRUE(document);
  const auto model = config::from_document(*document);
  ASSERT_TRUE(model);
  request.model = *model;
  const Resolution resolution = engine().resolve(request);
  ASSERT_TRUE(resolution.error);
  EXPECT_EQ(resolution.error->code, "CLASS-UNKNOWN");
  EXPECT_EQ(resolution.status, Status::kUnsupported);
}

TEST(SglangEngine, Ascend_HasNoPlatform) {
  Request request = request_of("Qwen__Qwen3-8B", "h100-sxm");
  request.device.platform = hardware::Platform::kAscend;
  const Resolution resolution = engine().resolve(request);
  ASSERT_TRUE(resolution.error);
  EXPECT_EQ(resolution.error->code, "DEVICE");
}

TEST(SglangEngine, EveryConfigOnEveryPlatform_HasAnAnswerWithKnownRules) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(std::string(KERNELPATH_TEST_DATA) + "/configs")) {
    const fs::path file = entry.path() / "config.json";
    if (!fs::exists(file)) continue;
    const auto model = config::load_model(file.string());
    if (!model) continue;
    ++count;
    for (const std::string_view gpu : {"h100-sxm", "b200", "mi300x"}) {
      const Resolution resolution = engine().resolve(
          {.model = *model, .device = device(gpu), .deployment = {}, .environment = {}});
      EXPECT_EQ(resolution.error.has_value(),
                resolution.status == Status::kError || resolution.status == Status::kUnsupported)
          << file << ' ' << gpu;
      for (const Step& step : resolution.steps) {
        EXPECT_NE(find_rule(step.rule), nullptr) << step.rule;
        EXPECT_THAT(step.source.file, Not(IsEmpty())) << step.rule;
      }
    }
  }
  EXPECT_GT(count, 250U);
}

// --- arguments -----------------------------------------------------------------------------------

Result<GivenArguments> read(const Deployment& deployment) {
  return read_arguments(built_in_profile(), deployment);
}

TEST(SglangArguments, CommonOptions_BecomeTheEnginesArguments) {
  Deployment deployment;
  deployment.backend = "FA3";
  deployment.kv_dtype = "fp8";
  deployment.speculative = "mtp";
  deployment.draft_tokens = 3;
  const auto given = read(deployment);
  ASSERT_TRUE(given);
  const Arguments arguments(built_in_profile(), given->values);
  EXPECT_EQ(arguments.text("attention_backend"), "fa3");
  EXPECT_EQ(arguments.text("kv_cache_dtype"), "fp8_e4m3");
  EXPECT_EQ(arguments.text("speculative_algorithm"), "NEXTN");
  EXPECT_EQ(arguments.integer("speculative_num_steps"), 3);
  EXPECT_EQ(arguments.integer("speculative_num_draft_tokens"), 4);
}

TEST(SglangArguments, Settings_AreReadByTheirTypes) {
  Deployment deployment;
  deployment.settings = {{"disable-radix-cache", "true"},
                         {"mem_fraction_static", "0.5"},
                         {"chunked_prefill_size", "4096"},
                         {"moe_a2a_backend", "none"}};
  const auto given = read(deployment);
  ASSERT_TRUE(given) << given.error().text();
  const Arguments arguments(built_in_profile(), given->values);
  EXPECT_TRUE(arguments.flag("disable_radix_cache"));
  EXPECT_EQ(arguments.integer("chunked_prefill_size"), 4096);
  EXPECT_EQ(arguments.text("moe_a2a_backend"), "none");
  EXPECT_DOUBLE_EQ(arguments.value("mem_fraction_static").as_double(), 0.5);
}

// The error of --page-size 16 with one more setting; empty if there is none.
std::string error_with(std::string name, std::string value) {
  Deployment deployment;
  deployment.page_size = 16;
  deployment.settings.emplace_back(std::move(name), std::move(value));
  const auto given = read(deployment);
  return given ? std::string() : given.error().text();
}

TEST(SglangArguments, UnknownNamesAndValues_AreRefused) {
  EXPECT_THAT(error_with("page_sizes", "1"), HasSubstr("no argument"));
  EXPECT_THAT(error_with("tp_size", "big"), HasSubstr("a whole number"));
  EXPECT_THAT(error_with("attention_backend", "fa9"), HasSubstr("is not one of"));
  EXPECT_THAT(error_with("page_size", "32"), HasSubstr("given twice"));
  EXPECT_EQ(error_with("page_size", "16"), "");
}

TEST(SglangRequest, AmdTarget_IsACapability) {
  const auto platform = platform_of(device("mi300x"), {});
  ASSERT_TRUE(platform);
  EXPECT_EQ(platform->major, 9);
  EXPECT_EQ(platform->minor, 4);
}

// --- memory --------------------------------------------------------------------------------------

double static_fraction(Request request) {
  request.device.memory_bytes = std::int64_t{80000} << 20;
  const Resolution resolution = engine().resolve(request);
  const std::string text = option_of(resolution, "mem_fraction_static");
  return std::stod(text.empty() ? "0" : text);
}

// 512 MiB, 1.5 a token of a chunk, a rank's eighth of a GiB, 2 a request of the decode graph, 8 a
// size of the prefill graphs: 512 + 12288 + 128 + 512 + 58 * 8 of 80000.
TEST(SglangMemory, Fraction_IsTheEnginesEstimate) {
  EXPECT_DOUBLE_EQ(static_fraction(request_of("Qwen__Qwen3-8B", "h100-sxm")), 0.826);
}

TEST(SglangMemory, FractionWithoutGraphs_KeepsLessFree) {
  const auto no_graphs = deploying([](auto& d) {
    d.settings = {{"disable_cuda_graph", "true"}, {"disable_prefill_cuda_graph", "true"}};
  });
  EXPECT_DOUBLE_EQ(static_fraction(request_of("Qwen__Qwen3-8B", "h100-sxm", no_graphs)), 0.838);
}

// Latents have 1.5 GiB for prefill graphs instead; 8 ranks a GiB, and graphs of 512 requests.
TEST(SglangMemory, FractionOfLatentAttention_CountsItsGraphs) {
  const auto eight = deploying([](auto& d) { d.tp = 8; });
  EXPECT_DOUBLE_EQ(static_fraction(request_of("deepseek-ai__DeepSeek-V2-Lite", "h100-sxm", eight)),
                   0.795);
}

TEST(SglangMemory, StatedFraction_IsKept) {
  const auto stated = deploying([](auto& d) { d.settings = {{"mem_fraction_static", "0.5"}}; });
  EXPECT_DOUBLE_EQ(static_fraction(request_of("Qwen__Qwen3-8B", "h100-sxm", stated)), 0.5);
}

// --- draft ---------------------------------------------------------------------------------------

TEST(SglangDraft, Model_IsResolvedAsTheWorkerDoes) {
  Request request = request_of("Qwen__Qwen3-8B", "h100-sxm", deploying([](auto& d) {
                                 d.speculative = "eagle3";
                                 d.draft_model = "draft";
                               }));
  request.draft = std::make_shared<const config::ModelConfig>(model_of("Qwen__Qwen3-0.6B"));
  const Resolution resolution = engine().resolve(request);
  ASSERT_FALSE(resolution.error) << resolution.error->message;
  std::size_t layers = 0;
  for (const LayerGroup& group : resolution.layers) layers += group.draft ? group.layers.size() : 0;
  EXPECT_EQ(layers, 28U);
  const bool said = std::any_of(resolution.steps.begin(), resolution.steps.end(),
                                [](const Step& step) { return step.rule == "SGL-DRAFT"; });
  EXPECT_TRUE(said);
}

TEST(SglangDraft, BackendOfTheDraft_IsItsOwn) {
  Request request = request_of("Qwen__Qwen3-8B", "b200", deploying([](auto& d) {
                                 d.speculative = "eagle3";
                                 d.draft_model = "draft";
                                 d.settings = {{"speculative_draft_attention_backend", "fa3"}};
                               }));
  request.draft = std::make_shared<const config::ModelConfig>(model_of("Qwen__Qwen3-0.6B"));
  const Resolution resolution = engine().resolve(request);
  ASSERT_TRUE(resolution.error);
  EXPECT_THAT(resolution.error->message, HasSubstr("of the draft: "));
}

// --- remedies and tables -------------------------------------------------------------------------

TEST(SglangWhyNot, RefusedBackend_HasVerifiedRemedies) {
  const auto answer = engine().why_not(request_of("Qwen__Qwen3-8B", "b200"), "fa3");
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->admitted);
  ASSERT_FALSE(answer->refusals.empty());
  EXPECT_EQ(answer->refusals.front().rule, "SGL-BUILD-FA3");
  EXPECT_FALSE(answer->remedies.empty());
}

TEST(SglangWhyNot, ServingBackend_IsAdmitted) {
  const auto answer = engine().why_not(request_of("Qwen__Qwen3-8B", "h100-sxm"), "FA3");
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->admitted);
}

TEST(SglangWhyNot, UnknownBackend_IsAUsageError) {
  EXPECT_FALSE(engine().why_not(request_of("Qwen__Qwen3-8B", "h100-sxm"), "fa9"));
}

TEST(SglangEngine, Tables_HaveRows) {
  for (const std::string& kind : engine().table_kinds()) {
    EXPECT_THAT(engine().table(kind), Not(IsEmpty())) << kind;
  }
  EXPECT_THAT(engine().table("nothing"), IsEmpty());
  EXPECT_FALSE(engine().answer("nothing", json::Value::null()));
}

TEST(SglangRules, Ids_AreUniqueAndComplete) {
  std::set<std::string_view> seen;
  for (const RuleInfo& rule : all_rules()) {
    EXPECT_TRUE(seen.insert(rule.id).second) << rule.id;
    EXPECT_TRUE(rule.id.starts_with("SGL-")) << rule.id;
    EXPECT_FALSE(rule.summary.empty() || rule.why.empty() || rule.file.empty()) << rule.id;
  }
}

}  // namespace
}  // namespace kernelpath::engines::sglang
