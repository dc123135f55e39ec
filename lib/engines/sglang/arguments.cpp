#include "engines/sglang/arguments.h"

#include "base/assert.h"
#include "json/writer.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::sglang {

Arguments::Arguments(const Profile& profile, Given given)
    : profile_(&profile), given_(std::move(given)) {}

const Arguments::Decided* Arguments::find_decided(std::string_view name) const {
  const auto found = std::find_if(decided_.begin(), decided_.end(),
                                  [&](const Decided& row) { return row.name == name; });
  return found == decided_.end() ? nullptr : &*found;
}

const json::Value* Arguments::given(std::string_view name) const {
  const auto found = std::find_if(given_.begin(), given_.end(),
                                  [&](const auto& row) { return row.first == name; });
  return found == given_.end() ? nullptr : &found->second;
}

const json::Value& Arguments::value(std::string_view name) const {
  if (const Decided* decided = find_decided(name)) return decided->value;
  if (const json::Value* own = given(name)) return *own;
  const ArgumentRow* row = profile_->find_argument(name);
  KERNELPATH_ASSERT(row != nullptr);
  return row->default_value;
}

std::string Arguments::text(std::string_view name) const {
  const json::Value& found = value(name);
  return found.is_string() ? found.as_string() : std::string();
}

std::optional<std::int64_t> Arguments::integer(std::string_view name) const {
  const json::Value& found = value(name);
  if (!found.is_integer()) return std::nullopt;
  return found.as_integer();
}

std::int64_t Arguments::integer_or(std::string_view name, std::int64_t otherwise) const {
  return integer(name).value_or(otherwise);
}

bool Arguments::flag(std::string_view name) const {
  const json::Value& found = value(name);
  return found.is_bool() && found.as_bool();
}

std::string_view Arguments::decided_by(std::string_view name) const {
  const Decided* decided = find_decided(name);
  return decided == nullptr ? std::string_view() : std::string_view(decided->rule);
}

void Arguments::declare(std::string_view rule, std::string_view name, json::Value value) {
  KERNELPATH_ASSERT(profile_->find_argument(name) != nullptr);
  const auto found = std::find_if(decided_.begin(), decided_.end(),
                                  [&](const Decided& row) { return row.name == name; });
  if (found == decided_.end()) {
    decided_.push_back(
        {.name = std::string(name), .value = std::move(value), .rule = std::string(rule)});
    return;
  }
  found->value = std::move(value);
  found->rule = std::string(rule);
}

std::vector<std::string> Arguments::decided() const {
  std::vector<std::string> names;
  names.reserve(decided_.size());
  for (const Decided& row : decided_) names.push_back(row.name);
  return names;
}

json::Value text_value(std::string_view text) {
  return text.empty() ? json::Value::null() : json::Value::string(std::string(text));
}

json::Value integer_value(std::optional<std::int64_t> value) {
  return value ? json::Value::integer(*value) : json::Value::null();
}

json::Value boolean_value(bool value) { return json::Value::boolean(value); }

std::string python_json(const json::Value& value) {
  if (value.is_object()) {
    std::string out;
    for (const json::Member& member : value.members()) {
      out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", member.key,
                         python_json(member.value));
    }
    return "{" + out + "}";
  }
  return json::to_text(value);
}

}  // namespace kernelpath::engines::sglang
