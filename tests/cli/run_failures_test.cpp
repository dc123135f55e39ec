// What cannot be answered is named, and loses nothing of what was.
#include "model_files.h"
#include "run_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names_of(const std::vector<json::Value>& events) {
  std::vector<std::string> out;
  for (const json::Value& event : events) {
    const std::string& name = event.find("event")->as_string();
    if (name == "token" || event.find("request") == nullptr) continue;
    out.push_back(event.find("request")->as_string() + " " + name);
  }
  std::ranges::sort(out);
  return out;
}

TEST(RunFailures, LinesThatCannotBeAnswered_DoNotKeepTheOthersFromIt) {
  const TemporaryFolder folder;
  std::string long_prompt = "1";
  for (int i = 0; i < 600; ++i) long_prompt += ",1";
  const std::string prompts =
      folder.write("prompts.jsonl",
                   "{\"id\": \"good\", \"prompt\": \"Hello\", \"max_tokens\": 4}\n"
                   "{\"id\": \"long\", \"prompt_ids\": [" +
                       long_prompt +
                       "]}\n"
                       "{\"id\": \"outside\", \"prompt_ids\": [648]}\n"
                       "{\"id\": \"field\", \"prompt_text\": \"Hello\"}\n"
                       "no JSON\n"
                       "{\"id\": \"good\", \"prompt\": \"again\"}\n"
                       "{\"id\": \"last\", \"prompt_ids\": [1, 2], \"max_tokens\": 2}\n");
  const Outcome outcome =
      run({checkpoint(kLlama), "--prompts", prompts, "--format", "jsonl", "--ignore-eos"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(names_of(lines_of(outcome.out)),
              ::testing::ElementsAre("field error", "good done", "last done", "line 5 error",
                                     "line 6 error", "long error", "outside error"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("the prompt has 601 tokens"), HasSubstr("context 512"),
                                 HasSubstr("token 648 at index 0 is outside the vocabulary of 648"),
                                 HasSubstr("prompt_text"), HasSubstr("5:"),
                                 HasSubstr("another line has the same id")));
}

TEST(RunFailures, BatchWithoutAnyUsableLine_PrintsNothing) {
  const TemporaryFolder folder;
  const std::string prompts = folder.write("prompts.jsonl", "{}\n[1]\n");
  const Outcome outcome = run({checkpoint(kLlama), "--prompts", prompts});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("1:"), HasSubstr("2:")));
}

TEST(RunFailures, FileWithoutARequest_IsNoInput) {
  const TemporaryFolder folder;
  for (const char* content : {"", "\n \r\n"}) {
    const Outcome outcome =
        run({checkpoint(kLlama), "--prompts", folder.write("prompts.jsonl", content)});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("prompts.jsonl: holds no request"),
                                   HasSubstr("a JSON object on a line")));
  }
}

TEST(RunFailures, PromptAsLongAsTheContext_IsRefused) {
  std::string tokens = "1";
  for (int i = 0; i < 511; ++i) tokens += ",1";
  const Outcome outcome = run({checkpoint(kLlama), "--prompt-tokens", tokens, "-n", "1"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("the prompt has 512 tokens, the model's context 512"));
  // One token less leaves one to generate, however many are asked for.
  const Outcome fits = run({checkpoint(kLlama), "--prompt-tokens", tokens.substr(2), "-n", "9",
                            "--ignore-eos", "--json"});
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  const json::Value document = json::parse(fits.out, "out").value().root;
  EXPECT_EQ(document.find("results")->items()[0].find("generated_tokens")->as_integer(), 1);
}

// A model with one embedding that is not a number: a prompt with that token cannot be answered.
class NanWeights : public ::testing::Test {
 protected:
  NanWeights() {
    const ModelShape shape;
    std::vector<PlainTensor> tensors = random_tensors(shape);
    PlainTensor& table = tensors.front();
    std::fill_n(table.values.begin() + 77 * shape.hidden, shape.hidden,
                std::numeric_limits<float>::quiet_NaN());
    write_model(folder_.path("model"), shape, tensors);
  }

  [[nodiscard]] std::string model() const { return folder_.path("model"); }
  TemporaryFolder folder_;
};

TEST_F(NanWeights, NanInATensor_IsAWarningWithItsName) {
  const Outcome outcome = run({model(), "--prompt-tokens", "5", "-n", "2", "--ignore-eos"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("model.embed_tokens.weight: the tensor holds NaN values"));
}

TEST_F(NanWeights, OneRequestThatMeetsThem_EndsAlone) {
  const std::string prompts = folder_.write("prompts.jsonl",
                                            "{\"id\": \"a\", \"prompt_ids\": [5, 6]}\n"
                                            "{\"id\": \"nan\", \"prompt_ids\": [5, 77]}\n"
                                            "{\"id\": \"b\", \"prompt_ids\": [5, 6, 7]}\n");
  const Outcome outcome = run(
      {model(), "--prompts", prompts, "-n", "4", "--ignore-eos", "--format", "jsonl", "--quiet"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  for (const json::Value& event : lines_of(outcome.out)) {
    if (event.find("event")->as_string() != "done") continue;
    const bool met = event.find("request")->as_string() == "nan";
    EXPECT_EQ(event.find("reason")->as_string(), met ? "error" : "length");
    EXPECT_EQ(event.find("generated_tokens")->as_integer(), met ? 0 : 4);
    EXPECT_EQ(event.find("error") != nullptr, met);
  }
  EXPECT_THAT(outcome.err, HasSubstr("no finite largest value"));
}

TEST_F(NanWeights, OnlyRequestThatMeetsThem_IsTheProgramsError) {
  const Outcome outcome = run({model(), "--prompt-tokens", "77", "-n", "2"});
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("no finite largest value"));
}

// Twice: timeout(1) signals its child and then the group that it is in.
TEST(RunFailures, FileOfAnInterruptedRun_HoldsWhatWasGenerated) {
  for (const auto& [signal, signals] :
       {std::pair{SIGINT, 1}, {SIGTERM, 1}, {SIGHUP, 1}, {SIGINT, 2}}) {
    const TemporaryFolder folder;
    const std::string file = folder.path("out.jsonl");
    const Outcome outcome = run_program(
        "llm-run", {.arguments = {checkpoint(kLlama), "-p", "Hello", "-n", "100000", "--ignore-eos",
                                  "--max-model-len", "200000", "-o", "jsonl:" + file},
                    .signal_after_note = signal,
                    .signals = signals});
    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.err;
    const std::vector<json::Value> events = lines_of(read_file(file));
    ASSERT_GE(events.size(), 3U);
    EXPECT_EQ(events[events.size() - 2].find("reason")->as_string(), "cancelled");
  }
}

TEST(RunFailures, FileThatCannotBeWritten_IsRefusedBeforeTheRun) {
  const TemporaryFolder folder;
  const std::string missing = folder.path("missing/out");
  for (const std::vector<std::string>& options : {std::vector<std::string>{"-o", missing},
                                                  {"-o", "json:" + folder.path("")},
                                                  {"--dump-logits", missing},
                                                  {"--dump-logits", folder.path("")}}) {
    std::vector<std::string> arguments = {checkpoint(kLlama), "-p", "Hello", "-n", "4"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 6) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("cannot be written"), Not(HasSubstr("weights"))));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(RunFailures, WhatStandsInThePlaceOfWeights_IsNamed) {
  const TemporaryFolder folder;
  const std::string model = copy_checkpoint(kLlama, folder);
  const std::string weights = model + "/model.safetensors";
  EXPECT_THAT(run({weights, "-p", "x"}).err, HasSubstr("give the folder that has config.json"));
  std::filesystem::remove(weights);
  std::filesystem::create_directory(weights);
  EXPECT_THAT(run({model, "-p", "x"}).err, HasSubstr(": model.safetensors is a folder"));
  std::filesystem::remove(weights);
  std::filesystem::create_symlink("nowhere", weights);
  const Outcome outcome = run({model, "-p", "x"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr(": model.safetensors is a link that leads nowhere"));
}

TEST(RunFailures, PromptThatIsNotUtf8_NamesWhereItComesFrom) {
  const TemporaryFolder folder;
  const std::string file = folder.write("prompt.txt", "ab\xFF");
  const Outcome outcome = run({checkpoint(kLlama), "-p", "@" + file});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("prompt.txt: byte 2 of the prompt is not UTF-8"));
  EXPECT_THAT(run({checkpoint(kLlama), "-p", "a\xC0"}).err, HasSubstr("--prompt: byte 1 of"));
}

// llm-run with a limit of its shell's (ulimit).
Outcome run_with_limit(const std::string& limit, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"-c", "ulimit " + limit + "; exec \"$0\" \"$@\"",
                                       std::string(KERNELPATH_BIN_DIR) + "/llm-run"});
  return run_program("/bin/sh", {.arguments = std::move(arguments)});
}

TEST(RunFailures, FileLargerThanAllowed_IsARuntimeError) {
  const TemporaryFolder folder;
  const std::string file = folder.path("out.jsonl");
  const Outcome outcome = run_with_limit("-f 1", {checkpoint(kLlama), "-p", "Hello", "-n", "20",
                                                  "--ignore-eos", "-o", "jsonl:" + file});
  EXPECT_EQ(outcome.exit_code, 6) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("out.jsonl: cannot be written: File too large"),
                                 HasSubstr("is in " + file + ".partial")));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_THAT(read_file(file + ".partial"), ::testing::StartsWith("{\"schema\""));
}

// What has no room takes nothing from what has.
TEST(RunFailures, OneFileWithoutRoom_LeavesTheOtherWhole) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const TemporaryFolder folder;
  const std::string file = folder.path("out.json");
  const Outcome outcome = run({checkpoint(kLlama), "-p", "Hello", "-n", "4", "--ignore-eos", "-o",
                               "text:/dev/full", "-o", "json:" + file});
  EXPECT_EQ(outcome.exit_code, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full: cannot be written"));
  const json::Value document = json::parse(read_file(file), "out").value().root;
  EXPECT_EQ(document.find("results")->items()[0].find("generated_tokens")->as_integer(), 4);
}

// Their stacks alone take more than the process may have.
TEST(RunFailures, ThreadsThatTheSystemDoesNotGive_AreAResource) {
  if (kUnderSanitizer) GTEST_SKIP() << "a sanitizer maps memory of its own";
  const Outcome outcome = run_with_limit(
      "-v 3000000", {checkpoint(kLlama), "-p", "Hello", "-n", "1", "--threads", "4096"});
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("no more threads can be started"), HasSubstr("--threads")));
}

// 64 threads with small stacks start; 2 MiB for each of them is more than the process may have.
TEST(RunFailures, KernelsMemoryThatTheSystemDoesNotGive_IsAResource) {
  if (kUnderSanitizer) GTEST_SKIP() << "a sanitizer maps memory of its own";
  const Outcome outcome =
      run_with_limit("-s 256; ulimit -v 180000",
                     {checkpoint(kLlama), "-p", "Hello", "-n", "1", "--threads", "64"});
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("no memory for 128 MiB of what the matrix kernels"));
}

TEST(RunFailures, LengthBeyondTheModels_IsAWarning) {
  const auto err = [](const char* length) {
    return run({checkpoint(kLlama), "-p", "Hello", "-n", "1", "--max-model-len", length}).err;
  };
  EXPECT_THAT(err("513"), HasSubstr("--max-model-len 513 is beyond the 512 positions"));
  EXPECT_THAT(err("512"), Not(HasSubstr("beyond")));
}

// More places than requests cost nothing.
TEST(RunFailures, BatchLargerThanTheRequests_IsAsLargeAsThey) {
  EXPECT_EQ(
      run({checkpoint(kLlama), "-p", "Hello", "-n", "1", "--batch-size", "1000000000"}).exit_code,
      0);
}

TEST(RunFailures, FullDisk_IsARuntimeError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const Outcome outcome = run_program(
      "llm-run", {.arguments = {checkpoint(kLlama), "-p", "Hello", "-n", "4", "--ignore-eos"},
                  .output_file = "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_THAT(outcome.err, HasSubstr("standard output"));
}

// The index and the shards of a sharded checkpoint.
class Sharded : public ::testing::Test {
 protected:
  Sharded() : model_(copy_checkpoint("llama-sharded", folder_)) {}

  [[nodiscard]] Outcome run_it() const { return run({model_, "-p", "Hello", "-n", "2"}); }
  [[nodiscard]] std::string shard() const {
    for (const auto& entry : std::filesystem::directory_iterator(model_)) {
      if (entry.path().extension() == ".safetensors") return entry.path();
    }
    return "";
  }
  TemporaryFolder folder_;
  std::string model_;
};

TEST_F(Sharded, IndexThatPointsOutsideTheFolder_IsRefused) {
  const std::string name = std::filesystem::path(shard()).filename();
  replace_in_file(model_ + "/model.safetensors.index.json", name, "../" + name);
  std::filesystem::copy(shard(), folder_.path(name));
  const Outcome outcome = run_it();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("index.json"), HasSubstr("../" + name)));
}

TEST_F(Sharded, MissingShard_IsNamed) {
  const std::string name = std::filesystem::path(shard()).filename();
  std::filesystem::remove(shard());
  const Outcome outcome = run_it();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(name));
}

TEST_F(Sharded, TruncatedShard_IsNamed) {
  const std::string path = shard();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  const Outcome outcome = run_it();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(std::filesystem::path(path).filename().string()));
}

TEST(RunFailures, MissingExtraAndMisshapedTensors_AreNamedAllAtOnce) {
  const TemporaryFolder folder;
  const ModelShape shape;
  std::vector<PlainTensor> tensors = random_tensors(shape);
  const auto find = [&](const std::string& name) {
    return std::ranges::find(tensors, name, &PlainTensor::name);
  };
  find("model.layers.0.mlp.up_proj.weight")->name = "model.layers.0.mlp.upp_proj.weight";
  auto norm = find("model.norm.weight");
  norm->shape = {128};
  norm->values.resize(128);
  write_model(folder.path("model"), shape, tensors);
  const Outcome outcome = run({folder.path("model"), "--prompt-tokens", "1", "-n", "1"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("1 missing: model.layers.0.mlp.up_proj.weight"),
                                 HasSubstr("model.layers.0.mlp.upp_proj.weight"),
                                 HasSubstr("model.norm.weight is [128], not [256]")));
}

TEST(RunFailures, NoMemory_IsRefusedBeforeAnythingIsLoaded) {
  const Outcome outcome = run({checkpoint(kLlama), "-p", "Hello", "--kv-memory", "900TiB"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("needs 900.0 TiB of memory"), HasSubstr("are free")));
}

TEST(RunFailures, SpecialTokenThatTheVocabularyLacks_IsNamed) {
  const TemporaryFolder folder;
  const std::string model = copy_checkpoint(kLlama, folder);
  std::string text = read_file(model + "/tokenizer_config.json");
  const std::size_t at = text.find("\"eos_token\"");
  ASSERT_NE(at, std::string::npos);
  replace_in_file(model + "/tokenizer_config.json", "\"eos_token\"",
                  "\"eos_token\": \"<|nowhere|>\", \"was\"");
  const Outcome outcome = run({model, "-p", "Hello", "-n", "2"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("<|nowhere|>"), HasSubstr("tokenizer_config.json")));
}

// Files beside the weights that are none.
TEST(RunFailures, WhatStandsInThePlaceOfTheTokenizersFiles_IsNamed) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    const TemporaryFolder folder;
    const std::string model = copy_checkpoint(kLlama, folder);
    std::filesystem::remove(model + "/" + name);
    std::filesystem::create_directory(model + "/" + name);
    const Outcome outcome = run({model, "-p", "Hello", "-n", "2"});
    EXPECT_EQ(outcome.exit_code, 3) << name;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(std::string(name) + ": "), HasSubstr("folder")));
  }
}

// Numbers of config.json that only the runtime reads.
TEST(RunFailures, NumbersThatNothingCanBeComputedWith_AreNamedInTheirFile) {
  struct Case {
    std::string from;
    std::string to;
    std::string what;
  };
  for (const Case& one :
       {Case{"\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": -1", "/rms_norm_eps: must not"},
        Case{"\"hidden_act\": \"silu\"", "\"hidden_act\": 5", "/hidden_act: must be a str"},
        Case{"\"logits_scaling\": ", "\"logits_scaling\": 0, \"was\": ",
             "/logits_scaling: must be greater"},
        Case{"\"attention_multiplier\": ", "\"attention_multiplier\": Infinity, \"had\": ",
             "/attention_multiplier: a finite"}}) {
    const TemporaryFolder folder;
    const std::string model = copy_checkpoint("granite", folder);
    replace_in_file(model + "/config.json", one.from, one.to);
    const Outcome outcome = run({model, "-p", "Hello", "-n", "2"});
    EXPECT_EQ(outcome.exit_code, 3) << one.what;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("config.json: " + one.what));
  }
}

TEST(RunFailures, MissingTokenizer_IsNamedWhereTextIsGiven) {
  const TemporaryFolder folder;
  const std::string model = copy_checkpoint(kLlama, folder);
  std::filesystem::remove(model + "/tokenizer.json");
  const Outcome outcome = run({model, "-p", "Hello", "-n", "2"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace kernelpath::testing
