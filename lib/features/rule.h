#pragma once

#include "engines/resolution.h"
#include "features/expression.h"
#include "features/text_template.h"
#include "json/value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// What a rule means for the user. Each maps to one verdict of the engine's own answer: error →
// error, warn → downgrade, note → ok.
enum class Level : std::uint8_t {
  kDerive,  // no rule: a value that later rules read
  kNote,    // worth knowing; nothing is lost
  kWarn,    // the engine silently changes something or falls back
  kError,   // the engine refuses or fails
};
std::string_view level_name(Level level);
std::optional<Level> find_level(std::string_view name);

// When the engine comes to it; the order of findings, and for an engine that stops at its first
// error also the order of its checks.
enum class Stage : std::uint8_t {
  kField,       // one argument by itself
  kArguments,   // arguments against each other, when they are constructed
  kBuild,       // when the model and its attention layers are built
  kRun,         // at run time
  kDocumented,  // the engine's documentation says no; the engine may not check
  kCross,       // no engine checks it
};
std::string_view stage_name(Stage stage);
std::optional<Stage> find_stage(std::string_view name);

// What the engine changes when the rule holds.
struct Effect {
  std::string name = {};                 // "kv_cache_config.dtype", or a label such as "warn"
  std::optional<Expression> when = {};   // only if this holds too; absent: whenever the rule does
  std::optional<Expression> value = {};  // the new value …
  TextTemplate sentence = {};            // … or a sentence where no value tells it
  std::optional<std::uint32_t> assigns = {};  // the field that later rules read changed
};

// An option that moves what the rule reads, where the resolution stands between the two: --suggest
// tries it.
struct Lever {
  std::string option = {};               // "--tp"
  std::optional<Expression> value = {};  // what it should become …
  std::int64_t doubled_to = 0;           // … or: doubled, up to this; neither: any value it lists
};

// One rule: all of it data (data/rules/), nothing in code.
struct Rule {
  std::string id;
  Level level = Level::kError;
  Stage stage = Stage::kArguments;
  // Holds because something is absent: judged only where all arguments are known (an options file,
  // a command line), not for a fragment.
  bool needs_all_arguments = false;
  Expression when;
  std::vector<std::uint32_t> at;      // the field at fault: the first of these that was stated
  std::optional<std::uint32_t> each;  // a list: one finding for each of its items
  TextTemplate message;               // what happens
  std::string why;                    // the structural reason
  TextTemplate fix;                   // what to do
  std::vector<std::string> allowed;
  std::vector<Effect> effects;
  std::vector<Lever> levers;
  std::string error_type;  // of the engine's exception; empty if it raises none
  engines::Source source;
  std::string issue;  // public report of it; empty
  // Rules of the engine's resolution that say the same: a finding of this one stands for them.
  std::vector<std::string> steps;
  // Engine versions that have the rule; empty: all of its table.
  std::vector<std::string> versions;
  // Arguments (and facts) for which it holds, and some for which it just does not.
  std::vector<json::Value> hits;
  std::vector<json::Value> near_misses;
};

}  // namespace kernelpath::features
