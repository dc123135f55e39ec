#pragma once

#include "base/embedded.h"
#include "json/value.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::config {

// What a model family's configuration class says where a config.json is silent. The table is
// extracted from transformers by scripts/extract-config-defaults, one row a model_type.
class Family {
 public:
  explicit Family(json::Value row);
  Family(const Family&) = delete;  // views point into row_
  Family& operator=(const Family&) = delete;
  ~Family() = default;

  [[nodiscard]] const std::string& model_type() const { return model_type_; }

  // The default of a field, or null pointer: the class has no such field, or leaves it null.
  [[nodiscard]] const json::Value* default_of(std::string_view field) const;
  // True if the class has the field, whatever its default.
  [[nodiscard]] bool has_field(std::string_view field) const;
  // This family's own name of a standard field ("hidden_size" → "n_embd"), or an empty view.
  [[nodiscard]] std::string_view alias(std::string_view standard) const;

  // RoPE parameters of a file that states none, flat or per kind of layer; null pointer if the
  // family has no RoPE.
  [[nodiscard]] const json::Value* rope() const;

  // The name of layer `index` of `count` where no list states it; empty: an ordinary full layer.
  [[nodiscard]] std::string_view layer_name(std::size_t index, std::size_t count) const;
  [[nodiscard]] bool has_pattern() const { return !pattern_.empty() || !fixed_.empty(); }
  // The number of layers where the class has one list of layers and no number; else 0.
  [[nodiscard]] std::size_t fixed_count() const { return fixed_.size(); }

  // True: layers of full attention are not rotated (where `window`: the model has a window).
  [[nodiscard]] bool full_layers_without_rope(bool window) const;

  // Attends in both directions and keeps no cache, unless is_decoder says otherwise.
  [[nodiscard]] bool encoder() const { return encoder_; }
  // Where a multimodal family's files keep the language model, and its model_type; empty views for
  // a family that is a language model itself.
  [[nodiscard]] std::string_view text_field() const { return text_field_; }
  [[nodiscard]] std::string_view text_model_type() const { return text_model_type_; }
  // The class that generates, for files without `architectures`; may be empty.
  [[nodiscard]] std::string_view generating_class() const { return generating_class_; }

  // "family default: mixtral": the rule of an Origin.
  [[nodiscard]] std::string rule() const { return "family default: " + model_type_; }

 private:
  json::Value row_;
  std::string model_type_;
  const json::Value* defaults_ = nullptr;
  std::vector<std::string_view> first_;
  std::vector<std::string_view> pattern_;
  std::vector<std::string_view> fixed_;
  std::string_view last_;
  std::string_view nope_;
  std::string_view text_field_;
  std::string_view text_model_type_;
  std::string_view generating_class_;
  bool encoder_ = false;
};

// The family of a model_type, or null pointer. Rows are parsed when they are first asked for; the
// pointer stays valid. Safe to call from several threads.
const Family* find_family(std::string_view model_type);

// The model_types whose family has a model class of this name ("LlamaForCausalLM" → "llama", and
// those that reuse the class), the one that the class is named after first.
std::vector<std::string_view> model_types_of_class(std::string_view model_class);

// "transformers 5.24.0": where the defaults come from.
std::string defaults_source();

// The table as the build put it into the library.
std::span<const EmbeddedFile> embedded_defaults();

}  // namespace kernelpath::config
