#include "testing.h"

namespace kernelpath::config {
namespace {

using testing::HasSubstr;

Quantization quant(const std::string& object) {
  return loaded(llama({{"quantization_config", object}})).quantization;
}

struct Form {
  std::string object;
  std::string method;
  std::string algo;
  std::int64_t bits;
};

class QuantForm : public testing::TestWithParam<Form> {};

TEST_P(QuantForm, HasOneNameForTheAlgorithm) {
  const Quantization found = quant(GetParam().object);
  EXPECT_EQ(found.method.value_or(""), GetParam().method);
  EXPECT_EQ(found.algo.value_or(""), GetParam().algo);
  EXPECT_EQ(found.weight_bits.value_or(0), GetParam().bits);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, QuantForm,
    testing::Values(
        Form{R"({"quant_method":"fp8","weight_block_size":[128,128]})", "fp8", "FP8_BLOCK_SCALES",
             8},
        Form{R"({"quant_method":"fp8","weight_block_size":null})", "fp8", "FP8", 8},
        Form{R"({"quant_method":"fbgemm_fp8"})", "fbgemm_fp8", "FP8_PER_CHANNEL_PER_TOKEN", 8},
        Form{R"({"quant_method":"awq","bits":4,"group_size":128})", "awq", "W4A16_AWQ", 4},
        Form{R"({"quant_method":"gptq","bits":8,"group_size":-1})", "gptq", "W8A16_GPTQ", 8},
        Form{R"({"quant_method":"mxfp4"})", "mxfp4", "W4A16_MXFP4", 4},
        Form{R"({"quant_method":"modelopt","quant_algo":"NVFP4"})", "modelopt", "NVFP4", 4},
        Form{R"({"quant_algo":"FP8"})", "modelopt", "FP8", 8},
        Form{R"({"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4"})",
             "bitsandbytes", "BITSANDBYTES_NF4", 4},
        Form{R"({"quant_method":"torchao","quant_type":{"default":{"_type":"Int4WeightOnly"}}})",
             "torchao", "TORCHAO_INT4WEIGHTONLY", 0},
        Form{R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{
                 "weights":{"num_bits":8,"type":"float","strategy":"channel"},
                 "input_activations":{"num_bits":8,"type":"float"}}}})",
             "compressed-tensors", "FP8_PER_CHANNEL_PER_TOKEN", 8},
        Form{R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{
                 "weights":{"num_bits":4,"type":"int","group_size":32},
                 "input_activations":null}}})",
             "compressed-tensors", "W4A16", 4},
        Form{R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{
                 "weights":{"num_bits":4,"type":"float","group_size":16},
                 "input_activations":{"num_bits":4,"type":"float"}}}})",
             "compressed-tensors", "NVFP4", 4},
        Form{R"({"quant_method":"compressed-tensors","config_groups":{
                 "group_0":{"weights":{"num_bits":8,"type":"float"}},
                 "group_1":{"weights":{"num_bits":4,"type":"int"}}}})",
             "compressed-tensors", "MIXED_PRECISION", 8}));

TEST(Quantization, NullOrEmpty_IsNone) {
  EXPECT_FALSE(quant("null").any());
  EXPECT_FALSE(quant("{}").any());
}

TEST(Quantization, MissingMethod_IsInferredWithWarning) {
  const auto model = loaded(llama({{"quantization_config", R"({"quant_algo":"FP8"})"}}));
  EXPECT_THAT(warning_text(model, "CONFIG-QUANT-METHOD"), HasSubstr("modelopt by the field"));
  EXPECT_TRUE(has_warning(loaded(llama({{"quantization_config", R"({"zero_point":true})"}})),
                          "CONFIG-QUANT-METHOD"));
}

TEST(Quantization, OfTheLanguageModel_IsFound) {
  const auto model = loaded(
      llama({{"text_config", llama({{"quantization_config", R"({"quant_method":"mxfp4"})"}})}}));
  EXPECT_EQ(model.quantization.method.origin.where,
            "/text_config/quantization_config/quant_method");
}

TEST(KvCache, SchemeAsString_IsAcceptedWithAWarning) {
  const auto model = loaded(
      llama({{"quantization_config", R"({"quant_method":"modelopt","kv_cache_scheme":"FP8"})"}}));
  EXPECT_EQ(model.quantization.kv_cache_dtype.value, "fp8");
  EXPECT_TRUE(has_warning(model, "CONFIG-KV-SCHEME", "/quantization_config/kv_cache_scheme"));
}

TEST(KvCache, SchemeAsObject_IsRead) {
  EXPECT_EQ(quant(R"({"quant_method":"modelopt",
                      "kv_cache_scheme":{"num_bits":8,"type":"float"}})")
                .kv_cache_dtype.value,
            "fp8");
  EXPECT_EQ(quant(R"({"quant_method":"modelopt",
                      "kv_cache_scheme":{"num_bits":8,"type":"int"}})")
                .kv_cache_dtype.value,
            "int8");
  EXPECT_FALSE(quant(R"({"quant_method":"x","kv_cache_scheme":null})").kv_cache_dtype);
}

TEST(KvCache, NameOfAnAlgorithm_IsRead) {
  EXPECT_EQ(quant(R"({"quant_algo":"NVFP4","kv_cache_quant_algo":"FP8"})").kv_cache_dtype.value,
            "fp8");
}

TEST(Modules, ExcludedAndMixed_AreListed) {
  const Quantization found = quant(R"({"quant_algo":"MIXED_PRECISION","ignore":["lm_head"],
      "quantized_layers":{"a.b":{"quant_algo":"fp8"},"c":{"group_size":16}}})");
  EXPECT_EQ(found.exclude_modules, std::vector<std::string>{"lm_head"});
  ASSERT_EQ(found.layer_algos.size(), 1U);
  EXPECT_EQ(found.layer_algos[0].second, "FP8");
}

TEST(Modules, GroupsThatDiffer_HaveTheirTargets) {
  const Quantization found = quant(R"({"quant_method":"compressed-tensors","config_groups":{
      "group_0":{"targets":["re:.*q_proj"],"weights":{"num_bits":8,"type":"float","strategy":"channel"}},
      "group_1":{"targets":["Linear"],"weights":{"num_bits":4,"type":"int","group_size":128}}}})");
  EXPECT_EQ(found.algo.value, "MIXED_PRECISION");
  ASSERT_EQ(found.layer_algos.size(), 2U);
  EXPECT_EQ(found.layer_algos[0].first, "re:.*q_proj");
  EXPECT_EQ(found.layer_algos[0].second, "FP8_PER_CHANNEL_PER_TOKEN");
  EXPECT_EQ(found.layer_algos[1].first, "Linear");
  EXPECT_EQ(found.layer_algos[1].second, "W4A16");
}

TEST(Modules, GroupsThatAgree_AreOneAlgorithm) {
  const Quantization found = quant(R"({"quant_method":"compressed-tensors","config_groups":{
      "a":{"targets":["re:.*q_proj"],"weights":{"num_bits":8,"type":"float","strategy":"channel"}},
      "b":{"targets":["Linear"],"weights":{"num_bits":8,"type":"float","strategy":"channel"}}}})");
  EXPECT_EQ(found.algo.value, "FP8_PER_CHANNEL_PER_TOKEN");
  EXPECT_TRUE(found.layer_algos.empty());
}

TEST(Modules, ManyQuantizedLayers_AreRead) {
  std::string layers;
  for (int index = 0; index < 20000; ++index) {
    layers += (index == 0 ? "\"m" : ",\"m") + std::to_string(index) + R"(":{"quant_algo":"FP8"})";
  }
  const Quantization found =
      quant(R"({"quant_algo":"MIXED_PRECISION","quantized_layers":{)" + layers + "}}");
  EXPECT_EQ(found.layer_algos.size(), 20000U);
}

}  // namespace
}  // namespace kernelpath::config
