#include "run_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

// llm-run on the checkpoints of tests/data/checkpoints.
namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> checkpoint_names() {
  std::vector<std::string> out;
  const std::string folder = std::string(KERNELPATH_TEST_DATA) + "/checkpoints";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) out.push_back(entry.path().filename());
  }
  std::ranges::sort(out);
  return out;
}

class Checkpoint : public ::testing::TestWithParam<std::string> {};

TEST_P(Checkpoint, GivesItsGoldenTokens) {
  const std::string folder = checkpoint(GetParam());
  const Outcome outcome = run({folder, "--expect", folder + "/golden.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 8) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(Run, Checkpoint, ::testing::ValuesIn(checkpoint_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(RunExpect, ChangedToken_IsAFinding) {
  std::string golden = read_file(checkpoint(kLlama) + "/golden.json");
  // The first output token of the first prompt.
  const std::size_t list = golden.find("\"output_ids\"");
  const std::size_t digit = golden.find_first_of("0123456789", list);
  golden[digit] = golden[digit] == '1' ? '2' : '1';
  const TemporaryFolder folder;
  const Outcome outcome =
      run({checkpoint(kLlama), "--expect", folder.write("golden.json", golden)});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, StartsWith("prompt 0: step 0: expected token "));
}

// llm-run --expect with a golden that differs in the third prompt's first token.
Outcome run_changed(const TemporaryFolder& folder, std::vector<std::string> options) {
  std::string text = read_file(checkpoint(kLlama) + "/golden.json");
  std::size_t list = 0;
  for (int i = 0; i < 3; ++i) list = text.find("\"output_ids\"", list + 1);
  const std::size_t digit = text.find_first_of("0123456789", list);
  text[digit] = text[digit] == '1' ? '2' : '1';
  options.insert(options.begin(),
                 {checkpoint(kLlama), "--expect", folder.write("golden.json", text)});
  return run(options);
}

TEST(RunExpect, EveryFormat_HoldsTheComparison) {
  const TemporaryFolder folder;
  const Outcome lines = run_changed(folder, {"--format", "jsonl"});
  EXPECT_EQ(lines.exit_code, 1);
  int equal = 0;
  for (const json::Value& event : lines_of(lines.out)) {
    if (event.find("event")->as_string() != "comparison") continue;
    const bool differs = event.find("prompt")->as_integer() == 2;
    EXPECT_EQ(event.find("verdict")->as_string(), differs ? "differs" : "equal");
    EXPECT_EQ(event.find("step") != nullptr, differs);
    equal += differs ? 0 : 1;
  }
  EXPECT_EQ(equal, 7);
  const Outcome whole = run_changed(folder, {"--json"});
  const json::Value document = json::parse(whole.out, "out").value().root;
  EXPECT_EQ(document.find("comparisons")->items()[2].find("verdict")->as_string(), "differs");
  EXPECT_THAT(document.find("results")->items(), SizeIs(8));
  EXPECT_THAT(run_changed(folder, {"--format", "md"}).out,
              AllOf(HasSubstr("| 1 | as expected |"), HasSubstr("| 2 | step 0: expected token ")));
}

TEST(RunExpect, OutputFile_TakesTheComparison) {
  const TemporaryFolder folder;
  const std::string text = folder.path("out.txt");
  const std::string lines = folder.path("out.jsonl");
  const Outcome outcome = run_changed(folder, {"-o", text, "-o", "jsonl:" + lines});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(read_file(text), HasSubstr("prompt 2: step 0: expected token "));
  EXPECT_THAT(read_file(lines), HasSubstr("\"verdict\":\"differs\""));
}

TEST(RunExpect, WhatWouldChangeTokens_IsRefused) {
  const std::string golden = checkpoint(kLlama) + "/golden.json";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--repetition-penalty", "1.3"},
        {"--temperature", "1"},
        {"--stop", "x"},
        {"--chat"},
        {"--top-k", "4"}}) {
    std::vector<std::string> arguments = {checkpoint(kLlama), "--expect", golden};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << options.front();
    EXPECT_THAT(outcome.err, HasSubstr(options.front() + ": --expect compares the greedy tokens"));
  }
  // As it is without being said.
  EXPECT_EQ(run({checkpoint(kLlama), "--expect", golden, "--temperature", "0"}).exit_code, 0);
}

TEST(RunExpect, PromptThatTheModelCannotRun_IsNamedInItsFile) {
  const TemporaryFolder folder;
  const std::string golden =
      folder.write("golden.json", R"({"prompts": [{"id": 7, "prompt_ids": [1], "output_ids": [1]},
                                     {"id": 9, "prompt_ids": [99999], "output_ids": [1]}]})");
  const Outcome outcome = run({checkpoint(kLlama), "--expect", golden});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("golden.json: /prompts/1/prompt_ids: token 99999"));
}

TEST(RunExpect, PromptOfTheCommandLine_PicksItsRun) {
  const std::string golden = checkpoint(kLlama) + "/golden.json";
  const Outcome one = run({checkpoint(kLlama), "--expect", golden, "-p", "Hello"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(one.out, "prompt 0: as expected\n");
  const Outcome none = run({checkpoint(kLlama), "--expect", golden, "-p", "Goodbye"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no run of the --expect file has this prompt's tokens"));
}

// Settings that must not change a single token.
class Invariance : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Invariance, TokensAreThoseOfTheGolden) {
  std::vector<std::string> arguments = {checkpoint(kLlama), "--expect",
                                        checkpoint(kLlama) + "/golden.json"};
  arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Run, Invariance,
    ::testing::Values(std::vector<std::string>{"--threads", "1"},
                      std::vector<std::string>{"--threads", "3"},
                      std::vector<std::string>{"--kernel", "reference"},
                      std::vector<std::string>{"--backend", "vanilla"},
                      std::vector<std::string>{"--batch-size", "1"},
                      std::vector<std::string>{"--page-size", "1"},
                      std::vector<std::string>{"--set", "kernelpath.kv_layout=NHD"},
                      // Room for less than all prompts at a time: queued and preempted.
                      std::vector<std::string>{"--kv-memory", "288KiB"},
                      std::vector<std::string>{"--speculative", "ngram"}));

TEST(Run, Prompt_StreamsTextAlone) {
  const Outcome outcome = run({checkpoint(kLlama), "-p", "Hello", "-n", "8"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(IsEmpty()));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("LlamaForCausalLM"), HasSubstr("FUSED")));
  const Outcome quiet = run({checkpoint(kLlama), "-p", "Hello", "-n", "8", "--quiet"});
  EXPECT_EQ(quiet.out, outcome.out);
  EXPECT_EQ(quiet.err, "");
}

TEST(Run, OptionsOfDrawing_AreNoticedWhereNothingIsDrawn) {
  const Outcome greedy =
      run({checkpoint(kLlama), "-p", "Hello", "-n", "1", "--top-k", "4", "--seed", "3"});
  EXPECT_EQ(greedy.exit_code, 0);
  EXPECT_THAT(greedy.err, HasSubstr("--top-k, --seed without --temperature above 0"));
  EXPECT_THAT(run({checkpoint(kLlama), "-p", "Hello", "-n", "1", "--top-k", "4", "--seed", "3",
                   "--temperature", "1"})
                  .err,
              Not(HasSubstr("--temperature above 0")));
}

TEST(Run, Markdown_HasASectionARequestAndATable) {
  const TemporaryFolder folder;
  const std::string prompts = folder.write("prompts.jsonl",
                                           "{\"id\": \"a|b\", \"prompt\": \"Hello\"}\n"
                                           "{\"id\": \"bad\"}\n");
  const Outcome outcome = run({checkpoint(kLlama), "--prompts", prompts, "-n", "4", "--ignore-eos",
                               "--format", "md", "--quiet"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith("### a"), HasSubstr("\n```text\n"),
                    HasSubstr("| request | prompt tokens | tokens | end |"),
                    HasSubstr(" | 4 | length |"), HasSubstr("| bad | - | - | error: ")));
  EXPECT_THAT(run({checkpoint(kLlama), "-p", "Hello", "--dry-run", "--format", "md"}).out,
              StartsWith("| what | memory | bytes | of what |"));
  EXPECT_EQ(run({checkpoint(kLlama), "--why", "--format", "md"}).out,
            inspect({checkpoint(kLlama), "--engine", "kernelpath", "--device", "cpu", "--why",
                     "--format", "md"})
                .out);
}

TEST(Run, JsonLines_AreEventsWithTheResolutionFirst) {
  const Outcome outcome = run({checkpoint(kLlama), "-p", "Hello", "-n", "4", "--ignore-eos",
                               "--logprobs", "2", "--format", "jsonl"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<json::Value> events = lines_of(outcome.out);
  ASSERT_THAT(events, SizeIs(7));
  EXPECT_EQ(events[0].find("event")->as_string(), "start");
  EXPECT_EQ(events[0].find("schema")->as_string(), "kernelpath/run");
  ASSERT_NE(events[0].find("resolution"), nullptr);
  EXPECT_NE(events[0].find("resolution")->find("engines"), nullptr);
  for (std::size_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(events[i].find("event")->as_string(), "token");
    EXPECT_LE(events[i].find("logprob")->as_double(), 0);
    EXPECT_THAT(events[i].find("top_logprobs")->items(), SizeIs(2));
  }
  EXPECT_EQ(events[5].find("event")->as_string(), "done");
  EXPECT_EQ(events[5].find("reason")->as_string(), "length");
  EXPECT_EQ(events[5].find("prompt_tokens")->as_integer(), 4);
  EXPECT_EQ(events[5].find("generated_tokens")->as_integer(), 4);
  EXPECT_EQ(events[6].find("event")->as_string(), "end");
}

TEST(Run, PromptsFile_AnswersEachRequestAsAlone) {
  const TemporaryFolder folder;
  const std::string prompts = folder.write(
      "prompts.jsonl",
      "{\"id\": \"a\", \"prompt\": \"Hello\", \"max_tokens\": 6, \"ignore_eos\": true}\n"
      "\n"
      "{\"id\": \"b\", \"prompt_ids\": [1, 2, 3], \"max_tokens\": 3, \"ignore_eos\": true}\n"
      "{\"prompt\": \"Hello\", \"max_tokens\": 6, \"ignore_eos\": true}\n");
  const Outcome all = run({checkpoint(kLlama), "--prompts", prompts, "--json"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  const json::Value document = json::parse(all.out, "out").value().root;
  const auto results = document.find("results")->items();
  ASSERT_THAT(results, SizeIs(3));
  std::vector<std::string> texts;
  for (const json::Value& result : results) {
    const std::string& id = result.find("request")->as_string();
    EXPECT_THAT(result.find("tokens")->items(), SizeIs(id == "b" ? 3 : 6));
    if (id != "b") texts.push_back(result.find("text")->as_string());
  }
  EXPECT_EQ(texts[0], texts[1]);
  const Outcome alone =
      run({checkpoint(kLlama), "-p", "Hello", "-n", "6", "--ignore-eos", "--quiet"});
  EXPECT_EQ(alone.out, texts[0] + "\n");
}

TEST(Run, Seed_DecidesWhatIsDrawn) {
  const auto draw = [](const std::string& seed) {
    return run({checkpoint(kLlama), "-p", "Hello", "-n", "24", "--ignore-eos", "--temperature",
                "1.5", "--seed", seed, "-q"})
        .out;
  };
  EXPECT_EQ(draw("1"), draw("1"));
  EXPECT_NE(draw("1"), draw("2"));
}

TEST(Run, DumpLogits_HasARowAToken) {
  const TemporaryFolder folder;
  const std::string file = folder.path("logits.bin");
  const Outcome outcome = run({checkpoint(kLlama), "-p", "Hello", "-n", "3", "--ignore-eos",
                               "--dump-logits", file, "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string bytes = read_file(file);
  ASSERT_EQ(bytes.size() % (3 * sizeof(float)), 0U);
  std::vector<float> logits(bytes.size() / sizeof(float) / 3);
  std::memcpy(logits.data(), bytes.data(), logits.size() * sizeof(float));
  const auto best = std::ranges::max_element(logits) - logits.begin();
  const json::Value document = json::parse(outcome.out, "out").value().root;
  EXPECT_EQ(
      document.find("results")->items()[0].find("tokens")->items()[0].find("id")->as_integer(),
      best);
}

TEST(Run, FirstLine_SaysWhatRunsAndWhy) {
  const std::vector<std::string> call = {checkpoint(kLlama), "-p", "Hello", "-n", "1"};
  const auto first_line = [&](std::vector<std::string> more) {
    more.insert(more.begin(), call.begin(), call.end());
    return run(more).err;
  };
  EXPECT_THAT(first_line({}), AllOf(HasSubstr("LlamaForCausalLM  302.5 K parameters  weights 592."),
                                    HasSubstr("FUSED on the CPU, the first that can (")));
  EXPECT_THAT(first_line({"--backend", "vanilla"}),
              HasSubstr("VANILLA on the CPU, as asked (reference, "));
  EXPECT_THAT(first_line({"--backend", "flashinfer", "--fallback", "warn"}),
              HasSubstr("FUSED on the CPU, in place of flashinfer ("));
}

TEST(Run, Lists_AreThoseOfTheRuntime) {
  const Outcome outcome = run({"--list", "backends"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("VANILLA"), Not(HasSubstr("vllm"))));
}

TEST(Run, Why_IsWhatInspectSays) {
  const Outcome own = run({checkpoint(kLlama), "--why"});
  EXPECT_EQ(own.exit_code, 0) << own.err;
  const Outcome inspected =
      inspect({checkpoint(kLlama), "--engine", "kernelpath", "--device", "cpu", "--why"});
  EXPECT_EQ(own.out, inspected.out);
  EXPECT_THAT(own.out, HasSubstr("KP-MATRIX-KERNEL  auto"));
}

TEST(Run, Why_NamesTheKernelsThatAreAskedFor) {
  const Outcome own = run({checkpoint(kLlama), "--why", "--kernel", "avx2"});
  const Outcome inspected = inspect({checkpoint(kLlama), "--engine", "kernelpath", "--device",
                                     "cpu", "--set", "kernelpath.kernel=avx2", "--why"});
  EXPECT_EQ(own.out, inspected.out);
  EXPECT_THAT(own.out, HasSubstr("KP-MATRIX-KERNEL  avx2"));
  EXPECT_THAT(run({checkpoint(kLlama), "--why", "--backend", "vanilla"}).out,
              HasSubstr("KP-MATRIX-KERNEL  reference"));
}

TEST(Run, DryRun_PlansWithoutWeights) {
  const TemporaryFolder folder;
  std::filesystem::copy(checkpoint(kLlama), folder.path("model"));
  std::filesystem::remove(folder.path("model/model.safetensors"));
  const Outcome outcome = run({folder.path("model"), "-p", "Hello", "--dry-run"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("weights"), HasSubstr("KV cache")));
  const Outcome real = run({folder.path("model"), "-p", "Hello"});
  EXPECT_EQ(real.exit_code, 3);
  EXPECT_EQ(real.out, "");
}

struct Refused {
  std::vector<std::string> options;
  int exit_code;
  std::string message;
};

TEST(Run, WrongUse_HasItsCodeAndAReason) {
  const std::string folder = checkpoint(kLlama);
  const std::vector<Refused> rows = {
      {{folder}, 2, "nothing is given to go on from"},
      {{"-p", "x"}, 2, "takes one MODEL"},
      {{folder, folder, "-p", "x"}, 2, "takes one MODEL"},
      {{folder, "-p", "x", "--prompt-tokens", "1"}, 2, "one of them can"},
      {{folder, "--prompt-tokens", "1,x"}, 2, "not a token id"},
      {{folder, "--prompt-tokens", "100000000"}, 2, "is outside the vocabulary of"},
      {{folder, "-p", "x", "--temperature", "-1"}, 2, "must be 0 (greedy) or more"},
      {{folder, "-p", "x", "--temperature", "warm"}, 2, "not a number"},
      {{folder, "-p", "x", "--top-p", "2"}, 2, "must be more than 0 and at most 1"},
      {{folder, "-p", "x", "--device", "cuda"}, 4, "on the CPU only"},
      {{folder, "-p", "x", "--device", "h200"}, 2, "computes on this machine"},
      {{folder, "-p", "x", "--backend", "vanila"}, 2, "VANILLA"},
      {{folder, "-p", "x", "--backend", "flashinfer"}, 4, "no FlashInfer kernels"},
      {{folder, "-p", "x", "--kv", "int3"}, 2, "such a type of KV cache"},
      {{folder, "-p", "x", "--kv-memory", "1KiB"}, 5, "holds no block"},
      {{folder, "-p", "x", "-n", "64", "--kv-memory", "32KiB"}, 5, "needs room for"},
      {{folder, "-p", "@/nonexistent"}, 3, "/nonexistent"},
      {{folder + "/nonexistent", "-p", "x"}, 3, "nonexistent"},
      {{folder, "-p", "x", "--speculative", "eagle3"}, 4, "n-grams only"},
      {{folder, "-p", "x", "--sm", "90"}, 2, "an option of another program"},
  };
  for (const Refused& row : rows) {
    const Outcome outcome = run(row.options);
    EXPECT_EQ(outcome.exit_code, row.exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(row.message));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Run, NoTokenizer_TakesIdsAndGivesIds) {
  const TemporaryFolder folder;
  std::filesystem::copy(checkpoint(kLlama), folder.path("model"));
  std::filesystem::remove(folder.path("model/tokenizer.json"));
  const Outcome ids =
      run({folder.path("model"), "--prompt-tokens", "632,39,271,320", "-n", "2", "--ignore-eos"});
  EXPECT_EQ(ids.exit_code, 0) << ids.err;
  EXPECT_EQ(ids.out, "293 120 \n");
  EXPECT_THAT(ids.err, HasSubstr("no tokenizer"));
  EXPECT_EQ(run({folder.path("model"), "-p", "Hello"}).exit_code, 3);
}

TEST(Run, TruncatedWeights_AreNamed) {
  const TemporaryFolder folder;
  std::filesystem::copy(checkpoint(kLlama), folder.path("model"));
  const std::string weights = folder.path("model/model.safetensors");
  std::filesystem::permissions(weights, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) - 100);
  const Outcome outcome = run({folder.path("model"), "-p", "Hello"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("model.safetensors"));
  EXPECT_EQ(outcome.out, "");
}

TEST(Run, Stop_EndsBeforeTheString) {
  const Outcome whole = run({checkpoint(kLlama), "-p", "Hello", "-n", "24", "--ignore-eos", "-q"});
  ASSERT_EQ(whole.exit_code, 0);
  const std::string stop = whole.out.substr(whole.out.size() / 2, 3);
  const Outcome cut =
      run({checkpoint(kLlama), "-p", "Hello", "-n", "24", "--ignore-eos", "-q", "--stop=" + stop});
  EXPECT_EQ(cut.out, whole.out.substr(0, whole.out.find(stop)) + "\n");
}

TEST(Run, Interrupt_KeepsWhatWasGenerated) {
  const Outcome outcome = run_program(
      "llm-run", {.arguments = {checkpoint(kLlama), "-p", "Hello", "-n", "100000", "--ignore-eos",
                                "--max-model-len", "200000", "--format", "jsonl"},
                  .signal_after_output = 2});
  EXPECT_EQ(outcome.exit_code, 130);
  const std::vector<json::Value> events = lines_of(outcome.out);
  ASSERT_GE(events.size(), 3U);
  EXPECT_EQ(events[events.size() - 2].find("reason")->as_string(), "cancelled");
}

}  // namespace
}  // namespace kernelpath::testing
