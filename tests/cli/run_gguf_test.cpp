// GGUF files through llm-run: every weight format of every family that can be read, against the
// same numbers in float32 safetensors files, computed by the reference kernels.
#include "model_files.h"
#include "run_logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>

namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class GgufRun : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(GgufRun, LogitsAreThoseOfTheDequantisedWeights) {
  const auto& [family, type] = GetParam();
  const ModelShape shape{.family = family, .tied = family == "qwen3"};
  const TemporaryFolder folder;
  const std::string gguf = folder.path("model.gguf");
  write_model(folder.path("plain"), shape, write_gguf(gguf, shape, random_tensors(shape), type));
  const std::vector<float> expected = logits_of(folder.path("plain"), {"--kernel", "reference"});
  expect_same_logits(logits_of(gguf, {"--kernel", "reference"}), expected);
  expect_same_logits(logits_of(gguf), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Run, GgufRun,
    ::testing::Combine(::testing::Values("llama", "qwen2", "qwen3"),
                       ::testing::Values("f32", "f16", "bf16", "q8_0", "q4_0", "q5_0", "q4_K",
                                         "q5_K", "q6_K", "Q4_K_M")),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); });

// The recorded tokens of a checkpoint, from a GGUF file that holds its weights exactly.
struct Converted {
  std::string name;
  std::string type;
  ModelShape shape;
};

class ConvertedCheckpoint : public ::testing::TestWithParam<Converted> {};

TEST_P(ConvertedCheckpoint, GivesItsGoldenTokens) {
  const Converted& row = GetParam();
  const TemporaryFolder folder;
  for (const std::string file : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy(checkpoint(row.name) + "/" + file, folder.path(file));
  }
  write_gguf(folder.path("m.gguf"), row.shape, tensors_of(checkpoint(row.name)), row.type);
  const Outcome outcome =
      run({folder.path("m.gguf"), "--expect", checkpoint(row.name) + "/golden.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("prompt 7: as expected"));
}

const ModelShape kLlamaShape = {
    .family = "llama", .hidden = 64, .intermediate = 128, .head_dim = 16, .context = 2048};
const ModelShape kQwen2Shape = {.family = "qwen2",
                                .layers = 3,
                                .hidden = 64,
                                .intermediate = 144,
                                .head_dim = 16,
                                .context = 512,
                                .eps = 1e-6F,
                                .rope_theta = 1e6F};
const ModelShape kQwen3Shape = {.family = "qwen3",
                                .layers = 3,
                                .hidden = 80,
                                .intermediate = 160,
                                .head_dim = 32,
                                .context = 512,
                                .eps = 1e-6F,
                                .rope_theta = 1e6F};

INSTANTIATE_TEST_SUITE_P(Run, ConvertedCheckpoint,
                         ::testing::Values(Converted{"llama-fp16", "f16", kLlamaShape},
                                           Converted{"llama-fp16", "f32", kLlamaShape},
                                           Converted{"qwen2-bias", "bf16", kQwen2Shape},
                                           Converted{"qwen3-qknorm", "bf16", kQwen3Shape}),
                         [](const auto& test) {
                           return test.param.shape.family + "_" + test.param.type;
                         });

TEST(RunGguf, NanInTheScaleOfABlock_IsAWarningWithTheTensorsName) {
  // How far before the end the scale of the last block lies; lm_head fills whole lines of the file.
  for (const auto& [type, from_end] :
       {std::pair{"q4_K", std::size_t{144}}, std::pair{"q6_K", std::size_t{2}}}) {
    const TemporaryFolder folder;
    const ModelShape shape;
    const std::string gguf = folder.path("model.gguf");
    write_gguf(gguf, shape, random_tensors(shape), type);
    std::string bytes = read_file(gguf);
    bytes.replace(bytes.size() - from_end, 2, "\x01\x7E");
    std::ofstream(gguf, std::ios::binary) << bytes;
    const Outcome outcome = run({gguf, "--prompt-tokens", "1", "-n", "1"});
    EXPECT_THAT(outcome.err, HasSubstr("lm_head.weight: the tensor holds NaN")) << type;
  }
}

TEST(RunGguf, TypeThatNoKernelReads_IsNamed) {
  const TemporaryFolder folder;
  const ModelShape shape;
  const std::string gguf = folder.path("model.gguf");
  write_gguf(gguf, shape, random_tensors(shape), "q4_0");
  // iq4_nl has blocks of the same size.
  std::string bytes = read_file(gguf);
  const std::string name = "blk.0.attn_k.weight";
  const std::size_t type = bytes.find(name) + name.size() + 4 + 2 * 8;
  bytes[type] = 20;
  std::ofstream(gguf, std::ios::binary) << bytes;
  const Outcome outcome = run({gguf, "--prompt-tokens", "1", "-n", "1"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("iq4_nl"), HasSubstr("k_proj"),
                    HasSubstr("not f32, bf16, f16, q8_0, q4_0, q5_0, q4_K, q5_K, q6_K")));
  EXPECT_EQ(outcome.out, "");
}

TEST(RunGguf, ArchitectureThatNoClassReads_IsRefusedWithThoseThatAre) {
  const TemporaryFolder folder;
  const ModelShape shape;
  const std::string gguf = folder.path("model.gguf");
  write_gguf(gguf, shape, random_tensors(shape), "f32");
  std::string bytes = read_file(gguf);
  for (std::size_t at = 0; (at = bytes.find("llama", at)) != std::string::npos;) {
    bytes.replace(at, 5, "gemma");
  }
  std::ofstream(gguf, std::ios::binary) << bytes;
  const Outcome outcome = run({gguf, "--prompt-tokens", "1", "-n", "1"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("gemma"), HasSubstr("llama, qwen2")));
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace kernelpath::testing
