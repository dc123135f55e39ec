#include "base/error.h"
#include "base/text.h"
#include "cli/option_table.h"
#include "engines/engine.h"
#include "json/document.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

// What the program says about itself: --help, --version, --list, --explain, --completions.

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string answer(std::vector<std::string> arguments) {
  const Outcome outcome = inspect(std::move(arguments));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

TEST(Help, Short_HasTwoExamples) {
  const std::string text = answer({"-h"});
  EXPECT_THAT(text, HasSubstr("\nexamples:\n  llm-inspect "));
  EXPECT_LT(split(text, '\n').size(), 40U);
}

TEST(Help, Full_HasEveryOptionOfTheTable) {
  const std::string text = answer({"--help"});
  for (const cli::OptionRow* row : cli::options_of(cli::ProgramKind::kInspect)) {
    EXPECT_THAT(text, HasSubstr(cli::option_signature(*row)));
  }
}

TEST(Help, Word_SearchesNamesAndTexts) {
  const std::string text = answer({"--help=SPECULATIVE"});
  EXPECT_THAT(text, HasSubstr("--speculative KIND[:MODEL]"));
  EXPECT_THAT(text, Not(HasSubstr("--color")));
  EXPECT_THAT(answer({"--help=qqqq"}), HasSubstr("no option"));
}

TEST(Version, Verbose_HasBuildEnginesDevicesAndLibraries) {
  EXPECT_THAT(answer({"--version"}), StartsWith("llm-inspect "));
  const std::string text = answer({"--version", "--verbose"});
  for (const char* part : {"commit ", "trtllm@2026-11", "h100-sxm", "simdjson"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(List, EveryKind_HasRows) {
  std::vector<std::string> kinds = split(answer({"--list", "kinds"}), '\n');
  ASSERT_GT(kinds.size(), 5U);
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    if (kinds[i].empty()) continue;
    const std::string text = answer({"--list", kinds[i], "--json"});
    const Result<json::Document> document = json::parse_object(text, kinds[i]);
    ASSERT_TRUE(document) << kinds[i];
    EXPECT_FALSE(document->root.find("rows")->items().empty()) << kinds[i];
  }
}

// The comparison of registries: a row an engine version, with every aspect and every count.
TEST(List, Engines_HaveEveryColumn) {
  const std::string text = answer({"--list", "engines", "--json"});
  const Result<json::Document> document = json::parse_object(text, "engines");
  ASSERT_TRUE(document);
  const json::Value& rows = *document->root.find("rows");
  ASSERT_EQ(rows.items().size(), engines::all_engines().size());
  for (std::size_t i = 0; i < rows.items().size(); ++i) {
    const engines::Engine& engine = *engines::all_engines()[i];
    const json::Value& columns = *rows.items()[i].find("columns");
    EXPECT_EQ(columns.find("version")->as_string(), engine.version());
    EXPECT_EQ(columns.find("models")->as_string(),
              std::to_string(engine.table("architectures").size()));
    for (const char* counted : {"versions", "models", "backends", "arguments", "rules"}) {
      EXPECT_GT(std::stoi(columns.find(counted)->as_string()), 0) << engine.name() << counted;
    }
    for (const engines::DescriptorAspect& aspect : engines::kDescriptorAspects) {
      const json::Value* phrase = columns.find(aspect.name);
      ASSERT_NE(phrase, nullptr) << engine.name() << aspect.name;
      EXPECT_FALSE(phrase->as_string().empty()) << engine.name() << aspect.name;
    }
  }
}

TEST(List, Engines_CompareAspectByAspect) {
  for (const char* format : {"text", "md"}) {
    const std::string text = answer({"--list", "engines", "--format", format});
    for (const engines::DescriptorAspect& aspect : engines::kDescriptorAspects) {
      EXPECT_THAT(text, HasSubstr(std::string(aspect.name)));
    }
    EXPECT_THAT(text, HasSubstr("general.architecture of the GGUF file"));
    EXPECT_THAT(text, HasSubstr("SGLANG_EXTERNAL_MODEL_PACKAGE"));
  }
}

TEST(List, UnknownKind_NamesTheNearest) {
  const Outcome outcome = inspect({"--list", "bakends"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean backends"));
}

TEST(Explain, EveryErrorCode_HasAText) {
  for (const ErrorInfo& info : error_table()) {
    EXPECT_THAT(answer({"--explain", to_lower(info.id)}), StartsWith(std::string(info.id) + " "));
  }
}

TEST(Explain, EveryRuleThatListNames_HasAText) {
  for (const engines::Engine* engine : engines::all_engines()) {
    const engines::RuleInfo& rule = engine->rules().front();
    const std::string text = answer({"--explain", to_lower(rule.id)});
    EXPECT_THAT(text, StartsWith(std::string(rule.id) + "  (rule of "));
    EXPECT_THAT(text, HasSubstr(std::string(rule.summary)));
  }
}

TEST(Explain, UnknownCode_NamesTheNearest) {
  const Outcome outcome = inspect({"--explain", "INPUT-JSN"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean INPUT-JSON"));
}

TEST(Completions, BashScript_ParsesAndKnowsTheOptions) {
  const TemporaryFolder folder;
  const std::string script = folder.write("c.bash", answer({"--completions", "bash"}));
  const std::string check = "bash -n '" + script + "' && bash -c '. \"" + script +
                            "\"; COMP_WORDS=(llm-inspect --dev); COMP_CWORD=1; _llm_inspect;"
                            " [ \"${COMPREPLY[0]}\" = --device ]; a=$?;"
                            " COMP_WORDS=(llm-inspect --device h2); COMP_CWORD=2; _llm_inspect;"
                            " case \" ${COMPREPLY[*]} \" in *\" h200 \"*) exit $a;; esac; exit 1'";
  EXPECT_EQ(std::system(check.c_str()), 0);  // NOLINT(cert-env33-c): a fixed command
}

TEST(Completions, ProgramsThatCompute_OfferNoDevicesOfOthers) {
  for (const char* program : {"llm-run", "llm-bench"}) {
    const std::string script = run_program(program, {.arguments = {"--completions", "bash"}}).out;
    EXPECT_THAT(script, HasSubstr("--device) COMPREPLY=($(compgen -W 'auto cpu cuda:0'"));
    EXPECT_THAT(script, Not(HasSubstr("h100-sxm"))) << program;
  }
}

TEST(Completions, EveryShell_HasEveryOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = answer({"--completions", shell});
    for (const cli::OptionRow* row : cli::options_of(cli::ProgramKind::kInspect)) {
      EXPECT_THAT(script, HasSubstr(std::string(row->name))) << shell;
    }
  }
}

}  // namespace
}  // namespace kernelpath::testing
