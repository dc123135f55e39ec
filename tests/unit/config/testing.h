#pragma once

#include "config/load.h"
#include "json/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace kernelpath::config {

// Fields of a config.json by name, each as JSON text; an empty text leaves the field out.
using Fields = std::map<std::string, std::string>;

// A plain Llama with `changes`.
inline std::string llama(const Fields& changes = {}) {
  Fields fields = {{"architectures", R"(["LlamaForCausalLM"])"},
                   {"model_type", R"("llama")"},
                   {"num_hidden_layers", "4"},
                   {"hidden_size", "4096"},
                   {"intermediate_size", "11008"},
                   {"num_attention_heads", "32"},
                   {"num_key_value_heads", "8"},
                   {"vocab_size", "32000"},
                   {"max_position_embeddings", "4096"},
                   {"rope_theta", "10000.0"},
                   {"torch_dtype", R"("bfloat16")"}};
  for (const auto& [name, value] : changes) fields[name] = value;
  std::string text;
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    text += (text.empty() ? "{\"" : ",\"") + name + "\":" + value;
  }
  return text + "}";
}

// A model of a family that the defaults' table does not know.
inline std::string unknown_family(Fields changes = {}) {
  changes.try_emplace("architectures", R"(["NobodyForCausalLM"])");
  changes.try_emplace("model_type", R"("nobody")");
  return llama(changes);
}

inline Result<ModelConfig> load(std::string text, const LoadOptions& options = {}) {
  auto document = json::parse_object(std::move(text), "config.json");
  if (!document) return fail(document.error());
  return from_document(*document, options);
}

// For inputs that must load; prints the error otherwise.
inline ModelConfig loaded(std::string text, const LoadOptions& options = {}) {
  auto model = load(std::move(text), options);
  EXPECT_TRUE(model.has_value()) << model.error().text();
  return model ? *model : ModelConfig{};
}

inline bool has_warning(const ModelConfig& model, std::string_view code,
                        std::string_view where = {}) {
  return std::any_of(model.warnings.begin(), model.warnings.end(), [&](const auto& warning) {
    return warning.code == code && (where.empty() || warning.where == where);
  });
}

inline std::string warning_text(const ModelConfig& model, std::string_view code) {
  for (const json::Warning& warning : model.warnings) {
    if (warning.code == code) return warning.message;
  }
  return {};
}

// The kinds of the layers, one letter each: f(ull) s(liding) c(hunked) l(inear) m(amba) x (sparse)
// e(ncoder) r (cross) - (none).
inline std::string kinds(const ModelConfig& model) {
  std::string text;
  for (const Layer& layer : model.layers) {
    text += "fsclmxer-"[static_cast<std::size_t>(layer.kind)];
  }
  return text;
}

// An input that must be refused: a row of cases/bad_inputs.md.
struct Refused {
  std::string row;
  std::string text;
  ErrorCode code;
  std::string where;
  std::string message;  // part of it
};

inline void expect_refused(const Refused& refused) {
  SCOPED_TRACE(refused.row + ": " + refused.text.substr(0, 200));
  const auto model = load(refused.text);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, refused.code) << model.error().text();
  EXPECT_EQ(model.error().where, refused.where);
  EXPECT_THAT(model.error().message, testing::HasSubstr(refused.message));
  EXPECT_EQ(model.error().file, "config.json");
}

// From the test data: the folder of a real model.
inline std::string real_config(const std::string& folder) {
  return std::string(KERNELPATH_TEST_DATA) + "/configs/" + folder;
}

}  // namespace kernelpath::config
