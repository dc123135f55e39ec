// The model that drafts tokens: its class, its layers and their backend, and what is refused.

#include "run_case.h"

#include <gmock/gmock.h>

namespace kernelpath::engines::vllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kOld = "0.25.1";
constexpr std::string_view kNew = "0.33.0";

std::string llama(std::int64_t layers, std::int64_t vocabulary = 128256,
                  std::string_view architecture = "LlamaForCausalLM") {
  return R"({"architectures": [")" + std::string(architecture) +
         R"("], "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 14336, "num_hidden_layers": )" +
         std::to_string(layers) + R"(, "vocab_size": )" + std::to_string(vocabulary) +
         R"(, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"})";
}

const std::string kDeepseek = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168,
  "num_attention_heads": 128, "num_key_value_heads": 128, "num_hidden_layers": 6,
  "intermediate_size": 18432, "vocab_size": 129280, "max_position_embeddings": 4096,
  "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "v_head_dim": 128, "n_routed_experts": 256, "num_experts_per_tok": 8,
  "moe_intermediate_size": 2048, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1,
  "torch_dtype": "bfloat16"})";

const std::string kMoe = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048,
  "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_hidden_layers": 4,
  "intermediate_size": 6144, "vocab_size": 151936, "max_position_embeddings": 40960,
  "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
  "decoder_sparse_step": 1, "torch_dtype": "bfloat16"})";

RunCase eagle3(std::string target, std::optional<std::string> backend = {}) {
  RunCase out{.model = std::move(target), .draft = llama(1, 128256, "LlamaForCausalLMEagle3")};
  out.deployment.backend = std::move(backend);
  out.deployment.speculative = "eagle3";
  out.deployment.draft_model = "drafts/head";
  out.deployment.draft_tokens = 3;
  return out;
}

RunCase draft_model(std::int64_t vocabulary = 128256) {
  RunCase out{.model = llama(8), .draft = llama(2, vocabulary)};
  out.deployment.speculative = "draft";
  out.deployment.draft_model = "drafts/small";
  out.deployment.draft_tokens = 3;
  return out;
}

// --- layers -------------------------------------------------------------------------------------

TEST(Speculation, Eagle3_ItsLayerComesBehindTheTargets) {
  for (const std::string_view version : {kOld, kNew}) {
    const Resolution resolution = resolve_case(version, eagle3(llama(8)));
    ASSERT_EQ(code_of(resolution), "none") << resolution.error->message;
    const LayerGroup* draft = draft_of(resolution);
    ASSERT_NE(draft, nullptr) << version;
    EXPECT_THAT(draft->layers, ElementsAre(8)) << version;
    EXPECT_EQ(draft->kv_bytes_per_token, 2 * 8 * 128 * 2) << version;
    EXPECT_EQ(resolution.memory.kv_bytes_per_token, 9 * 2 * 8 * 128 * 2) << version;
    EXPECT_EQ(resolution.selected_backend, "FLASH_ATTN") << version;
  }
}

TEST(Speculation, Mtp_LayersOfTheCheckpoint) {
  for (const std::string_view version : {kOld, kNew}) {
    RunCase asked{.model = kDeepseek};
    asked.deployment.speculative = "mtp";
    asked.deployment.draft_tokens = 1;
    const Resolution resolution = resolve_case(version, asked);
    ASSERT_EQ(code_of(resolution), "none") << resolution.error->message;
    const LayerGroup* draft = draft_of(resolution);
    ASSERT_NE(draft, nullptr) << version;
    EXPECT_THAT(draft->layers, ElementsAre(6)) << version;
    EXPECT_EQ(draft->backend, resolution.selected_backend) << version;
    EXPECT_EQ(draft->kv_bytes_per_token, 576 * 2) << version;
  }
}

TEST(Speculation, DraftModel_HasLayersOfItsOwn) {
  for (const std::string_view version : {kOld, kNew}) {
    const Resolution resolution = resolve_case(version, draft_model());
    ASSERT_EQ(code_of(resolution), "none") << resolution.error->message;
    const LayerGroup* draft = draft_of(resolution);
    ASSERT_NE(draft, nullptr) << version;
    EXPECT_THAT(draft->layers, ElementsAre(0, 1)) << version;
    EXPECT_GT(resolution.memory.weight_bytes.value_or(0),
              resolve_case(version, {.model = llama(8)}).memory.weight_bytes.value_or(0));
  }
}

TEST(Speculation, Ngram_HasNoLayers) {
  RunCase asked{.model = llama(8)};
  asked.deployment.speculative = "ngram";
  asked.deployment.draft_tokens = 3;
  for (const std::string_view version : {kOld, kNew}) {
    const Resolution resolution = resolve_case(version, asked);
    EXPECT_EQ(code_of(resolution), "none");
    EXPECT_EQ(draft_of(resolution), nullptr) << version;
  }
}

// --- backend ------------------------------------------------------------------------------------

TEST(Speculation, SecondRunner_EagleTakesTheTargetsBackend) {
  for (const std::string_view version : {kOld, kNew}) {
    const Resolution resolution = resolve_case(version, eagle3(llama(8), "TRITON_ATTN"));
    ASSERT_NE(draft_of(resolution), nullptr);
    EXPECT_EQ(draft_of(resolution)->backend, "TRITON_ATTN") << version;
    EXPECT_EQ(step_of(resolution, "VLLM-SPEC-BACKEND-DIFFERS"), nullptr) << version;
  }
}

TEST(Speculation, FirstRunner_EagleChoosesForItself) {
  const Resolution resolution = resolve_case(kOld, eagle3(kMoe, "TRITON_ATTN"));
  ASSERT_NE(draft_of(resolution), nullptr);
  EXPECT_EQ(draft_of(resolution)->backend, "FLASH_ATTN");
  EXPECT_EQ(resolution.selected_backend, "TRITON_ATTN");
  const Step* step = step_of(resolution, "VLLM-SPEC-BACKEND-DIFFERS");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->severity, Severity::kWarn);
  EXPECT_THAT(step->reason, HasSubstr("binds the target only"));
  // Since 0.33 every such model is the second runner's.
  EXPECT_EQ(draft_of(resolve_case(kNew, eagle3(kMoe, "TRITON_ATTN")))->backend, "TRITON_ATTN");
}

TEST(Speculation, OwnBackend_IsReadByOneReleaseOnly) {
  RunCase asked = eagle3(llama(8));
  asked.deployment.settings.push_back(set("speculative_config.attention_backend", "TRITON_ATTN"));
  const Resolution old = resolve_case(kOld, asked);
  EXPECT_EQ(draft_of(old)->backend, "FLASH_ATTN");
  EXPECT_NE(step_of(old, "VLLM-SPEC-BACKEND-UNREAD"), nullptr);
  const Resolution later = resolve_case(kNew, asked);
  EXPECT_EQ(draft_of(later)->backend, "TRITON_ATTN");
  EXPECT_EQ(step_of(later, "VLLM-SPEC-BACKEND-UNREAD"), nullptr);
  asked.environment.variables.emplace_back("VLLM_USE_V2_MODEL_RUNNER", "0");
  EXPECT_EQ(draft_of(resolve_case(kOld, asked))->backend, "TRITON_ATTN");
}

// --- refusals -----------------------------------------------------------------------------------

TEST(Speculation, Vocabulary_MustBeEqualForDraftModels) {
  for (const std::string_view version : {kOld, kNew}) {
    EXPECT_EQ(code_of(resolve_case(version, draft_model(32000))), "SPEC-VOCAB") << version;
    RunCase allowed = draft_model(32000);
    allowed.deployment.settings.push_back(
        set("speculative_config.use_heterogeneous_vocab", "true"));
    EXPECT_EQ(code_of(resolve_case(version, allowed)), "none") << version;
  }
}

TEST(Speculation, WithoutModelOrTokens_IsRefused) {
  for (const std::string_view version : {kOld, kNew}) {
    RunCase no_model{.model = llama(8)};
    no_model.deployment.speculative = "eagle3";
    no_model.deployment.draft_tokens = 3;
    EXPECT_EQ(code_of(resolve_case(version, no_model)), "SPEC-MODEL-MISSING") << version;
    RunCase no_tokens{.model = kDeepseek};
    no_tokens.deployment.settings.push_back(set("speculative_config.method", "mtp"));
    EXPECT_EQ(code_of(resolve_case(version, no_tokens)), "SPEC-TOKENS-MISSING") << version;
    // The common option brings a number, and says so.
    RunCase assumed{.model = kDeepseek};
    assumed.deployment.speculative = "mtp";
    const Resolution resolution = resolve_case(version, assumed);
    EXPECT_EQ(code_of(resolution), "none") << version;
    EXPECT_NE(step_of(resolution, "VLLM-SPEC-TOKENS"), nullptr) << version;
  }
}

TEST(Speculation, Method_MustFitTheDraft) {
  RunCase asked{.model = llama(8)};
  asked.deployment.speculative = "mtp";
  asked.deployment.draft_tokens = 1;
  for (const std::string_view version : {kOld, kNew}) {
    EXPECT_EQ(code_of(resolve_case(version, asked)), "SPEC-METHOD") << version;
  }
}

TEST(Speculation, Heads_MustDivideOverTheRanks) {
  RunCase asked = eagle3(llama(8));
  asked.draft = R"({"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama",
    "hidden_size": 2304, "num_attention_heads": 18, "num_key_value_heads": 6,
    "intermediate_size": 6144, "num_hidden_layers": 1, "vocab_size": 128256,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16"})";
  asked.deployment.tp = 4;
  EXPECT_EQ(code_of(resolve_case(kOld, asked)), "SPEC-DRAFT-HEADS");
  asked.deployment.tp = 2;
  EXPECT_EQ(code_of(resolve_case(kOld, asked)), "none");
}

TEST(Speculation, RanksOfTheDraft_AreOneOrTheTargets) {
  RunCase asked = eagle3(llama(8));
  asked.deployment.tp = 4;
  asked.deployment.settings.push_back(set("speculative_config.draft_tensor_parallel_size", "2"));
  EXPECT_EQ(code_of(resolve_case(kNew, asked)), "SPEC-DRAFT-TP");
  asked.deployment.settings.back().second = "1";
  const Resolution resolution = resolve_case(kNew, asked);
  EXPECT_EQ(code_of(resolution), "none");
  EXPECT_NE(step_of(resolution, "VLLM-SPEC-DRAFT-TP-UNREAD"), nullptr);
}

TEST(Speculation, PipelineStages_AreRefusedByTheOlderRelease) {
  RunCase asked = eagle3(llama(8));
  asked.deployment.pp = 2;
  EXPECT_EQ(code_of(resolve_case(kOld, asked)), "SPEC-PIPELINE");
  EXPECT_EQ(code_of(resolve_case(kNew, asked)), "none");
}

TEST(Speculation, UnpaddedBatches_AreRefusedForDraftModels) {
  RunCase asked = draft_model();
  asked.deployment.settings.push_back(
      set("speculative_config.disable_padded_drafter_batch", "true"));
  EXPECT_EQ(code_of(resolve_case(kOld, asked)), "SPEC-UNPADDED");
  EXPECT_EQ(code_of(resolve_case(kNew, asked)), "none");
}

TEST(Speculation, Suffix_NeedsItsPackage) {
  RunCase asked{.model = llama(8)};
  asked.deployment.settings.push_back(set("speculative_config.method", "suffix"));
  EXPECT_EQ(code_of(resolve_case(kOld, asked)), "SPEC-SUFFIX-PACKAGE");
  asked.environment.has = {"arctic-inference"};
  const Resolution resolution = resolve_case(kOld, asked);
  EXPECT_EQ(code_of(resolution), "none");
  EXPECT_EQ(option_of(resolution, "speculative_config.num_speculative_tokens"), "24");
}

TEST(Speculation, ShorterDraft_ShortensTheTargetOfTheNewerRelease) {
  RunCase asked = draft_model();
  asked.draft.replace(asked.draft.find("8192"), 4, "2048");
  EXPECT_EQ(option_of(resolve_case(kOld, asked), "max_model_len"), "8192");
  EXPECT_EQ(option_of(resolve_case(kNew, asked), "max_model_len"), "2048");
}

// --- batches ------------------------------------------------------------------------------------

TEST(BatchDefaults, MemoryDeviceAndRelease_DecideThem) {
  const auto tokens = [](std::string_view version, std::string device) {
    return option_of(resolve_case(version, {.model = llama(8), .device = std::move(device)}),
                     "max_num_batched_tokens");
  };
  EXPECT_EQ(tokens(kOld, "h100-sxm"), "8192");
  EXPECT_EQ(tokens(kOld, "b200"), "8192");
  EXPECT_EQ(tokens(kNew, "b200"), "16384");
  EXPECT_EQ(tokens(kOld, "a100-80g"), "2048");
  EXPECT_EQ(tokens(kOld, "l40s"), "2048");
}

TEST(BatchDefaults, ModeAndChunks_ChangeThem) {
  RunCase asked{.model = llama(8)};
  asked.deployment.settings.push_back(set("performance_mode", "throughput"));
  EXPECT_EQ(option_of(resolve_case(kNew, asked), "max_num_batched_tokens"), "16384");
  EXPECT_EQ(option_of(resolve_case(kNew, asked), "max_num_seqs"), "2048");
  asked.deployment.settings = {set("enable_chunked_prefill", "false"), set("max_num_seqs", "4")};
  asked.model.replace(asked.model.find("8192"), 4, "40960");
  EXPECT_EQ(option_of(resolve_case(kNew, asked), "max_num_batched_tokens"), "40960");
  asked.deployment.max_model_len = 1024;
  asked.deployment.settings = {set("max_num_seqs", "4")};
  EXPECT_EQ(option_of(resolve_case(kNew, asked), "max_num_batched_tokens"), "4096");
}

}  // namespace
}  // namespace kernelpath::engines::vllm
