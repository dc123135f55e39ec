#include "features/question.h"
#include "json/document.h"
#include "report/validate_build.h"
#include "report/validate_document.h"
#include "report/validate_markup.h"
#include "report/validate_matrix.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kernelpath::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// A report with an error from an options file, one from a flag, a warning and an engine without
// findings; names hold what markup and workflow commands must escape.
ValidateReport sample() {
  features::CombinationQuestion question{.table = features::find_rule_table("trtllm")};
  features::YamlDocument file{.file = "a b/options.yaml"};
  file.root = json::parse_object(R"({"kv_cache_config": {"dtype": "int4"},
    "speculative_config": {"decoding_type": "Eagle", "max_draft_len": 3}})",
                                 "o")
                  ->root;
  file.places = {{"/kv_cache_config/dtype", {12, 10}}, {"/speculative_config", {14, 1}}};
  question.arguments.add_file(file);
  question.arguments.set("attn_backend", json::Value::string("<\"&'>"), {.shown = "--backend"});
  question.arguments.set("enable_mla_skip_correction", json::Value::boolean(true), {});
  ValidateReport out{.tool = {.name = "llm-validate", .version = "0.1.0"}};
  ValidatedInput input{.model = "Model|<1>", .device = "h100-sxm (sm90, 80 GB)"};
  input.engines.push_back(engine_findings("trtllm", "2026-11",
                                          features::judge_combination(question),
                                          {.arguments = &question.arguments}));
  for (ReportedFinding& finding : input.engines[0].findings) {
    if (finding.finding.id == "SKIPCORR-BACKEND") finding.suggestion = "leave out --backend";
  }
  EngineFindings quiet{.engine = "vllm", .version = "0.33.0", .summary = "FLASH_ATTN; KV bf16"};
  input.engines.push_back(quiet);
  out.inputs.push_back(std::move(input));
  return out;
}

const ReportedFinding& find(const ValidateReport& report, std::string_view id) {
  for (const ReportedFinding& finding : report.inputs[0].engines[0].findings) {
    if (finding.finding.id == id) return finding;
  }
  ADD_FAILURE() << id;
  return report.inputs[0].engines[0].findings[0];
}

// A file in the build folder for a validator to read.
std::string written(const std::string& name, const std::string& text) {
  const auto folder = std::filesystem::path(KERNELPATH_BUILD_DIR) / "validate-reports";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << text;
  return (folder / name).string();
}

int run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()); }

bool have(const std::string& program) { return run("command -v " + program) == 0; }

TEST(EngineFindings, Places_AreWhereTheArgumentWasStated) {
  const ValidateReport report = sample();
  const FindingPlace& in_file = find(report, "KV-DTYPE").place;
  EXPECT_EQ(in_file.at, "option:/kv_cache_config/dtype");
  EXPECT_EQ(in_file.file, "a b/options.yaml");
  EXPECT_EQ(in_file.position->line, 12U);
  EXPECT_EQ(find(report, "SKIPCORR-BACKEND").place.shown, "--backend");
}

TEST(PlaceOf, ModelField_PointsIntoConfigJson) {
  config::ModelConfig model;
  model.path = "m/config.json";
  model.head_dim.value = 72;
  model.head_dim.origin.kind = config::OriginKind::kField;
  model.head_dim.origin.where = "/head_dim";
  const auto document = json::parse_object("{\n  \"head_dim\": 72\n}", "m/config.json");
  features::Finding finding{.field = "model.head_dim"};
  const FindingPlace place = place_of(finding, {.model = &model, .model_document = &*document});
  EXPECT_EQ(place.at, "config:/head_dim");
  EXPECT_EQ(place.position->line, 2U);
}

TEST(Counts, OnlyNewFindings_Count) {
  ValidateReport report = sample();
  const FindingCounts before = count_findings(report);
  EXPECT_EQ(before.error, 2U);
  EXPECT_TRUE(fails(report, features::Level::kError));
  const auto baseline = read_baseline(*json::parse_object(validate_json(report, 0), "b.json"));
  ASSERT_TRUE(baseline.has_value());
  apply_baseline(report, *baseline);
  EXPECT_FALSE(fails(report, features::Level::kNote));
  EXPECT_EQ(count_findings(report).known, before.error + before.warn + before.note);
}

TEST(ReadBaseline, SarifAndJson_AreTheSameAndOthersRefused) {
  const ValidateReport report = sample();
  const auto sarif = read_baseline(*json::parse_object(validate_sarif(report), "b.sarif"));
  const auto json = read_baseline(*json::parse_object(validate_json(report, 0), "b.json"));
  ASSERT_TRUE(sarif.has_value());
  EXPECT_EQ(*sarif, *json);
  EXPECT_FALSE(read_baseline(*json::parse_object("{}", "b.json")).has_value());
}

TEST(ValidateText, Lines_HoldEngineLevelRulePlaceAndRemedy) {
  const std::string text = validate_text(sample(), {}, 1);
  EXPECT_THAT(text, HasSubstr("trtllm    error   [KV-DTYPE] kv_cache_config.dtype int4"));
  EXPECT_THAT(text, HasSubstr("at: kv_cache_config.dtype (a b/options.yaml:12:10)   do: "));
  EXPECT_THAT(text, HasSubstr("change: leave out --backend"));
  EXPECT_THAT(text, HasSubstr("vllm      ok      FLASH_ATTN; KV bf16"));
  EXPECT_THAT(text, HasSubstr("2 engines: 2 error, 2 warn   exit 1"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ValidateText, Colour_ComesBesideTheWord) {
  View view;
  view.color = true;
  EXPECT_THAT(validate_text(sample(), view, 1), HasSubstr("\x1b[31merror   \x1b[0m"));
}

TEST(ValidateMarkdown, Cells_AreEscaped) {
  const std::string text = validate_markdown(sample());
  EXPECT_THAT(text, HasSubstr("Model\\|\\<1>"));
  EXPECT_THAT(text, HasSubstr("| vllm | ok |"));
}

TEST(ValidateHtml, Text_IsEscaped) {
  const std::string text = validate_html(sample());
  EXPECT_THAT(text, HasSubstr("Model|&lt;1&gt;"));
  EXPECT_THAT(text, Not(HasSubstr("<\"&'>")));
}

TEST(EscapeMarkup, WhatXmlCannotHold_IsReplaced) {
  EXPECT_EQ(escape_markup("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(escape_markup(std::string_view("a\x01\x7f\xff\xed\xa0\x80z", 8)),
            "a\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDz");
  EXPECT_EQ(escape_markup("é€𝄞"), "é€𝄞");
  EXPECT_EQ(escape_markup("\xEF\xBF\xBE"), "\uFFFD\uFFFD\uFFFD");
}

TEST(ValidateGithub, Commands_AreOneLineEach) {
  const std::string text = validate_github(sample());
  EXPECT_THAT(text,
              HasSubstr("::error file=a b/options.yaml,line=12,col=10,title=KV-DTYPE::trtllm: "));
  EXPECT_THAT(text, HasSubstr("%0Ado: "));
  EXPECT_THAT(text, HasSubstr("::warning "));
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    EXPECT_EQ(text.compare(at, 2, "::"), 0);
  }
}

TEST(ValidateJson, Document_FitsItsSchema) {
  if (run("python3 -c 'import jsonschema'") != 0) GTEST_SKIP() << "no python3-jsonschema";
  const std::string file = written("validate.json", validate_json(sample(), 2));
  EXPECT_EQ(
      run("python3 " KERNELPATH_SCHEMA_CHECK " " KERNELPATH_SCHEMA_DIR "/validate.schema.json " +
          file),
      0);
}

TEST(ValidateSarif, Report_FitsTheStandard) {
  if (run("python3 -c 'import jsonschema'") != 0) GTEST_SKIP() << "no python3-jsonschema";
  const std::string file = written("validate.sarif", validate_sarif(sample()));
  EXPECT_EQ(run("python3 " KERNELPATH_SCHEMA_CHECK " " KERNELPATH_SCHEMA_DIR
                "/sarif-2.1.0-used.schema.json " +
                file),
            0);
}

TEST(ValidateSarif, Results_NameTheirRuleAndRegion) {
  const auto document = json::parse_object(validate_sarif(sample()), "s.sarif");
  const json::Value* const result = json::resolve_pointer(document->root, "/runs/0/results/0");
  const json::Value* const rules =
      json::resolve_pointer(document->root, "/runs/0/tool/driver/rules");
  const auto index = static_cast<std::size_t>(result->find("ruleIndex")->as_integer());
  EXPECT_EQ(*rules->items()[index].find("id"), *result->find("ruleId"));
  EXPECT_EQ(json::resolve_pointer(*result, "/locations/0/physicalLocation/artifactLocation/uri")
                ->as_string(),
            "a%20b/options.yaml");
}

TEST(ValidateJunit, Report_FitsItsSchema) {
  const std::string file =
      written("validate.xml", validate_junit(sample(), features::Level::kError));
  const std::string text = validate_junit(sample(), features::Level::kError);
  EXPECT_THAT(text, HasSubstr("tests=\"5\" failures=\"2\""));
  EXPECT_THAT(text, HasSubstr("<testcase classname=\"vllm\" name=\"rules\" time=\"0\"/>"));
  if (!have("xmllint")) GTEST_SKIP() << "no xmllint";
  EXPECT_EQ(run("xmllint --noout --schema " KERNELPATH_SCHEMA_DIR "/junit.xsd " + file), 0);
}

TEST(FeatureMatrix, Formats_HoldEveryPairAndMarkReasons) {
  const features::FeatureMatrix& matrix = *features::find_feature_matrix("trtllm");
  EXPECT_THAT(feature_matrix_text(matrix), HasSubstr("FM-09-03"));
  EXPECT_THAT(feature_matrix_text(matrix), HasSubstr("[ours]"));
  EXPECT_THAT(feature_matrix_markdown(matrix), HasSubstr("| 18 LoRA |"));
  EXPECT_THAT(feature_matrix_html(matrix), HasSubstr("<td class=\"no\""));
  const auto document =
      json::parse_object(feature_matrix_json({"llm-validate", "0.1.0"}, matrix, 0), "m.json");
  EXPECT_EQ(document->root.find("cells")->items().size(), 171U);
  if (run("python3 -c 'import jsonschema'") != 0) GTEST_SKIP() << "no python3-jsonschema";
  const std::string file = written("features.json", document->text);
  EXPECT_EQ(run("python3 " KERNELPATH_SCHEMA_CHECK " " KERNELPATH_SCHEMA_DIR
                "/feature-matrix.schema.json " +
                file),
            0);
}

TEST(ValueMatrix, Formats_GroupEqualRows) {
  const features::RuleTable& table = *features::find_rule_table("trtllm");
  features::Context context(table);
  context.state(json::parse_object(R"({"enable_mla_skip_correction": true})", "t")->root);
  const auto matrix = features::judge_matrix(
      context, {*features::find_axis(table, "backend"), *features::find_axis(table, "kv")});
  ASSERT_TRUE(matrix.has_value());
  const ValueMatrices matrices{
      .model = "a<b>",
      .device = "h200",
      .engines = {{.engine = "trtllm", .version = "1", .matrix = *matrix}}};
  const std::string text = value_matrix_text(matrices);
  EXPECT_THAT(text, HasSubstr("trtllm 1, a<b> on h200\n"));
  EXPECT_THAT(value_matrix_html(matrices), HasSubstr("<h2>trtllm 1, a&lt;b&gt; on h200</h2>"));
  EXPECT_THAT(value_matrix_html(matrices), HasSubstr("<td>FLASHINFER, VANILLA</td>"));
  EXPECT_THAT(text, HasSubstr("FLASHINFER|VANILLA"));
  EXPECT_THAT(text, HasSubstr("of 15 combinations are valid"));
  EXPECT_THAT(value_matrix_markdown(matrices), HasSubstr("| verdict |"));
  if (run("python3 -c 'import jsonschema'") != 0) GTEST_SKIP() << "no python3-jsonschema";
  const std::string file =
      written("values.json", value_matrix_json({"llm-validate", "0.1.0"}, matrices, 0));
  EXPECT_EQ(run("python3 " KERNELPATH_SCHEMA_CHECK " " KERNELPATH_SCHEMA_DIR
                "/value-matrix.schema.json " +
                file),
            0);
}

}  // namespace
}  // namespace kernelpath::report
