#include "validate_program.h"

#include "json/document.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kernelpath::testing {

Outcome validate(std::vector<std::string> arguments) {
  return run_program("llm-validate", {.arguments = std::move(arguments)});
}

json::Value validate_document(std::vector<std::string> arguments, int exit_code) {
  arguments.emplace_back("--json");
  const Outcome outcome = validate(std::move(arguments));
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err << outcome.out.substr(0, 2000);
  const Result<json::Document> document = json::parse_object(outcome.out, "stdout");
  if (document) return document->root;
  ADD_FAILURE() << document.error().text();
  return json::Value::object({{.key = "findings", .value = json::Value::array({})}});
}

std::vector<json::Value> findings_of(const json::Value& document, const std::string& id) {
  std::vector<json::Value> out;
  for (const json::Value& finding : document.find("findings")->items()) {
    if (text_of(finding, "id") == id) out.push_back(finding);
  }
  return out;
}

std::vector<std::string> finding_ids(const json::Value& document) {
  std::vector<std::string> out;
  for (const json::Value& finding : document.find("findings")->items()) {
    out.push_back(text_of(finding, "id"));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string text_of(const json::Value& object, const std::string& key) {
  const json::Value* const value = object.find(key);
  if (value != nullptr && value->is_string()) return value->as_string();
  ADD_FAILURE() << "no string " << key << " in " << object.brief(300);
  return "";
}

}  // namespace kernelpath::testing
