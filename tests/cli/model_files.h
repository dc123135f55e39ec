#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Writing checkpoints: tensors as floats, the formats that files store them in, and the files.
namespace kernelpath::testing {

struct PlainTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// The tensors of a checkpoint in f32, bf16 or f16, by name. Throws for other types.
std::vector<PlainTensor> tensors_of(const std::string& folder);

// Numbers between -scale and scale, the same for the same seed.
std::vector<float> random_values(std::size_t count, float scale, std::uint64_t seed);

// The largest magnitude; 0 of none.
float largest_of(std::span<const float> values);

// What a file holds for a tensor, and the numbers that it stands for.
struct Encoded {
  std::string bytes;
  std::vector<float> values;
};

// "f32", "f16", "bf16", "q8_0", "q4_0", "q5_0", "q4_K", "q5_K" or "q6_K": ggml's formats, each
// block of 32 or 256 values by itself. Source: llama.cpp 0c1e5709, ggml/src/ggml-quants.c,
// quantize_row_*_ref.
Encoded encode_ggml(std::string_view type, std::span<const float> values);

// A tensor of a safetensors file.
struct FilePart {
  std::string name;
  std::string type;  // "F32", "BF16", "F8_E4M3", "U8" …
  std::vector<std::int64_t> shape;
  std::string bytes;
};
void write_safetensors(const std::string& path, std::span<const FilePart> parts);

FilePart as_f32(const PlainTensor& tensor);

// A matrix quantised as a checkpoint stores it: its tensors, and the matrix that they stand for.
struct QuantisedMatrix {
  std::vector<FilePart> parts;
  PlainTensor stands_for;
};
QuantisedMatrix fp8_per_channel(const PlainTensor& matrix);
QuantisedMatrix fp8_per_tensor(const PlainTensor& matrix);
QuantisedMatrix fp8_per_block(const PlainTensor& matrix, std::int64_t rows, std::int64_t cols);
// compressed-tensors: weight_packed, weight_scale, weight_global_scale, which divides. ModelOpt:
// weight, weight_scale, weight_scale_2, which multiplies.
QuantisedMatrix nvfp4(const PlainTensor& matrix, bool modelopt);

// A model of the families that GGUF files are read for. The sizes fill every block format.
struct ModelShape {
  std::string family = "llama";  // or "qwen2", "qwen3": model_type, and GGUF's architecture
  std::int64_t layers = 2;
  std::int64_t hidden = 256;
  std::int64_t intermediate = 512;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t vocabulary = 320;
  std::int64_t context = 256;
  bool tied = false;
  float eps = 1e-5F;
  float rope_theta = 10000.0F;
};

// Random weights of such a model, with everything that its family has (biases, norms of heads).
std::vector<PlainTensor> random_tensors(const ModelShape& shape);
// Its config.json; `more` are further members (R"("a": 1)").
std::string config_of(const ModelShape& shape, const std::string& more = {});
// A folder with both, the tensors in float32.
void write_model(const std::string& folder, const ModelShape& shape,
                 std::span<const PlainTensor> tensors);

// A GGUF file with the model's sizes and tensors, named and ordered as llama.cpp's converter does
// it. `type` is that of matrices whose rows fill its blocks; others are q8_0, or f32 where they do
// not fill these either. "Q4_K_M" is llama-quantize's mixture of q4_K and q6_K. Vectors are f32.
// Returns the tensors as the file stands for them.
std::vector<PlainTensor> write_gguf(const std::string& path, const ModelShape& shape,
                                    std::span<const PlainTensor> tensors, std::string_view type);

}  // namespace kernelpath::testing
