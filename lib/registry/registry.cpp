#include "registry/registry.h"

#include "base/text.h"
#include "registry/rule_ids.h"

#include <algorithm>

namespace kernelpath::registry {
namespace {

json::Member field(std::string key, std::string value) {
  return {.key = std::move(key), .value = json::Value::string(std::move(value))};
}

bool same_declaration(const Declaration& a, const Declaration& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

// Where an architecture stands twice the last module counts, at the place of the first.
Declaration without_duplicates(Declaration declaration) {
  Declaration unique;
  for (auto& row : declaration) {
    const auto same = std::find_if(unique.begin(), unique.end(),
                                   [&](const auto& earlier) { return earlier.first == row.first; });
    if (same == unique.end()) {
      unique.push_back(std::move(row));
    } else {
      same->second = std::move(row.second);
    }
  }
  return unique;
}

json::Value declaration_object(const Declaration& declaration) {
  std::vector<json::Member> rows;
  rows.reserve(declaration.size());
  for (const auto& [architecture, module] : declaration)
    rows.push_back(field(architecture, module));
  return json::Value::object(std::move(rows));
}

}  // namespace

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kModelClass:
      return "model class";
    case Kind::kVisionEncoder:
      return "vision encoder";
    case Kind::kDraftBuilder:
      return "draft builder";
  }
  return "";
}

// --- look-up ------------------------------------------------------------------------------------

Found Registry::model_class(std::string_view architecture) {
  return find(Kind::kModelClass, architecture);
}

Found Registry::vision_encoder(std::string_view architecture) {
  return find(Kind::kVisionEncoder, architecture);
}

Found Registry::find(Kind kind, std::string_view architecture) {
  const std::string arch(architecture);
  if (const auto hit = slots(kind).find(architecture); hit != slots(kind).end()) {
    note(kind == Kind::kModelClass ? rule::kRegistryHit : rule::kRegistryHitVision,
         {field("arch", arch)});
    return {.provider = hit->second};
  }
  std::string module;
  if (const std::string* declared = declared_module(architecture)) {
    module = *declared;
    note(rule::kExternalDeclared, {field("arch", arch), field("module", module)});
  } else if (const std::string* indexed = index_.architectures.find(architecture)) {
    module = index_.full_name(*indexed);
    note(rule::kIndexHit, {field("arch", arch), field("module", module)});
  } else {
    note(rule::kIndexMiss, {field("arch", arch)});
    return {};
  }
  if (auto failure = load_provider(module)) return {.failure = std::move(failure)};
  const auto entry = slots(kind).find(architecture);
  if (entry == slots(kind).end()) return {};
  return {.provider = entry->second};
}

Found Registry::draft_builder(std::string_view mode) {
  const Slots& builders = slots(Kind::kDraftBuilder);
  if (const auto hit = builders.find(mode); hit != builders.end()) {
    note(rule::kSpecHit, {field("mode", std::string(mode))});
    return {.provider = hit->second};
  }
  const std::string* indexed = index_.spec_modes.find(mode);
  if (indexed == nullptr) {
    note(rule::kSpecIndexMiss, {field("mode", std::string(mode))});
    return {};
  }
  if (auto failure = load_provider(index_.full_name(*indexed))) {
    return {.failure = std::move(failure)};
  }
  const auto entry = builders.find(mode);
  if (entry == builders.end()) return {};
  return {.provider = entry->second};
}

// Loads the module that a table names. That it is not there at all means a stale table; anything
// that fails inside it is an error of its own and must not look like an unknown name.
std::optional<Failure> Registry::load_provider(const std::string& module) {
  auto failure = import(module);
  if (!failure) return std::nullopt;
  if (failure->kind != FailureKind::kModuleNotFound || failure->name != module) return failure;
  note(rule::kImportMissingWarn, {field("module", module)});
  return std::nullopt;
}

Attribute Registry::attribute(std::string_view name) {
  const std::string wanted(name);
  if (const auto cached = attributes_.find(name); cached != attributes_.end()) {
    note(rule::kAttributeCached, {field("name", wanted)});
    return cached->second;
  }
  if (const std::string* short_name = index_.classes.find(name)) {
    const std::string module = index_.full_name(*short_name);
    if (auto failure = import(module)) {
      // Python's attribute protocol would read an AttributeError as "no such attribute".
      if (failure->kind == FailureKind::kAttributeError) failure->kind = FailureKind::kImportError;
      return {.failure = std::move(failure)};
    }
    note(rule::kAttributeCache, {field("name", wanted)});
    Attribute found = {.module = module, .class_name = wanted};
    attributes_.emplace(wanted, found);
    return found;
  }
  const std::string module = index_.full_name(name);
  if (auto failure = import(module)) {
    if (failure->kind == FailureKind::kModuleNotFound && failure->name == module) {
      failure = Failure{.kind = FailureKind::kNoAttribute,
                        .name = wanted,
                        .message = "module " + index_.package + " has no attribute " + wanted};
    }
    return {.failure = std::move(failure)};
  }
  note(rule::kSubmodule, {field("module", module)});
  return {.module = module};
}

// --- loading and registering --------------------------------------------------------------------

std::optional<Failure> Registry::import(std::string_view module) {
  const std::string name(module);
  if (loaded_.contains(module)) {
    note(rule::kImportCached, {field("module", name)});
    return std::nullopt;
  }
  Loaded loaded = loader_.load(module);
  if (loaded.failure) return std::move(loaded.failure);
  if (auto failure = expand(name, loaded.registrations)) return failure;
  loaded_.insert(name);
  note(rule::kImport, {field("module", name)});
  for (const Registration& registration : loaded.registrations) record(name, registration);
  return std::nullopt;
}

// Replaces each vision encoder that names a class by one registration per architecture of it, as
// the stacked decorators do. The class must have been registered before, by the same module.
std::optional<Failure> Registry::expand(const std::string& module, std::vector<Registration>& all) {
  std::vector<Registration> expanded;
  expanded.reserve(all.size());
  for (Registration& registration : all) {
    if (registration.kind != Kind::kVisionEncoder || !registration.key.empty()) {
      expanded.push_back(std::move(registration));
      continue;
    }
    if (auto failure = decorate(module, registration, expanded)) return failure;
  }
  all = std::move(expanded);
  return std::nullopt;
}

std::optional<Failure> Registry::decorate(const std::string& module, const Registration& encoder,
                                          std::vector<Registration>& out) {
  std::vector<std::string> architectures;
  for (const Registration& earlier : out) {
    if (earlier.kind == Kind::kModelClass && earlier.name == encoder.model_class) {
      architectures.push_back(earlier.key);
    }
  }
  if (architectures.empty()) {
    return Failure{.kind = FailureKind::kRegistration,
                   .name = encoder.model_class,
                   .message = "the vision encoder " + encoder.name + " of " + module +
                              " belongs to the class " + encoder.model_class +
                              ", which is not registered before it"};
  }
  for (std::string& architecture : architectures) {
    out.push_back({.kind = Kind::kVisionEncoder,
                   .key = std::move(architecture),
                   .name = encoder.name,
                   .base_class = encoder.base_class});
  }
  return std::nullopt;
}

ModuleLog* Registry::log_of(std::string_view module) {
  const auto found = std::find_if(log_.begin(), log_.end(),
                                  [&](const ModuleLog& log) { return log.module == module; });
  return found == log_.end() ? nullptr : &*found;
}

void Registry::record(const std::string& module, const Registration& registration) {
  ModuleLog* log = log_of(module);
  if (log == nullptr) log = &log_.emplace_back(ModuleLog{.module = module, .entries = {}});
  log->entries.push_back(
      {.kind = registration.kind,
       .key = registration.key,
       .value = {
           .module = module, .name = registration.name, .base_class = registration.base_class}});
  apply(log->entries.back(), module);
}

void Registry::apply(const LogEntry& entry, std::string_view module) {
  if (entry.kind == Kind::kDraftBuilder) return apply_builder(entry, module);
  Slots& registry = slots(entry.kind);
  std::vector<json::Member> fields = {field("registry", std::string(kind_name(entry.kind))),
                                      field("arch", entry.key)};
  const auto existing = registry.find(entry.key);
  const bool taken = existing != registry.end() && existing->second != entry.value;
  if (taken && index_.is_built_in(module)) {
    fields.push_back(field("kept", existing->second.qualified_name()));
    fields.push_back(field("rejected", entry.value.qualified_name()));
    note(rule::kRegKeep, std::move(fields));
    return;
  }
  fields.push_back(field("value", entry.value.qualified_name()));
  note(taken ? rule::kRegOverwrite : rule::kRegSet, std::move(fields));
  registry.insert_or_assign(entry.key, entry.value);
}

void Registry::apply_builder(const LogEntry& entry, std::string_view module) {
  Slots& registry = slots(Kind::kDraftBuilder);
  const auto existing = registry.find(entry.key);
  const bool taken = existing != registry.end() && existing->second != entry.value;
  if (taken && index_.is_built_in(module)) {
    note(rule::kSpecKeep,
         {field("mode", entry.key), field("kept", existing->second.qualified_name()),
          field("rejected", entry.value.qualified_name())});
    return;
  }
  note(rule::kSpecSet, {field("mode", entry.key), field("value", entry.value.qualified_name())});
  registry.insert_or_assign(entry.key, entry.value);
}

// --- declarations -------------------------------------------------------------------------------

const std::string* Registry::declared_module(std::string_view architecture) const {
  for (const auto& [declared, module] : declared_) {
    if (declared == architecture) return &module;
  }
  return nullptr;
}

void Registry::declare(Declaration declaration) {
  declaration = without_duplicates(std::move(declaration));
  if (same_declaration(declaration, declared_)) {
    note(rule::kDeclareNoop);
    return;
  }
  declared_ = std::move(declaration);
  note(rule::kDeclare, {{.key = "map", .value = declaration_object(declared_)}});
  slots(Kind::kModelClass).clear();
  slots(Kind::kVisionEncoder).clear();
  note(rule::kRebuildClear);
  for (const ModuleLog& log : log_) {
    if (index_.is_built_in(log.module)) replay(log);
  }
  // Declared modules come last so that they overwrite, the order of a process that loads the
  // built-in models and then the custom ones.
  std::set<std::string_view> replayed;
  for (const auto& row : declared_) {
    if (!replayed.insert(row.second).second) continue;
    if (const ModuleLog* log = log_of(row.second)) replay(*log);
  }
}

// Draft builders are not replayed: a declaration is about architectures and leaves their registry.
void Registry::replay(const ModuleLog& log) {
  for (const LogEntry& entry : log.entries) {
    if (entry.kind == Kind::kDraftBuilder) continue;
    std::vector<json::Member> fields = {field("registry", std::string(kind_name(entry.kind))),
                                        field("arch", entry.key), field("module", log.module)};
    const std::string* owner = declared_module(entry.key);
    if (owner != nullptr && *owner != log.module) {
      fields.push_back(field("owner", *owner));
      note(rule::kReplaySkip, std::move(fields));
      continue;
    }
    note(rule::kReplay, std::move(fields));
    apply(entry, log.module);
  }
}

Declaration Registry::export_external() const {
  Declaration rows;
  for (const auto& [architecture, provider] : slots(Kind::kModelClass)) {
    if (!index_.is_built_in(provider.module)) rows.emplace_back(architecture, provider.module);
  }
  for (const auto& declared : declared_) {
    const bool resolved = std::any_of(rows.begin(), rows.end(),
                                      [&](const auto& row) { return row.first == declared.first; });
    if (!resolved) rows.push_back(declared);
  }
  return rows;
}

// --- what is known ------------------------------------------------------------------------------

std::vector<std::string> Registry::architectures_of(const Provider& model_class) const {
  std::vector<std::string> architectures;
  for (const ModuleLog& log : log_) {
    for (const LogEntry& entry : log.entries) {
      if (entry.kind != Kind::kModelClass || entry.value != model_class) continue;
      if (std::find(architectures.begin(), architectures.end(), entry.key) == architectures.end()) {
        architectures.push_back(entry.key);
      }
    }
  }
  return architectures;
}

std::vector<std::string> Registry::modes_of(const Provider& builder) const {
  std::set<std::string> modes;
  for (const ModuleLog& log : log_) {
    for (const LogEntry& entry : log.entries) {
      if (entry.kind == Kind::kDraftBuilder && entry.value == builder) modes.insert(entry.key);
    }
  }
  return {modes.begin(), modes.end()};
}

bool Registry::holds_a_mode(const Provider& builder) const {
  const Slots& builders = slots(Kind::kDraftBuilder);
  return std::any_of(builders.begin(), builders.end(),
                     [&](const auto& slot) { return slot.second == builder; });
}

std::vector<std::string> Registry::known_architectures() const {
  std::set<std::string> names;
  for (const auto& [architecture, module] : index_.architectures.rows()) names.insert(architecture);
  for (const auto& [architecture, module] : declared_) names.insert(architecture);
  for (const auto& [architecture, provider] : slots(Kind::kModelClass)) names.insert(architecture);
  return {names.begin(), names.end()};
}

std::vector<std::string> Registry::near_architectures(std::string_view name) const {
  const std::vector<std::string> known = known_architectures();
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  return near_matches(name, candidates);
}

std::vector<Event> Registry::take_events() { return std::exchange(events_, {}); }

void Registry::note(std::string_view rule, std::vector<json::Member> fields) {
  events_.push_back({.rule = rule, .fields = json::Value::object(std::move(fields))});
}

}  // namespace kernelpath::registry
