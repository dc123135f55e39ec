// Layers whose class sets its backend or its caches by itself.

#include "run_case.h"

#include <gmock/gmock.h>

namespace kernelpath::engines::vllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kOld = "0.25.1";
constexpr std::string_view kNew = "0.33.0";

const LayerGroup* group_on(const Resolution& resolution, std::string_view backend) {
  const auto found = std::ranges::find(resolution.layers, backend, &LayerGroup::backend);
  return found == resolution.layers.end() ? nullptr : &*found;
}

bool has_unknown(const Resolution& resolution) {
  return step_of(resolution, "VLLM-UNKNOWN-TO-US") != nullptr;
}

// --- MiniMax M3 ---------------------------------------------------------------------------------

const std::string kMiniMax = R"({
  "architectures": ["MiniMaxM3SparseForCausalLM"], "model_type": "minimax_m3", "hidden_size": 3072,
  "num_attention_heads": 48, "num_key_value_heads": 4, "head_dim": 128, "num_hidden_layers": 4,
  "intermediate_size": 1536, "vocab_size": 200064, "max_position_embeddings": 8192,
  "sparse_attention_config": {"sparse_attention_freq": [0, 1, 1, 1], "sparse_index_dim": 128,
    "sparse_num_index_heads": 4, "sparse_topk_blocks": 16, "sparse_block_size": 128},
  "torch_dtype": "bfloat16"})";

TEST(MiniMaxM3, SparseLayers_HaveTwoCachesAndPagesOf128) {
  for (const std::string_view version : {kOld, kNew}) {
    RunCase asked{.model = kMiniMax};
    asked.deployment.settings.push_back(set("block_size", "128"));
    const Resolution resolution = resolve_case(version, asked);
    ASSERT_EQ(code_of(resolution), "none") << resolution.error->message;
    EXPECT_FALSE(has_unknown(resolution));
    const LayerGroup* sparse = group_on(resolution, "MINIMAX_M3_SPARSE");
    const LayerGroup* keys = group_on(resolution, "MINIMAX_M3_SPARSE_INDEXER");
    ASSERT_NE(sparse, nullptr) << version;
    ASSERT_NE(keys, nullptr) << version;
    EXPECT_THAT(sparse->layers, ElementsAre(1, 2, 3));
    EXPECT_EQ(sparse->kv.page_size, 128);
    EXPECT_EQ(sparse->kv_bytes_per_token, 3 * 2 * 4 * 128 * 2);
    EXPECT_EQ(sparse->decode.kernel, "MiniMaxM3SparseTritonImpl");
    EXPECT_EQ(keys->kv_bytes_per_token, 3 * 128 * 2);
  }
}

// The block size is that of the first layer's backend in one release, of all layers' in the other.
TEST(MiniMaxM3, DenseLayersFirst_NeedABlockSizeInTheOldRelease) {
  EXPECT_EQ(code_of(resolve_case(kOld, {.model = kMiniMax})), "KV-KERNEL-BLOCK");
  EXPECT_EQ(code_of(resolve_case(kNew, {.model = kMiniMax})), "none");
}

TEST(MiniMaxM3, Blackwell_HasKernelsOfItsOwn) {
  const auto kernel = [](std::string_view version, std::optional<std::string> kv) {
    RunCase asked{.model = kMiniMax, .device = "b200"};
    asked.deployment.kv_dtype = std::move(kv);
    const Resolution resolution = resolve_case(version, asked);
    const LayerGroup* sparse = group_on(resolution, "MINIMAX_M3_SPARSE");
    return sparse == nullptr ? code_of(resolution) : sparse->decode.kernel;
  };
  EXPECT_EQ(kernel(kOld, {}), "MiniMaxM3SparseMSAImpl");
  EXPECT_EQ(kernel(kNew, "fp8"), "MiniMaxM3SparseMSAImpl");
  EXPECT_EQ(kernel(kOld, "fp8_e5m2"), "MiniMaxM3SparseTritonImpl");
}

// --- PLaMo 2 ------------------------------------------------------------------------------------

TEST(Plamo2, EveryOtherLayer_KeepsAState) {
  const Resolution resolution = resolve_case(kOld, {.model = R"({
    "architectures": ["Plamo2ForCausalLM"], "model_type": "plamo2", "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 1, "hidden_size_per_head": 128,
    "num_hidden_layers": 4, "intermediate_size": 8192, "vocab_size": 100000,
    "max_position_embeddings": 4096, "mamba_d_state": 64, "mamba_d_conv": 4,
    "mamba_num_heads": 32, "mamba_step": 2, "torch_dtype": "bfloat16"})"});
  ASSERT_EQ(code_of(resolution), "none") << resolution.error->message;
  EXPECT_FALSE(has_unknown(resolution));
  const LayerGroup* states = group_on(resolution, "MAMBA2_ATTN");
  ASSERT_NE(states, nullptr);
  EXPECT_THAT(states->layers, ElementsAre(0, 2));
  EXPECT_THAT(states->decode.note, HasSubstr("[3, 4096]"));
  EXPECT_THAT(states->decode.note, HasSubstr("[32, 128, 64]"));
  ASSERT_NE(group_on(resolution, "FLASH_ATTN"), nullptr);
  EXPECT_THAT(group_on(resolution, "FLASH_ATTN")->layers, ElementsAre(1, 3));
}

// --- static sinks -------------------------------------------------------------------------------

std::string pangu(int sinks) {
  return R"({"architectures": ["PanguProMoEV2ForCausalLM"], "model_type": "PanguProMoE",
    "hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 192,
    "qk_nope_dim": 128, "qk_rope_dim": 64, "v_channels": 128, "num_hidden_layers": 3,
    "intermediate_size": 1344, "vocab_size": 153376, "max_position_embeddings": 4096,
    "param_sink_number": )" +
         std::to_string(sinks) + R"(, "torch_dtype": "bfloat16"})";
}

TEST(StaticSinks, LayersBehindThem_RunOnUnequalHeads) {
  for (const std::string_view version : {kOld, kNew}) {
    const Resolution resolution = resolve_case(version, {.model = pangu(128)});
    ASSERT_EQ(code_of(resolution), "none") << resolution.error->message;
    EXPECT_FALSE(has_unknown(resolution)) << version;
    EXPECT_EQ(resolution.selected_backend, "FLASH_ATTN_DIFFKV") << version;
    EXPECT_THAT(resolution.backend_class, HasSubstr("StaticSink_")) << version;
    EXPECT_EQ(resolution.memory.kv_bytes_per_token, 3 * 8 * (192 + 128) * 2) << version;
    EXPECT_NE(resolve_case(version, {.model = pangu(0)}).selected_backend, "FLASH_ATTN_DIFFKV");
  }
}

// --- Inkling ------------------------------------------------------------------------------------

TEST(Inkling, EachLayer_HasAWindowOfItsConvolutions) {
  const Resolution resolution = resolve_case(kNew, {.model = R"({
    "architectures": ["InklingForCausalLM"], "model_type": "inkling_model", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 2,
    "intermediate_size": 8192, "vocab_size": 100000, "max_position_embeddings": 4096,
    "sconv_kernel_size": 4, "torch_dtype": "bfloat16"})"});
  ASSERT_EQ(code_of(resolution), "none") << resolution.error->message;
  EXPECT_EQ(resolution.selected_backend, "FLASH_ATTN");
  const LayerGroup* window = group_on(resolution, "INKLING_SCONV_SWA");
  ASSERT_NE(window, nullptr);
  EXPECT_EQ(window->window, 4);
  EXPECT_THAT(window->layers, ElementsAre(0, 1));
}

// --- the Transformers wrapper -------------------------------------------------------------------

TEST(TransformersWrapper, StateLayers_GetACacheOrAreRefused) {
  RunCase asked{.model = R"({
    "architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "hidden_size": 2048,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "num_hidden_layers": 4,
    "intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 4096,
    "layer_types": ["conv", "full_attention", "conv", "full_attention"], "conv_L_cache": 3,
    "torch_dtype": "bfloat16"})"};
  asked.deployment.settings.push_back(set("model_impl", "transformers"));
  const Resolution old = resolve_case(kOld, asked);
  const Resolution later = resolve_case(kNew, asked);
  EXPECT_EQ(code_of(old), "none") << old.error->message;
  EXPECT_EQ(old.memory.kv_bytes_per_token, 4 * 2 * 4 * 128 * 2);
  EXPECT_EQ(code_of(later), "LAYER-NO-INTERFACE");
}

// --- masks --------------------------------------------------------------------------------------

TEST(ChunkLookback, OtherBackendsThanTriton_AreRefused) {
  const std::string model = R"({
    "architectures": ["Rnj1ForCausalLM"], "model_type": "rnj1", "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 2,
    "intermediate_size": 16384, "vocab_size": 128256, "max_position_embeddings": 4096,
    "layer_types": ["chunked_attention", "full_attention"], "sliding_window": 1024,
    "attention_chunk_size": 512, "torch_dtype": "bfloat16"})";
  for (const std::string_view version : {kOld, kNew}) {
    RunCase asked{.model = model};
    EXPECT_EQ(code_of(resolve_case(version, asked)), "CHUNK-LOOKBACK") << version;
    asked.deployment.backend = "TRITON_ATTN";
    EXPECT_EQ(code_of(resolve_case(version, asked)), "none") << version;
  }
}

// --- slots --------------------------------------------------------------------------------------

TEST(Octave, EveryHead_HasASlotOfItsOwn) {
  const std::string model = R"({
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 2048,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "num_hidden_layers": 1,
    "intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 4096,
    "partial_rotary_factor": 0.25, "torch_dtype": "bfloat16"})";
  RunCase asked{.model = model, .device = "mi300x"};
  asked.deployment.backend = "ROCM_OCTAVE";
  asked.deployment.kv_dtype = "octave_k3v4";
  const Resolution resolution = resolve_case(kNew, asked);
  ASSERT_EQ(code_of(resolution), "none") << resolution.error->message;
  // 64 * 4 / 8 + 192 * 3 / 8 + 256 * 4 / 8 bytes of codes, five scales of two, rounded up to 8.
  EXPECT_EQ(resolution.memory.kv_bytes_per_token, 2 * 248);
  asked.model.replace(asked.model.find("0.25"), 4, "1.00");
  EXPECT_EQ(code_of(resolve_case(kNew, asked)), "OCTAVE-SIZES");
}

}  // namespace
}  // namespace kernelpath::engines::vllm
