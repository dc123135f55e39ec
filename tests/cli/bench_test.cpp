#include "json/document.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

// llm-bench on the CPU with tiny shapes. No test judges a time.
namespace kernelpath::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// As few samples as there may be, on one thread.
const std::vector<std::string> kQuick = {
    "--device", "cpu",       "--threads", "1",           "--min-samples", "2",     "--min-time",
    "0",        "--timeout", "60",        "--max-noise", "100000%",       "--warm"};

Outcome bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), kQuick.begin(), kQuick.end());
  return run_program("llm-bench", {.arguments = std::move(arguments)});
}

const std::vector<std::string> kTinyDecode = {"gqa-decode", "--heads",   "4:2",
                                              "--head-dim", "32",        "--batch-size",
                                              "1..4*2",     "--context", "48"};

std::vector<std::string> tiny(std::vector<std::string> more) {
  std::vector<std::string> out = kTinyDecode;
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

json::Value document_of(const Outcome& outcome) {
  const auto out = json::parse_object(outcome.out, "stdout", {.max_bytes = outcome.out.size() + 1});
  EXPECT_TRUE(out) << out.error().text() << outcome.err;
  return out ? out->root : json::Value();
}

TEST(Bench, Decode_GivesATableWithItsLimit) {
  const Outcome outcome = bench(tiny({}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("gqa-decode  f32 q4 kv2 d32 page 16 HND\n"), HasSubstr("of limit"),
                    HasSubstr("t0"), HasSubstr("\nlimit: gather read ")));
  EXPECT_EQ(std::ranges::count(outcome.out, '!'), 0) << outcome.out;
}

TEST(Bench, Json_HasSamplesLimitAndCheckOfEachShape) {
  const Outcome outcome = bench(tiny({"--json", "--kv", "f32,nvfp4"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::Value document = document_of(outcome);
  EXPECT_EQ(document.find("schema")->as_string(), "kernelpath/bench");
  const auto rows = document.find("rows")->items();
  ASSERT_THAT(rows, SizeIs(6));
  for (const json::Value& row : rows) {
    EXPECT_TRUE(row.find("valid")->as_bool());
    EXPECT_TRUE(row.find("check")->find("ok")->as_bool());
    EXPECT_GE(row.find("timing")->find("samples_s")->items().size(), 2U);
    EXPECT_EQ(row.find("limit")->find("kind")->as_string(), "gather read");
    EXPECT_GT(row.find("of_limit")->as_double(), 0);
  }
}

TEST(Bench, EveryCase_RunsWithEveryFormat) {
  const std::vector<std::string> arguments = {
      "read-ceiling", "copy",       "kv-append", "gemv",      "prefill", "--heads",
      "2:1",          "--head-dim", "32",        "--context", "20",      "--rows",
      "16",           "--cols",     "256",       "--size",    "4KiB",    "--check=false"};
  for (const std::string format : {"text", "json", "jsonl", "md", "csv", "html"}) {
    std::vector<std::string> call = arguments;
    call.insert(call.end(), {"--format", format});
    const Outcome outcome = bench(call);
    EXPECT_EQ(outcome.exit_code, 0) << format << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("gemv")) << format;
    EXPECT_THAT(outcome.err, IsEmpty()) << format;
  }
}

TEST(Bench, Json_HasTheFlagsOfTheRun) {
  const json::Value document = document_of(bench(tiny({"--json", "--kv", "bf16,fp8"})));
  const json::Value* const flags = document.find("options")->find("flags");
  ASSERT_NE(flags, nullptr);
  ASSERT_NE(flags->find("kv-cache-dtype"), nullptr);
  EXPECT_THAT(flags->find("kv-cache-dtype")->items(), SizeIs(2));
  EXPECT_EQ(flags->find("heads")->items().front().as_string(), "4:2");
  EXPECT_EQ(flags->find("peer"), nullptr);  // nobody set it
}

TEST(Bench, Html_IsOneDocumentWithTheTable) {
  const Outcome outcome = bench(tiny({"--format", "html"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("<title>llm-bench"),
                                 HasSubstr("<th>of limit</th>"), EndsWith("</html>\n")));
}

// The same columns for two kinds of machine: what a peer needs is said, not left out.
TEST(Bench, PeersThatNoRowCanHave_AreNamed) {
  const Outcome outcome = bench(tiny({"--peer", "torch,cublas,cudnn"}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("peer torch: measured by scripts/bench-peers.py"),
                                 HasSubstr("peer cublas: it computes on CUDA devices"),
                                 HasSubstr("peer cudnn: ")));
}

TEST(Bench, Jsonl_IsAHeaderAndALineAShape) {
  const Outcome outcome = bench(tiny({"--format", "jsonl"}));
  EXPECT_THAT(outcome.out, StartsWith("{\"schema\":\"kernelpath/bench\""));
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 4);
}

TEST(Bench, Csv_HasAsManyFieldsInEachLine) {
  const Outcome outcome = bench(tiny({"--format", "csv"}));
  std::size_t first = 0;
  const auto fields = std::ranges::count(outcome.out.substr(0, outcome.out.find('\n')), ',');
  for (std::size_t end = 0; (end = outcome.out.find('\n', first)) != std::string::npos;
       first = end + 1) {
    EXPECT_EQ(std::ranges::count(outcome.out.substr(first, end - first), ','), fields);
  }
}

TEST(Bench, SeveralReports_OfOneRun) {
  const TemporaryFolder folder;
  const Outcome outcome =
      bench(tiny({"-o", "json:" + folder.path("a.json"), "-o", "csv:" + folder.path("a.csv")}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(read_file(folder.path("a.json")), StartsWith("{\n  \"schema\""));
  EXPECT_THAT(read_file(folder.path("a.csv")), StartsWith("key,case,kernel"));
}

TEST(Bench, Documents_FitTheirSchema) {
  const TemporaryFolder folder;
  const Outcome whole = bench(tiny({"--json"}));
  const std::string refused =
      bench({"gqa-decode", "--dtype", "bf16", "--context", "16", "--json"}).out;
  const std::string command =
      std::string("python3 " KERNELPATH_CLI_TABLES "/validate_documents.py ") +
      KERNELPATH_SCHEMA_DIR + " " + folder.write("a.json", whole.out) + " " +
      folder.write("b.json", refused);
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): our own names
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "python3-jsonschema is not installed";
  }
  EXPECT_EQ(status, 0);
}

TEST(BenchCaseFile, Sections_AreShapesAndNamesPickThem) {
  const TemporaryFolder folder;
  const std::string file = folder.write("cases.toml",
                                        "case = \"gqa-decode\"\nheads = \"2:1\"\nhead_dim = 32\n"
                                        "[short]\ncontext = 16\n"
                                        "[ragged]\ncontexts = [40, 8, 23]\nkv_cache_dtype = 'fp8'\n"
                                        "[matrix]\ncase = \"gemv\"\nrows = 8\ncols = 32\n"
                                        "weight_dtype = [\"bf16\", \"q8_0\"]\n");
  const auto all = document_of(bench({file, "--json"}));
  std::vector<std::string> names;
  for (const json::Value& row : all.find("rows")->items()) {
    names.push_back(row.find("name")->as_string());
  }
  EXPECT_THAT(names,
              ::testing::ElementsAre("short", "ragged", "matrix (weights bf16, 8 x 32 tokens 1)",
                                     "matrix (weights q8_0, 8 x 32 tokens 1)"));
  const auto one = document_of(bench({file, "ragged", "--json"}));
  ASSERT_THAT(one.find("rows")->items(), SizeIs(1));
  EXPECT_THAT(one.find("rows")->items().front().find("shape")->find("contexts")->items(),
              SizeIs(3));
}

TEST(BenchCaseFile, CaseFilesOfTheRepository_AreRead) {
  for (const std::string name :
       {"h200-decode.toml", "h200-gemv.toml", "h200-prefill.toml", "cpu.toml"}) {
    // No section has this name; the file itself is fine.
    const Outcome outcome = bench({std::string(KERNELPATH_BENCH_DIR) + "/" + name, "nothing"});
    EXPECT_EQ(outcome.exit_code, 2) << name;
    EXPECT_THAT(outcome.err, HasSubstr("no such case")) << name;
  }
}

struct BadFile {
  std::string content;
  int code;
  std::string message;
};
class BadCaseFile : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadCaseFile, IsRefusedWithItsPlace) {
  const TemporaryFolder folder;
  const Outcome outcome = bench({folder.write("cases.toml", GetParam().content)});
  EXPECT_EQ(outcome.exit_code, GetParam().code) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cases.toml"), HasSubstr(GetParam().message)));
  EXPECT_THAT(outcome.out, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Bench, BadCaseFile,
    ::testing::Values(
        BadFile{"", 3, "holds no shape"}, BadFile{"case = \"gemv\"\n", 3, "holds no shape"},
        BadFile{"[a]\nrows = 8\n", 3, "says no case"},
        BadFile{"[a]\ncase = \"gemm\"\n", 3, "2: case: not one of read-ceiling"},
        BadFile{"[a]\ncase = \"gemv\"\nheads = \"2:1\"\n", 3,
                "3: heads: case gemv does not use it"},
        BadFile{"[a]\ncase = \"gemv\"\nrow = 8\n", 3, "no such key"},
        BadFile{"[a]\ncase = \"gemv\"\nrows = 8\nrows = 9\n", 3, "stands twice"},
        BadFile{"[a]\ncase = \"gemv\"\nrows = -8\n", 3, "3: rows"},
        BadFile{"[a]\ncase = \"gemv\"\nrows = []\n", 3, "the array is empty"},
        BadFile{"[a]\ncase = \"gemv\"\nrows = 8.5\n", 3, "3: rows"},
        BadFile{"[a]\ncase = \"gemv\"\nrows = 1..9\n", 3, "3:8"},
        BadFile{"[a\ncase = \"gemv\"\n", 3, "1:3"}, BadFile{"[a]\ncase = gemv\n", 3, "2:8"},
        BadFile{"[[a]]\ncase = \"gemv\"\n", 3, "1:2"},
        BadFile{"[a]\ncase = \"gemv\n", 3, "no closing quote"},
        BadFile{"[a]\ncase = \"gqa-decode\"\ncontexts = [1, 2]\ncontext = 3\n", 3, "of the batch"},
        BadFile{std::string("[a]\ncase = \"\0\"\n", 15), 3, "cases.toml"},
        BadFile{std::string((1U << 20U) + 1, '#'), 3, "cases.toml"},
        BadFile{"\xff\xfe[\x00", 3, "cases.toml"}));

TEST(BenchCaseFile, Missing_IsAnInputError) {
  const Outcome outcome = bench({"nowhere/cases.toml"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("nowhere/cases.toml"));
}

TEST(Bench, UnknownCase_NamesTheKnownOnes) {
  const Outcome outcome = bench({"gqa-decod"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("gqa-decode"), HasSubstr("did you mean")));
}

TEST(Bench, OptionThatNoCaseUses_IsRefused) {
  const Outcome outcome = bench({"gemv", "--context", "16"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--context: none of the cases uses it"));
}

TEST(Bench, ColdAndWarm_Conflict) {
  const Outcome outcome = bench(tiny({"--cold"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("two states of the cache"));
}

TEST(Bench, ShapeWithoutKernel_IsUnavailableAndOthersAreMeasured) {
  const Outcome outcome = bench(tiny({"--dtype", "f32,bf16", "--json"}));
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("f32")));
  std::size_t measured = 0;
  const json::Value document = document_of(outcome);
  for (const json::Value& row : document.find("rows")->items()) {
    measured += row.find("timing") != nullptr ? 1 : 0;
  }
  EXPECT_EQ(measured, 3U);
}

TEST(Bench, ImpossibleShapes_AreRefusedWithWhatIsSupportedAndOthersAreMeasured) {
  const Outcome outcome = bench({"gqa-decode", "--heads", "4:2,7:2", "--head-dim", "32",
                                 "--context", "4,48", "--query-tokens", "8", "--json"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("7 query heads for 2 KV heads; multiples are supported"),
                                 HasSubstr("a context of 4 tokens cannot hold 8 new ones")));
  std::size_t measured = 0;
  const json::Value document = document_of(outcome);
  EXPECT_THAT(document.find("rows")->items(), SizeIs(4));
  for (const json::Value& row : document.find("rows")->items()) {
    measured += row.find("timing") != nullptr ? 1 : 0;
  }
  EXPECT_EQ(measured, 1U);
}

// Every type is understood, and refused by what has no kernel for it.
TEST(Bench, ActivationsInFp8_AreUnavailable) {
  const Outcome outcome = bench({"gqa-decode", "prefill", "kv-append", "--dtype", "fp8", "--heads",
                                 "2:1", "--head-dim", "32", "--context", "16"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("f32"));
  EXPECT_EQ(bench({"gqa-decode", "--dtype", "int4"}).exit_code, 2);
}

// Linux gives pages when they are touched: what is asked for is compared with what there is first.
TEST(Bench, MoreMemoryThanIsFree_IsRefusedBeforeItIsTouched) {
  const Outcome outcome = bench({"read-ceiling", "--size", "1TiB"});
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("1 TiB"), HasSubstr("are available")));
}

TEST(Bench, MoreMemoryThanThereIs_IsAResourceErrorWithTheSize) {
  const Outcome outcome = bench({"copy", "--size", "262144GiB"});
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("RESOURCE"), HasSubstr("256 TiB")));
}

TEST(Bench, UnknownDevice_NamesTheDevices) {
  const Outcome outcome = run_program("llm-bench", {.arguments = {"copy", "--device", "h200"}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("auto, cpu or cuda:N"));
}

TEST(Bench, CudaWithoutADevice_IsUnavailable) {
  const Outcome outcome =
      run_program("llm-bench", {.arguments = {"copy", "--device", "cuda:1000"}});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
}

TEST(Bench, Baseline_FasterIsFineAndSlowerIsAFinding) {
  const TemporaryFolder folder;
  const std::string now = bench(tiny({"--json"})).out;
  const auto with_medians = [&](const std::string& median) {
    std::string out;
    std::size_t first = 0;
    const std::string key = "\"median_s\": ";
    for (std::size_t at = 0; (at = now.find(key, first)) != std::string::npos;) {
      out += now.substr(first, at + key.size() - first) + median;
      first = now.find_first_of(",\n", at);
    }
    return out + now.substr(first);
  };
  const std::string slow = folder.write("slow.json", with_medians("100.0"));
  const std::string fast = folder.write("fast.json", with_medians("1e-12"));
  const Outcome fine = bench(tiny({"--baseline", slow}));
  EXPECT_EQ(fine.exit_code, 0) << fine.err;
  EXPECT_THAT(fine.out, AllOf(HasSubstr("vs baseline"), HasSubstr("-100.0 %")));
  const Outcome regressed = bench(tiny({"--baseline", fast, "--max-regression", "5%"}));
  EXPECT_EQ(regressed.exit_code, 1);
  EXPECT_THAT(regressed.err, HasSubstr("slower than the baseline"));
}

TEST(Bench, BaselineThatLacksShapes_SaysHowManyAreCompared) {
  const TemporaryFolder folder;
  std::string before = bench(tiny({"--json"})).out;
  const std::string label = "\"label\": \"";
  before.insert(before.find(label) + label.size(), "Another ");
  const Outcome outcome = bench({"gqa-decode", "--heads", "4:2", "--head-dim", "32", "--batch-size",
                                 "1,2,8", "--context", "48", "--max-regression", "100000%",
                                 "--baseline", folder.write("before.json", before)});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("2 of 3 rows are compared"), HasSubstr("was measured on Another ")));
}

// Before anything is measured: the longest time would be over only in an hour.
TEST(Bench, OutputsThatCannotBe_AreRefusedFirst) {
  const std::vector<std::string> endless = {"--min-time", "3600s", "--timeout", "3600s"};
  for (const std::vector<std::string>& output :
       {std::vector<std::string>{"-o", "json:/no/such/folder/a.json"},
        std::vector<std::string>{"--roofline", "/no/such/folder/a.svg"}}) {
    std::vector<std::string> arguments = tiny(endless);
    arguments.insert(arguments.end(), output.begin(), output.end());
    arguments.insert(arguments.end(), {"--device", "cpu", "--threads", "1"});
    const Outcome outcome = run_program("llm-bench", {.arguments = std::move(arguments)});
    EXPECT_EQ(outcome.exit_code, 6) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("/no/such/folder"));
  }
}

TEST(Bench, BaselineOfAnotherKind_IsAnInputError) {
  const TemporaryFolder folder;
  const Outcome outcome =
      bench(tiny({"--baseline", folder.write("x.json", "{\"schema\": \"kernelpath/run\"}")}));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("kernelpath/bench"));
  EXPECT_EQ(bench(tiny({"--baseline", folder.write("y.json", "no")})).exit_code, 3);
}

TEST(Bench, PeersFile_StandsBesideTheShapesOfItsNames) {
  const TemporaryFolder folder;
  const std::string cases = folder.write(
      "cases.toml", "[one]\ncase = \"gqa-decode\"\nheads = \"2:1\"\nhead_dim = 32\ncontext = 16\n");
  const std::string peers = folder.write(
      "peers.json",
      R"({"schema": "kernelpath/bench-peers", "schema_version": "1.0.0", "environment": {},
          "rows": [{"shape": "one", "peer": "slow_peer", "median_s": 9.5},
                   {"shape": "one", "peer": "fast_peer", "median_s": 7.5},
                   {"shape": "one", "peer": "no_pages", "median_s": 0.5, "paged": false},
                   {"shape": "one", "peer": "no_peer", "error": "not there"},
                   {"shape": "two", "peer": "other", "median_s": 1.0}]})");
  const Outcome outcome = bench({cases, "--peers-file", peers});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("fast_peer"), HasSubstr("7.50 s"), HasSubstr("vs peer"),
                                 Not(HasSubstr("other")), Not(HasSubstr("no_pages"))));
}

TEST(Bench, Profile_IsOneLaunchAndNotValid) {
  const json::Value row =
      document_of(bench(tiny({"--profile", "--json"}))).find("rows")->items().front();
  EXPECT_EQ(row.find("timing")->find("stop")->as_string(), "one-launch");
  EXPECT_THAT(row.find("timing")->find("samples_s")->items(), SizeIs(1));
  EXPECT_FALSE(row.find("valid")->as_bool());
}

TEST(Bench, UnknownPeer_IsRefused) {
  const Outcome outcome = bench(tiny({"--peer", "flashinfr"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("flashinfer"));
}

TEST(Bench, Interruption_PrintsTheFinishedShapes) {
  std::vector<std::string> arguments =
      tiny({"--format", "jsonl", "--device", "cpu", "--threads", "1", "--min-time", "20s",
            "--timeout", "20s", "--warm"});
  // The header is the first output: the signal comes while the first shape is measured.
  const Outcome outcome =
      run_program("llm-bench", {.arguments = arguments, .signal_after_output = SIGINT});
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 1) << outcome.out;
}

TEST(Bench, Pictures_AreSvgOrSayWhatToInstall) {
  const TemporaryFolder folder;
  const std::string roofline = folder.path("roofline.svg");
  const Outcome outcome = bench(tiny({"--format", "svg", "--roofline", roofline}));
  if (outcome.exit_code == 0) {
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("<svg"), HasSubstr("share of the limit")));
    EXPECT_THAT(read_file(roofline), HasSubstr("operations a byte"));
    return;
  }
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("gnuplot"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST(Bench, BadTimesAndShares_AreRefused) {
  EXPECT_THAT(bench(tiny({"--max-regression", "x%"})).err, HasSubstr("3% or 0.03"));
  const Outcome bare = bench(tiny({"--max-regression", "3"}));
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_THAT(bare.err, AllOf(HasSubstr("--max-regression: more than 1 without a percent sign (3)"),
                              HasSubstr("write 3%")));
  const Outcome outcome =
      run_program("llm-bench", {.arguments = {"copy", "--timeout", "1h", "--device", "cpu"}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("0.5s or 20ms"));
}

TEST(Bench, TimeThatEndsBeforeTheSamples_MarksTheRow) {
  std::vector<std::string> arguments = tiny({"--device", "cpu", "--threads", "1", "--timeout", "0",
                                             "--max-noise", "100000%", "--warm", "--json"});
  const Outcome outcome = run_program("llm-bench", {.arguments = std::move(arguments)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json::Value document = document_of(outcome);
  for (const json::Value& row : document.find("rows")->items()) {
    EXPECT_FALSE(row.find("valid")->as_bool());
    EXPECT_EQ(row.find("problems")->items()[0].as_string(),
              "1 of 10 samples when the time was over");
  }
}

TEST(Bench, RooflineOnStandardOutput_IsRefused) {
  const Outcome outcome = bench(tiny({"--roofline", "-"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--roofline: takes a file"));
}

TEST(Bench, Interruption_WritesEveryReport) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments =
      tiny({"-o", "jsonl:-", "-o", "text:-", "-o", "json:" + folder.path("a.json"), "--device",
            "cpu", "--threads", "1", "--min-time", "20s", "--timeout", "20s", "--warm"});
  const Outcome outcome =
      run_program("llm-bench", {.arguments = arguments, .signal_after_output = SIGINT});
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\ncpu  "));
  EXPECT_THAT(read_file(folder.path("a.json")), HasSubstr("\"rows\": []"));
}

TEST(Bench, Lists_NameCasesAndPeers) {
  const Outcome cases = run_program("llm-bench", {.arguments = {"--list", "cases"}});
  EXPECT_THAT(cases.out, AllOf(HasSubstr("gqa-decode"), HasSubstr("read-ceiling")));
  const Outcome peers = run_program("llm-bench", {.arguments = {"--list", "peers"}});
  EXPECT_THAT(peers.out, AllOf(HasSubstr("flashinfer"), HasSubstr("cudnn")));
}

TEST(Bench, PrintedConfig_CanBeUsed) {
  const Outcome printed =
      run_program("llm-bench",
                  {.arguments = {"--print-config", "--batch-size", "1..4*2", "--max-noise", "2%"}});
  EXPECT_THAT(printed.out,
              AllOf(HasSubstr("batch-size = [\"1..4*2\"]"), HasSubstr("max-noise = \"2%\"")));
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {"gqa-decode",
                                        "--heads",
                                        "2:1",
                                        "--head-dim",
                                        "32",
                                        "--context",
                                        "16",
                                        "--config-file",
                                        folder.write("c.toml", printed.out),
                                        "--json"};
  EXPECT_THAT(document_of(bench(arguments)).find("rows")->items(), SizeIs(3));
}

}  // namespace
}  // namespace kernelpath::testing
