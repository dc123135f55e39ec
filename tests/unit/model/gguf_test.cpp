// A checkpoint written as a GGUF file gives the logits that its safetensors files give.
#include "../checkpoint/build_gguf.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint_runner.h"
#include "config/load.h"
#include "model/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdlib.h>

namespace kernelpath::model {
namespace {

namespace fs = std::filesystem;
using checkpoint::GgufBuilder;
using checkpoint::GgufType;
using checkpoint::StoredTensor;
using testing::HasSubstr;

constexpr std::int32_t kF32 = 0;
constexpr std::int32_t kF16 = 1;
const std::string kSource = std::string(KERNELPATH_TEST_DATA) + "/checkpoints/llama-fp16";

// The other direction of name_of_gguf_tensor().
std::string gguf_name(const std::string& name) {
  const std::map<std::string, std::string> parts = {
      {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},   {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  if (name == "model.embed_tokens.weight") return "token_embd.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  const std::string rest = name.substr(std::strlen("model.layers."));
  const std::size_t dot = rest.find('.');
  const std::string module = rest.substr(dot + 1, rest.rfind('.') - dot - 1);
  return "blk." + rest.substr(0, dot) + "." + parts.at(module) + ".weight";
}

// Rows of a head from (first half, second half) to neighbours, as llama.cpp's converter stores Q
// and K of Llama.
std::string with_neighbours(const std::string& rows, std::int64_t row_bytes,
                            std::int64_t head_dim) {
  std::string out(rows.size(), '\0');
  const std::int64_t count = static_cast<std::int64_t>(rows.size()) / row_bytes;
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t inside = r % head_dim;
    const std::int64_t from = r - inside + inside % 2 * (head_dim / 2) + inside / 2;
    std::memcpy(out.data() + r * row_bytes, rows.data() + from * row_bytes,
                static_cast<std::size_t>(row_bytes));
  }
  return out;
}

class GgufModel : public testing::Test {
 protected:
  GgufModel() {
    std::string pattern = fs::temp_directory_path() / "kernelpath-gguf-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~GgufModel() override { fs::remove_all(root_); }

  // Writes the source's tensors under their GGUF names.
  void write(const std::string& architecture) {
    const auto config = config::load_model(kSource);
    const auto files = checkpoint::TensorFiles::open(kSource);
    GgufBuilder builder;
    const auto size = [&](const std::string& key, std::int64_t value) {
      builder.u32(architecture + "." + key, static_cast<std::uint32_t>(value));
    };
    builder.text("general.architecture", architecture);
    size("block_count", *config->num_hidden_layers);
    size("embedding_length", *config->hidden_size);
    size("feed_forward_length", *config->intermediate_size);
    size("attention.head_count", *config->num_attention_heads);
    size("attention.head_count_kv", *config->num_key_value_heads);
    size("context_length", *config->max_position_embeddings);
    builder.number(architecture + ".attention.layer_norm_rms_epsilon", GgufType::kFloat32, 1e-5F);
    builder.number(architecture + ".rope.freq_base", GgufType::kFloat32,
                   static_cast<float>(*config->rope.theta));
    std::string data;
    for (const StoredTensor& tensor : files->tensors()) {
      std::string bytes(static_cast<std::size_t>(tensor.bytes), '\0');
      ASSERT_TRUE(files->read(tensor, 0, std::as_writable_bytes(std::span(bytes))));
      const bool rotated = tensor.name.find("q_proj") != std::string::npos ||
                           tensor.name.find("k_proj") != std::string::npos;
      if (rotated) bytes = with_neighbours(bytes, tensor.shape[1] * 2, *config->head_dim);
      const std::vector<std::int64_t> shape(tensor.shape.rbegin(), tensor.shape.rend());
      builder.tensor(gguf_name(tensor.name), shape, tensor.type == "F32" ? kF32 : kF16,
                     data.size());
      data += bytes;
      data.resize((data.size() + 31) / 32 * 32);
    }
    builder.data_bytes = data.size();
    std::string file = builder.bytes();
    file.replace(file.size() - data.size(), data.size(), data);
    std::ofstream(root_ / "m.gguf", std::ios::binary) << file;
  }

  fs::path root_;
};

TEST_F(GgufModel, LlamaWithNeighbourPairs_GivesTheSameLogits) {
  write("llama");
  auto gguf = golden::CheckpointRunner::open(root_ / "m.gguf", {});
  ASSERT_TRUE(gguf) << gguf.error().text();
  auto plain = golden::CheckpointRunner::open(kSource, {});
  ASSERT_TRUE(plain) << plain.error().text();
  const std::vector<std::int32_t> prompt = {5, 17, 300, 42, 8, 8, 120};
  const auto a = (*gguf)->prefill(prompt);
  const auto b = (*plain)->prefill(prompt);
  ASSERT_TRUE(a && b);
  for (std::size_t i = 0; i < a->size(); ++i) EXPECT_NEAR((*a)[i], (*b)[i], 1e-4) << i;
}

TEST_F(GgufModel, ArchitectureWithoutClass_IsRefusedWithThoseThatHaveOne) {
  write("gpt2");
  const auto runner = golden::CheckpointRunner::open(root_ / "m.gguf", {});
  ASSERT_FALSE(runner);
  EXPECT_EQ(runner.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(runner.error().message, HasSubstr("llama, qwen2, qwen3"));
}

}  // namespace
}  // namespace kernelpath::model
