#include "base/text.h"
#include "features/feature_matrix.h"
#include "features/rule_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace kernelpath::features {
namespace {

Unexpected schema_error(std::string where, std::string message) {
  return fail(
      {.code = ErrorCode::kInputSchema, .message = std::move(message), .where = std::move(where)});
}

// A member that must be a string; "" if it may be absent and is.
Result<std::string> text_member(const json::Value& object, std::string_view key, bool required,
                                const std::string& where) {
  const json::Value* const found = object.find(key);
  if (found == nullptr) {
    if (required) return schema_error(where, fmt::format("'{}' is missing", key));
    return std::string();
  }
  if (!found->is_string()) return schema_error(where, fmt::format("'{}' must be a string", key));
  return found->as_string();
}

Result<std::vector<std::string>> text_list(const json::Value& object, std::string_view key,
                                           const std::string& where) {
  std::vector<std::string> out;
  const json::Value* const found = object.find(key);
  if (found == nullptr) return out;
  const bool array = found->is_array();
  for (const json::Value& item : array ? found->items() : std::span<const json::Value>()) {
    if (!item.is_string()) return schema_error(where, fmt::format("'{}' holds strings", key));
    out.push_back(item.as_string());
  }
  if (!array) return schema_error(where, fmt::format("'{}' must be a list", key));
  return out;
}

Result<std::vector<std::string>> text_or_list(const json::Value& object, std::string_view key,
                                              const std::string& where) {
  const json::Value* const found = object.find(key);
  if (found != nullptr && found->is_string()) return std::vector<std::string>{found->as_string()};
  return text_list(object, key, where);
}

Result<void> only_keys(const json::Value& object, std::span<const std::string_view> known,
                       const std::string& where) {
  for (const json::Member& member : object.members()) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    return schema_error(where, fmt::format("unknown key '{}'", member.key));
  }
  return {};
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool flag(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

class Reader {
 public:
  Reader(RuleTable& table, std::string_view version) : table_(table), version_(version) {}

  // Whose rules they are.
  Result<void> header(const json::Value& root) {
    KERNELPATH_TRY(engine, text_member(root, "engine", true, "/engine"));
    KERNELPATH_TRY(project, text_member(root, "project", true, "/project"));
    KERNELPATH_TRY(versions, text_list(root, "versions", "/versions"));
    table_.engine = engine;
    table_.project = project;
    table_.versions = versions;
    const std::string newest = versions.empty() ? std::string() : versions.back();
    table_.version = version_.empty() ? newest : version_;
    if (!table_.version.empty() && !contains(versions, table_.version)) {
      return schema_error("/versions", "does not name version " + table_.version);
    }
    return {};
  }

  Result<void> fields(const json::Value& root) {
    const json::Value* const list = root.find("fields");
    if (list == nullptr || !list->is_array()) return schema_error("/fields", "must be a list");
    for (const json::Value& item : list->items()) {
      KERNELPATH_TRY(asked, is_of_version(item, "/fields"));
      if (asked) KERNELPATH_CHECK_OK(field(item));
    }
    return {};
  }

  Result<void> rules(const json::Value& root) {
    KERNELPATH_CHECK_OK(sources(root));
    const json::Value* const list = root.find("rules");
    if (list == nullptr || !list->is_array()) return schema_error("/rules", "must be a list");
    for (const json::Value& item : list->items()) {
      KERNELPATH_TRY(asked, is_of_version(item, "/rules"));
      if (!asked) continue;
      KERNELPATH_CHECK_OK(item.find("derive") != nullptr ? derivation(item) : rule(item));
    }
    return {};
  }

  // {"resolution": {fact: [argument, …]}}
  Result<void> resolution(const json::Value& root) {
    const json::Value* const facts = root.find("resolution");
    if (facts == nullptr) return {};
    if (!facts->is_object()) return schema_error("/resolution", "must be an object");
    for (const json::Member& member : facts->members()) {
      const std::string where = "/resolution/" + member.key;
      KERNELPATH_TRY(arguments, text_list(*facts, member.key, where));
      KERNELPATH_TRY(fact, field_named(member.key, where));
      for (const std::string& argument : arguments) {
        KERNELPATH_TRY(field, field_named(argument, where));
        if (table_.schema.field(field).kind != FieldKind::kArgument) {
          return schema_error(where, fmt::format("'{}' is no argument", argument));
        }
      }
      table_.resolution.push_back({.name = table_.schema.field(fact).name, .arguments = arguments});
    }
    return {};
  }

  // The switches of the documented features, and the rules that follow from them.
  Result<void> documented(const json::Value& root) {
    const json::Value* const list = root.find("features");
    if (list == nullptr) return {};
    if (!list->is_array()) return schema_error("/features", "must be a list");
    static constexpr auto kKeys =
        std::to_array<std::string_view>({"name", "when", "at", "example", "off"});
    std::vector<FeatureSwitch> switches;
    for (const json::Value& item : list->items()) {
      KERNELPATH_CHECK_OK(only_keys(item, kKeys, "/features"));
      KERNELPATH_TRY(name, text_member(item, "name", true, "/features"));
      KERNELPATH_TRY(when, text_member(item, "when", true, "feature " + name));
      KERNELPATH_TRY(at, text_member(item, "at", true, "feature " + name));
      const json::Value* const example = item.find("example");
      if (example == nullptr) return schema_error("feature " + name, "'example' is missing");
      const json::Value* const off = item.find("off");
      switches.push_back({.name = name,
                          .when = when,
                          .at = at,
                          .example = *example,
                          .off = off != nullptr ? *off : json::Value::object({})});
    }
    const FeatureMatrix* const matrix = find_feature_matrix(table_.engine);
    if (matrix == nullptr) return schema_error("/features", "the engine has no feature matrix");
    return add_documented_rules(table_, *matrix, switches);
  }

 private:
  // What only other versions have is not read at all.
  Result<bool> is_of_version(const json::Value& item, const std::string& where) const {
    KERNELPATH_TRY(versions, text_list(item, "versions", where));
    for (const std::string& version : versions) {
      if (!contains(table_.versions, version)) {
        return schema_error(where, fmt::format("the table does not speak of '{}'", version));
      }
    }
    return versions.empty() || contains(versions, table_.version);
  }

  Result<void> field(const json::Value& item) {
    static constexpr auto kKeys = std::to_array<std::string_view>(
        {"name", "type", "kind", "default", "values", "aliases", "option", "about", "spellings",
         "variable", "on", "separator", "only_batch", "versions"});
    KERNELPATH_TRY(name, text_member(item, "name", true, "/fields"));
    const std::string where = "field " + name;
    KERNELPATH_CHECK_OK(only_keys(item, kKeys, where));
    KERNELPATH_TRY(type_text, text_member(item, "type", true, where));
    KERNELPATH_TRY(kind_text, text_member(item, "kind", false, where));
    KERNELPATH_TRY(aliases, text_list(item, "aliases", where));
    KERNELPATH_TRY(option, text_member(item, "option", false, where));
    KERNELPATH_TRY(about, text_member(item, "about", false, where));
    KERNELPATH_TRY(variable, text_member(item, "variable", false, where));
    KERNELPATH_TRY(on, text_member(item, "on", false, where));
    KERNELPATH_TRY(separator, text_member(item, "separator", false, where));
    KERNELPATH_TRY(only_batch, text_member(item, "only_batch", false, where));
    const auto type = find_field_type(type_text);
    const auto kind = kind_text.empty() ? FieldKind::kArgument : find_field_kind(kind_text);
    if (!type || !kind) return schema_error(where, "unknown type or kind");
    FieldInfo info{.name = name,
                   .type = *type,
                   .kind = *kind,
                   .aliases = aliases,
                   .option = option,
                   .about = about,
                   .variable = variable,
                   .on = on,
                   .separator = separator,
                   .only_batch = only_batch};
    if (const json::Value* value = item.find("default")) {
      info.default_value = table_.arena.from_json(*value);
    }
    if (const json::Value* values = item.find("values"); values != nullptr && values->is_array()) {
      for (const json::Value& value : values->items()) {
        info.values.push_back(table_.arena.from_json(value));
      }
    }
    if (const json::Value* names = item.find("spellings"); names != nullptr && names->is_object()) {
      for (const json::Member& pair : names->members()) {
        if (pair.value.is_string()) info.spellings.emplace_back(pair.key, pair.value.as_string());
      }
    }
    if (!table_.schema.add(std::move(info))) return schema_error(where, "the name stands twice");
    return {};
  }

  Result<void> sources(const json::Value& root) {
    const json::Value* const list = root.find("sources");
    if (list == nullptr || !list->is_object()) return schema_error("/sources", "must be an object");
    for (const json::Member& member : list->members()) {
      const std::string where = "source " + member.key;
      KERNELPATH_TRY(file, text_member(member.value, "file", true, where));
      KERNELPATH_TRY(version, text_member(member.value, "version", true, where));
      KERNELPATH_TRY(project, text_member(member.value, "project", false, where));
      sources_.emplace(member.key,
                       engines::Source{.project = project.empty() ? table_.project : project,
                                       .file = file,
                                       .version = version});
    }
    return {};
  }

  // {"derive": field, "value": expression}
  Result<void> derivation(const json::Value& item) {
    static constexpr auto kKeys = std::to_array<std::string_view>({"derive", "value", "versions"});
    KERNELPATH_TRY(name, text_member(item, "derive", true, "/rules"));
    const std::string where = "derived field " + name;
    KERNELPATH_CHECK_OK(only_keys(item, kKeys, where));
    KERNELPATH_TRY(value_text, text_member(item, "value", true, where));
    KERNELPATH_TRY(value, expression(value_text, where));
    KERNELPATH_TRY(slot, field_named(name, where));
    Rule rule;
    rule.id = name;
    rule.level = Level::kDerive;
    KERNELPATH_TRY(always, expression("true", where));
    rule.when = always;
    rule.effects.push_back(
        {.name = name, .when = {}, .value = value, .sentence = {}, .assigns = slot});
    table_.rules.push_back(std::move(rule));
    return {};
  }

  Result<void> rule(const json::Value& item) {
    static constexpr auto kKeys = std::to_array<std::string_view>(
        {"id", "level", "stage", "complete", "when", "at", "each", "message", "versions", "why",
         "fix", "allowed", "effects", "error_type", "source", "issue", "cases", "levers", "steps"});
    KERNELPATH_TRY(id, text_member(item, "id", true, "/rules"));
    const std::string where = "rule " + id;
    KERNELPATH_CHECK_OK(only_keys(item, kKeys, where));
    if (table_.find(id) != nullptr) return schema_error(where, "the id stands twice");
    Rule rule;
    rule.id = id;
    rule.needs_all_arguments = flag(item, "complete");
    KERNELPATH_TRY(versions, text_list(item, "versions", where));
    rule.versions = versions;
    KERNELPATH_CHECK_OK(names(rule, item, where));
    KERNELPATH_CHECK_OK(texts(rule, item, where));
    KERNELPATH_CHECK_OK(effects(rule, item, where));
    KERNELPATH_CHECK_OK(levers(rule, item, where));
    KERNELPATH_CHECK_OK(cases(rule, item, where));
    table_.rules.push_back(std::move(rule));
    return {};
  }

  Result<void> names(Rule& rule, const json::Value& item, const std::string& where) {
    KERNELPATH_TRY(level_text, text_member(item, "level", true, where));
    KERNELPATH_TRY(stage_text, text_member(item, "stage", true, where));
    KERNELPATH_TRY(source_text, text_member(item, "source", true, where));
    KERNELPATH_TRY(at, text_or_list(item, "at", where));
    KERNELPATH_TRY(each, text_member(item, "each", false, where));
    const auto level = find_level(level_text);
    const auto stage = find_stage(stage_text);
    if (!level || *level == Level::kDerive) return schema_error(where, "unknown level");
    if (!stage) return schema_error(where, "unknown stage");
    const auto source = sources_.find(source_text);
    if (source == sources_.end()) return schema_error(where, "unknown source");
    rule.level = *level;
    rule.stage = *stage;
    rule.source = source->second;
    for (const std::string& name : at) {
      KERNELPATH_TRY(slot, field_named(name, where));
      rule.at.push_back(slot);
    }
    if (!each.empty()) {
      KERNELPATH_TRY(slot, field_named(each, where));
      rule.each = slot;
    }
    return {};
  }

  Result<void> texts(Rule& rule, const json::Value& item, const std::string& where) {
    KERNELPATH_TRY(when_text, text_member(item, "when", true, where));
    auto when = parse_condition(when_text, table_.schema, table_.arena);
    if (!when) return in_rule(when.error(), where + ": when");
    rule.when = std::move(*when);
    KERNELPATH_TRY(message, template_member(item, "message", true, where));
    KERNELPATH_TRY(fix, template_member(item, "fix", true, where));
    KERNELPATH_TRY(why, text_member(item, "why", true, where));
    KERNELPATH_TRY(allowed, text_list(item, "allowed", where));
    KERNELPATH_TRY(error_type, text_member(item, "error_type", false, where));
    KERNELPATH_TRY(issue, text_member(item, "issue", false, where));
    KERNELPATH_TRY(steps, text_list(item, "steps", where));
    rule.message = message;
    rule.fix = fix;
    rule.why = why;
    rule.allowed = allowed;
    rule.error_type = error_type;
    rule.issue = issue;
    rule.steps = steps;
    return {};
  }

  Result<void> effects(Rule& rule, const json::Value& item, const std::string& where) {
    static constexpr auto kKeys =
        std::to_array<std::string_view>({"name", "when", "value", "say", "assigns"});
    const json::Value* const list = item.find("effects");
    if (list == nullptr) return {};
    if (!list->is_array()) return schema_error(where, "'effects' must be a list");
    for (const json::Value& entry : list->items()) {
      KERNELPATH_CHECK_OK(only_keys(entry, kKeys, where));
      Effect effect;
      KERNELPATH_TRY(name, text_member(entry, "name", true, where));
      KERNELPATH_TRY(when_text, text_member(entry, "when", false, where));
      KERNELPATH_TRY(value_text, text_member(entry, "value", false, where));
      KERNELPATH_TRY(sentence, template_member(entry, "say", false, where));
      KERNELPATH_TRY(assigns, text_member(entry, "assigns", false, where));
      if (value_text.empty() == sentence.empty()) {
        return schema_error(where, "an effect has either 'value' or 'say'");
      }
      effect.name = name;
      if (!when_text.empty()) {
        KERNELPATH_TRY(when, expression(when_text, where));
        effect.when = when;
      }
      effect.sentence = sentence;
      if (!value_text.empty()) {
        KERNELPATH_TRY(value, expression(value_text, where));
        effect.value = value;
      }
      if (!assigns.empty()) {
        KERNELPATH_TRY(slot, field_named(assigns, where));
        effect.assigns = slot;
      }
      rule.effects.push_back(std::move(effect));
    }
    return {};
  }

  Result<void> levers(Rule& rule, const json::Value& item, const std::string& where) {
    static constexpr auto kKeys =
        std::to_array<std::string_view>({"option", "value", "doubled_to"});
    const json::Value* const list = item.find("levers");
    if (list == nullptr) return {};
    if (!list->is_array()) return schema_error(where, "'levers' must be a list");
    for (const json::Value& entry : list->items()) {
      KERNELPATH_CHECK_OK(only_keys(entry, kKeys, where));
      KERNELPATH_TRY(option, text_member(entry, "option", true, where));
      KERNELPATH_TRY(value_text, text_member(entry, "value", false, where));
      Lever lever{.option = option};
      if (!value_text.empty()) {
        KERNELPATH_TRY(value, expression(value_text, where));
        lever.value = value;
      }
      const json::Value* const doubled = entry.find("doubled_to");
      if (doubled != nullptr && doubled->is_integer()) lever.doubled_to = doubled->as_integer();
      rule.levers.push_back(std::move(lever));
    }
    return {};
  }

  static Result<void> cases(Rule& rule, const json::Value& item, const std::string& where) {
    const json::Value* const cases = item.find("cases");
    if (cases == nullptr || !cases->is_object()) return schema_error(where, "'cases' is missing");
    const auto copy = [cases](std::string_view key) {
      const json::Value* const list = cases->find(key);
      if (list == nullptr || !list->is_array()) return std::vector<json::Value>();
      return std::vector<json::Value>(list->items().begin(), list->items().end());
    };
    rule.hits = copy("hit");
    rule.near_misses = copy("near_miss");
    return {};
  }

  Result<TextTemplate> template_member(const json::Value& object, std::string_view key,
                                       bool required, const std::string& where) {
    KERNELPATH_TRY(text, text_member(object, key, required, where));
    auto parsed = TextTemplate::parse(text, table_.schema, table_.arena);
    if (!parsed) return in_rule(parsed.error(), where + ": " + std::string(key));
    return std::move(*parsed);
  }

  Result<Expression> expression(const std::string& text, const std::string& where) {
    auto parsed = parse_expression(text, table_.schema, table_.arena);
    if (!parsed) return in_rule(parsed.error(), where);
    return std::move(*parsed);
  }

  Result<std::uint32_t> field_named(const std::string& name, const std::string& where) const {
    const auto slot = table_.schema.find(name);
    if (slot) return *slot;
    return schema_error(where, fmt::format("no field is called '{}'", name));
  }

  static Unexpected in_rule(Error error, const std::string& where) {
    error.where = where + ": " + error.where;
    return fail(std::move(error));
  }

  RuleTable& table_;
  std::string version_;
  std::unordered_map<std::string, engines::Source> sources_;
};

Unexpected in_file(Error error, const json::Document& document) {
  error.file = document.file;
  return fail(std::move(error));
}

}  // namespace

Result<std::unique_ptr<const RuleTable>> read_rule_table(const json::Document& facts,
                                                         const json::Document& rules,
                                                         std::string_view version) {
  auto table = std::make_unique<RuleTable>();
  Reader reader(*table, version);
  if (auto read = reader.fields(facts.root); !read) return in_file(read.error(), facts);
  if (auto read = reader.header(rules.root); !read) return in_file(read.error(), rules);
  if (auto read = reader.fields(rules.root); !read) return in_file(read.error(), rules);
  if (auto read = reader.rules(rules.root); !read) return in_file(read.error(), rules);
  if (auto read = reader.resolution(rules.root); !read) return in_file(read.error(), rules);
  if (auto read = reader.documented(rules.root); !read) return in_file(read.error(), rules);
  return std::unique_ptr<const RuleTable>(std::move(table));
}

}  // namespace kernelpath::features
