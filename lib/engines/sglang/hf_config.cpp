#include "engines/sglang/hf_config.h"

#include "config/family.h"

#include <algorithm>
#include <array>

namespace kernelpath::engines::sglang {
namespace {

// Where the language model's configuration stands, in the engine's order.
constexpr std::array<std::string_view, 4> kTextFields = {"thinker_config", "llm_config",
                                                         "language_config", "text_config"};

const json::Value* find_text(const json::Value& file) {
  for (const std::string_view field : kTextFields) {
    const json::Value* nested = file.find_non_null(field);
    if (nested == nullptr || !nested->is_object()) continue;
    const json::Value* inner =
        field == "thinker_config" ? nested->find_non_null("text_config") : nullptr;
    return inner != nullptr && inner->is_object() ? inner : nested;
  }
  return &file;
}

const json::Value* non_null(const json::Value* value) {
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace

bool has_ambiguous_head_dim(const HfConfig& config) {
  if (config.model_type() != "gemma4_text" || config.nested()) return false;
  const std::vector<std::string> types = config.text_strings("layer_types");
  const bool mixed =
      types.empty() || (contains(types, "full_attention") && contains(types, "sliding_attention"));
  return mixed && config.text_integer("global_head_dim") != config.text_integer("head_dim");
}

bool python_true(const json::Value* value) {
  if (value == nullptr || value->is_null()) return false;
  if (value->is_bool()) return value->as_bool();
  if (value->is_number()) return value->as_double() != 0.0;
  if (value->is_string()) return !value->as_string().empty();
  if (value->is_array()) return !value->items().empty();
  return !value->members().empty();
}

std::optional<std::int64_t> integer_of(const json::Value* value) {
  if (value == nullptr || !value->is_integer()) return std::nullopt;
  return value->as_integer();
}

std::string string_of(const json::Value* value) {
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

std::vector<std::string> strings_of(const json::Value* value) {
  std::vector<std::string> out;
  if (value == nullptr || !value->is_array()) return out;
  for (const json::Value& item : value->items()) {
    if (item.is_string()) out.push_back(item.as_string());
  }
  return out;
}

HfConfig::HfConfig(const Profile& profile, const json::Value& file)
    : profile_(&profile),
      file_(&file),
      text_(find_text(file)),
      model_type_(string_of(file.find("model_type"))),
      text_model_type_(string_of(text_->find("model_type"))) {
  if (text_model_type_.empty()) {
    const config::Family* family = config::find_family(model_type_);
    text_model_type_ = family != nullptr && !family->text_model_type().empty()
                           ? std::string(family->text_model_type())
                           : model_type_;
  }
}

std::vector<std::string> HfConfig::architectures() const {
  return strings_of(file_->find("architectures"));
}

const json::Value* HfConfig::class_default(std::string_view model_type,
                                           std::string_view name) const {
  // The engine reads these with DeepSeek-V3's class, which knows no indexer.
  constexpr std::array<std::string_view, 3> kDeepseekV3 = {"deepseek_v32", "deepseek_v4",
                                                           "kimi_k2"};
  if (std::find(kDeepseekV3.begin(), kDeepseekV3.end(), model_type) != kDeepseekV3.end()) {
    model_type = "deepseek_v3";
  }
  const auto own = profile_->config_classes.find(model_type);
  if (own != profile_->config_classes.end()) {
    if (const json::Value* value = own->second.find_non_null(name)) return value;
  }
  const config::Family* family = config::find_family(model_type);
  return family == nullptr ? nullptr : non_null(family->default_of(name));
}

const json::Value* HfConfig::text(std::string_view name) const {
  if (const json::Value* value = text_->find(name)) return non_null(value);
  const config::Family* family = config::find_family(text_model_type_);
  if (family != nullptr) {
    const std::string_view alias = family->alias(name);
    if (!alias.empty()) {
      if (const json::Value* value = text_->find(alias)) return non_null(value);
    }
  }
  return class_default(text_model_type_, name);
}

const json::Value* HfConfig::top(std::string_view name) const {
  if (const json::Value* value = file_->find(name)) return non_null(value);
  if (!nested()) return text(name);
  if (const json::Value* value = class_default(model_type_, name)) return value;
  return text(name);
}

const json::Value* HfConfig::stated(std::string_view name) const { return file_->find(name); }

std::optional<std::int64_t> HfConfig::text_integer(std::string_view name) const {
  return integer_of(text(name));
}

std::string HfConfig::text_string(std::string_view name) const { return string_of(text(name)); }

std::string HfConfig::top_string(std::string_view name) const { return string_of(top(name)); }

bool HfConfig::text_true(std::string_view name) const { return python_true(text(name)); }

bool HfConfig::top_true(std::string_view name) const { return python_true(top(name)); }

std::vector<std::string> HfConfig::text_strings(std::string_view name) const {
  return strings_of(text(name));
}

}  // namespace kernelpath::engines::sglang
