#include "models.h"

namespace kernelpath::memory::testing {

config::IntField stated(std::int64_t value, const std::string& where) {
  return {value, {config::OriginKind::kField, where, {}}};
}

config::ModelConfig plain_model(const Plain& numbers) {
  config::ModelConfig model;
  model.model_type = {numbers.model_type, {}};
  model.text_model_type = numbers.model_type;
  model.dtype = {"bfloat16", {}};
  model.num_hidden_layers = stated(numbers.layers, "/num_hidden_layers");
  model.hidden_size = stated(numbers.hidden, "/hidden_size");
  model.num_attention_heads = stated(numbers.heads, "/num_attention_heads");
  model.num_key_value_heads = stated(numbers.kv_heads, "/num_key_value_heads");
  model.head_dim = stated(numbers.head_dim, "/head_dim");
  model.intermediate_size = stated(numbers.intermediate, "/intermediate_size");
  model.vocab_size = stated(numbers.vocab, "/vocab_size");
  model.tie_word_embeddings = {numbers.tied, {}};
  config::Layer layer;
  layer.num_attention_heads = numbers.heads;
  layer.num_key_value_heads = numbers.kv_heads;
  layer.head_dim = numbers.head_dim;
  layer.v_head_dim = numbers.head_dim;
  model.layers.assign(static_cast<std::size_t>(numbers.layers), layer);
  return model;
}

}  // namespace kernelpath::memory::testing
