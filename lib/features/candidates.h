#pragma once

#include "features/context.h"
#include "features/validate.h"
#include "features/word_change.h"
#include "json/value.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::features {

// A device that --suggest may propose instead of the one asked.
struct DeviceChoice {
  std::string id;
  std::optional<std::int64_t> sm = {};
  std::optional<std::int64_t> memory_bytes = {};
  std::string platform = {};  // empty: unknown
};

// One step of a suggestion: a field, an argument that is no field, the device, or words of the
// engine's command line.
struct Change {
  FieldKind kind = FieldKind::kArgument;
  std::string name = {};                  // dotted, of the field or argument; empty for the others
  std::optional<json::Value> value = {};  // nothing: leave it out
  std::string renamed = {};               // what the argument that is left out is called instead
  std::optional<DeviceChoice> device = {};
  std::optional<WordChange> word = {};
  std::string text = {};  // "--backend TRTLLM", "leave out lora_config", "--device b200"

  // What it changes: no suggestion changes one thing twice.
  [[nodiscard]] std::string subject() const;
};

// Makes the change of a field or of the device; an object that is left out takes its members with
// it, a member that is set brings its object.
void apply(const Change& change, Context& context);

// The changes that could make a rule stop holding, read off its condition: values compared with its
// fields and their neighbours, the members of lists, the default, the other boolean, the names that
// the schema knows. Fields that the rule reads through derived values count too.
class CandidateFinder {
 public:
  // `names`: what the user calls an argument, by field ("--kv_cache_dtype" of the engine's own
  // command line, "kv_cache_config.dtype" in an options file); else it is called by its option.
  CandidateFinder(const RuleTable& table, std::vector<DeviceChoice> devices,
                  std::map<std::string, std::string> names = {});

  // In a fixed order: the field at fault first, then the others as the condition names them;
  // devices last. `values` are the fields' values where the rule held.
  [[nodiscard]] std::vector<Change> for_rule(const Rule& rule, const Context& context,
                                             const std::vector<Value>& values) const;
  // Leaving the field out, and these values of it.
  [[nodiscard]] std::vector<Change> for_field(std::uint32_t field, const Context& context,
                                              const std::vector<Value>& values) const;
  [[nodiscard]] std::vector<Change> for_device() const;

 private:
  [[nodiscard]] std::vector<const Expression*> expressions_behind(const Rule& rule) const;
  void add_field(std::vector<Change>& out, std::uint32_t field, const Context& context,
                 const std::vector<Value>& candidates) const;
  [[nodiscard]] std::string name_of(const FieldInfo& field) const;
  [[nodiscard]] Change change_of(std::uint32_t field, std::optional<Value> value) const;

  const RuleTable& table_;
  std::vector<DeviceChoice> devices_;
  std::map<std::string, std::string> names_;
  // For each field: the expressions that its value is computed from by other rules.
  std::vector<std::vector<const Expression*>> behind_;
};

}  // namespace kernelpath::features
