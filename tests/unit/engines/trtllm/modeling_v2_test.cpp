#include "engines/trtllm/modeling_v2.h"

#include "engines/trtllm/class_resolution.h"
#include "engines/trtllm/model_registry.h"

#include <gtest/gtest.h>

namespace kernelpath::engines::trtllm {
namespace {

constexpr const char* kTarget = "ModelingV2GptOss120bSm103Tp1";

ClassInput gpt_oss_120b() {
  return {.architectures = {"GptOssForCausalLM"},
          .num_hidden_layers = 36,
          .hidden_size = 2880,
          .num_local_experts = 128};
}

ClassOptions on_b300(ModelingV2Mode mode) {
  return {.modeling_v2 = mode, .capability = hardware::Capability{10, 3}};
}

struct Outcome {
  ClassAnswer answer;
  std::vector<std::string> rules;
};

Outcome from_config(const ClassInput& input, const ClassOptions& options) {
  ProfileLoader loader(built_in_profile());
  registry::Registry registry(built_in_profile().index, loader);
  Outcome out = {.answer = ClassResolver(built_in_profile(), registry).from_config(input, options),
                 .rules = {}};
  for (const registry::Event& event : registry.events()) out.rules.emplace_back(event.rule);
  return out;
}

std::string criterion(const ClassInput& input, const ClassOptions& options) {
  ProfileLoader loader(built_in_profile());
  registry::Registry registry(built_in_profile().index, loader);
  const ModelingV2Choice choice =
      select_modeling_v2(input, options, built_in_profile().modeling_v2, registry);
  if (choice.target) return "match";
  const json::Value* found = registry.events().back().fields.find("criterion");
  return found == nullptr ? "" : found->as_string();
}

TEST(ParseModelingV2, Spellings_AreReadAsTheEngineReadsItsVariable) {
  EXPECT_EQ(parse_modeling_v2(" Require "), ModelingV2Mode::kRequire);
  EXPECT_EQ(parse_modeling_v2("AUTO"), ModelingV2Mode::kAuto);
  EXPECT_EQ(parse_modeling_v2(""), ModelingV2Mode::kOff);
  const auto unknown = parse_modeling_v2("requir");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsageUnknown);
  EXPECT_EQ(unknown.error().near_matches, std::vector<std::string>{"require"});
}

TEST(SelectModelingV2, FirstCriterionThatFails_IsNamed) {
  const ClassOptions options = on_b300(ModelingV2Mode::kAuto);
  EXPECT_EQ(criterion(gpt_oss_120b(), options), "match");

  ClassOptions other = options;
  other.capability = hardware::Capability{10, 0};
  EXPECT_EQ(criterion(gpt_oss_120b(), other), "sm");
  other.capability.reset();
  EXPECT_EQ(criterion(gpt_oss_120b(), other), "sm");

  for (auto field :
       {&ClassInput::num_hidden_layers, &ClassInput::hidden_size, &ClassInput::num_local_experts}) {
    ClassInput input = gpt_oss_120b();
    input.*field = 24;
    EXPECT_EQ(criterion(input, options), "shape");
    (input.*field).reset();
    EXPECT_EQ(criterion(input, options), "shape");
  }

  other = options;
  other.world_size = 2;
  EXPECT_EQ(criterion(gpt_oss_120b(), other), "parallel");
  EXPECT_EQ(criterion({.architectures = {"DeepseekV3ForCausalLM"}}, options), "targets");
}

TEST(FromConfig, Require_FailsWhereAutoFallsBack) {
  ClassOptions options = on_b300(ModelingV2Mode::kAuto);
  options.within_bounds = false;
  EXPECT_EQ(from_config(gpt_oss_120b(), options).answer.provider->name, "GptOssForCausalLM");
  options.modeling_v2 = ModelingV2Mode::kRequire;
  EXPECT_EQ(from_config(gpt_oss_120b(), options).answer.error->code, "V2-REQUIRE-OUT-OF-BOUNDS");

  const ClassInput llama = {.architectures = {"LlamaForCausalLM"}};
  EXPECT_EQ(from_config(llama, on_b300(ModelingV2Mode::kAuto)).answer.provider->name,
            "LlamaForCausalLM");
  EXPECT_EQ(from_config(llama, on_b300(ModelingV2Mode::kRequire)).answer.error->code,
            "V2-REQUIRE-NO-ROUTER");
}

TEST(FromConfig, RequireWithoutArchitectures_IsNoErrorOfModelingV2) {
  const Outcome out = from_config({}, on_b300(ModelingV2Mode::kRequire));
  EXPECT_EQ(out.rules, (std::vector<std::string>{"V2-NO-ARCH", "R0-NO-ARCH"}));
  EXPECT_EQ(out.answer.error->code, "NO-ARCHITECTURES");
}

TEST(FromConfig, ChosenTarget_WinsOverTheEagle3Rewrite) {
  ClassInput draft = gpt_oss_120b();
  draft.has_draft_vocab_size = true;
  EXPECT_EQ(from_config(draft, on_b300(ModelingV2Mode::kAuto)).answer.provider->name, kTarget);
}

TEST(FromConfig, TargetThatCannotServe_FallsBackInAutoAndFailsInRequire) {
  ClassOptions options = on_b300(ModelingV2Mode::kAuto);
  options.raises_no_target = true;
  const Outcome fallen = from_config(gpt_oss_120b(), options);
  EXPECT_EQ(fallen.answer.provider->name, "GptOssForCausalLM");
  EXPECT_EQ(std::count(fallen.rules.begin(), fallen.rules.end(), "F4-NOTARGET-AUTO-FALLBACK"), 1);
  EXPECT_EQ(std::count(fallen.rules.begin(), fallen.rules.end(), "V2-OFF"), 1);

  options.modeling_v2 = ModelingV2Mode::kRequire;
  const Outcome failed = from_config(gpt_oss_120b(), options);
  EXPECT_EQ(failed.rules.back(), "F3-NOTARGET-REQUIRE-RAISE");
  EXPECT_EQ(failed.answer.error->code, "NOTARGET-REQUIRE");
}

}  // namespace
}  // namespace kernelpath::engines::trtllm
