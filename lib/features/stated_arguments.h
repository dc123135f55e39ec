#pragma once

#include "engines/request.h"
#include "features/command_line.h"
#include "features/rule_table.h"
#include "features/yaml.h"
#include "json/document.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// Where an argument was stated.
struct ArgumentOrigin {
  std::string shown = {};  // "--kv", "kv_cache_config.dtype"
  std::string file = {};   // of an options file; empty for options
  std::optional<json::Position> position = {};
};

// An engine's arguments as the user gave them, by options, options files and the engine's own
// command line, and where each of them stands. What is added later wins.
class StatedArguments {
 public:
  void set(std::string_view path, json::Value value, ArgumentOrigin origin);
  // As if nobody had stated it.
  void erase(std::string_view path);
  // All values of an options file.
  void add_file(const YamlDocument& document);
  // The options of a command line; those that its engine lets a file override must be added before
  // it.
  void add_command(const CommandReading& command);
  // A common option that this engine does not read: "--dcp: …".
  void add_unread(std::string text) { unread_.push_back(std::move(text)); }

  [[nodiscard]] const json::Value& tree() const { return tree_; }
  [[nodiscard]] const std::vector<std::string>& unread() const { return unread_; }
  // Of the argument, or of the object that holds it; null pointer if neither was stated.
  [[nodiscard]] const ArgumentOrigin* origin(std::string_view path) const;

 private:
  json::Value tree_ = json::Value::object({});
  std::map<std::string, ArgumentOrigin, std::less<>> origins_;
  std::vector<std::string> unread_;
};

// What the common options (--backend, --kv, --tp …) and --set mean for an engine, by the `option`
// and the `spellings` of its fields. Options that the engine does not read are listed as unread.
StatedArguments arguments_of(const RuleTable& table, const engines::Deployment& deployment);

}  // namespace kernelpath::features
