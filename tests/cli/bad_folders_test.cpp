#include "json/document.h"
#include "json/writer.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sys/stat.h>

// Model folders with a bad file in them (cases/bad_inputs: section E, and A5 inside a folder).

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kConfig = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
  "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
  "num_key_value_heads": 4, "max_position_embeddings": 1024, "vocab_size": 100,
  "torch_dtype": "bfloat16"})";

// A safetensors file with one tensor "a" of ten bf16 zeros.
std::string shard() {
  const std::string header = R"({"a":{"dtype":"BF16","shape":[10],"data_offsets":[0,20]}})";
  std::string out(8, '\0');
  out[0] = static_cast<char>(header.size());
  return out + header + std::string(20, '\0');
}

class ModelFolder : public ::testing::Test {
 protected:
  void SetUp() override { write("config.json", kConfig); }

  void write(const std::string& name, const std::string& text) const {
    static_cast<void>(folder_.write("model/" + name, text));
  }
  [[nodiscard]] std::string path(const std::string& name = "") const {
    return folder_.path("model/" + name);
  }
  void write_index(const std::string& shard_name, const std::string& total_size = "20") const {
    write("model.safetensors.index.json", R"({"metadata":{"total_size":)" + total_size +
                                              R"(},"weight_map":{"a":")" + shard_name + "\"}}");
  }

  void expect_refused(const std::vector<std::string>& more, const std::string& what) const {
    std::vector<std::string> arguments = {path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = inspect(arguments);
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(what));
  }

  // The answer's warnings hold `what`; its weights come from `source`.
  void expect_warning(const std::string& what, const std::string& source) const {
    const Outcome outcome = inspect({path(), "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json::Value document = json::parse(outcome.out, "stdout")->root;
    const json::Value& input = document.find("inputs")->items()[0];
    EXPECT_THAT(json::to_text(*input.find("warnings")), HasSubstr(what));
    const json::Value& memory = *input.find("engines")->items()[0].find("memory");
    EXPECT_EQ(memory.find("weight_source")->as_string(), source);
  }

  TemporaryFolder folder_;
};

TEST_F(ModelFolder, A5_FifoCalledConfig_IsNotOpened) {
  std::filesystem::remove(path("config.json"));
  ASSERT_EQ(mkfifo(path("config.json").c_str(), 0600), 0);
  expect_refused({}, path("config.json") + ": not a regular file but a FIFO");
}

TEST_F(ModelFolder, E1_ShardOutsideTheFolder_IsNeverOpened) {
  for (const char* name : {"../../etc/passwd", "/etc/passwd", R"(C:\\x)", R"(a\u0000b)"}) {
    write_index(name);
    expect_refused({}, "/weight_map/a: shard outside the folder");
  }
}

TEST_F(ModelFolder, E2_LinkOutOfTheFolder_IsNotFollowed) {
  const std::string target = folder_.write("elsewhere/a.safetensors", shard());
  std::filesystem::create_symlink(target, path("a.safetensors"));
  write_index("a.safetensors");
  expect_warning("CHECKPOINT-LINK-OUTSIDE", "geometry");
  expect_refused({"--strict"}, "a link out of the model's folder");
}

TEST_F(ModelFolder, E3_MissingShard_IsListed) {
  write_index("missing.safetensors");
  expect_warning("missing.safetensors", "geometry");
}

TEST_F(ModelFolder, E4_TotalSize_IsRecomputed) {
  write("a.safetensors", shard());
  for (const char* size : {"-1", "21", "\"20\""}) {
    write_index("a.safetensors", size);
    expect_warning("CHECKPOINT-TOTAL-SIZE", "safetensors headers");
  }
}

TEST_F(ModelFolder, E5_TensorInTwoShards_IsNamed) {
  write("a.safetensors", shard());
  write("b.safetensors", shard());
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})");
  expect_warning("tensor a: in two shards", "safetensors headers");
}

TEST_F(ModelFolder, E6_IndexBesideOneFile_SaysWhichCounts) {
  write("a.safetensors", shard());
  write("model.safetensors", shard());
  write_index("a.safetensors");
  expect_warning("the index counts", "safetensors headers");
}

}  // namespace
}  // namespace kernelpath::testing
