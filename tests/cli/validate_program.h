#pragma once

#include "json/value.h"
#include "run_program.h"

#include <string>
#include <vector>

namespace kernelpath::testing {

// llm-validate with `arguments`, without a terminal or variables of a CI.
Outcome validate(std::vector<std::string> arguments);

// The JSON report of llm-validate; fails the test unless it ended with `exit_code`.
json::Value validate_document(std::vector<std::string> arguments, int exit_code);

// Its findings with this id.
std::vector<json::Value> findings_of(const json::Value& document, const std::string& id);
// The ids of all, sorted.
std::vector<std::string> finding_ids(const json::Value& document);

// A member that must be a string; fails the test and gives "" if it is none.
std::string text_of(const json::Value& object, const std::string& key);

}  // namespace kernelpath::testing
