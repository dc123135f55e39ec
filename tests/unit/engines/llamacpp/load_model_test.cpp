// Reading metadata as the engine does: types, lengths, guards, classes' own rules.
#include "engines/llamacpp/load_model.h"

#include "checkpoint/gguf_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::llamacpp {
namespace {

using checkpoint::GgufType;
using checkpoint::GgufValue;
using testing::HasSubstr;

GgufValue u32(std::int64_t value) {
  return {.type = GgufType::kUint32, .element_type = GgufType::kUint32, .integers = {value}};
}
GgufValue f32(double value) {
  return {.type = GgufType::kFloat32, .element_type = GgufType::kFloat32, .reals = {value}};
}
GgufValue text(std::string value) {
  return {.type = GgufType::kString, .element_type = GgufType::kString, .text = std::move(value)};
}
GgufValue list(GgufType type, std::vector<std::int64_t> values) {
  return {.type = GgufType::kArray,
          .element_type = type,
          .count = values.size(),
          .integers = std::move(values)};
}

Metadata sample(const std::string& arch) {
  Metadata out;
  out["general.architecture"] = text(arch);
  out[arch + ".context_length"] = u32(4096);
  out[arch + ".embedding_length"] = u32(512);
  out[arch + ".block_count"] = u32(4);
  out[arch + ".attention.head_count"] = u32(8);
  out[arch + ".attention.head_count_kv"] = u32(2);
  out[arch + ".attention.layer_norm_rms_epsilon"] = f32(1e-5);
  return out;
}

LoadedModel load(const Metadata& metadata) { return load_model(built_in_profile(), metadata); }

void expect_error(const Metadata& metadata, const std::string& error) {
  EXPECT_EQ(load(metadata).error, "error loading model hyperparameters: " + error);
}

TEST(LoadModel, Defaults_FollowFromWidthAndHeads) {
  const LoadedModel model = load(sample("llama"));
  ASSERT_EQ(model.error, "");
  EXPECT_EQ(model.architecture->class_name, "llama_model_llama");
  EXPECT_EQ(model.hparams.n_embd_head_k(), 64);
  EXPECT_EQ(model.hparams.n_embd_head_v(), 64);
  EXPECT_EQ(model.hparams.n_rot_full, 64);
  EXPECT_FALSE(model.hparams.is_swa(0));
}

TEST(LoadModel, UnknownNames_AreTheEnginesErrors) {
  EXPECT_EQ(load(sample("llama5")).error, "unknown model architecture: 'llama5'");
  EXPECT_EQ(load({}).error, "unknown model architecture: ''");
  EXPECT_EQ(load(sample("gptj")).error, "unsupported model architecture: 'gptj'");
  EXPECT_THAT(load(sample("clip")).error, HasSubstr("--mmproj"));
}

TEST(LoadModel, MissingKey_IsNamed) {
  Metadata metadata = sample("llama");
  metadata.erase("llama.embedding_length");
  expect_error(metadata, "key not found in model: llama.embedding_length");
}

TEST(LoadModel, WrongTypes_AreNotTaken) {
  Metadata metadata = sample("llama");
  metadata["llama.block_count"].type = GgufType::kInt32;
  expect_error(metadata, "key llama.block_count has wrong type i32 but expected type u32");
  metadata = sample("llama");
  metadata["llama.attention.layer_norm_rms_epsilon"] = u32(0);
  expect_error(metadata,
               "key llama.attention.layer_norm_rms_epsilon has wrong type u32 but expected type "
               "f32");
  metadata = sample("llama");
  metadata["llama.context_length"] = list(GgufType::kInt32, {1});
  expect_error(metadata, "key llama.context_length has wrong type arr but expected type u32");
}

TEST(LoadModel, HeadsPerLayer_AreAListOfEveryLayer) {
  Metadata metadata = sample("llama");
  metadata["llama.attention.head_count_kv"] = list(GgufType::kInt32, {1, 2, 4, 8});
  EXPECT_EQ(load(metadata).hparams.n_head_kv(3), 8);
  metadata["llama.attention.head_count_kv"] = list(GgufType::kInt32, {1, 2});
  expect_error(metadata,
               "key llama.attention.head_count_kv has wrong array length; expected 4, got 2");
  metadata["llama.attention.head_count_kv"] = list(GgufType::kUint8, {1, 2, 4, 8});
  expect_error(metadata,
               "llama.attention.head_count_kv is not a string/float32/uint32/int32/uint64 array");
  metadata["llama.attention.head_count_kv"] = list(GgufType::kUint64, {1, 2, 4, 8});
  expect_error(metadata, "llama.attention.head_count_kv has wrong array element type u64");
}

TEST(LoadModel, MoreLayersThanAnyModelHas_EndTheEngine) {
  for (const std::int64_t layers : {std::int64_t{0}, std::int64_t{513}, std::int64_t{1000000000}}) {
    Metadata metadata = sample("llama");
    metadata["llama.block_count"] = u32(layers);
    const LoadedModel model = load(metadata);
    EXPECT_TRUE(model.aborts) << layers;
    EXPECT_THAT(model.error, HasSubstr("n_layer_all"));
  }
}

TEST(LoadModel, ExpertsOutOfRange_EndTheEngine) {
  Metadata metadata = sample("llama");
  metadata["llama.expert_count"] = u32(8);
  EXPECT_TRUE(load(metadata).aborts);  // none is used
  metadata["llama.expert_used_count"] = u32(9);
  EXPECT_TRUE(load(metadata).aborts);
  metadata["llama.expert_used_count"] = u32(2);
  EXPECT_EQ(load(metadata).error, "");
  metadata["llama.expert_count"] = u32(1025);
  EXPECT_TRUE(load(metadata).aborts);
}

TEST(LoadModel, RotatedPart_MustBeTheWholeHeadForLlama) {
  Metadata metadata = sample("llama");
  metadata["llama.rope.dimension_count"] = u32(32);
  expect_error(metadata, "invalid n_rot: 32, expected 64");
  metadata = sample("qwen2");
  metadata["qwen2.rope.dimension_count"] = u32(32);
  EXPECT_EQ(load(metadata).error, "");
}

TEST(LoadModel, Windows_AreThoseOfTheClass) {
  Metadata metadata = sample("gemma3");
  EXPECT_EQ(load(metadata).hparams.swa_type, WindowType::kNone);
  metadata["gemma3.attention.sliding_window"] = u32(1024);
  const LoadedModel gemma = load(metadata);
  EXPECT_EQ(gemma.hparams.n_swa, 1024);
  EXPECT_TRUE(gemma.hparams.is_swa(3));  // every sixth layer is dense
  metadata["gemma3.attention.sliding_window_pattern"] = u32(2);
  EXPECT_FALSE(load(metadata).hparams.is_swa(3));
  metadata["gemma3.attention.sliding_window_pattern"] = list(GgufType::kBool, {0, 0, 0, 1});
  EXPECT_TRUE(load(metadata).hparams.is_swa(3));
  EXPECT_FALSE(load(metadata).hparams.is_swa(0));

  Metadata llama = sample("llama");
  llama["llama.attention.sliding_window"] = u32(1024);
  EXPECT_EQ(load(llama).hparams.swa_type, WindowType::kNone);
}

TEST(LoadModel, FixedWindow_IsNotTheKeys) {
  Metadata metadata = sample("smallthinker");
  metadata["smallthinker.attention.sliding_window"] = u32(7);
  const LoadedModel model = load(metadata);
  ASSERT_EQ(model.error, "");
  EXPECT_EQ(model.hparams.n_swa, 4096);
  EXPECT_FALSE(model.hparams.is_swa(0));  // dense first
  EXPECT_TRUE(model.hparams.is_swa(1));
}

TEST(LoadModel, StateLayers_AreThoseOfTheInterval) {
  Metadata metadata = sample("qwen3next");
  for (const char* key :
       {"conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count"}) {
    metadata[std::string("qwen3next.ssm.") + key] = u32(4);
  }
  metadata["qwen3next.expert_count"] = u32(8);
  metadata["qwen3next.expert_used_count"] = u32(2);
  metadata["qwen3next.full_attention_interval"] = u32(2);
  const LoadedModel model = load(metadata);
  ASSERT_EQ(model.error, "");
  EXPECT_TRUE(model.hparams.is_recr(0));
  EXPECT_FALSE(model.hparams.is_recr(1));
  metadata["qwen3next.full_attention_interval"] = u32(0);
  EXPECT_TRUE(load(metadata).aborts);  // the engine divides by it
}

TEST(LoadModel, HugeNumbers_DoNotWrap) {
  Metadata metadata = sample("mamba2");
  for (const char* key :
       {"conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count"}) {
    metadata[std::string("mamba2.ssm.") + key] = u32(4294967295);
  }
  const LoadedModel model = load(metadata);
  ASSERT_EQ(model.error, "");
  EXPECT_EQ(model.hparams.n_embd_r(), kTooLarge);
}

TEST(Guards, UnknownCondition_IsRefused) {
  EXPECT_TRUE(parse_guard("n_swa > 0"));
  EXPECT_TRUE(parse_guard("!(found(%s.a) && n_layer() == 3)"));
  EXPECT_FALSE(parse_guard("n_swa < 0"));
  EXPECT_FALSE(parse_guard("something_else"));
  EXPECT_FALSE(parse_guard("n_swa > many"));
}

TEST(Guards, Conditions_Hold) {
  Hparams hparams;
  hparams.n_swa = 2;
  hparams.n_layer_all = 3;
  const std::vector<std::string> found = {"%s.a"};
  const GuardState state{.hparams = hparams, .found = found, .architecture = "LLM_ARCH_X"};
  const auto check = [&](std::string_view text) { return holds(*parse_guard(text), state); };
  EXPECT_TRUE(check("n_swa > 1"));
  EXPECT_FALSE(check("n_swa > 2"));
  EXPECT_TRUE(check("n_layer() == 3"));
  EXPECT_TRUE(check("found(%s.a) && n_swa == 2"));
  EXPECT_FALSE(check("!(found(%s.a) && n_swa == 2)"));
  EXPECT_TRUE(check("!found(%s.b)"));
  EXPECT_TRUE(check("arch == LLM_ARCH_X"));
}

}  // namespace
}  // namespace kernelpath::engines::llamacpp
