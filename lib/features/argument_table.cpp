#include "features/argument_table.h"

#include "base/assert.h"
#include "base/text.h"
#include "features/rule_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::features {
namespace {

Unexpected broken(const std::string& where, std::string message) {
  return fail({.code = ErrorCode::kInputSchema, .message = std::move(message), .where = where});
}

std::string text_of(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : std::string();
}

std::optional<double> number_of(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->as_double();
}

bool flag_of(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

std::span<const json::Value> items_of(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  if (found == nullptr || !found->is_array()) return {};
  return found->items();
}

Result<ArgumentInfo> read_argument(const json::Value& item) {
  ArgumentInfo out{.name = text_of(item, "name")};
  const auto type = find_field_type(text_of(item, "type"));
  if (out.name.empty() || !type) return broken("/arguments", "an argument without name or type");
  out.type = *type;
  out.choices.assign(items_of(item, "choices").begin(), items_of(item, "choices").end());
  out.any_case = flag_of(item, "any_case");
  out.min = number_of(item, "min");
  out.above = number_of(item, "above");
  out.max = number_of(item, "max");
  out.below = number_of(item, "below");
  for (const json::Value& variant : items_of(item, "only_for")) {
    if (variant.is_string()) out.only_for.push_back(variant.as_string());
  }
  out.open = flag_of(item, "open");
  out.deprecated = text_of(item, "deprecated");
  return out;
}

// Walks the arguments member by member.
class Checker {
 public:
  explicit Checker(const ArgumentTable& table) : table_(table) {}

  ArgumentFaults run(const json::Value& arguments) {
    object({}, arguments);
    return std::move(faults_);
  }

 private:
  void object(const std::string& name, const json::Value& value) {
    for (const json::Member& member : value.members()) {
      // Names that begin with an underscore are facts of the batch protocol, not arguments.
      if (member.key.starts_with('_') && member.key != "_mpi_session") continue;
      const std::string path = name.empty() ? member.key : name + "." + member.key;
      argument(path, name, value, member.value);
    }
  }

  void argument(const std::string& path, const std::string& parent, const json::Value& object_value,
                const json::Value& value) {
    const ArgumentInfo* const info = table_.find(path);
    if (info == nullptr) {
      unknown(path);
      return;
    }
    variant(*info, parent, object_value);
    if (!info->deprecated.empty() && !value.is_null()) {
      faults_.deprecated.push_back(fmt::format("{}: deprecated: {}", path, info->deprecated));
    }
    if (!fits_type(value, info->type)) {
      faults_.mistyped.push_back(
          fmt::format("{}: {} is no {}", path, value.brief(), type_phrase(info->type)));
      return;
    }
    choice(*info, value);
    range(*info, value);
    if (value.is_object() && !info->open) object(path, value);
  }

  static std::string_view type_phrase(FieldType type) {
    switch (type) {
      case FieldType::kBool:
        return "boolean";
      case FieldType::kInteger:
        return "whole number";
      default:
        return field_type_name(type);
    }
  }

  void unknown(const std::string& path) {
    const auto near = table_.near(path);
    std::string text =
        table_.complete
            ? fmt::format("{}: no argument of {} {}", path, table_.engine, table_.version)
            : fmt::format(
                  "{}: not known to this table of {} {}, which does not hold every argument", path,
                  table_.engine, table_.version);
    if (!near.empty()) text += fmt::format("; near: {}", join(near, ", "));
    faults_.unknown.push_back(std::move(text));
  }

  // Fields of another variant are as unknown as any: each variant is a class of its own.
  void variant(const ArgumentInfo& info, const std::string& parent, const json::Value& siblings) {
    const auto found = table_.discriminators.find(parent);
    if (info.only_for.empty() || found == table_.discriminators.end()) return;
    const std::string member = found->second.substr(parent.size() + 1);
    const std::string which = text_of(siblings, member);
    const bool has =
        std::find(info.only_for.begin(), info.only_for.end(), which) != info.only_for.end();
    if (which.empty() || has) return;
    faults_.unknown.push_back(fmt::format("{}: {} {} has no such argument; only {} have", info.name,
                                          member, which, join(info.only_for, ", ")));
  }

  void choice(const ArgumentInfo& info, const json::Value& value) {
    if (info.choices.empty() || value.is_null()) return;
    const bool found =
        std::any_of(info.choices.begin(), info.choices.end(), [&](const json::Value& choice) {
          if (choice == value) return true;
          return info.any_case && choice.is_string() && value.is_string() &&
                 equal_ignoring_case(choice.as_string(), value.as_string());
        });
    if (found) return;
    std::vector<std::string> names;
    for (const json::Value& name : info.choices) {
      names.push_back(name.is_string() ? name.as_string() : name.brief());
    }
    faults_.not_a_choice.push_back(
        fmt::format("{}: {} is none of {}", info.name, value.brief(), join(names, ", ")));
  }

  void range(const ArgumentInfo& info, const json::Value& value) {
    if (!value.is_number()) return;
    const double number = value.as_double();
    const auto out = [&](std::string_view bound, double limit) {
      faults_.out_of_range.push_back(
          fmt::format("{}: {} is not {} {}", info.name, value.brief(), bound, limit));
    };
    if (info.min && !(number >= *info.min)) out(">=", *info.min);
    if (info.above && !(number > *info.above)) out(">", *info.above);
    if (info.max && !(number <= *info.max)) out("<=", *info.max);
    if (info.below && !(number < *info.below)) out("<", *info.below);
  }

  const ArgumentTable& table_;
  ArgumentFaults faults_;
};

// Each file is read when it is first asked for.
template <int File>
const ArgumentTable* load_file(std::string_view path) {
  static const ArgumentTable table = [path] {
    auto read = read_argument_table(embedded_rule_document(path));
    KERNELPATH_ASSERT(read.has_value());
    return std::move(*read);
  }();
  return &table;
}

struct ArgumentFile {
  std::string_view engine;
  std::string_view version;
  std::string_view path;
  const ArgumentTable* (*load)(std::string_view path);
};
// The newest version of an engine stands last.
constexpr auto kArgumentFiles = std::to_array<ArgumentFile>(
    {{"trtllm", "2026-11", "trtllm-2026-11/arguments.json", load_file<0>},
     {"vllm", "0.25.1", "vllm-0.25.1/arguments.json", load_file<1>},
     {"vllm", "0.33.0", "vllm-0.33.0/arguments.json", load_file<2>},
     {"llamacpp", "0c1e5709", "llamacpp-0c1e5709/arguments.json", load_file<3>},
     {"sglang", "0.5.23", "sglang-0.5.23/arguments.json", load_file<4>},
     {"deepinfer", "0.1.0", "deepinfer-0.1.0/arguments.json", load_file<5>}});

}  // namespace

const ArgumentInfo* ArgumentTable::find(std::string_view name) const {
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [name](const ArgumentInfo& info) { return info.name == name; });
  return found == arguments.end() ? nullptr : &*found;
}

std::vector<std::string> ArgumentTable::near(std::string_view name) const {
  std::vector<std::string_view> names;
  names.reserve(arguments.size());
  for (const ArgumentInfo& info : arguments) names.push_back(info.name);
  return near_matches(name, names);
}

Result<ArgumentTable> read_argument_table(const json::Document& document) {
  ArgumentTable out{.engine = text_of(document.root, "engine"),
                    .version = text_of(document.root, "version")};
  const json::Value* const complete = document.root.find("complete");
  out.complete = complete == nullptr || flag_of(document.root, "complete");
  for (const json::Value& item : items_of(document.root, "arguments")) {
    KERNELPATH_TRY(argument, read_argument(item));
    out.arguments.push_back(std::move(argument));
  }
  if (out.arguments.empty()) return broken("/arguments", "must be a list of arguments");
  const json::Value* const members = document.root.find("discriminators");
  if (members == nullptr || !members->is_object()) return out;
  for (const json::Member& member : members->members()) {
    if (member.value.is_string()) out.discriminators.emplace(member.key, member.value.as_string());
  }
  return out;
}

const ArgumentTable* find_argument_table(std::string_view engine, std::string_view version) {
  const ArgumentFile* found = nullptr;
  for (const ArgumentFile& file : kArgumentFiles) {
    if (file.engine == engine && (version.empty() || file.version == version)) found = &file;
  }
  return found == nullptr ? nullptr : found->load(found->path);
}

ArgumentFaults check_arguments(const ArgumentTable& table, const json::Value& arguments) {
  if (!arguments.is_object()) return {};
  return Checker(table).run(arguments);
}

void state_faults(Context& context, const ArgumentFaults& faults) {
  const auto put = [&context](std::string_view field, const std::vector<std::string>& texts) {
    const auto slot = context.table().schema.find(field);
    if (!slot || texts.empty()) return;
    std::vector<Value> items;
    items.reserve(texts.size());
    for (const std::string& text : texts) items.push_back(context.arena().string(text));
    context.state(*slot, context.arena().list(std::move(items)));
  };
  put("arguments.unknown", faults.unknown);
  put("arguments.mistyped", faults.mistyped);
  put("arguments.out_of_range", faults.out_of_range);
  put("arguments.not_a_choice", faults.not_a_choice);
  put("arguments.deprecated", faults.deprecated);
}

}  // namespace kernelpath::features
