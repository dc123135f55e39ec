// Files: config.json, the folder round it, and what stands beside it.

#include "testing.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace kernelpath::config {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kernelpath-config-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    folder_ = root_ / "My-Model";
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  fs::path root_;
  fs::path folder_;
};

TEST_F(ModelFolder, FolderAndFile_AreTheSameModel) {
  write("config.json", llama());
  const auto by_folder = load_model(folder_.string());
  const auto by_file = load_model((folder_ / "config.json").string());
  ASSERT_TRUE(by_folder.has_value()) << by_folder.error().text();
  ASSERT_TRUE(by_file.has_value());
  EXPECT_EQ(by_folder->name, "My-Model");
  EXPECT_EQ(by_file->name, "My-Model");
  EXPECT_EQ(by_folder->path, (folder_ / "config.json").string());
  EXPECT_EQ(by_folder->sha256, by_file->sha256);
}

TEST_F(ModelFolder, WithoutConfig_SaysWhatWasLookedFor) {
  const auto model = load_model(folder_.string());
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, ErrorCode::kInputKind);
  EXPECT_THAT(model.error().text(), HasSubstr("config.json"));
}

TEST_F(ModelFolder, MissingPath_IsNoDefaultModel) {
  const auto model = load_model((folder_ / "absent").string());
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, ErrorCode::kInputMissing);
}

TEST_F(ModelFolder, LinkOutOfTheFolder_WarnsAndStrictRefuses) {
  std::ofstream(root_ / "elsewhere.json") << llama();
  fs::create_symlink(root_ / "elsewhere.json", folder_ / "config.json");
  const auto model = load_model(folder_.string());
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_THAT(warning_text(*model, "INPUT-LINK-OUTSIDE"), HasSubstr("elsewhere.json"));
  const auto strict = load_model(folder_.string(), {.strict = true});
  ASSERT_FALSE(strict.has_value());
  EXPECT_THAT(strict.error().message, HasSubstr("elsewhere.json"));
}

TEST_F(ModelFolder, StandardInput_IsTextWithoutSiblings) {
  const auto model = load_model("-", {}, llama());
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->name, "-");
  EXPECT_FALSE(model->weights);
}

TEST_F(ModelFolder, QuantFileBesideIt_MayBeTheOnlyWord) {
  write("config.json", llama());
  write("hf_quant_config.json",
        R"({"quantization":{"quant_algo":"NVFP4","kv_cache_quant_algo":"FP8","group_size":16,
            "exclude_modules":["lm_head"]}})");
  const auto model = load_model(folder_.string());
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_EQ(model->quantization.algo.value, "NVFP4");
  EXPECT_EQ(model->quantization.algo.origin.kind, OriginKind::kSibling);
  EXPECT_EQ(model->quantization.algo.origin.where, "hf_quant_config.json:/quantization/quant_algo");
  EXPECT_EQ(model->quantization.kv_cache_dtype.value, "fp8");
  ASSERT_TRUE(model->sibling_quantization);
  EXPECT_TRUE(model->warnings.empty());
  EXPECT_FALSE(load_model(folder_.string(), {.read_siblings = false})->quantization.any());
}

TEST_F(ModelFolder, QuantFileThatDisagrees_ShowsBothAndWhoBelievesWhich) {
  write("config.json",
        llama({{"quantization_config", R"({"quant_method":"modelopt","quant_algo":"FP8"})"}}));
  write("hf_quant_config.json",
        R"({"quantization":{"quant_algo":"NVFP4","kv_cache_quant_algo":"FP8"}})");
  const auto model = load_model(folder_.string());
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_EQ(model->quantization.algo.value, "FP8");
  const std::string text = warning_text(*model, "CONFIG-QUANT-CONFLICT");
  EXPECT_THAT(text, HasSubstr("FP8 in config.json and NVFP4 in hf_quant_config.json"));
  EXPECT_THAT(text, HasSubstr("TensorRT-LLM believes the file beside it"));
}

TEST_F(ModelFolder, BrokenQuantFile_IsNamed) {
  write("config.json", llama());
  write("hf_quant_config.json", R"({"quantization":{"quant_algo":7}})");
  const auto model = load_model(folder_.string());
  ASSERT_FALSE(model.has_value());
  EXPECT_THAT(model.error().file, HasSubstr("hf_quant_config.json"));
  EXPECT_EQ(model.error().code, ErrorCode::kConfigType);
}

TEST_F(ModelFolder, AwqsOwnFile_IsRead) {
  write("config.json", llama());
  write("quant_config.json", R"({"zero_point":true,"q_group_size":128,"w_bit":4})");
  const auto model = load_model(folder_.string());
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_EQ(model->quantization.algo.value, "W4A16_AWQ");
  EXPECT_EQ(model->quantization.group_size.value, 128);
  EXPECT_FALSE(model->sibling_quantization);
}

TEST_F(ModelFolder, Weights_AreSummedFromTheHeader) {
  write("config.json", llama());
  const std::string header = R"({"w":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  write("model.safetensors", file + header + "12345678");
  const auto model = load_model(folder_.string());
  ASSERT_TRUE(model.has_value()) << model.error().text();
  ASSERT_TRUE(model->weights);
  EXPECT_EQ(model->weights->total_bytes.value, 8);
  EXPECT_EQ(model->weights->tensor_count.value, 1);
  EXPECT_TRUE(model->weights->from_headers);
}

TEST_F(ModelFolder, Fp8CacheWithoutScales_Warns) {
  write("config.json", llama({{"quantization_config",
                               R"({"quant_algo":"FP8","quant_method":"modelopt",
                                   "kv_cache_quant_algo":"FP8"})"}}));
  const std::string header = R"({"w":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  write("model.safetensors", file + header + "12345678");
  const auto model = load_model(folder_.string());
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_THAT(warning_text(*model, "CONFIG-KV-SCALES"), HasSubstr("1.0"));
}

TEST(Partial, MissingFields_AreNeitherRequiredNorFilledIn) {
  const auto model = loaded(R"({"architectures":["LlamaForCausalLM"]})", {.partial = true});
  EXPECT_FALSE(model.num_hidden_layers);
  EXPECT_FALSE(model.num_key_value_heads);
  EXPECT_FALSE(model.rope.theta);
  EXPECT_TRUE(model.layers.empty());
  EXPECT_TRUE(model.warnings.empty());
  const auto empty = loaded("{}", {.partial = true});
  EXPECT_FALSE(empty.has_architectures);
}

TEST(Partial, StatedFields_AreRead) {
  const auto model = loaded(R"({"num_hidden_layers":2,"hidden_size":4096,"num_attention_heads":32,
      "num_key_value_heads":[8,4],"kv_lora_rank":null,"draft_vocab_size":null})",
                            {.partial = true});
  EXPECT_EQ(model.num_key_value_heads_list, (std::vector<std::int64_t>{8, 4}));
  EXPECT_EQ(model.num_key_value_heads.value, 6);
  EXPECT_FALSE(model.head_dim);
  EXPECT_TRUE(model.has_kv_lora_rank);
  EXPECT_TRUE(model.draft.has_draft_vocab_size);
  EXPECT_TRUE(model.has_field("kv_lora_rank"));
  EXPECT_FALSE(model.has_field("head_dim"));
}

TEST(Partial, WrongTypes_AreStillErrors) {
  const auto model = load(R"({"num_hidden_layers":"2"})", {.partial = true});
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, ErrorCode::kConfigType);
}

TEST(Partial, ValueThatIsNoFile_IsRead) {
  const auto document =
      json::parse(R"({"config":{"architectures":["A"],"architectures":["B"]}})", "x");
  ASSERT_TRUE(document.has_value());
  const auto model = from_value(*document->root.find("config"), {.partial = true});
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->architectures, std::vector<std::string>{"B"});
  EXPECT_FALSE(from_value(json::Value::integer(1), {.partial = true}).has_value());
}

}  // namespace
}  // namespace kernelpath::config
