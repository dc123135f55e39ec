// Checkpoints whose layers are quantised differently: each layer is made empty, learns how it is
// stored, and then gets its weights.
#include "model_files.h"
#include "run_logits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// How the matrix of that name is stored; nothing: as it is.
using Storage = std::function<std::optional<QuantisedMatrix>(const PlainTensor&)>;

bool is_projection(const PlainTensor& tensor) {
  return tensor.shape.size() == 2 && tensor.name.find("_proj.weight") != std::string::npos;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Writes the model quantised to `folder`/mixed, and what it stands for to `folder`/plain.
void write_both(const TemporaryFolder& folder, const std::string& quantisation,
                const Storage& storage) {
  const ModelShape shape;
  std::vector<FilePart> parts;
  std::vector<PlainTensor> plain;
  for (const PlainTensor& tensor : random_tensors(shape)) {
    std::optional<QuantisedMatrix> matrix = storage(tensor);
    if (!matrix) {
      parts.push_back(as_f32(tensor));
      plain.push_back(tensor);
      continue;
    }
    parts.insert(parts.end(), matrix->parts.begin(), matrix->parts.end());
    plain.push_back(std::move(matrix->stands_for));
  }
  write_model(folder.path("plain"), shape, plain);
  std::ignore = folder.write("mixed/config.json", config_of(shape, quantisation));
  write_safetensors(folder.path("mixed/model.safetensors"), parts);
}

void expect_same(const TemporaryFolder& folder) {
  const std::vector<float> expected = logits_of(folder.path("plain"), {"--kernel", "reference"});
  expect_same_logits(logits_of(folder.path("mixed"), {"--kernel", "reference"}), expected);
  expect_same_logits(logits_of(folder.path("mixed")), expected);
}

constexpr const char* kGroups = R"("quantization_config": {
"quant_method": "compressed-tensors", "format": "mixed-precision",
"ignore": ["lm_head", "re:.*layers\\.1\\.mlp\\..*"],
"config_groups": {
 "group_0": {"targets": ["re:.*self_attn\\.[qkv]_proj$"], "input_activations": null,
  "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}},
 "group_1": {"targets": ["Linear"], "input_activations": null,
  "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}}}})";

TEST(MixedQuantisation, GroupsOfCompressedTensors_GiveEachLayerItsOwn) {
  const TemporaryFolder folder;
  write_both(folder, kGroups, [](const PlainTensor& tensor) -> std::optional<QuantisedMatrix> {
    if (!is_projection(tensor) || holds(tensor.name, "layers.1.mlp")) return std::nullopt;
    const bool attention = holds(tensor.name, "self_attn") && !holds(tensor.name, "o_proj");
    return attention ? fp8_per_channel(tensor) : nvfp4(tensor, /*modelopt=*/false);
  });
  expect_same(folder);
}

// A list of layers beside config.json, as ModelOpt writes it.
TEST(MixedQuantisation, QuantizedLayersOfModelOpt_GiveEachLayerItsOwn) {
  const TemporaryFolder folder;
  write_both(folder, "", [](const PlainTensor& tensor) -> std::optional<QuantisedMatrix> {
    if (!is_projection(tensor)) return std::nullopt;
    if (holds(tensor.name, "layers.0.mlp")) return nvfp4(tensor, /*modelopt=*/true);
    if (holds(tensor.name, "layers.1.self_attn")) return fp8_per_tensor(tensor);
    return std::nullopt;
  });
  std::string layers;
  const auto add = [&](const std::string& module, const std::string& algorithm) {
    layers += fmt::format(R"({}"{}": {{"quant_algo": "{}"}})", layers.empty() ? "" : ", ", module,
                          algorithm);
  };
  for (const std::string name : {"gate_proj", "up_proj", "down_proj"}) {
    add("model.layers.0.mlp." + name, "NVFP4");
  }
  for (const std::string name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    add("model.layers.1.self_attn." + name, "FP8");
  }
  std::ignore =
      folder.write("mixed/hf_quant_config.json",
                   fmt::format(R"({{"producer": {{"name": "modelopt", "version": "0.33.0"}},
"quantization": {{"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": null,
"quantized_layers": {{{}}}}}}})",
                               layers));
  expect_same(folder);
}

TEST(MixedQuantisation, ModulesThatAreNotConverted_StayPlain) {
  const TemporaryFolder folder;
  write_both(folder,
             R"("quantization_config": {"quant_method": "fp8", "fmt": "e4m3",
"activation_scheme": "dynamic", "weight_block_size": [64, 32],
"modules_to_not_convert": ["lm_head", "model.layers.1.self_attn"]})",
             [](const PlainTensor& tensor) -> std::optional<QuantisedMatrix> {
               if (!is_projection(tensor) || holds(tensor.name, "layers.1.self_attn")) {
                 return std::nullopt;
               }
               return fp8_per_block(tensor, 64, 32);
             });
  expect_same(folder);
}

// A module that the configuration calls quantised and the file holds plain is no guess.
TEST(MixedQuantisation, FileThatIsStoredOtherwise_IsRefusedWithAllNames) {
  const TemporaryFolder folder;
  write_both(folder, kGroups, [](const PlainTensor& tensor) -> std::optional<QuantisedMatrix> {
    if (!is_projection(tensor) || holds(tensor.name, "mlp")) return std::nullopt;
    return fp8_per_channel(tensor);
  });
  const Outcome outcome = run({folder.path("mixed"), "--prompt-tokens", "1", "-n", "1"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("model.layers.0.mlp.up_proj.weight_packed"),
                                 HasSubstr("model.layers.0.self_attn.o_proj.weight_packed")));
}

}  // namespace
}  // namespace kernelpath::testing
