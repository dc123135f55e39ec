#include "base/text.h"
#include "json/document.h"
#include "json/writer.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

// The rows of tests/cli/bad_inputs.jsonl through the program: one test a row. Rows that need more
// than one file or a special kind of file are in bad_files_test.cpp.

namespace kernelpath::json {

// How the test framework shows a row.
inline void PrintTo(const Value& value, std::ostream* out) { *out << to_text(value); }

}  // namespace kernelpath::json

namespace kernelpath::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGoodConfig = R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "num_hidden_layers": 32,
  "num_attention_heads": 32,
  "num_key_value_heads": 8,
  "head_dim": 128,
  "max_position_embeddings": 131072,
  "vocab_size": 128256,
  "rope_theta": 500000.0,
  "hidden_act": "silu",
  "torch_dtype": "bfloat16"
}
)";

std::string text_of(const json::Value& row, std::string_view key) {
  const json::Value* value = row.find(key);
  return value == nullptr ? "" : value->as_string();
}

// Each character of the JSON string is one byte of the file.
std::string bytes_of(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(((byte & 0x03U) << 6U) |
                             (static_cast<unsigned char>(text[i + 1]) & 0x3fU));
    ++i;
  }
  return out;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  ASSERT_NE(text.find(from), std::string::npos) << from;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

bool is_removed(const json::Value& row, const std::string& key) {
  const json::Value* removed = row.find("remove");
  if (removed == nullptr) return false;
  const auto items = removed->items();
  return std::any_of(items.begin(), items.end(),
                     [&](const json::Value& item) { return item.as_string() == key; });
}

// The good configuration without the fields of "remove" and with those of "patch".
std::string patched_config(const json::Value& row) {
  const json::Value good = json::parse(kGoodConfig, "")->root;
  std::vector<json::Member> members;
  for (const json::Member& member : good.members()) {
    const json::Value* patch = row.find("patch");
    const bool replaced = patch != nullptr && patch->find(member.key) != nullptr;
    if (!replaced && !is_removed(row, member.key)) members.push_back(member);
  }
  if (const json::Value* patch = row.find("patch")) {
    members.insert(members.end(), patch->members().begin(), patch->members().end());
  }
  return json::to_text(json::Value::object(std::move(members)), 2);
}

std::string content_of(const json::Value& row) {
  if (row.find("bytes") != nullptr) return bytes_of(text_of(row, "bytes"));
  if (row.find("patch") != nullptr || row.find("remove") != nullptr) return patched_config(row);
  std::string text = kGoodConfig;
  if (const json::Value* edits = row.find("edit")) {
    for (const json::Value& edit : edits->items()) {
      std::string to = edit.items()[1].as_string();
      const std::string deep = std::string(65, '[') + std::string(65, ']');
      if (to.find("@DEEP65@") != std::string::npos) replace_all(to, "@DEEP65@", deep);
      replace_all(text, edit.items()[0].as_string(), to);
    }
  }
  return bytes_of(text_of(row, "prepend_bytes")) + text + text_of(row, "append");
}

std::vector<json::Value> rows() {
  std::vector<json::Value> out;
  for (const std::string& line :
       split(read_file(KERNELPATH_CLI_TABLES "/bad_inputs.jsonl"), '\n')) {
    if (!line.empty()) out.push_back(json::parse(line, "bad_inputs.jsonl")->root);
  }
  return out;
}

class BadInput : public ::testing::TestWithParam<json::Value> {
 protected:
  void SetUp() override { path_ = folder_.write("config.json", content_of(GetParam())); }

  [[nodiscard]] Outcome run(std::vector<std::string> arguments) const {
    if (const json::Value* more = GetParam().find("arguments")) {
      for (const json::Value& argument : more->items()) arguments.push_back(argument.as_string());
    }
    arguments.push_back(path_);
    return inspect(std::move(arguments));
  }

  void check_refusal() const;
  void check_refusal_as_json() const;
  void check_answer() const;
  void check_members(std::string_view name, const json::Value& answer) const;

  TemporaryFolder folder_;
  std::string path_;
};

void BadInput::check_refusal() const {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("llm-inspect: error["));
  EXPECT_THAT(outcome.err, HasSubstr("]: " + path_ + ": " + text_of(GetParam(), "where")));
  EXPECT_THAT(outcome.err, HasSubstr(text_of(GetParam(), "what")));
  const std::vector<std::string> lines = split(outcome.err, '\n');
  EXPECT_LE(lines.size(), 3U) << outcome.err;
  if (lines.size() == 3) {
    EXPECT_THAT(lines[1], StartsWith("  hint: "));
  }
  for (const char c : outcome.err) EXPECT_TRUE(c == '\n' || (c >= ' ' || c < 0)) << outcome.err;
}

void BadInput::check_refusal_as_json() const {
  const Outcome outcome = run({"--json"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  const Result<json::Document> error = json::parse_object(outcome.err, "stderr");
  ASSERT_TRUE(error) << outcome.err;
  EXPECT_EQ(error->root.find("file")->as_string(), path_);
  EXPECT_EQ(error->root.find("exit_name")->as_string(), "input");
  EXPECT_THAT(error->root.find("what")->as_string(), ::testing::Not(""));
  const std::string where = text_of(GetParam(), "where");
  if (where.empty()) return;
  ASSERT_NE(error->root.find("where"), nullptr) << outcome.err;
  EXPECT_EQ(error->root.find("where")->as_string(), where);
}

void BadInput::check_answer() const {
  const Outcome outcome = run({"--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const json::Value document = json::parse(outcome.out, "stdout")->root;
  const json::Value& input = document.find("inputs")->items()[0];
  const std::string warnings = json::to_text(*input.find("warnings"));
  const std::string expected = text_of(GetParam(), "warning");
  EXPECT_THAT(warnings, HasSubstr(expected));
  if (GetParam().find("no_warnings") != nullptr) {
    EXPECT_EQ(warnings, "[]");
  }
  if (!expected.empty()) {
    EXPECT_THAT(run({}).out, HasSubstr("warn  "));
  }
  EXPECT_THAT(run({}).out, HasSubstr(text_of(GetParam(), "shown")));
  EXPECT_EQ(run({}).out.find('\x1b'), std::string::npos);
  check_members("facts", *input.find("facts"));
  const json::Value& engine = input.find("engines")->items()[0];
  check_members("memory", *engine.find("memory"));
  EXPECT_THAT(json::to_text(*engine.find("warnings")),
              HasSubstr(text_of(GetParam(), "engine_warning")));
}

// Each member of the row's object `name` is in `answer` with the same value.
void BadInput::check_members(std::string_view name, const json::Value& answer) const {
  const json::Value* expected = GetParam().find(name);
  if (expected == nullptr) return;
  for (const json::Member& member : expected->members()) {
    const json::Value* value = answer.find(member.key);
    ASSERT_NE(value, nullptr) << member.key;
    EXPECT_EQ(json::to_text(*value), json::to_text(member.value)) << member.key;
  }
}

TEST_P(BadInput, Row_IsAnsweredAsDocumented) {
  if (GetParam().find("exit")->as_integer() == 0) {
    check_answer();
  } else {
    check_refusal();
    check_refusal_as_json();
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BadInput, ::testing::ValuesIn(rows()), [](const auto& row) {
  return text_of(row.param, "row") + "_" + text_of(row.param, "name");
});

}  // namespace
}  // namespace kernelpath::testing
