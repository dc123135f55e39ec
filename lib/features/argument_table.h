#pragma once

#include "base/result.h"
#include "features/context.h"
#include "features/schema.h"
#include "json/document.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// One argument as the engine's argument classes declare it.
struct ArgumentInfo {
  std::string name = {};  // dotted: "kv_cache_config.dtype"
  FieldType type = FieldType::kAny;
  std::vector<json::Value> choices = {};  // empty: open
  bool any_case = false;                  // the choices are compared without case
  // Bounds that the field declares: min ≤ v, above < v, v ≤ max, v < below.
  std::optional<double> min = {};
  std::optional<double> above = {};
  std::optional<double> max = {};
  std::optional<double> below = {};
  std::vector<std::string> only_for = {};  // variants of its object that have it; empty: all
  bool open = false;                       // its members are not judged
  std::string deprecated = {};             // what to do instead; empty: it is not
};

// Every argument of one engine version; the engine refuses others.
struct ArgumentTable {
  std::string engine = {};
  std::string version = {};
  bool complete = true;                      // false: the engine has arguments that are not here
  std::vector<ArgumentInfo> arguments = {};  // in the engine's order
  // Object → the member that says which variant it is.
  std::map<std::string, std::string> discriminators = {};

  [[nodiscard]] const ArgumentInfo* find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> near(std::string_view name) const;
};

// Reads a table (data/rules/<engine>-arguments.json). Error kInputSchema.
Result<ArgumentTable> read_argument_table(const json::Document& document);

// The embedded table of an engine's version, of its newest if `version` is empty; null pointer if
// there is none.
const ArgumentTable* find_argument_table(std::string_view engine, std::string_view version = {});

// What is wrong with the arguments by themselves; each entry reads "NAME: what is wrong".
struct ArgumentFaults {
  std::vector<std::string> unknown = {};
  std::vector<std::string> mistyped = {};
  std::vector<std::string> out_of_range = {};
  std::vector<std::string> not_a_choice = {};
  std::vector<std::string> deprecated = {};
};

// Looks at every member of `arguments`, so that nothing is dropped silently.
ArgumentFaults check_arguments(const ArgumentTable& table, const json::Value& arguments);

// Lets the rules ARG-… see the faults.
void state_faults(Context& context, const ArgumentFaults& faults);

}  // namespace kernelpath::features
