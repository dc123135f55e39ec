// Class, runner and conversion of every recorded whole config of vLLM, of both versions.

#include "engines/vllm/model_class.h"
#include "equality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace kernelpath::engines::vllm {
namespace {

std::string text_of(const json::Value& object, std::string_view name, std::string otherwise) {
  const json::Value* value = object.find_non_null(name);
  return value != nullptr && value->is_string() ? value->as_string() : std::move(otherwise);
}

ModelClassQuestion question_of(const json::Value& in) {
  const json::Value& config = *in.find("config");
  const json::Value& flags = *in.find("flags");
  ModelClassQuestion question;
  if (const json::Value* names = config.find_non_null("architectures")) {
    for (const json::Value& name : names->items()) {
      question.architectures.push_back(name.as_string());
    }
  }
  question.model_impl = text_of(flags, "model_impl", question.model_impl);
  question.runner = text_of(flags, "runner", question.runner);
  question.convert = text_of(flags, "convert", question.convert);
  question.nested_text_config = config.find_non_null("text_config") != nullptr;
  return question;
}

// The recorded refusal of the model's own configuration, if that is where the engine stopped.
std::string recorded_refusal(const json::Value& out) {
  for (const json::Value& error : out.find("errors")->items()) {
    const std::string text = text_of(error, "text", "");
    if (text.find("for ModelConfig\n") != std::string::npos) return text;
  }
  return {};
}

void expect_recorded_class(const golden::Case& recorded, const ModelClass& model) {
  const json::Value& resolved = *recorded.out().find("resolved_config");
  EXPECT_FALSE(model.error) << recorded.id;
  EXPECT_EQ(model.architecture, text_of(resolved, "architecture", "")) << recorded.id;
  EXPECT_EQ(model.class_name, text_of(resolved, "model_class", "")) << recorded.id;
  EXPECT_EQ(model.runner, text_of(resolved, "runner", "")) << recorded.id;
  EXPECT_EQ(model.convert, text_of(resolved, "convert", "")) << recorded.id;
  EXPECT_EQ(model.info.is_attention_free, resolved.find("is_attention_free")->as_bool())
      << recorded.id;
}

void expect_recorded_classes(const std::string& version, std::size_t classes,
                             std::size_t refusals) {
  std::size_t compared = 0;
  std::size_t refused = 0;
  for (const golden::Case& recorded : golden::read_cases("vllm-" + version + "/end_to_end.jsonl")) {
    const ModelClass model =
        resolve_model_class(built_in_registry(version), question_of(recorded.in()));
    const std::string refusal = recorded_refusal(recorded.out());
    if (!refusal.empty()) {
      ASSERT_TRUE(model.error) << recorded.id;
      // The engine's sentence, up to where it lists or advises.
      EXPECT_NE(refusal.find(model.error->message.substr(0, 40)), std::string::npos)
          << recorded.id << ": " << model.error->message;
      ++refused;
    } else if (recorded.out().find_non_null("resolved_config") != nullptr) {
      expect_recorded_class(recorded, model);
      ++compared;
    }
  }
  EXPECT_EQ(compared, classes);
  EXPECT_EQ(refused, refusals);
}

TEST(VllmModelClass, EveryRecordedConfigOf0251_HasItsClass) {
  expect_recorded_classes("0.25.1", 114, 3);
}

TEST(VllmModelClass, EveryRecordedConfigOf0330_HasItsClass) {
  expect_recorded_classes("0.33.0", 119, 3);
}

}  // namespace
}  // namespace kernelpath::engines::vllm
