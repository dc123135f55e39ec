#include "base/text.h"
#include "equality.h"
#include "json/document.h"
#include "json/writer.h"
#include "run_program.h"
#include "vllm_equality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

// vLLM as an engine of llm-inspect: both embedded versions, the tables of --profile-dir, and all
// recorded answers through --batch.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string llama() { return config_folder("meta-llama__Meta-Llama-3.1-8B"); }
std::string deepseek() { return config_folder("deepseek-ai__DeepSeek-V3"); }

json::Value document(const Outcome& outcome) {
  const auto parsed = json::parse(outcome.out, "");
  EXPECT_TRUE(parsed) << outcome.out.substr(0, 300) << outcome.err;
  return parsed ? parsed->root : json::Value::null();
}

// The answer of the only engine that was asked.
json::Value engine_answer(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const json::Value root = document(inspect(std::move(arguments)));
  if (root.is_null()) return root;
  return root.find("inputs")->items()[0].find("engines")->items()[0];
}

std::string selected(const json::Value& answer) {
  const json::Value* name = answer.find("attention")->find("selected");
  return name->is_string() ? name->as_string() : "none";
}

// --- versions -----------------------------------------------------------------------------------

TEST(Vllm, PlainName_IsTheNewest) {
  EXPECT_EQ(engine_answer({llama(), "--engine", "vllm"}).find("version")->as_string(), "0.33.0");
  EXPECT_EQ(engine_answer({llama(), "--engine", "vllm@0.25.1"}).find("version")->as_string(),
            "0.25.1");
}

TEST(Vllm, UnknownVersion_ListsThoseEmbedded) {
  const Outcome outcome = inspect({llama(), "--engine", "vllm@0.30.0"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("0.25.1 and 0.33.0"));
  EXPECT_EQ(outcome.out, "");
}

TEST(Vllm, WithoutEngine_EachEngineHasARow) {
  const json::Value root = document(inspect({llama(), "--json"}));
  std::vector<std::string> names;
  for (const json::Value& engine : root.find("inputs")->items()[0].find("engines")->items()) {
    names.push_back(engine.find("engine")->as_string());
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"trtllm", "vllm"}));
}

// --- choices ------------------------------------------------------------------------------------

TEST(Vllm, Llama_GetsTheFirstOfTheDevicesOrder) {
  EXPECT_EQ(selected(engine_answer({llama(), "--engine", "vllm"})), "FLASH_ATTN");
  EXPECT_EQ(selected(engine_answer({llama(), "--engine", "vllm", "--device", "b200"})),
            "FLASHINFER");
  EXPECT_EQ(selected(engine_answer({llama(), "--engine", "vllm", "--device", "cpu"})), "CPU_ATTN");
}

TEST(Vllm, MissingPackage_MovesTheChoice) {
  EXPECT_EQ(selected(engine_answer(
                {llama(), "--engine", "vllm", "--device", "b200", "--lacks", "flashinfer"})),
            "FLASH_ATTN");
}

TEST(Vllm, PackageNames_TakeUnderscoresAndShortForms) {
  const Outcome outcome = inspect({llama(), "--engine", "vllm", "--lacks", "flash_attn_3,fa4"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("FLASH_ATTN"));
}

TEST(Vllm, BackendInAnyCase_IsAsked) {
  EXPECT_EQ(selected(engine_answer({llama(), "--engine", "vllm", "--backend", "triton_attn"})),
            "TRITON_ATTN");
}

TEST(Vllm, BackendThatCannotServe_IsTheEnginesError) {
  const json::Value answer = engine_answer({llama(), "--engine", "vllm", "--backend", "flashmla"});
  EXPECT_EQ(answer.find("status")->as_string(), "error");
  EXPECT_EQ(answer.find("error")->find("code")->as_string(), "BACKEND-INVALID");
  EXPECT_THAT(answer.find("error")->find("message")->as_string(),
              HasSubstr("non-MLA not supported"));
}

TEST(Vllm, BlockSizeThatIsNoMultiple_IsTheEnginesError) {
  const json::Value answer =
      engine_answer({llama(), "--engine", "vllm@0.25.1", "--page-size", "8"});
  EXPECT_EQ(answer.find("error")->find("code")->as_string(), "BACKEND-NONE-VALID");
  EXPECT_THAT(answer.find("error")->find("message")->as_string(),
              HasSubstr("block_size not supported"));
}

TEST(Vllm, RegisteredBackend_TakesThePlaceholder) {
  const json::Value refused = engine_answer({llama(), "--engine", "vllm", "--backend", "custom"});
  EXPECT_EQ(refused.find("error")->find("code")->as_string(), "BACKEND-NOT-REGISTERED");
  const json::Value answer =
      engine_answer({llama(), "--engine", "vllm", "--backend", "custom", "--set",
                     "vllm.register_backend.CUSTOM=my.module.MyBackend"});
  EXPECT_EQ(selected(answer), "CUSTOM");
}

TEST(Vllm, ModelImplTransformers_IsHonoured) {
  const json::Value answer =
      engine_answer({llama(), "--engine", "vllm", "--set", "vllm.model_impl=transformers"});
  EXPECT_EQ(answer.find("model_class")->as_string(), "TransformersForCausalLM");
}

TEST(Vllm, Why_HasEveryRejectedCandidateWithItsReasons) {
  const Outcome outcome = inspect(
      {deepseek(), "--engine", "vllm@0.33.0", "--kv-cache-dtype", "fp8", "--why", "--tp", "8"});
  EXPECT_THAT(outcome.out, HasSubstr("FLASH_ATTN_MLA"));
  EXPECT_THAT(outcome.out, HasSubstr("kv_cache_dtype not supported"));
  EXPECT_THAT(outcome.out, HasSubstr("VLLM-SEL-KV-DTYPE"));
}

TEST(Vllm, MlaDisabledByTheEnvironment_RunsPlainAttention) {
  const json::Value answer =
      engine_answer({deepseek(), "--engine", "vllm", "--env", "VLLM_MLA_DISABLE=1", "--tp", "8"});
  EXPECT_THAT(selected(answer), Not(HasSubstr("MLA")));
}

// --- wrong use ----------------------------------------------------------------------------------

TEST(Vllm, BackendOfAnotherVersion_SaysWhichHasIt) {
  const Outcome outcome = inspect({llama(), "--engine", "vllm@0.25.1", "--backend", "b12x"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("vllm@0.33.0 has it"));
}

TEST(Vllm, BackendGivenTwice_IsAConflict) {
  const Outcome outcome = inspect({llama(), "--engine", "vllm", "--backend", "FLASH_ATTN", "--set",
                                   "vllm.attention_config.backend=FLASH_ATTN"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("USAGE-CONFLICT"));
}

TEST(Vllm, BackendOfOneEngine_IsTheOthersRefusal) {
  const json::Value root =
      document(inspect({llama(), "--engine", "trtllm,vllm", "--backend", "TRTLLM", "--json"}));
  const auto engines = root.find("inputs")->items()[0].find("engines")->items();
  ASSERT_EQ(engines.size(), 2U);
  EXPECT_EQ(engines[0].find("status")->as_string(), "ok");
  EXPECT_EQ(engines[1].find("error")->find("code")->as_string(), "ARG-REFUSED");
}

// --- tables -------------------------------------------------------------------------------------

TEST(Vllm, ListBackends_IsTheContract) {
  const Outcome text = inspect({"--list", "backends", "--engine", "vllm@0.25.1"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("[num_blocks, 2, block_size, num_kv_heads, head_size]"));
  const Outcome md = inspect({"--list", "backends", "--engine", "vllm@0.25.1", "-f", "md"});
  EXPECT_THAT(md.out, HasSubstr("| KV shape |"));
  const json::Value root =
      document(inspect({"--list", "backends", "--engine", "vllm@0.25.1", "--json"}));
  const json::Value& row = root.find("rows")->items()[0];
  EXPECT_EQ(row.find("version")->as_string(), "0.25.1");
  EXPECT_EQ(row.find("columns")->find("LSE base")->as_string(), "e");
}

// --- --profile-dir
// --------------------------------------------------------------------------------

class ProfileFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& file :
         std::filesystem::directory_iterator(KERNELPATH_ENGINES_DIR "/vllm-0.33.0")) {
      static_cast<void>(files_.write(file.path().filename(), read_file(file.path())));
    }
  }
  void change(const std::string& name, const std::string& from, const std::string& to) {
    std::string text = read_file(files_.path(name));
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
    static_cast<void>(files_.write(name, text));
  }
  Outcome run() { return inspect({llama(), "--engine", "vllm", "--profile-dir", files_.path()}); }

  TemporaryFolder files_;
};

TEST_F(ProfileFolder, AnotherVersion_IsAddedAndTheNewest) {
  for (const char* name :
       {"backends.json", "priorities.json", "mla_prefill.json", "registry.json", "settings.json"}) {
    change(name, R"("version": "0.33.0")", R"("version": "0.40.0")");
  }
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("0.40.0"));
}

TEST_F(ProfileFolder, TablesOfTheSameVersion_ReplaceTheEmbedded) {
  change("registry.json", R"("LlamaForCausalLM", "module")", R"("LlamaForCausalLX", "module")");
  EXPECT_THAT(run().out, Not(HasSubstr("LlamaForCausalLM  FLASH_ATTN")));
}

TEST_F(ProfileFolder, NewerSchema_IsRefused) {
  change("backends.json", R"("schema_version": "1.0.0")", R"("schema_version": "2.0.0")");
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("INPUT-SCHEMA"));
  EXPECT_THAT(outcome.err, HasSubstr("/schema_version"));
}

TEST_F(ProfileFolder, MissingTable_IsNamed) {
  std::filesystem::remove(files_.path("priorities.json"));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("priorities.json"));
}

TEST_F(ProfileFolder, BrokenTable_NamesThePlace) {
  static_cast<void>(files_.write("mla_prefill.json", "{\"schema\": "));
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("mla_prefill.json: 1:"));
}

TEST_F(ProfileFolder, TablesOfTwoVersions_AreRefused) {
  change("settings.json", R"("version": "0.33.0")", R"("version": "0.25.1")");
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("0.25.1"));
}

// --- recorded answers
// -----------------------------------------------------------------------------

struct Recording {
  std::string version;
  std::string op;
  std::string (*difference)(const json::Value&, const json::Value&);
};

class VllmGolden : public ::testing::TestWithParam<Recording> {};

TEST_P(VllmGolden, RecordedAnswers_ComeOutOfTheProgram) {
  const Recording& recording = GetParam();
  const auto cases =
      golden::read_cases("vllm-" + recording.version + "/" + recording.op + ".jsonl");
  ASSERT_FALSE(cases.empty());
  std::string lines;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    lines += json::to_text(
                 json::Value::object({{"id", json::Value::integer(static_cast<std::int64_t>(i))},
                                      {"engine", json::Value::string("vllm@" + recording.version)},
                                      {"op", json::Value::string(recording.op)},
                                      {"in", cases[i].in()}})) +
             "\n";
  }
  const TemporaryFolder folder;
  const Outcome outcome =
      run_program("llm-inspect",
                  {.arguments = {"--batch", folder.write("batch.jsonl", lines)}, .timeout_s = 120});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> answers = split(outcome.out, '\n');
  ASSERT_GE(answers.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto answer = json::parse(answers[i], "");
    const json::Value* out = answer ? answer->root.find("out") : nullptr;
    if (out == nullptr) {
      ADD_FAILURE() << cases[i].id << ": " << answers[i].substr(0, 300);
      continue;
    }
    EXPECT_EQ(recording.difference(cases[i].record, *out), "")
        << cases[i].id << ": " << json::to_text(cases[i].in()).substr(0, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Vllm, VllmGolden,
    ::testing::Values(Recording{"0.25.1", "select", golden::vllm_select_difference},
                      Recording{"0.33.0", "select", golden::vllm_select_difference},
                      Recording{"0.25.1", "end_to_end", golden::vllm_end_to_end_difference},
                      Recording{"0.33.0", "end_to_end", golden::vllm_end_to_end_difference}),
    [](const auto& row) {
      std::string name = row.param.op + "_" + row.param.version;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

}  // namespace
}  // namespace kernelpath::testing
