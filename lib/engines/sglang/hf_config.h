#pragma once

#include "engines/sglang/profile.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::sglang {

// config.json as the engine sees it after its configuration classes: the file's members, else the
// constant defaults of the engine's own class, else those of transformers. `text` is the
// configuration of the language model, which may be the whole file.
// Source: sglang/srt/utils/hf_transformers/{config,common}.py.
class HfConfig {
 public:
  HfConfig(const Profile& profile, const json::Value& file);

  [[nodiscard]] std::vector<std::string> architectures() const;
  [[nodiscard]] const std::string& model_type() const { return model_type_; }
  [[nodiscard]] const std::string& text_model_type() const { return text_model_type_; }
  [[nodiscard]] bool nested() const { return text_ != file_; }

  // getattr(hf_text_config, name, None): null pointer for None and for what nobody states.
  [[nodiscard]] const json::Value* text(std::string_view name) const;
  // getattr(hf_config, name, None); what the text config states counts where the file is silent.
  [[nodiscard]] const json::Value* top(std::string_view name) const;
  // The file's own member, null included; null pointer where it is absent.
  [[nodiscard]] const json::Value* stated(std::string_view name) const;

  [[nodiscard]] std::optional<std::int64_t> text_integer(std::string_view name) const;
  [[nodiscard]] std::string text_string(std::string_view name) const;
  [[nodiscard]] std::string top_string(std::string_view name) const;
  [[nodiscard]] bool text_true(std::string_view name) const;  // as Python's truth of the value
  [[nodiscard]] bool top_true(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> text_strings(std::string_view name) const;

 private:
  [[nodiscard]] const json::Value* class_default(std::string_view model_type,
                                                 std::string_view name) const;

  const Profile* profile_;
  const json::Value* file_;
  const json::Value* text_;
  std::string model_type_;
  std::string text_model_type_;
};

// A text of Gemma 4 whose layers differ in head size, read by itself: its class refuses to name one
// size for all. (Inside a multimodal file the engine flattens it first.)
inline constexpr std::string_view kAmbiguousHeadDim =
    "'head_dim' is a per-layer attribute and may vary across layers. Access it via the individual "
    "layer configs instead (e.g. config.per_layer_config[i].head_dim).";
bool has_ambiguous_head_dim(const HfConfig& config);

bool python_true(const json::Value* value);
std::optional<std::int64_t> integer_of(const json::Value* value);
std::string string_of(const json::Value* value);
std::vector<std::string> strings_of(const json::Value* value);

}  // namespace kernelpath::engines::sglang
