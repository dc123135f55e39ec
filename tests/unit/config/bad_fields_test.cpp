// Rows C12-C18 and D of the list of bad inputs that must be refused.

#include "testing.h"

namespace kernelpath::config {
namespace {

using enum ErrorCode;

class RefusedField : public testing::TestWithParam<Refused> {};

TEST_P(RefusedField, IsAnErrorThatNamesThePlace) { expect_refused(GetParam()); }

const std::string kLong(300, 'x');

INSTANTIATE_TEST_SUITE_P(
    Numbers, RefusedField,
    testing::Values(
        Refused{"C12", llama({{"num_hidden_layers", "1000000000000000019884624838656"}}),
                kConfigOverflow, "/num_hidden_layers", "does not fit"},
        Refused{"C13", llama({{"num_hidden_layers", "32.5"}}), kConfigValue, "/num_hidden_layers",
                "integer is needed"},
        Refused{"C14", llama({{"rope_theta", "1e999"}}), kConfigValue, "/rope_theta", "finite"},
        Refused{"C1", llama({{"rope_theta", "NaN"}}), kConfigValue, "/rope_theta", "finite"},
        Refused{"C15", llama({{"num_hidden_layers", "-0"}}), kConfigValue, "/num_hidden_layers",
                "must be positive"},
        Refused{"C17", llama({{"num_hidden_layers", "true"}}), kConfigType, "/num_hidden_layers",
                "boolean where an integer is needed"},
        Refused{"C18", llama({{"num_hidden_layers", "\"32\""}}), kConfigType, "/num_hidden_layers",
                "string where an integer is needed"}));

INSTANTIATE_TEST_SUITE_P(
    Names, RefusedField,
    testing::Values(Refused{"D2", llama({{"architectures", "\"LlamaForCausalLM\""}}), kConfigType,
                            "/architectures", "string where a list of names is needed"},
                    Refused{"D2", llama({{"architectures", "[null]"}}), kConfigType,
                            "/architectures/0", "null where a string is needed"},
                    Refused{"D2", llama({{"architectures", "[\"LlamaForCausalLM\", 7]"}}),
                            kConfigType, "/architectures/1", "number where a string is needed"},
                    Refused{"D2", llama({{"architectures", "[\"\"]"}}), kConfigValue,
                            "/architectures/0", "empty name"},
                    Refused{"D1", llama({{"architectures", ""}, {"model_type", "\"nobody\""}}),
                            kConfigMissing, "/architectures", "nobody stands for no known class"},
                    Refused{"D1", llama({{"architectures", "[]"}, {"model_type", ""}}),
                            kConfigMissing, "/architectures",
                            "neither architectures nor model_type"},
                    Refused{"B6", llama({{"architectures", "[\"Llama\\u0000\"]"}}), kConfigValue,
                            "/architectures/0", "NUL"},
                    Refused{"B5", llama({{"architectures", "[\"Llama\\ud800\"]"}}), kConfigValue,
                            "/architectures/0", "surrogate"},
                    Refused{"B9", llama({{"model_type", "\"" + kLong + "\""}}), kConfigValue,
                            "/model_type", "name longer than 256 bytes"},
                    Refused{"B9", llama({{"model_type", "7"}}), kConfigType, "/model_type",
                            "number where a string is needed"}));

INSTANTIATE_TEST_SUITE_P(
    Geometry, RefusedField,
    testing::Values(
        Refused{"D8", llama({{"num_hidden_layers", "0"}}), kConfigValue, "/num_hidden_layers",
                "must be positive"},
        Refused{"D8", llama({{"num_hidden_layers", "-1"}}), kConfigValue, "/num_hidden_layers",
                "must be positive"},
        Refused{"D8", llama({{"num_hidden_layers", "1000000000"}}), kConfigValue,
                "/num_hidden_layers", "over the limit of 10000"},
        Refused{"D9", llama({{"num_attention_heads", "0"}}), kConfigValue, "/num_attention_heads",
                "must be positive"},
        Refused{"limit", llama({{"num_attention_heads", "1099511627776"}}), kConfigValue,
                "/num_attention_heads", "over the limit"},
        Refused{"limit", llama({{"per_layer_config", R"({"0":{"head_dim":9223372036854775807}})"}}),
                kConfigValue, "/per_layer_config/0/head_dim", "over the limit"},
        Refused{"D10", llama({{"num_key_value_heads", "0"}}), kConfigValue, "/num_key_value_heads",
                "must be positive"},
        Refused{"D10", llama({{"num_key_value_heads", "-8"}}), kConfigValue, "/num_key_value_heads",
                "must be positive"},
        Refused{"D10", llama({{"num_key_value_heads", "64"}}), kConfigValue, "/num_key_value_heads",
                "64 key/value heads are more than the 32"},
        Refused{"D11", llama({{"num_key_value_heads", "5"}}), kConfigValue, "/num_key_value_heads",
                "num_attention_heads 32 is not a multiple of the 5"},
        Refused{"D13", llama({{"head_dim", "0"}}), kConfigValue, "/head_dim", "must be positive"},
        Refused{"D13", llama({{"head_dim", "-64"}}), kConfigValue, "/head_dim", "must be positive"},
        Refused{"D13", llama({{"head_dim", "1048576"}}), kConfigValue, "/head_dim",
                "over the limit"},
        Refused{"D14", llama({{"hidden_size", "4100"}}), kConfigValue, "/hidden_size",
                "hidden_size 4100 is not a multiple of num_attention_heads 32"},
        Refused{"D15",
                llama({{"hidden_size", "9223372036854775807"},
                       {"num_hidden_layers", "2"},
                       {"head_dim", "128"}}),
                kConfigOverflow, "/hidden_size",
                "hidden_size 9223372036854775807 * num_hidden_layers 2 does not fit 64 bits"},
        Refused{"limit",
                llama({{"kv_lora_rank", "512"}, {"qk_nope_head_dim", "9223372036854775807"}}),
                kConfigValue, "/qk_nope_head_dim", "over the limit"},
        Refused{"D17", llama({{"vocab_size", "0"}}), kConfigValue, "/vocab_size",
                "must be positive"},
        Refused{"D17", llama({{"vocab_size", "-1"}}), kConfigValue, "/vocab_size",
                "must be positive"},
        Refused{"D28", llama({{"text_config", "[]"}}), kConfigType, "/text_config",
                "list where an object is needed"},
        Refused{"required", unknown_family({{"num_hidden_layers", ""}}), kConfigMissing,
                "/num_hidden_layers", "num_hidden_layers is missing"}));

INSTANTIATE_TEST_SUITE_P(
    Layers, RefusedField,
    testing::Values(
        Refused{"D18", llama({{"layer_types", R"(["full_attention"])"}}), kConfigValue,
                "/layer_types", "1 entries for 4 layers"},
        Refused{"D18",
                llama({{"num_hidden_layers", "1"},
                       {"layer_types", R"(["full_attention","full_attention"])"}}),
                kConfigValue, "/layer_types", "2 entries for 1 layers"},
        Refused{
            "D19",
            llama({{"num_hidden_layers", "2"}, {"layer_types", R"(["full_attention","wavy"])"}}),
            kConfigValue, "/layer_types/1", "unknown kind of layer"},
        Refused{"D20",
                llama({{"per_layer_config", R"({"05":{},"5":{}})"}, {"num_hidden_layers", "30"}}),
                kConfigValue, "/per_layer_config/5", "layer 5 is given twice"},
        Refused{"D20", llama({{"per_layer_config", R"({"99":{}})"}, {"num_hidden_layers", "30"}}),
                kConfigValue, "/per_layer_config/99", "no such layer"},
        Refused{"D21", unknown_family({{"sliding_window", "0"}}), kConfigValue, "/sliding_window",
                "must be positive"},
        Refused{"D21", unknown_family({{"sliding_window", "-1"}}), kConfigValue, "/sliding_window",
                "must be positive"},
        Refused{"D21", unknown_family({{"sliding_window", "[512, 1024]"}}), kConfigValue,
                "/sliding_window/1", "two widths"},
        Refused{"D32", llama({{"block_configs", R"([{}])"}}), kConfigValue, "/block_configs",
                "1 entries for 4 layers"},
        Refused{"D32",
                llama({{"num_hidden_layers", "1"},
                       {"block_configs", R"([{"attention":{"n_heads_in_group":0}}])"}}),
                kConfigValue, "/block_configs/0/attention/n_heads_in_group", "must be positive"},
        Refused{"D32",
                llama({{"num_hidden_layers", "1"},
                       {"block_configs", R"([{"attention":{"n_heads_in_group":5}}])"}}),
                kConfigValue, "/block_configs/0/attention/n_heads_in_group", "does not divide"},
        Refused{"D33", llama({{"hybrid_override_pattern", R"("MEX*")"}}), kConfigValue,
                "/hybrid_override_pattern", "unknown letter at place 2"},
        Refused{"D31", llama({{"num_experts", "8"}, {"num_experts_per_tok", "9"}}), kConfigValue,
                "/num_experts_per_tok", "9 experts a token are more than the 8 experts"},
        Refused{"D31", llama({{"num_experts", "0"}}), kConfigValue, "/num_experts",
                "must be positive"}));

INSTANTIATE_TEST_SUITE_P(
    Rope, RefusedField,
    testing::Values(
        Refused{"D24", llama({{"rope_scaling", R"({"factor":8.0})"}}), kConfigMissing,
                "/rope_scaling/rope_type", "factor without rope_type"},
        Refused{"D24", llama({{"rope_scaling", R"({"rope_type":"spiral","factor":8.0})"}}),
                kConfigValue, "/rope_scaling/rope_type", "unknown rope type"},
        Refused{"D24", llama({{"rope_scaling", "8"}}), kConfigType, "/rope_scaling",
                "number where an object is needed"},
        Refused{"factor", llama({{"rope_scaling", R"({"rope_type":"linear","factor":0})"}}),
                kConfigValue, "/rope_scaling/factor", "must be above 0"},
        Refused{"factor", llama({{"rope_scaling", R"({"rope_type":"yarn"})"}}), kConfigMissing,
                "/rope_scaling/factor", "yarn needs a factor"},
        Refused{"D25", llama({{"rope_theta", "0"}}), kConfigValue, "/rope_theta",
                "must be above 0"},
        Refused{"D25", llama({{"rope_theta", "-1"}}), kConfigValue, "/rope_theta",
                "must be above 0"},
        Refused{"D26", llama({{"rope_scaling", R"({"type":"mrope","mrope_section":[16,24,23]})"}}),
                kConfigValue, "/rope_scaling/mrope_section", "sum to 63"},
        Refused{"D26", llama({{"partial_rotary_factor", "0"}}), kConfigValue,
                "/partial_rotary_factor", "must be above 0"},
        Refused{"D26", llama({{"partial_rotary_factor", "1.5"}}), kConfigValue,
                "/partial_rotary_factor", "cannot be larger than the head"},
        Refused{"D26", llama({{"partial_rotary_factor", "0.33"}, {"head_dim", "64"}}), kConfigValue,
                "/partial_rotary_factor", "21 rotated dimensions; an even number"},
        Refused{"D27",
                llama({{"head_dim", "8"},
                       {"rope_scaling",
                        R"({"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,1,1]})"}}),
                kConfigValue, "/rope_scaling/long_factor", "short_factor has 4 entries"},
        Refused{"D27",
                llama({{"head_dim", "8"},
                       {"rope_scaling",
                        R"({"type":"longrope","short_factor":[1,1,1],"long_factor":[1,1,1]})"}}),
                kConfigValue, "/rope_scaling/long_factor", "half of the 8 rotated dimensions"}));

INSTANTIATE_TEST_SUITE_P(
    Types, RefusedField,
    testing::Values(
        Refused{"D34", llama({{"torch_dtype", "\"float12\""}}), kConfigValue, "/torch_dtype",
                "unknown dtype"},
        Refused{"D35", llama({{"quantization_config", R"({"quant_method":8})"}}), kConfigType,
                "/quantization_config/quant_method", "number where a string is needed"},
        Refused{"D35", llama({{"quantization_config", "8"}}), kConfigType, "/quantization_config",
                "number where an object is needed"},
        Refused{"D38",
                llama({{"quantization_config",
                        R"({"quant_method":"fp8","weight_block_size":[0,128]})"}}),
                kConfigValue, "/quantization_config/weight_block_size/0", "must be positive"},
        Refused{
            "D38",
            llama({{"quantization_config", R"({"quant_method":"fp8","weight_block_size":[128]})"}}),
            kConfigValue, "/quantization_config/weight_block_size", "two sizes are needed"},
        Refused{
            "D38",
            llama({{"quantization_config", R"({"quant_method":"fp8","weight_block_size":"128"})"}}),
            kConfigType, "/quantization_config/weight_block_size",
            "string where a list of two integers is needed"}));

TEST(RefusedField, NestedModel_IsNamedByItsPointer) {
  expect_refused({"D9",
                  R"({"architectures":["LlavaForConditionalGeneration"],"model_type":"llava",
                      "text_config":{"model_type":"llama","num_attention_heads":0}})",
                  kConfigValue, "/text_config/num_attention_heads", "must be positive"});
}

TEST(RefusedField, StringForNumber_HintShowsTheFix) {
  const auto model = load(llama({{"num_hidden_layers", "\"32\""}}));
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().hint, "write it without quotes: \"num_hidden_layers\": 32");
}

}  // namespace
}  // namespace kernelpath::config
