#include "base/text.h"
#include "json/document.h"
#include "json/writer.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

// Bad inputs that one JSON text cannot be (cases/bad_inputs: sections A to D): special files, files
// that are long, deep or cut off, and files beside each other.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The documented second, with room for a debug build. A sanitizer takes its own time, and keeps a
// shadow of memory and what has been freed.
constexpr double kTimeLimit_s = kUnderSanitizer ? 30 : 5;
constexpr std::int64_t kMemoryLimitKib = (kUnderSanitizer ? 1024 : 256) * 1024;

void expect_refused(const Outcome& outcome, const std::string& what) {
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("llm-inspect: error["));
  EXPECT_THAT(outcome.err, HasSubstr(what));
  EXPECT_LT(outcome.cpu_s, kTimeLimit_s);
}

std::string llama_config() { return read_file(config_folder("01-ai__Yi-34B") + "/config.json"); }

TEST(BadFile, A3_MissingPath_IsRefused) {
  expect_refused(inspect({"/no/such/config.json"}), "no such file");
}

TEST(BadFile, A4_FolderWithoutConfig_SaysWhatItLookedFor) {
  const TemporaryFolder folder;
  expect_refused(inspect({folder.path()}), "no config.json");
}

TEST(BadFile, A5_Fifo_IsNotOpened) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path("config.json");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  expect_refused(inspect({fifo}), "not a regular file");
  expect_refused(inspect({"/dev/null"}), "not a regular file");
}

TEST(BadFile, A6_LinkLoop_IsRefused) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("b", folder.path("a"));
  std::filesystem::create_symlink("a", folder.path("b"));
  expect_refused(inspect({folder.path("a")}), "too many");
}

TEST(BadFile, A7_LinkOutOfTheFolder_IsNamedAndRefusedWhenStrict) {
  const TemporaryFolder folder;
  const std::string target = folder.write("elsewhere/real.json", llama_config());
  std::filesystem::create_directories(folder.path("model"));
  std::filesystem::create_symlink(target, folder.path("model/config.json"));
  const Outcome outcome = inspect({folder.path("model"), "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("real.json"));
  expect_refused(inspect({folder.path("model"), "--strict"}), "real.json");
}

TEST(BadFile, A8_NoPermission_GivesTheSystemsReason) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  const TemporaryFolder folder;
  const std::string file = folder.write("config.json", llama_config());
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  expect_refused(inspect({file}), "Permission denied");
}

TEST(BadFile, A9_LongFile_IsRefusedBeforeItIsRead) {
  const TemporaryFolder folder;
  const std::string file = folder.write("config.json", "{}");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 30);
  const Outcome outcome = inspect({file});
  expect_refused(outcome, "16777216");
  EXPECT_LT(outcome.peak_memory_kib, kMemoryLimitKib);
}

TEST(BadFile, A9_LongStandardInput_IsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder.write("spaces", std::string((16U << 20U) + 10, ' '));
  const Outcome outcome = run_program("llm-inspect", {.arguments = {"-"}, .input_file = file});
  expect_refused(outcome, "16777216");
}

TEST(BadFile, A10_CutAnywhere_NeverGivesAResult) {
  std::string config = llama_config();
  config.resize(config.find_last_not_of(" \n\r\t") + 1);
  const TemporaryFolder folder;
  std::vector<std::string> arguments;
  for (std::size_t length = 1; length < config.size(); ++length) {
    arguments.push_back(folder.write(std::to_string(length) + ".json", config.substr(0, length)));
  }
  // One process for all: the exit code is 3, and there is one error a file and no answer.
  const Outcome outcome = inspect(arguments);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  std::size_t errors = 0;
  for (const std::string& line : split(outcome.err, '\n')) {
    if (line.find("llm-inspect: error[INPUT-JSON]") == 0) ++errors;
  }
  EXPECT_EQ(errors, arguments.size()) << outcome.err.substr(0, 2000);
}

TEST(BadFile, A14_ChangesWhileItIsRead_GiveAnErrorOrNothing) {
  const TemporaryFolder folder;
  // Long, so that reading takes longer than a change.
  const std::string file =
      folder.write("config.json", llama_config() + std::string(std::size_t{15} << 20U, ' '));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::int64_t i = 1; !done; ++i) {
      const timespec time = {.tv_sec = i, .tv_nsec = 0};
      const std::array<timespec, 2> times = {time, time};
      utimensat(AT_FDCWD, file.c_str(), times.data(), 0);
    }
  });
  // On a busy machine the writer may sleep through a whole run.
  bool seen = false;
  for (int run = 0; run < 20 && !seen; ++run) {
    const Outcome outcome = inspect({file});
    if (outcome.exit_code == 0) continue;
    seen = true;
    expect_refused(outcome, "error[INPUT-CHANGED]");
    EXPECT_THAT(outcome.err, HasSubstr("file changed while it was read"));
  }
  done = true;
  writer.join();
  EXPECT_TRUE(seen);
}

TEST(BadFile, B9_LongName_IsShortenedInTheMessage) {
  const TemporaryFolder folder;
  const std::string name(std::size_t{10} << 20U, 'x');
  const std::string file =
      folder.write("config.json", "{\"model_type\": \"" + name + "\", \"num_hidden_layers\": 2}");
  const Outcome outcome = inspect({file});
  expect_refused(outcome, "256");
  EXPECT_THAT(outcome.err, HasSubstr(name.substr(0, 32)));
  EXPECT_LT(outcome.err.size(), 1000U);
}

TEST(BadFile, C8_DeepNesting_IsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder.write("config.json", "{\"a\":" + std::string(1'000'000, '['));
  expect_refused(inspect({file}), "64");
}

TEST(BadFile, C9_Depth64_IsTheLimit) {
  const auto nested = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 1; i < depth; ++i) text += "{\"a\":";
    return text + "{}" + std::string(depth - 1, '}');
  };
  const TemporaryFolder folder;
  // 64 levels are read; what is then missing is a model.
  const Outcome allowed = inspect({folder.write("64.json", nested(64))});
  EXPECT_EQ(allowed.exit_code, 3);
  EXPECT_THAT(allowed.err, ::testing::Not(HasSubstr("INPUT-LIMIT")));
  const Outcome refused = inspect({folder.write("65.json", nested(65))});
  expect_refused(refused, "error[INPUT-LIMIT]");
}

TEST(BadFile, C19_MillionsOfEntries_AreRefusedInsideTheLimits) {
  const TemporaryFolder folder;
  std::string list = "{\"architectures\":[1";
  list.reserve(11'000'000);
  for (int i = 0; i < 5'000'000; ++i) list += ",1";
  const Outcome outcome = inspect({folder.write("config.json", list + "]}")});
  expect_refused(outcome, "error[INPUT-LIMIT]");
}

TEST(BadFile, C19_MillionsOfKeys_AreRefusedInsideTheLimits) {
  const TemporaryFolder folder;
  std::string keys = "{";
  for (int i = 0; i < 1'100'000; ++i) keys += "\"" + std::to_string(i) + "\":0,";
  const Outcome outcome = inspect({folder.write("config.json", keys + "\"x\":0}")});
  expect_refused(outcome, "1000000");
  EXPECT_LT(outcome.peak_memory_kib, kMemoryLimitKib);
}

TEST(BadFile, C5_KeyRepeatedOftenest_StaysInsideTheLimits) {
  const TemporaryFolder folder;
  std::string config = llama_config();
  std::string keys;
  for (int i = 0; i < 900'000; ++i) keys += ", \"x\": 0";
  config.insert(config.rfind('}'), keys);
  const Outcome outcome = inspect({folder.write("config.json", config)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_LT(outcome.out.size(), 40'000U);  // every engine of the build answers
  EXPECT_LT(outcome.cpu_s, kTimeLimit_s);
  EXPECT_LT(outcome.peak_memory_kib, kMemoryLimitKib);
}

TEST(BadFile, D37_QuantizationFilesThatDisagree_AreBothShown) {
  const TemporaryFolder folder;
  std::string config = llama_config();
  const std::size_t end = config.rfind('}');
  config.insert(end,
                R"(, "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"})");
  static_cast<void>(folder.write("config.json", config));
  static_cast<void>(folder.write(
      "hf_quant_config.json",
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}})"));
  const Outcome outcome = inspect({folder.path(), "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::Value document = json::parse(outcome.out, "")->root;
  const std::string warnings = json::to_text(*document.find("inputs")->items()[0].find("warnings"));
  EXPECT_THAT(warnings, HasSubstr("FP8"));
  EXPECT_THAT(warnings, HasSubstr("NVFP4"));
}

TEST(BadFile, D39_QuantizedLayers_MayBeMany) {
  const TemporaryFolder folder;
  std::string layers;
  for (int i = 0; i < 50'000; ++i) {
    layers += (i == 0 ? "" : ",");
    layers += "\"model.layers." + std::to_string(i) + ".mlp\":{\"quant_algo\":\"FP8\"}";
  }
  std::string config = llama_config();
  config.insert(config.rfind('}'),
                R"(, "quantization_config": {"quant_method": "modelopt", "quant_algo": )"
                R"("MIXED_PRECISION", "quantized_layers": {)" +
                    layers + "}}");
  const Outcome outcome = inspect({folder.write("config.json", config), "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_LT(outcome.cpu_s, kTimeLimit_s);
}

TEST(SeveralModels, OneThatFails_DoesNotHideTheOthers) {
  const std::string good = config_folder("01-ai__Yi-34B");
  const Outcome outcome = inspect({good, "/no/such/model", good, "--json"});
  EXPECT_EQ(outcome.exit_code, 3);
  const Result<json::Document> document = json::parse_object(outcome.out, "");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root.find("inputs")->items().size(), 2U);
  EXPECT_THAT(outcome.err, HasSubstr("\"code\":\"INPUT-MISSING\""));
}

}  // namespace
}  // namespace kernelpath::testing
