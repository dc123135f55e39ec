#pragma once

#include "json/value.h"
#include "registry/loader.h"
#include "registry/registration.h"
#include "registry/static_index.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::registry {

// One decision of the registry: a rule id of rule_ids.h and what it was about. The names of the
// fields are "arch", "mode", "module", "value", "kept", "rejected", "registry", "owner", "name" and
// "map".
struct Event {
  std::string_view rule;
  json::Value fields;
};

// Answer of a look-up. Neither is set: nobody provides it, or the provider is not there at all.
struct Found {
  std::optional<Provider> provider = {};
  std::optional<Failure> failure = {};  // the provider is there and failed
};

// Answer of an attribute access: a class, or a submodule.
struct Attribute {
  std::string module = {};  // of the class, or the submodule itself
  std::optional<std::string> class_name = {};
  std::optional<Failure> failure = {};
};

// A registration as it was made, whether it got its slot or not.
struct LogEntry {
  Kind kind = Kind::kModelClass;
  std::string key;
  Provider value;
};

struct ModuleLog {
  std::string module;
  std::vector<LogEntry> entries;
};

// Architecture → full module name, in the order of the declaration.
using Declaration = std::vector<std::pair<std::string, std::string>>;

// A static index and the runtime registries that loading modules fills, with the rules of
// TensorRT-LLM's model registry, which are kernelpath's own as well:
//  - a look-up loads the provider first; there is no bare look-up;
//  - a built-in registration fills an empty slot only, an external one overwrites;
//  - each registration is logged before it is applied, and a new declaration replays the log;
//  - a module that is not there is no provider, a module that fails is that failure.
//
// Not thread-safe: one registry belongs to one question.
class Registry {
 public:
  // Both must outlive the registry.
  Registry(const StaticIndex& index, Loader& loader) : index_(index), loader_(loader) {}

  Found model_class(std::string_view architecture);
  // The provider's base_class is the base of the encoder, where it has one. Looks at its own slot
  // only: an external class for the architecture does not keep the built-in module from loading.
  Found vision_encoder(std::string_view architecture);
  // Speculative modes have no declarations: the registry, then the static index.
  Found draft_builder(std::string_view mode);

  // What `package.name` gives: a class of the class index, else a submodule. A class that was found
  // once is remembered and loads nothing.
  Attribute attribute(std::string_view name);

  // Loads a module unless it is loaded already.
  std::optional<Failure> import(std::string_view module);

  // Replaces the declaration of external providers. An equal one (order aside) changes nothing;
  // otherwise the class and vision registries are rebuilt from the log.
  void declare(Declaration declaration);

  // External classes and declared rows, for another process: architecture → module.
  [[nodiscard]] Declaration export_external() const;

  // Architectures that this class declared, also where it lost the slot; in order of declaration.
  [[nodiscard]] std::vector<std::string> architectures_of(const Provider& model_class) const;
  // Modes that this builder registered, also where it lost the slot; sorted.
  [[nodiscard]] std::vector<std::string> modes_of(const Provider& builder) const;
  // Whether the builder holds a slot now.
  [[nodiscard]] bool holds_a_mode(const Provider& builder) const;

  // Every architecture that a look-up could name: index, declaration and registry, sorted.
  [[nodiscard]] std::vector<std::string> known_architectures() const;
  // The known architectures that `name` may be a misspelling of, nearest first.
  [[nodiscard]] std::vector<std::string> near_architectures(std::string_view name) const;

  [[nodiscard]] const StaticIndex& index() const { return index_; }
  [[nodiscard]] std::span<const ModuleLog> log() const { return log_; }
  [[nodiscard]] std::span<const Event> events() const { return events_; }
  // The events since the last call.
  std::vector<Event> take_events();
  // Adds a decision of the caller, so that one list holds all decisions in their order. `rule` must
  // outlive the registry.
  void note(std::string_view rule, std::vector<json::Member> fields = {});

 private:
  using Slots = std::map<std::string, Provider, std::less<>>;

  Found find(Kind kind, std::string_view architecture);
  std::optional<Failure> load_provider(const std::string& module);
  static std::optional<Failure> expand(const std::string& module, std::vector<Registration>& all);
  static std::optional<Failure> decorate(const std::string& module, const Registration& encoder,
                                         std::vector<Registration>& out);
  ModuleLog* log_of(std::string_view module);
  void record(const std::string& module, const Registration& registration);
  void apply(const LogEntry& entry, std::string_view module);
  void apply_builder(const LogEntry& entry, std::string_view module);
  void replay(const ModuleLog& log);
  [[nodiscard]] const std::string* declared_module(std::string_view architecture) const;
  Slots& slots(Kind kind) { return slots_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const Slots& slots(Kind kind) const {
    return slots_[static_cast<std::size_t>(kind)];
  }

  const StaticIndex& index_;
  Loader& loader_;
  std::array<Slots, 3> slots_;
  Declaration declared_;
  std::set<std::string, std::less<>> loaded_;
  std::vector<ModuleLog> log_;
  std::map<std::string, Attribute, std::less<>> attributes_;
  std::vector<Event> events_;
};

}  // namespace kernelpath::registry
