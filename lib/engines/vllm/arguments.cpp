#include "engines/vllm/arguments.h"

#include "base/text.h"
#include "base/units.h"
#include "engines/vllm/profile.h"
#include "json/document.h"
#include "json/writer.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kBackend = "attention_backend";
constexpr std::string_view kNestedBackend = "attention_config.backend";
constexpr std::string_view kBackendPerKind = "attention_config.backend_per_kind";
constexpr std::string_view kRegisterBackend = "register_backend.";

// Arguments that one common option states; the rest of the table is set by --set alone.
struct Stated {
  std::string_view argument;
  std::string_view option;
  std::optional<std::string> value;
};

bool has_choice(const SettingInfo& info, std::string_view value) {
  return std::find(info.choices.begin(), info.choices.end(), value) != info.choices.end();
}

// The value as the table spells it, or nothing where the type does not fit.
std::optional<std::string> normalise(const SettingInfo& info, const std::string& value) {
  if (is_none(value)) return has_choice(info, value) ? value : std::string();
  return normalised(info.type, value);
}

// Names of backends: any case, and those that a plugin registered.
bool names_backends(std::string_view name) {
  return name == kBackend || name == kNestedBackend || name.starts_with(kBackendPerKind);
}

// A cache type that no table holds needs a plugin to store it, which this build cannot know.
bool takes_other_values(const SettingInfo& info) {
  return info.open && info.name != "kv_cache_dtype";
}

// The release that has what this one lacks, for the message; empty if none of this build has it.
template <class Has>
std::string other_release(std::string_view version, const Has& has) {
  for (const std::string& other : built_in_versions()) {
    if (other != version && has(built_in_settings(other))) {
      return fmt::format("; vllm@{} has it", other);
    }
  }
  return {};
}

Error unknown_argument(const SettingTable& table, std::string_view name, std::string_view set_by) {
  const std::vector<std::string_view> names = table.names();
  return {.code = ErrorCode::kUsageUnknown,
          .message = fmt::format("vllm {} has no argument of this name{}", table.version(),
                                 other_release(table.version(),
                                               [&](const SettingTable& other) {
                                                 return other.find(name) != nullptr;
                                               })),
          .where = std::string(set_by),
          .hint = fmt::format("llm-inspect --list settings --engine vllm@{} prints them all",
                              table.version()),
          .near_matches = near_matches(name, names)};
}

Error unknown_choice(const SettingTable& table, const SettingInfo& info, const std::string& value,
                     std::string_view set_by) {
  const std::vector<std::string_view> choices(info.choices.begin(), info.choices.end());
  const std::string elsewhere = other_release(table.version(), [&](const SettingTable& other) {
    const SettingInfo* row = other.find(info.name);
    return row != nullptr && has_choice(*row, value);
  });
  return {.code = ErrorCode::kUsageUnknown,
          .message = fmt::format("vllm {} has no such {}{}; it has {}", table.version(), info.name,
                                 elsewhere, join_words(info.choices)),
          .where = std::string(set_by),
          .value = shorten(value, 64),
          .near_matches = near_matches(value, choices)};
}

// Names that engines share for types; their own names pass as they are.
std::string method_of(const std::string& mode) {
  return equal_ignoring_case(mode, "draft") ? "draft_model" : to_lower(mode);
}

std::optional<std::string> if_not_one(std::int64_t size) {
  return size == 1 ? std::nullopt : std::optional(fmt::to_string(size));
}

std::optional<std::string> as_text(const std::optional<std::int64_t>& value) {
  return value ? std::optional(fmt::to_string(*value)) : std::nullopt;
}

std::vector<Stated> stated_by_options(const Deployment& deployment) {
  const auto map = [](const std::optional<std::string>& value, auto convert) {
    return value ? std::optional<std::string>(convert(*value)) : std::nullopt;
  };
  return {
      {kBackend, "--attention-backend", deployment.backend},
      {"dtype", "--dtype", map(deployment.dtype, torch_dtype_name)},
      {"kv_cache_dtype", "--kv-cache-dtype", map(deployment.kv_dtype, torch_dtype_name)},
      {"quantization", "--quantization", deployment.quantization},
      {"block_size", "--page-size", as_text(deployment.page_size)},
      {"max_model_len", "--max-model-len", as_text(deployment.max_model_len)},
      {"tensor_parallel_size", "--tp", if_not_one(deployment.tp)},
      {"pipeline_parallel_size", "--pp", if_not_one(deployment.pp)},
      {"data_parallel_size", "--dp", if_not_one(deployment.dp)},
      {"enable_expert_parallel", "--ep",
       deployment.ep > 1 ? std::optional<std::string>("true") : std::nullopt},
      {"prefill_context_parallel_size", "--cp", if_not_one(deployment.cp)},
      {"decode_context_parallel_size", "--dcp", if_not_one(deployment.dcp)},
      {"speculative_config.method", "--speculative", map(deployment.speculative, method_of)},
      {"speculative_config.model", "--speculative", deployment.draft_model},
      {"speculative_config.num_speculative_tokens", "--draft-tokens",
       as_text(deployment.draft_tokens)},
  };
}

const SettingInfo* find_setting(const SettingTable& table, std::string_view name) {
  if (const SettingInfo* info = table.find(name)) return info;
  for (const SettingInfo& info : plugin_settings()) {
    if (name.starts_with(info.name + ".") && name.size() > info.name.size() + 1) return &info;
  }
  return nullptr;
}

// Whether the table holds fields "NAME.…".
bool has_fields(const SettingTable& table, std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::any_of(table.rows().begin(), table.rows().end(),
                     [&](const SettingInfo& info) { return info.name.starts_with(prefix); });
}

}  // namespace

const std::vector<SettingInfo>& plugin_settings() {
  static const std::vector<SettingInfo> kSettings = {
      {.name = "register_backend",
       .type_text = "module.Class[:MEMBER], as a plugin's register_backend(NAME, …) would",
       .default_value = "{}",
       .map = true},
      {.name = "register_model",
       .type_text = "module:Class, as a plugin's ModelRegistry.register_model(…) would",
       .default_value = "{}",
       .map = true}};
  return kSettings;
}

Result<void> Arguments::set_fields(std::string_view name, const std::string& text,
                                   std::string_view set_by) {
  KERNELPATH_TRY(document, json::parse_object(text, std::string(set_by)));
  for (const json::Member& member : document.root.members()) {
    const std::string field = fmt::format("{}.{}", name, member.key);
    const json::Value& value = member.value;
    KERNELPATH_CHECK_OK(
        set(field, value.is_string() ? value.as_string() : json::to_text(value), set_by));
  }
  return {};
}

Result<void> Arguments::set(std::string_view name, const std::string& value,
                            std::string_view set_by) {
  const SettingInfo* info = find_setting(*table_, name);
  if (info == nullptr) return fail(unknown_argument(*table_, name, set_by));
  const bool is_object = value.starts_with("{") && value != "{}";
  if (is_object && (info->map || has_fields(*table_, name))) return set_fields(name, value, set_by);
  const std::optional<std::string> normal = normalise(*info, value);
  if (!normal) {
    return fail({.code = ErrorCode::kUsage,
                 .message = fmt::format("vllm.{} takes {}", name, type_words(info->type)),
                 .where = std::string(set_by),
                 .value = shorten(value, 32)});
  }
  const bool closed = !info->choices.empty() && !takes_other_values(*info);
  if (closed && !normal->empty() && !has_choice(*info, *normal)) {
    return fail(unknown_choice(*table_, *info, *normal, set_by));
  }
  if (const Value* known = given(name)) {
    if (known->text == *normal) return {};
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = fmt::format("states {} = {}, but {} states {}", name, *normal,
                                        known->set_by, known->text),
                 .where = std::string(set_by),
                 .hint = "give one of the two"});
  }
  values_.push_back({std::string(name), *normal, std::string(set_by)});
  return {};
}

namespace {

// A backend's name must be of the enum, or one that a plugin registers.
Result<void> check_backend_name(const SettingTable& table, const Arguments& arguments,
                                const Arguments::Value& value) {
  const std::string name = to_upper(value.text);
  const SettingInfo* info = table.find(kBackend);
  if (value.text.empty() || name == "AUTO" || info == nullptr || has_choice(*info, name)) return {};
  if (arguments.given(std::string(kRegisterBackend) + name) != nullptr) return {};
  return fail(unknown_choice(table, *info, name, value.set_by));
}

Result<void> check_backends(const SettingTable& table, const Arguments& arguments) {
  for (const Arguments::Value& value : arguments.values()) {
    if (names_backends(value.name)) {
      KERNELPATH_CHECK_OK(check_backend_name(table, arguments, value));
    }
  }
  const Arguments::Value* plain = arguments.given(kBackend);
  const Arguments::Value* nested = arguments.given(kNestedBackend);
  if (plain == nullptr || nested == nullptr) return {};
  return fail(
      {.code = ErrorCode::kUsageConflict,
       .message = fmt::format("{} names a backend, and so does {}; the engine refuses both, "
                              "even if they agree",
                              plain->set_by, nested->set_by),
       .where = nested->set_by,
       .hint = "give one of the two"});
}

}  // namespace

Result<Arguments> Arguments::read(const SettingTable& table, const Deployment& deployment) {
  Arguments out(table);
  for (const Stated& stated : stated_by_options(deployment)) {
    if (stated.value) KERNELPATH_CHECK_OK(out.set(stated.argument, *stated.value, stated.option));
  }
  for (const auto& [name, value] : deployment.settings) {
    KERNELPATH_CHECK_OK(out.set(name, value, fmt::format("--set vllm.{}", name)));
  }
  KERNELPATH_CHECK_OK(check_backends(table, out));
  return out;
}

const Arguments::Value* Arguments::given(std::string_view name) const {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const Value& value) { return value.name == name; });
  return found == values_.end() ? nullptr : &*found;
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  if (const Value* value = given(name)) {
    return value->text.empty() ? std::nullopt : std::optional(value->text);
  }
  const SettingInfo* info = table_->find(name);
  if (info == nullptr || is_none(info->default_value)) return std::nullopt;
  return info->default_value;
}

bool Arguments::flag(std::string_view name) const { return optional_flag(name).value_or(false); }

std::optional<bool> Arguments::optional_flag(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  return value ? std::optional(*value == "true") : std::nullopt;
}

std::optional<std::int64_t> Arguments::integer(std::string_view name) const {
  const auto value = parse_integer(text(name).value_or(""));
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<double> Arguments::number(std::string_view name) const {
  return parse_number(text(name).value_or(""));
}

std::vector<std::string> Arguments::list(std::string_view name) const {
  std::vector<std::string> out;
  const std::string value = text(name).value_or("");
  if (value.empty() || value == "[]") return out;
  if (value.starts_with("[")) {
    const auto document = json::parse(value, "");
    if (document && document->root.is_array()) {
      for (const json::Value& item : document->root.items()) {
        out.push_back(item.is_string() ? item.as_string() : json::to_text(item));
      }
      return out;
    }
  }
  for (const std::string& part : split(value, ',')) out.emplace_back(trim(part));
  return out;
}

std::vector<std::pair<std::string, std::string>> Arguments::entries(std::string_view name) const {
  std::vector<std::pair<std::string, std::string>> out;
  const std::string prefix = std::string(name) + ".";
  for (const Value& value : values_) {
    if (value.name.starts_with(prefix)) {
      out.emplace_back(value.name.substr(prefix.size()), value.text);
    }
  }
  return out;
}

const Arguments::Value* Arguments::backend() const {
  for (const std::string_view name : {kBackend, kNestedBackend}) {
    const Value* value = given(name);
    if (value != nullptr && !value->text.empty() && !equal_ignoring_case(value->text, "auto")) {
      return value;
    }
  }
  return nullptr;
}

}  // namespace kernelpath::engines::vllm
