#pragma once

#include "features/context.h"
#include "features/rule.h"
#include "json/value.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::features {

// Which rules a question asks.
struct Scope {
  bool all_arguments_known = false;  // also rules that hold because something is absent
  bool beyond_arguments = true;      // also what happens after the arguments are constructed
  // Rules that count, by id; empty means all. Rules left out still change what later rules see.
  std::vector<std::string> only = {};
  std::vector<std::string> skip = {};
};

// One violated rule, ready to print.
struct Finding {
  const Rule* rule = nullptr;
  std::string id = {};
  Level level = Level::kError;
  std::string engine = {};
  std::string field = {};    // dotted name of the field at fault; the item for rules with `each`
  std::string pointer = {};  // "/kv_cache_config/dtype"
  std::string option = {};   // the command-line option that sets it; empty if none does
  std::string message = {};
  std::string fix = {};
  // What the engine changes: name → value, or a sentence.
  std::vector<std::pair<std::string, json::Value>> effects = {};
};

// The engine's own answer: it stops at its first error.
struct Outcome {
  Level worst = Level::kDerive;    // kDerive: nothing was found
  const Rule* deciding = nullptr;  // the first error, else the first downgrade, else the first note
  std::vector<Finding> findings = {};  // all of them, in the engine's order
};

// Judges one combination: every rule that holds, in the engine's order. Later rules see what
// earlier ones changed.
Outcome validate(const Context& context, const Scope& scope = {});

// The verdict alone, without texts: for searches over many combinations.
struct Judgement {
  Level worst = Level::kDerive;
  const Rule* deciding = nullptr;
};
Judgement judge(const Context& context, const Scope& scope = {});

// A rule that holds, and the fields' values where it was asked (earlier rules may have changed
// some).
struct Violation {
  const Rule* rule = nullptr;
  std::vector<Value> values = {};
};
// Rules of `level` or worse that hold, in order; for --suggest.
std::vector<Violation> violations(const Context& context, const Scope& scope, Level level);

// The rule is evaluated at all, and its finding counts.
bool is_asked(const Rule& rule, const Scope& scope);
bool is_shown(const Rule& rule, const Scope& scope);

// "a.b" → "/a/b".
std::string field_pointer(std::string_view field);

}  // namespace kernelpath::features
