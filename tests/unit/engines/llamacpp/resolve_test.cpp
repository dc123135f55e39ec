// The whole way of llama.cpp, on real configs and on GGUF metadata.
#include "engines/llamacpp/resolve.h"

#include "checkpoint/gguf.h"
#include "config/load.h"
#include "engines/llamacpp/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

namespace kernelpath::engines::llamacpp {
namespace {

namespace fs = std::filesystem;
using checkpoint::GgufType;
using checkpoint::GgufValue;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

hardware::Device device(std::string_view name) {
  auto found = hardware::find_device(name);
  EXPECT_TRUE(found) << name;
  return found ? *found : hardware::Device{};
}

Resolution resolve_on(config::ModelConfig model, std::string_view gpu, Deployment deployment = {}) {
  return resolve({.model = std::move(model),
                  .device = device(gpu),
                  .deployment = std::move(deployment),
                  .environment = {}},
                 built_in_profile());
}

std::vector<std::string> rules_of(const Resolution& resolution) {
  std::vector<std::string> out;
  for (const Step& step : resolution.steps) out.push_back(step.rule);
  return out;
}

GgufValue u32(std::int64_t value) {
  return {.type = GgufType::kUint32, .element_type = GgufType::kUint32, .integers = {value}};
}

config::ModelConfig gguf_model(const std::string& arch,
                               const std::vector<std::pair<std::string, std::int64_t>>& numbers) {
  auto gguf = std::make_shared<checkpoint::Gguf>();
  gguf->pairs.push_back(
      {"general.architecture",
       {.type = GgufType::kString, .element_type = GgufType::kString, .text = arch}});
  gguf->pairs.push_back(
      {arch + ".attention.layer_norm_rms_epsilon",
       {.type = GgufType::kFloat32, .element_type = GgufType::kFloat32, .reals = {1e-5}}});
  for (const auto& [key, value] : numbers) gguf->pairs.push_back({arch + "." + key, u32(value)});
  gguf->tensor_bytes = 1000;
  config::ModelConfig model;
  model.gguf = std::move(gguf);
  return model;
}

config::ModelConfig small_llama() {
  return gguf_model("llama", {{"context_length", 4096},
                              {"embedding_length", 4096},
                              {"block_count", 2},
                              {"attention.head_count", 32},
                              {"attention.head_count_kv", 8}});
}

TEST(LlamacppResolve, GgufFile_IsResolvedByItsMetadata) {
  const Resolution out = resolve_on(small_llama(), "h100-sxm");
  ASSERT_FALSE(out.error) << out.error->message;
  EXPECT_EQ(out.model_class, "llama_model_llama");
  EXPECT_EQ(out.model_module, "src/models/llama.cpp");
  EXPECT_EQ(out.requested_backend, "auto");
  EXPECT_EQ(out.selected_backend, "on");
  ASSERT_EQ(out.layers.size(), 1U);
  EXPECT_EQ(out.layers[0].kv_bytes_per_token, 2 * 2 * 8 * 128 * 2);
  EXPECT_EQ(out.layers[0].prefill.kernel, "fattn-mma-f16");
  EXPECT_EQ(out.memory.weight_bytes, 1000);
  EXPECT_EQ(out.memory.kv_pool_bytes, 4096 * 8192);
  EXPECT_THAT(rules_of(out), Contains("LCPP-FA-PROBED"));
}

TEST(LlamacppResolve, HeadSizeWithoutKernel_TurnsAutoOff) {
  auto model = gguf_model("qwen2", {{"context_length", 4096},
                                    {"embedding_length", 1056},
                                    {"block_count", 2},
                                    {"attention.head_count", 12},
                                    {"attention.head_count_kv", 12}});  // 88
  const Resolution on_gpu = resolve_on(model, "h100-sxm");
  EXPECT_EQ(on_gpu.status, Status::kFallback);
  EXPECT_EQ(on_gpu.fallback_rule, "LCPP-FA-PROBE-FAILED");
  EXPECT_EQ(on_gpu.selected_backend, "off");
  Deployment asked;
  asked.backend = "on";
  const Resolution forced = resolve_on(model, "h100-sxm", asked);
  EXPECT_EQ(forced.fallback_rule, "LCPP-FA-ON-CPU");
  EXPECT_EQ(forced.layers.at(0).decode.kernel, "ggml CPU flash attention");
  EXPECT_EQ(resolve_on(model, "cpu").selected_backend, "on");
}

TEST(LlamacppResolve, QuantisedCaches_AreOnAndMayBeConverted) {
  Deployment asked;
  asked.kv_dtype = "q8_0";
  const Resolution same = resolve_on(small_llama(), "rtx-4090", asked);
  EXPECT_THAT(rules_of(same), Contains("LCPP-FA-QUANTIZED-V"));
  EXPECT_EQ(same.layers.at(0).decode.kernel, "fattn-vec");
  EXPECT_EQ(same.memory.kv_bytes_per_token, 2 * 2 * 8 * 4 * 34);
  asked.kv_dtype.reset();
  asked.settings = {{"cache_type_k", "q8_0"}, {"cache_type_v", "q4_0"}};
  const Resolution mixed = resolve_on(small_llama(), "rtx-4090", asked);
  EXPECT_THAT(rules_of(mixed), Contains("LCPP-KERNEL-CONVERTS"));
  asked.settings.emplace_back("build.fa_all_quants", "true");
  const Resolution built = resolve_on(small_llama(), "rtx-4090", asked);
  EXPECT_EQ(built.layers.at(0).decode.kernel, "fattn-vec");
}

TEST(LlamacppResolve, ValuesOffTheList_AreRefused) {
  Deployment asked;
  asked.kv_dtype = "fp8";
  const Resolution out = resolve_on(small_llama(), "h100-sxm", asked);
  ASSERT_TRUE(out.error);
  EXPECT_THAT(out.error->message, HasSubstr("Unsupported cache type: fp8"));
  const auto checked = engine().check(asked, {});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kUsageUnknown);
  asked.kv_dtype.reset();
  asked.backend = "FLASHINFER";
  EXPECT_FALSE(engine().check(asked, {}));
  asked.backend.reset();
  asked.settings = {{"n_ctxx", "1"}};
  const auto setting = engine().check(asked, {});
  ASSERT_FALSE(setting);
  EXPECT_THAT(setting.error().near_matches, Contains("n_ctx"));
  asked.settings = {{"n_ctx", "-1"}};
  EXPECT_FALSE(engine().check(asked, {}));
}

TEST(LlamacppResolve, UnknownArchitectures_NameTheirLikes) {
  config::ModelConfig model;
  model.architectures = {"LlamaForCausalLMs"};
  const Resolution out = resolve_on(model, "h100-sxm");
  ASSERT_TRUE(out.error);
  EXPECT_EQ(out.status, Status::kUnsupported);
  EXPECT_EQ(out.error->message, "Model LlamaForCausalLMs is not supported");
  EXPECT_THAT(out.error->near_matches, Contains("LlamaForCausalLM"));
  const Resolution gguf = resolve_on(gguf_model("llama5", {}), "h100-sxm");
  ASSERT_TRUE(gguf.error);
  EXPECT_EQ(gguf.error->message, "unknown model architecture: 'llama5'");
  EXPECT_THAT(gguf.error->near_matches, Contains("llama"));
  const Resolution nameless = resolve_on(config::ModelConfig{}, "h100-sxm");
  ASSERT_TRUE(nameless.error);
  EXPECT_EQ(nameless.error->code, "LCPP-CONVERT-NO-NAME");
}

TEST(LlamacppResolve, WhyNot_FindsWhatWouldAdmitIt) {
  Request request{
      .model = small_llama(), .device = device("h100-sxm"), .deployment = {}, .environment = {}};
  const auto on = engine().why_not(request, "on");
  ASSERT_TRUE(on);
  EXPECT_TRUE(on->admitted);
  request.deployment.settings = {{"cache_type_v", "q8_0"}};
  const auto off = engine().why_not(request, "off");
  ASSERT_TRUE(off);
  EXPECT_FALSE(off->admitted);
  EXPECT_THAT(off->refusals, Not(IsEmpty()));
  EXPECT_THAT(off->remedies, Not(IsEmpty()));
  EXPECT_FALSE(engine().why_not(request, "FLASHINFER"));
}

TEST(LlamacppResolve, Options_CountForTheContext) {
  Deployment asked;
  asked.max_model_len = 1000;
  asked.batch_size = 3;
  asked.page_size = 16;
  const Resolution out = resolve_on(small_llama(), "h100-sxm", asked);
  ASSERT_FALSE(out.error);
  EXPECT_EQ(out.memory.sequence_tokens, 1024);
  EXPECT_EQ(out.memory.kv_pool_tokens, 3072);
  EXPECT_THAT(rules_of(out), Contains("LCPP-NO-OPTION"));
  EXPECT_THAT(rules_of(out), Contains("LCPP-CONTEXT-ROUNDED"));
}

// A token takes 4096 bytes in a layer.
TEST(LlamacppResolve, SeveralGpus_AreAnsweredByTheFullest) {
  Deployment layers;
  layers.pp = 3;  // a layer, a layer, the output layer
  const Resolution by_layer = resolve_on(small_llama(), "h100-sxm", layers);
  EXPECT_EQ(by_layer.memory.kv_bytes_per_token, 4096);
  EXPECT_THAT(rules_of(by_layer), Contains("LCPP-SPREAD").Times(3));
  layers.settings = {{"tensor_split", "1,0,0"}};
  EXPECT_EQ(resolve_on(small_llama(), "h100-sxm", layers).memory.kv_bytes_per_token, 8192);
  Deployment tensors;
  tensors.tp = 2;
  EXPECT_EQ(resolve_on(small_llama(), "h100-sxm", tensors).memory.kv_bytes_per_token, 4096);
  Deployment host;
  host.settings = {{"n_gpu_layers", "2"}};  // the output layer counts
  EXPECT_EQ(resolve_on(small_llama(), "h100-sxm", host).memory.kv_bytes_per_token, 4096);
}

TEST(LlamacppResolve, SplitByRows_DoesNotLoad) {
  Deployment rows;
  rows.pp = 2;
  rows.settings = {{"split_mode", "row"}};
  const Resolution out = resolve_on(small_llama(), "h100-sxm", rows);
  ASSERT_TRUE(out.error);
  EXPECT_THAT(out.error->message, HasSubstr("does not support split buffers"));
}

TEST(LlamacppResolve, Variables_StandBelowOptions) {
  Request request{
      .model = small_llama(), .device = device("h100-sxm"), .deployment = {}, .environment = {}};
  request.environment.variables = {{"LLAMA_ARG_CACHE_TYPE_K", "q8_0"}};
  EXPECT_EQ(resolve(request, built_in_profile()).memory.kv_bytes_per_token, 2 * (1088 + 2048));
  request.deployment.settings = {{"cache_type_k", "f16"}};
  EXPECT_EQ(resolve(request, built_in_profile()).memory.kv_bytes_per_token, 8192);
}

TEST(LlamacppResolve, EveryStep_IsARuleOfTheTable) {
  std::vector<std::string> known;
  for (const RuleInfo& rule : engine().rules()) {
    known.emplace_back(rule.id);
    EXPECT_FALSE(rule.summary.empty() || rule.why.empty() || rule.file.empty()) << rule.id;
  }
  for (const Step& step : resolve_on(small_llama(), "mi300x").steps) {
    EXPECT_THAT(known, Contains(step.rule));
  }
}

// Every real config: an answer, or an error in the engine's words.
TEST(LlamacppResolve, EveryConfig_IsAnswered) {
  std::size_t answered = 0;
  std::size_t refused = 0;
  for (const auto& entry : fs::directory_iterator(std::string(KERNELPATH_TEST_DATA) + "/configs")) {
    if (!fs::exists(entry.path() / "config.json")) continue;
    auto model = config::load_model(entry.path().string(), {.read_siblings = false});
    ASSERT_TRUE(model) << entry.path();
    const Resolution out = resolve_on(*model, "h100-sxm");
    if (out.error) {
      ++refused;
      EXPECT_TRUE(out.error->code.starts_with("LCPP-")) << entry.path();
      // A config.json that lacks what its class requires is the only other cause.
      const std::string folder = entry.path().filename().string();
      if (folder.ends_with("deepseek-vl2-tiny") || folder.ends_with("dots1")) continue;
      EXPECT_EQ(out.status, Status::kUnsupported) << entry.path() << ": " << out.error->message;
      EXPECT_TRUE(out.error->code.starts_with("LCPP-CONVERT"))
          << entry.path() << ": " << out.error->message;
      continue;
    }
    ++answered;
    EXPECT_FALSE(out.model_class.empty()) << entry.path();
    EXPECT_FALSE(out.layers.empty()) << entry.path();
  }
  EXPECT_GT(answered, refused);
}

}  // namespace
}  // namespace kernelpath::engines::llamacpp
