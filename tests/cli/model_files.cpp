#include "model_files.h"

#include "../unit/checkpoint/build_gguf.h"
#include "base/float_types.h"
#include "checkpoint/ggml_type.h"
#include "checkpoint/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

namespace kernelpath::testing {
namespace {

using checkpoint::little;

std::int64_t count_of(std::span<const std::int64_t> shape) {
  std::int64_t out = 1;
  for (const std::int64_t size : shape) out *= size;
  return out;
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t index) {
  Number out{};
  std::memcpy(&out, bytes.data() + index * sizeof(Number), sizeof(Number));
  return out;
}

std::vector<float> floats_of(std::string_view type, std::string_view bytes) {
  const bool wide = type == "F32";
  if (!wide && type != "BF16" && type != "F16") {
    throw std::runtime_error("no plain type: " + std::string(type));
  }
  std::vector<float> out(bytes.size() / (wide ? 4 : 2));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (wide) {
      out[i] = number_at<float>(bytes, i);
    } else {
      const auto code = number_at<std::uint16_t>(bytes, i);
      out[i] = type == "BF16" ? bf16_to_f32(code) : f16_to_f32(code);
    }
  }
  return out;
}

std::string gguf_name(const std::string& name) {
  static const std::map<std::string, std::string> kParts = {
      {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  if (name == "model.embed_tokens.weight") return "token_embd.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  const std::string rest = name.substr(std::strlen("model.layers."));
  const std::size_t first = rest.find('.');
  const std::size_t last = rest.rfind('.');
  const std::string module = rest.substr(first + 1, last - first - 1);
  return "blk." + rest.substr(0, first) + "." + kParts.at(module) + rest.substr(last);
}

// The converter stores the rows of Llama's Q and K so that rotated pairs are neighbours.
std::vector<float> with_neighbours(const PlainTensor& tensor, std::int64_t head_dim) {
  std::vector<float> out(tensor.values.size());
  const auto cols = static_cast<std::size_t>(tensor.shape[1]);
  for (std::int64_t row = 0; row < tensor.shape[0]; ++row) {
    const std::int64_t inside = row % head_dim;
    const std::int64_t from = row - inside + inside % 2 * (head_dim / 2) + inside / 2;
    std::copy_n(tensor.values.begin() + from * tensor.shape[1], cols,
                out.begin() + row * tensor.shape[1]);
  }
  return out;
}

std::vector<float> with_halves(const std::vector<float>& rows, std::int64_t cols,
                               std::int64_t head_dim) {
  std::vector<float> out(rows.size());
  for (std::int64_t row = 0; row * cols < static_cast<std::int64_t>(rows.size()); ++row) {
    const std::int64_t inside = row % head_dim;
    const std::int64_t to = row - inside + inside % 2 * (head_dim / 2) + inside / 2;
    std::copy_n(rows.begin() + row * cols, cols, out.begin() + to * cols);
  }
  return out;
}

std::string type_for(const PlainTensor& tensor, std::string_view type) {
  if (tensor.shape.size() < 2) return "f32";
  const std::int64_t cols = tensor.shape[1];
  if (type == "Q4_K_M") {
    const bool finer = tensor.name.find("v_proj") != std::string::npos ||
                       tensor.name.find("down_proj") != std::string::npos ||
                       tensor.name == "lm_head.weight";
    type = finer ? "q6_K" : "q4_K";
  }
  if (cols % checkpoint::find_ggml_type(type)->block != 0) type = "q8_0";
  return cols % checkpoint::find_ggml_type(type)->block != 0 ? "f32" : std::string(type);
}

checkpoint::GgufBuilder gguf_metadata(const ModelShape& shape) {
  checkpoint::GgufBuilder builder;
  const auto size = [&](const std::string& key, std::int64_t value) {
    builder.u32(shape.family + "." + key, static_cast<std::uint32_t>(value));
  };
  const auto real = [&](const std::string& key, float value) {
    builder.number(shape.family + "." + key, checkpoint::GgufType::kFloat32, value);
  };
  builder.text("general.architecture", shape.family);
  size("block_count", shape.layers);
  size("embedding_length", shape.hidden);
  size("feed_forward_length", shape.intermediate);
  size("attention.head_count", shape.heads);
  size("attention.head_count_kv", shape.kv_heads);
  size("attention.key_length", shape.head_dim);
  size("attention.value_length", shape.head_dim);
  size("context_length", shape.context);
  real("attention.layer_norm_rms_epsilon", shape.eps);
  real("rope.freq_base", shape.rope_theta);
  return builder;
}

}  // namespace

std::vector<PlainTensor> random_tensors(const ModelShape& shape) {
  std::vector<PlainTensor> out;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> sizes, float scale,
                       float offset = 0.0F) {
    std::vector<float> values =
        random_values(static_cast<std::size_t>(count_of(sizes)), scale, out.size() + 1);
    for (float& value : values) value += offset;
    out.push_back({.name = name, .shape = std::move(sizes), .values = std::move(values)});
  };
  const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t cols) {
    add(name + ".weight", {rows, cols}, 3.0F / std::sqrt(static_cast<float>(cols)));
  };
  const auto norm = [&](const std::string& name, std::int64_t size) {
    add(name + ".weight", {size}, 0.5F, 1.0F);
  };
  matrix("model.embed_tokens", shape.vocabulary, shape.hidden);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string at = fmt::format("model.layers.{}.", layer);
    const std::int64_t q = shape.heads * shape.head_dim;
    const std::int64_t kv = shape.kv_heads * shape.head_dim;
    norm(at + "input_layernorm", shape.hidden);
    norm(at + "post_attention_layernorm", shape.hidden);
    matrix(at + "self_attn.q_proj", q, shape.hidden);
    matrix(at + "self_attn.k_proj", kv, shape.hidden);
    matrix(at + "self_attn.v_proj", kv, shape.hidden);
    matrix(at + "self_attn.o_proj", shape.hidden, q);
    if (shape.family == "qwen2") {
      add(at + "self_attn.q_proj.bias", {q}, 0.5F);
      add(at + "self_attn.k_proj.bias", {kv}, 0.5F);
      add(at + "self_attn.v_proj.bias", {kv}, 0.5F);
    }
    if (shape.family == "qwen3") {
      norm(at + "self_attn.q_norm", shape.head_dim);
      norm(at + "self_attn.k_norm", shape.head_dim);
    }
    matrix(at + "mlp.gate_proj", shape.intermediate, shape.hidden);
    matrix(at + "mlp.up_proj", shape.intermediate, shape.hidden);
    matrix(at + "mlp.down_proj", shape.hidden, shape.intermediate);
  }
  norm("model.norm", shape.hidden);
  if (!shape.tied) matrix("lm_head", shape.vocabulary, shape.hidden);
  return out;
}

std::string config_of(const ModelShape& shape, const std::string& more) {
  static const std::map<std::string, std::string> kClasses = {
      {"llama", "LlamaForCausalLM"}, {"qwen2", "Qwen2ForCausalLM"}, {"qwen3", "Qwen3ForCausalLM"}};
  return fmt::format(
      R"({{"architectures": ["{}"], "model_type": "{}", "torch_dtype": "float32",
"vocab_size": {}, "hidden_size": {}, "intermediate_size": {}, "num_hidden_layers": {},
"num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {}, "hidden_act": "silu",
"max_position_embeddings": {}, "rms_norm_eps": {}, "rope_theta": {},
"tie_word_embeddings": {}{}{}}}
)",
      kClasses.at(shape.family), shape.family, shape.vocabulary, shape.hidden, shape.intermediate,
      shape.layers, shape.heads, shape.kv_heads, shape.head_dim, shape.context, shape.eps,
      shape.rope_theta, shape.tied, more.empty() ? "" : ", ", more);
}

void write_model(const std::string& folder, const ModelShape& shape,
                 std::span<const PlainTensor> tensors) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << config_of(shape);
  std::vector<FilePart> parts;
  parts.reserve(tensors.size());
  for (const PlainTensor& tensor : tensors) parts.push_back(as_f32(tensor));
  write_safetensors(folder + "/model.safetensors", parts);
}

std::vector<PlainTensor> tensors_of(const std::string& folder) {
  const auto files = checkpoint::TensorFiles::open(folder);
  if (!files) throw std::runtime_error(files.error().text());
  std::vector<PlainTensor> out;
  for (const checkpoint::StoredTensor& tensor : files->tensors()) {
    std::string bytes(static_cast<std::size_t>(tensor.bytes), '\0');
    const auto read = files->read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
    if (!read) throw std::runtime_error(read.error().text());
    out.push_back(
        {.name = tensor.name, .shape = tensor.shape, .values = floats_of(tensor.type, bytes)});
  }
  return out;
}

std::vector<float> random_values(std::size_t count, float scale, std::uint64_t seed) {
  std::vector<float> out(count);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
  for (float& value : out) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = (static_cast<float>(state >> 40) / 8388608.0F - 1.0F) * scale;
  }
  return out;
}

void write_safetensors(const std::string& path, std::span<const FilePart> parts) {
  std::string header = "{";
  std::size_t at = 0;
  for (const FilePart& part : parts) {
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          at == 0 && header.size() == 1 ? "" : ",", part.name, part.type,
                          fmt::join(part.shape, ","), at, at + part.bytes.size());
    at += part.bytes.size();
  }
  header += "}";
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << little(std::uint64_t{header.size()}) << header;
  for (const FilePart& part : parts) file << part.bytes;
}

FilePart as_f32(const PlainTensor& tensor) {
  return {.name = tensor.name,
          .type = "F32",
          .shape = tensor.shape,
          .bytes = encode_ggml("f32", tensor.values).bytes};
}

std::vector<PlainTensor> write_gguf(const std::string& path, const ModelShape& shape,
                                    std::span<const PlainTensor> tensors, std::string_view type) {
  checkpoint::GgufBuilder builder = gguf_metadata(shape);
  std::vector<PlainTensor> out;
  std::string data;
  for (const PlainTensor& tensor : tensors) {
    const bool pairs = shape.family == "llama" && tensor.shape.size() == 2 &&
                       (tensor.name.find("q_proj") != std::string::npos ||
                        tensor.name.find("k_proj") != std::string::npos);
    const std::string own = type_for(tensor, type);
    Encoded encoded =
        encode_ggml(own, pairs ? with_neighbours(tensor, shape.head_dim) : tensor.values);
    if (pairs) encoded.values = with_halves(encoded.values, tensor.shape[1], shape.head_dim);
    builder.tensor(gguf_name(tensor.name), {tensor.shape.rbegin(), tensor.shape.rend()},
                   checkpoint::find_ggml_type(own)->id, data.size());
    data += encoded.bytes;
    data.resize((data.size() + 31) / 32 * 32);
    out.push_back({.name = tensor.name, .shape = tensor.shape, .values = encoded.values});
  }
  builder.data_bytes = data.size();
  std::string file = builder.bytes();
  file.replace(file.size() - data.size(), data.size(), data);
  std::ofstream(path, std::ios::binary) << file;
  return out;
}

}  // namespace kernelpath::testing
