#include "config/gguf.h"

#include "base/file.h"
#include "checkpoint/broken_file.h"
#include "checkpoint/gguf.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace kernelpath::config {
namespace {

using checkpoint::broken_file;
using checkpoint::Gguf;
using checkpoint::GgufType;
using checkpoint::GgufValue;

constexpr std::string_view kArchitectureKey = "general.architecture";
constexpr std::int64_t kMaxLayers = 512;

Result<std::string> read_architecture(const Gguf& gguf, const std::string& path) {
  const std::string where(kArchitectureKey);
  const GgufValue* const value = gguf.find(kArchitectureKey);
  if (value == nullptr) return broken_file(path, where, "the key is missing");
  if (value->type != GgufType::kString) {
    return broken_file(path, where, "must be of type str",
                       std::string(checkpoint::gguf_type_name(value->type)));
  }
  if (value->text.empty()) return broken_file(path, where, "is empty");
  return value->text;
}

// A size of the metadata: a number, or the first entry of a list of layers.
IntField size_of(const Gguf& gguf, const std::string& key) {
  const GgufValue* const value = gguf.find(key);
  if (value == nullptr || value->integers.empty()) return {};
  return {value->integers.front(), {OriginKind::kField, key, {}}};
}

struct CopiedSize {
  std::string_view suffix;
  IntField ModelConfig::*field;
};

constexpr auto kSizes = std::to_array<CopiedSize>({
    {"block_count", &ModelConfig::num_hidden_layers},
    {"embedding_length", &ModelConfig::hidden_size},
    {"feed_forward_length", &ModelConfig::intermediate_size},
    {"attention.head_count", &ModelConfig::num_attention_heads},
    {"attention.head_count_kv", &ModelConfig::num_key_value_heads},
    {"attention.key_length", &ModelConfig::head_dim},
    {"context_length", &ModelConfig::max_position_embeddings},
    {"vocab_size", &ModelConfig::vocab_size},
});

}  // namespace

bool is_gguf_file(const std::string& path) {
  if (!is_file(path)) return false;
  const auto start = read_file_start(path, checkpoint::kGgufMagic.size());
  return start && checkpoint::starts_like_gguf(start->text);
}

Result<ModelConfig> load_gguf(const std::string& path, const LoadOptions& options) {
  KERNELPATH_TRY(gguf, checkpoint::read_gguf(path, {.strict = options.strict}));
  KERNELPATH_TRY(architecture, read_architecture(gguf, path));
  ModelConfig model;
  model.name = file_name(path);
  model.path = path;
  model.model_type = {architecture, {OriginKind::kField, std::string(kArchitectureKey), {}}};
  for (const CopiedSize& row : kSizes) {
    model.*row.field = size_of(gguf, fmt::format("{}.{}", architecture, row.suffix));
  }
  if (model.num_hidden_layers.value_or(0) > kMaxLayers) {
    return broken_file(path, model.num_hidden_layers.origin.where,
                       fmt::format("a model has at most {} layers", kMaxLayers),
                       std::to_string(*model.num_hidden_layers));
  }
  WeightFiles files;
  files.total_bytes = {gguf.tensor_bytes, {OriginKind::kField, "tensor table", {}}};
  files.tensor_count = {static_cast<std::int64_t>(gguf.tensors.size()),
                        {OriginKind::kField, "tensor table", {}}};
  files.from_headers = true;
  model.weights = std::move(files);
  model.warnings = gguf.warnings;
  model.gguf = std::make_shared<const Gguf>(std::move(gguf));
  return model;
}

}  // namespace kernelpath::config
