#include "engines/llamacpp/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpath::engines::llamacpp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string table(std::string_view name, std::string_view content) {
  return std::string(R"({"schema":"kernelpath/engine-profile","schema_version":"1.0.0",)") +
         R"("engine":"llamacpp","version":"x","table":")" + std::string(name) +
         R"(","sources":{"S1":{"repo":"r","file":"f","commit":"c"}},)" + std::string(content) + "}";
}

std::string registry() {
  return table("registry", R"("architectures":[{"name":"a","constant":"LLM_ARCH_A","class":"c"}],)"
                           R"("cache_types":["f16"],"converter":[],"projector_converter":[],)"
                           R"("listed_without_class":[])");
}

Result<Profile> parse(std::string_view rows) {
  return parse_profile(
      {.registry = registry(),
       .hparams =
           table("hparams", R"("classes":[{"class":"llama_model_base","file":"f","rows":[]},)"
                            R"({"class":"c","file":"f","rows":[)" +
                                std::string(rows) + "]}]")},
      "folder");
}

TEST(LlamacppProfile, BuiltIn_HasEveryNameOnce) {
  const Profile& profile = built_in_profile();
  EXPECT_EQ(profile.version, "0c1e5709");
  EXPECT_EQ(profile.architectures.size(), 153U);
  EXPECT_EQ(profile.converter.size(), 267U);
  EXPECT_THAT(profile.cache_types,
              ElementsAre("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"));
  EXPECT_EQ(profile.find_architecture("gptj")->class_name, "");
  EXPECT_TRUE(profile.find_architecture("mamba")->recurrent);
  EXPECT_TRUE(profile.find_architecture("jamba")->hybrid);
  EXPECT_TRUE(profile.find_architecture("bert")->no_memory);
  EXPECT_EQ(profile.find_converter("LlamaForCausalLM")->gguf, "llama");
  EXPECT_EQ(profile.find_converter("GraniteSpeechForConditionalGeneration"), nullptr);
}

TEST(LlamacppProfile, InheritingClass_ReadsAsItsBase) {
  const ClassRow* reads = built_in_profile().find_reads("llama_model_mistral4");
  ASSERT_NE(reads, nullptr);
  EXPECT_EQ(reads->name, "llama_model_deepseek2");
}

TEST(LlamacppProfile, RowThatTheBuildCannotEvaluate_IsRefused) {
  EXPECT_TRUE(parse(R"({"form":"scalar","key":"%s.k","type":"u32","into":"n_swa"})"));
  const auto form = parse(R"({"form":"other","key":"%s.k","type":"u32","into":"n_swa"})");
  ASSERT_FALSE(form);
  EXPECT_EQ(form.error().code, ErrorCode::kInputSchema);
  EXPECT_THAT(form.error().text(), HasSubstr("/classes/1/rows/0/form"));
  EXPECT_FALSE(
      parse(R"({"form":"scalar","key":"%s.k","type":"u32","into":"n_swa","when":["n_swa < 1"]})"));
  EXPECT_FALSE(parse(R"({"form":"set","into":"no_member","value":1})"));
  EXPECT_FALSE(parse(R"({"form":"set","into":"swa_type","value":"diagonal"})"));
}

TEST(LlamacppProfile, ClassWithoutReads_IsRefused) {
  const auto profile = parse_profile(
      {.registry = registry(),
       .hparams =
           table("hparams", R"("classes":[{"class":"llama_model_base","file":"f","rows":[]}])")},
      "folder");
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().text(), HasSubstr("no reads are listed for the class c"));
}

}  // namespace
}  // namespace kernelpath::engines::llamacpp
