#include "config/gguf_words.h"

#include "checkpoint/gguf.h"
#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace kernelpath::config {
namespace {

using checkpoint::Gguf;
using checkpoint::GgufValue;

// An architecture of GGUF files, and the family that it is.
struct Architecture {
  std::string_view gguf;
  std::string_view model_type;
  std::string_view class_name;
  bool neighbours;
};
constexpr std::array kArchitectures{
    Architecture{"llama", "llama", "LlamaForCausalLM", true},
    Architecture{"qwen2", "qwen2", "Qwen2ForCausalLM", false},
    Architecture{"qwen3", "qwen3", "Qwen3ForCausalLM", false},
};

const Architecture* find_architecture(std::string_view name) {
  const auto* const found = std::ranges::find(kArchitectures, name, &Architecture::gguf);
  return found == kArchitectures.end() ? nullptr : found;
}

struct Copied {
  std::string_view key;  // behind the architecture
  std::string_view field;
};
constexpr std::array kIntegers{Copied{"block_count", "num_hidden_layers"},
                               Copied{"embedding_length", "hidden_size"},
                               Copied{"feed_forward_length", "intermediate_size"},
                               Copied{"attention.head_count", "num_attention_heads"},
                               Copied{"attention.head_count_kv", "num_key_value_heads"},
                               Copied{"attention.key_length", "head_dim"},
                               Copied{"context_length", "max_position_embeddings"}};
constexpr std::array kReals{Copied{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                            Copied{"rope.freq_base", "rope_theta"}};

// Members of a config.json in the making.
class Writer {
 public:
  Writer(const Gguf& gguf, std::string_view architecture)
      : gguf_(gguf), architecture_(architecture) {}

  void integer(std::string_view key, std::string_view field) {
    const GgufValue* const value = find(key);
    if (value != nullptr && !value->integers.empty()) {
      add(field, json::Value::integer(value->integers.front()));
    }
  }
  void real(std::string_view key, std::string_view field) {
    const GgufValue* const value = find(key);
    if (value != nullptr && !value->reals.empty()) {
      add(field, json::Value::number(value->reals.front()));
    }
  }
  void add(std::string_view field, json::Value value) {
    members_.push_back({.key = std::string(field), .value = std::move(value)});
  }
  [[nodiscard]] const GgufValue* find(std::string_view key) const {
    return gguf_.find(fmt::format("{}.{}", architecture_, key));
  }
  [[nodiscard]] json::Value take() { return json::Value::object(std::move(members_)); }

 private:
  const Gguf& gguf_;
  std::string_view architecture_;
  std::vector<json::Member> members_;
};

const checkpoint::GgufTensor* find_tensor(const Gguf& gguf, std::string_view name) {
  const auto found = std::ranges::find(gguf.tensors, name, &checkpoint::GgufTensor::name);
  return found == gguf.tensors.end() ? nullptr : &*found;
}

void add_rope(Writer& writer) {
  const GgufValue* const type = writer.find("rope.scaling.type");
  if (type == nullptr || type->text.empty() || type->text == "none") return;
  std::vector<json::Member> rope;
  rope.push_back({.key = "rope_type", .value = json::Value::string(type->text)});
  const GgufValue* const factor = writer.find("rope.scaling.factor");
  if (factor != nullptr && !factor->reals.empty()) {
    rope.push_back({.key = "factor", .value = json::Value::number(factor->reals.front())});
  }
  const GgufValue* const original = writer.find("rope.scaling.original_context_length");
  if (original != nullptr && !original->integers.empty()) {
    rope.push_back({.key = "original_max_position_embeddings",
                    .value = json::Value::integer(original->integers.front())});
  }
  writer.add("rope_scaling", json::Value::object(std::move(rope)));
}

Unexpected unknown_architecture(const ModelConfig& config, const std::string& name) {
  std::vector<std::string_view> known;
  known.reserve(kArchitectures.size());
  for (const Architecture& row : kArchitectures) known.push_back(row.gguf);
  return fail(Error{.code = ErrorCode::kUnavailable,
                    .message = fmt::format("no class reads the tensors of this architecture; there "
                                           "are {}",
                                           fmt::join(known, ", ")),
                    .file = config.path,
                    .where = "general.architecture",
                    .value = name,
                    .hint = "give the folder with config.json and safetensors files instead"});
}

}  // namespace

Result<ModelConfig> config_of_gguf(const ModelConfig& config) {
  const Gguf& gguf = *config.gguf;
  const std::string name = config.model_type.value_or("");
  const Architecture* const architecture = find_architecture(name);
  if (architecture == nullptr) return unknown_architecture(config, name);
  Writer writer(gguf, name);
  writer.add("architectures",
             json::Value::array({json::Value::string(std::string(architecture->class_name))}));
  writer.add("model_type", json::Value::string(std::string(architecture->model_type)));
  for (const Copied& row : kIntegers) writer.integer(row.key, row.field);
  for (const Copied& row : kReals) writer.real(row.key, row.field);
  add_rope(writer);
  if (const checkpoint::GgufTensor* const table = find_tensor(gguf, "token_embd.weight")) {
    writer.add("vocab_size", json::Value::integer(table->shape[1]));
  }
  const bool tied = find_tensor(gguf, "output.weight") == nullptr;
  writer.add("tie_word_embeddings", json::Value::boolean(tied));
  KERNELPATH_TRY(out, from_value(writer.take(), {.read_siblings = false}));
  out.name = config.name;
  out.path = config.path;
  out.gguf = config.gguf;
  out.weights = config.weights;
  return std::move(out);
}

bool gguf_pairs_are_neighbours(std::string_view architecture) {
  const Architecture* const found = find_architecture(architecture);
  return found != nullptr && found->neighbours;
}

}  // namespace kernelpath::config
