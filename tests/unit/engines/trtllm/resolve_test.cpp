#include "engines/trtllm/engine.h"
#include "real_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace kernelpath::engines::trtllm {
namespace {

const Step* find_step(const Resolution& resolution, std::string_view rule) {
  const auto found = std::find_if(resolution.steps.begin(), resolution.steps.end(),
                                  [&](const Step& step) { return step.rule == rule; });
  return found == resolution.steps.end() ? nullptr : &*found;
}

const std::string& option(const Resolution& resolution, std::string_view name) {
  const auto found = std::find_if(resolution.options.begin(), resolution.options.end(),
                                  [&](const auto& row) { return row.name == name; });
  EXPECT_NE(found, resolution.options.end()) << name;
  return found->value;
}

TEST(Resolve, Llama31_RunsTheDefaultBackendWithItsBytes) {
  const Resolution out = engine().resolve(real_request("meta-llama__Meta-Llama-3.1-8B"));
  EXPECT_EQ(out.status, Status::kOk);
  EXPECT_EQ(out.model_class, "LlamaForCausalLM");
  EXPECT_EQ(out.backend_class, "TrtllmAttention");
  EXPECT_EQ(out.requested_by, "engine default");
  ASSERT_EQ(out.layers.size(), 1U);
  EXPECT_EQ(out.layers[0].layers.size(), 32U);
  EXPECT_EQ(out.layers[0].decode.kernel, "fallback");
  EXPECT_EQ(out.layers[0].rope_fused, true);
  EXPECT_EQ(out.layers[0].kv.shape, "[pages, 2, 8, 32, 128]");
  EXPECT_EQ(out.memory.kv_bytes_per_token, 131072);
  EXPECT_EQ(out.layers[0].kv_bytes_per_token, 131072);
  EXPECT_EQ(out.memory.kv_bytes_per_sequence, 131072LL * 131072);
}

TEST(Resolve, FlashInferMissing_FallsBackAndSaysWhy) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-8B");
  request.deployment.backend = "flashinfer";
  EXPECT_EQ(engine().resolve(request).selected_backend, "FLASHINFER");
  request.environment.lacks = {"flashinfer"};
  const Resolution out = engine().resolve(request);
  EXPECT_EQ(out.status, Status::kFallback);
  EXPECT_EQ(out.selected_backend, "TRTLLM");
  EXPECT_EQ(out.fallback_rule, "TRT-ATTN-FALLBACK");
  const Step* step = find_step(out, "TRT-ATTN-FALLBACK");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->severity, Severity::kWarn);
  EXPECT_NE(step->source.file.find("utils.py"), std::string::npos);
}

TEST(Resolve, Gemma4_TakesTheBackendOfItsClassUnlessTheUserSaysElse) {
  Request request = real_request("google__gemma-4-26B-A4B", "b200");
  request.model.architectures = {"Gemma4ForCausalLM"};
  const Resolution by_class = engine().resolve(request);
  EXPECT_EQ(by_class.requested_backend, "FLASHINFER");
  EXPECT_EQ(by_class.requested_by, "model default");
  EXPECT_EQ(by_class.layers.at(0).decode.kernel, "trtllm-gen (tensor cores)");
  request.deployment.backend = "TRTLLM";
  EXPECT_EQ(engine().resolve(request).selected_backend, "TRTLLM");
}

TEST(Resolve, DeepSeekV32_IsSparseWithoutBeingAsked) {
  const Resolution out = engine().resolve(real_request("deepseek-ai__DeepSeek-V3.2", "h200"));
  EXPECT_EQ(out.backend_class, "DSATrtllmAttention");
  EXPECT_EQ(out.layers.at(0).kv.shape, "[pages, 1, 1, 32, 576]");
}

TEST(Resolve, Mla_RunsFlashMlaOnHopperOnlyAndOnlyWithTheExactName) {
  Request request = real_request("deepseek-ai__DeepSeek-V3");
  EXPECT_EQ(engine().resolve(request).layers.at(0).decode.kernel, "fallback (FlashMLA)");
  request.deployment.settings = {{"attn_backend", "trtllm"}};
  EXPECT_EQ(engine().resolve(request).layers.at(0).decode.kernel, "fallback");
  request = real_request("deepseek-ai__DeepSeek-V3", "b200");
  EXPECT_NE(engine().resolve(request).layers.at(0).decode.kernel, "fallback (FlashMLA)");
}

TEST(Resolve, Llama4_LosesItsChunksToAnotherCaseOfTheName) {
  Request request = real_request("meta-llama__Llama-4-Scout-17B-16E-Instruct");
  EXPECT_NE(find_step(engine().resolve(request), "TRT-L4-KEEP"), nullptr);
  request.deployment.settings = {{"attn_backend", "trtllm"}};
  EXPECT_NE(find_step(engine().resolve(request), "TRT-L4-BACKEND"), nullptr);
}

TEST(Resolve, HybridModel_HasGroupsWithAndWithoutACache) {
  const Resolution out =
      engine().resolve(real_request("nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", "b200"));
  EXPECT_EQ(option(out, "kv_cache_config.enable_block_reuse"), "false");
  std::set<config::LayerKind> kinds;
  std::int64_t bytes = 0;
  for (const LayerGroup& group : out.layers) {
    kinds.insert(group.kind);
    bytes += group.kv_bytes_per_token;
    EXPECT_EQ(group.kv.dtype.empty(), group.kv_bytes_per_token == 0);
  }
  EXPECT_TRUE(kinds.contains(config::LayerKind::kMamba));
  EXPECT_EQ(bytes, out.memory.kv_bytes_per_token);
  EXPECT_GT(out.memory.state_bytes_per_sequence.value_or(0), 0);
}

TEST(Resolve, KvDtype_ComesFromTheUserTheCheckpointOrTheModel) {
  Request request = real_request("nvidia__Llama-3.1-70B-Instruct-FP8");
  EXPECT_EQ(engine().resolve(request).layers.at(0).kv.dtype, "fp8");
  request.deployment.kv_dtype = "nvfp4";
  EXPECT_EQ(engine().resolve(request).layers.at(0).kv.dtype, "nvfp4");
  request.deployment.kv_dtype = "bfloat16";  // not copied: the checkpoint's stays
  const Resolution kept = engine().resolve(request);
  EXPECT_EQ(kept.layers.at(0).kv.dtype, "fp8");
  EXPECT_EQ(find_step(kept, "TRT-KV-DTYPE-UNSYNCED")->severity, Severity::kWarn);
  request.deployment.kv_dtype = "int4";
  EXPECT_EQ(engine().resolve(request).error->code, "KV-DTYPE");
}

TEST(Resolve, KvDtypeOfTheSiblingFile_IsReadBeforeTheConfigs) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-8B");
  request.model.quantization.kv_cache_dtype = {"nvfp4", {}};
  EXPECT_EQ(engine().resolve(request).layers.at(0).kv.dtype, "nvfp4");
  request.model.sibling_quantization.emplace();
  EXPECT_EQ(engine().resolve(request).layers.at(0).kv.dtype, "nvfp4");
  request.model.sibling_quantization->kv_cache_dtype = {"fp8", {}};
  EXPECT_EQ(engine().resolve(request).layers.at(0).kv.dtype, "fp8");
}

TEST(Resolve, HeadsThatDoNotDivide_AreTheEnginesAssertion) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-8B");
  request.deployment.tp = 3;
  const Resolution out = engine().resolve(request);
  EXPECT_EQ(out.status, Status::kError);
  EXPECT_EQ(out.error->type, "AssertionError");
}

TEST(Resolve, UnknownArchitecture_IsAStatusWithNearMatches) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-8B");
  request.model.architectures = {"LlamaForCausalML"};
  const Resolution out = engine().resolve(request);
  EXPECT_EQ(out.status, Status::kUnsupported);
  EXPECT_EQ(out.error->code, "UNKNOWN-ARCH");
  const auto& near = out.error->near_matches;
  EXPECT_NE(std::find(near.begin(), near.end(), "LlamaForCausalLM"), near.end());
}

TEST(Resolve, DeviceThatIsNoNvidiaGpu_IsUnsupported) {
  const Resolution out = engine().resolve(real_request("Qwen__Qwen3-8B", "cpu"));
  EXPECT_EQ(out.status, Status::kUnsupported);
  EXPECT_EQ(out.model_class, "Qwen3ForCausalLM");
}

TEST(Resolve, OptionThatNothingReads_IsSaid) {
  Request request = real_request("Qwen__Qwen3-8B");
  EXPECT_EQ(find_step(engine().resolve(request), "TRT-ARG-UNREAD"), nullptr);
  request.deployment.dcp = 2;
  EXPECT_NE(find_step(engine().resolve(request), "TRT-ARG-UNREAD"), nullptr);
}

TEST(Resolve, Pool_ShrinksWithWeightsAndStopsAtMaxTokens) {
  Request request = real_request("Qwen__Qwen3-8B");
  const Memory whole = engine().resolve(request).memory;
  request.deployment.settings = {{"kv_cache_config.free_gpu_memory_fraction", "0.45"}};
  const Memory half = engine().resolve(request).memory;
  EXPECT_NEAR(static_cast<double>(*half.kv_pool_bytes),
              static_cast<double>(*whole.kv_pool_bytes) / 2, 1e7);
  request.deployment.settings = {{"kv_cache_config.max_tokens", "4096"}};
  EXPECT_EQ(engine().resolve(request).memory.kv_pool_tokens, 4096);
}

TEST(Resolve, WhatDoesNotFit_IsAWarning) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-70B");
  EXPECT_NE(find_step(engine().resolve(request), "TRT-WEIGHTS-OVER-MEMORY"), nullptr);
  EXPECT_FALSE(engine().resolve(request).warnings.empty());
  request.deployment.tp = 8;
  EXPECT_TRUE(engine().resolve(request).warnings.empty());
  // 671 B fp8 weights over 8 ranks are 85.1 GB: less than the 85.5 GB of the device, but more than
  // its driver gives to a process.
  Request large = real_request("deepseek-ai__DeepSeek-V3");
  large.deployment.tp = 8;
  EXPECT_NE(find_step(engine().resolve(large), "TRT-WEIGHTS-OVER-MEMORY"), nullptr);
  // 16 ranks hold 8 KV heads twice; the budget knows of half of the bytes.
  request.deployment.tp = 16;
  EXPECT_NE(find_step(engine().resolve(request), "TRT-KV-POOL-OVER-MEMORY"), nullptr);
}

TEST(Resolve, LengthOverTheModels_IsAWarning) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-8B");
  request.deployment.max_model_len = 131072;
  EXPECT_EQ(find_step(engine().resolve(request), "TRT-SEQ-OVER-MODEL"), nullptr);
  request.deployment.max_model_len = 131073;
  const Resolution out = engine().resolve(request);
  const Step* step = find_step(out, "TRT-SEQ-OVER-MODEL");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->severity, Severity::kWarn);
  EXPECT_EQ(out.warnings, std::vector<std::string>{"max_seq_len 131073 is more than the model's "
                                                   "131072"});
  // Behind 2^31 the sizes go on in 64 bits.
  request.deployment.max_model_len = std::int64_t{1} << 32;
  EXPECT_EQ(engine().resolve(request).memory.kv_bytes_per_sequence, std::int64_t{131072} << 32);
  // A model that states no length has none to exceed.
  request.model.max_position_embeddings.value.reset();
  EXPECT_EQ(find_step(engine().resolve(request), "TRT-SEQ-OVER-MODEL"), nullptr);
}

TEST(Resolve, Batch_IsCountedAndComparedWithThePool) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-8B");
  EXPECT_FALSE(engine().resolve(request).memory.batch_sequences);
  request.deployment.max_model_len = 1000;  // in 32 blocks, 1024 tokens
  const std::int64_t pool_tokens = *engine().resolve(request).memory.kv_pool_tokens;
  request.deployment.batch_size = pool_tokens / 1024;
  const Resolution fits = engine().resolve(request);
  EXPECT_EQ(fits.memory.kv_bytes_per_batch, 131072 * 1000 * (pool_tokens / 1024));
  EXPECT_EQ(find_step(fits, "TRT-KV-BATCH-OVER-POOL"), nullptr);
  *request.deployment.batch_size += 1;
  const Resolution over = engine().resolve(request);
  EXPECT_NE(find_step(over, "TRT-KV-BATCH-OVER-POOL"), nullptr);
  EXPECT_EQ(over.warnings.size(), 1U);
  EXPECT_EQ(over.status, Status::kOk);
}

TEST(Resolve, BatchOfLongSequences_IsATotalOf64BitsOrAWarning) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-8B");
  request.deployment.max_model_len = 10485760;
  request.deployment.batch_size = 4096;
  EXPECT_EQ(engine().resolve(request).memory.kv_bytes_per_batch, 131072LL * 10485760 * 4096);
  request.deployment.batch_size = std::int64_t{1} << 40;
  const Resolution overflown = engine().resolve(request);
  EXPECT_EQ(overflown.memory.batch_sequences, std::int64_t{1} << 40);
  EXPECT_FALSE(overflown.memory.kv_bytes_per_batch);
  const Step* step = find_step(overflown, "TRT-KV-BATCH-OVER-POOL");
  ASSERT_NE(step, nullptr);
  EXPECT_NE(step->reason.find("64 bits"), std::string::npos) << step->reason;
}

TEST(Resolve, BatchWithoutAPool_IsComparedWithTheDevice) {
  Request request = real_request("meta-llama__Meta-Llama-3.1-8B");
  request.deployment.settings = {{"kv_cache_config.free_gpu_memory_fraction", "1"}};
  request.deployment.batch_size = 4;  // 64 GiB of 80
  EXPECT_FALSE(engine().resolve(request).memory.kv_pool_tokens);
  EXPECT_EQ(find_step(engine().resolve(request), "TRT-KV-BATCH-OVER-POOL"), nullptr);
  request.deployment.batch_size = 5;
  EXPECT_NE(find_step(engine().resolve(request), "TRT-KV-BATCH-OVER-POOL"), nullptr);
  // A device of unknown memory has room for whatever is asked.
  request.device.memory_bytes.reset();
  EXPECT_EQ(find_step(engine().resolve(request), "TRT-KV-BATCH-OVER-POOL"), nullptr);
}

TEST(Resolve, EveryStep_HasARuleOfTheTableAReasonAndASource) {
  std::set<std::string_view> ids;
  for (const RuleInfo& rule : engine().rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id << " stands twice";
  }
  for (const char* folder : {"meta-llama__Llama-4-Scout-17B-16E-Instruct", "zai-org__GLM-5",
                             "nvidia__DeepSeek-V3.1-NVFP4", "SpecForge__llama3-8B-eagle3"}) {
    for (const Step& step : engine().resolve(real_request(folder, "b300")).steps) {
      EXPECT_TRUE(ids.contains(step.rule)) << step.rule;
      EXPECT_FALSE(step.reason.empty()) << step.rule;
      EXPECT_FALSE(step.source.file.empty()) << step.rule;
    }
  }
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
