#include "json/reader.h"

#include "json/number.h"
#include "json/string_text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kernelpath::json {

namespace ondemand = simdjson::ondemand;

// Walks a whole document: simdjson validates only what is asked for, so everything is. Numbers and
// escaped strings are read from their tokens, because simdjson refuses integers beyond 64 bits,
// NaN, Infinity and lone surrogates, all of which Python reads.
class Reader {
 public:
  Reader(std::string_view text, const Limits& limits, std::vector<Warning>& warnings)
      : text_(text), limits_(limits), warnings_(warnings) {}

  bool read(ondemand::document& document, Value& root);

 private:
  // The way from the root to a value, as a chain through the stack.
  struct Path {
    const Path* parent = nullptr;
    std::string_view key = {};
    std::size_t index = 0;
    bool is_index = false;
    int depth = 0;  // containers around the value
  };

  bool read_value(ondemand::value value, const Path& path, Value& out);
  bool read_array(ondemand::array array, const Path& path, Value& out);
  bool read_object(ondemand::object object, const Path& path, Value& out);
  bool read_scalar(std::string_view token, const Path& path, Value& out);
  bool read_number(std::string_view token, const Path& path, Value& out);
  bool read_string(const char* start, const Path& path, Value& out);
  bool read_key(const char* start, Member& out);
  void keep_last_duplicates(std::vector<Member>& members, const Path& path);
  [[nodiscard]] bool may_open(const Path& path) const { return path.depth < limits_.max_depth; }
  bool count_member() { return ++members_ <= limits_.max_members; }
  void warn(std::string_view code, const Path& path, std::string message);
  [[nodiscard]] std::uint32_t offset_of(const char* place) const {
    return static_cast<std::uint32_t>(place - text_.data());
  }

  std::string_view text_;
  Limits limits_;
  std::vector<Warning>& warnings_;
  std::size_t members_ = 0;
  std::size_t dropped_warnings_ = 0;
};

namespace {

// A file may repeat a million keys; nobody reads a million warnings.
constexpr std::size_t kMaxWarnings = 100;

// Up to here comparing each key with each other one is faster than sorting.
constexpr std::size_t kFewKeys = 32;

std::string_view trim_right(std::string_view token) {
  const std::size_t last = token.find_last_not_of(" \t\r\n");
  return token.substr(0, last + 1);
}

bool has_duplicate(const std::vector<Member>& members) {
  if (members.size() <= kFewKeys) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (members[i].key == members[j].key) return true;
      }
    }
    return false;
  }
  // Sorted, not hashed: nobody can choose keys that make this slow.
  std::vector<std::string_view> keys(members.size());
  std::transform(members.begin(), members.end(), keys.begin(),
                 [](const Member& m) { return std::string_view(m.key); });
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
}

// {"__float__": "Infinity"}, as newer libraries write what JSON has no literal for.
std::optional<double> tagged_float(const std::vector<Member>& members) {
  if (members.size() != 1 || members[0].key != "__float__" || !members[0].value.is_string()) {
    return std::nullopt;
  }
  return parse_nonfinite(members[0].value.as_string());
}

}  // namespace

bool Reader::read(ondemand::document& document, Value& root) {
  std::string_view token;
  if (document.raw_json_token().get(token) != simdjson::SUCCESS || token.empty()) return false;
  root.offset_ = offset_of(token.data());
  const Path path;
  bool ok = false;
  bool at_end = false;
  if (token[0] == '{' || token[0] == '[') {
    ondemand::object object;
    ondemand::array array;
    ok = token[0] == '{' ? document.get_object().get(object) == simdjson::SUCCESS &&
                               may_open(path) && read_object(object, path, root)
                         : document.get_array().get(array) == simdjson::SUCCESS && may_open(path) &&
                               read_array(array, path, root);
    at_end = ok && document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  } else {
    const bool single = root.offset_ + token.size() == text_.size();
    at_end = single;
    ok = single && (token[0] == '"' ? read_string(token.data() + 1, path, root)
                                    : read_scalar(trim_right(token), path, root));
  }
  if (dropped_warnings_ > 0) {
    warnings_.push_back(
        {"JSON-MORE-WARNINGS", "",
         fmt::format("{} more warnings of this file are not shown", dropped_warnings_)});
  }
  return ok && at_end;
}

bool Reader::read_value(ondemand::value value, const Path& path, Value& out) {
  const std::string_view token = value.raw_json_token();
  if (token.empty()) return false;
  out.offset_ = offset_of(token.data());
  switch (token[0]) {
    case '{': {
      ondemand::object object;
      return may_open(path) && value.get_object().get(object) == simdjson::SUCCESS &&
             read_object(object, path, out);
    }
    case '[': {
      ondemand::array array;
      return may_open(path) && value.get_array().get(array) == simdjson::SUCCESS &&
             read_array(array, path, out);
    }
    case '"': {
      ondemand::raw_json_string raw;
      return value.get_raw_json_string().get(raw) == simdjson::SUCCESS &&
             read_string(raw.raw(), path, out);
    }
    default:
      return read_scalar(trim_right(token), path, out);
  }
}

bool Reader::read_array(ondemand::array array, const Path& path, Value& out) {
  std::vector<Value> items;
  for (auto element : array) {
    ondemand::value value;
    // NOLINTNEXTLINE(performance-move-const-arg): get() is for rvalues only
    if (std::move(element).get(value) != simdjson::SUCCESS || !count_member()) return false;
    const Path here{&path, {}, items.size(), true, path.depth + 1};
    if (!read_value(value, here, items.emplace_back())) return false;
  }
  out.type_ = Type::kArray;
  if (!items.empty()) out.data_ = std::make_shared<const std::vector<Value>>(std::move(items));
  return true;
}

bool Reader::read_object(ondemand::object object, const Path& path, Value& out) {
  std::vector<Member> members;
  for (auto element : object) {
    ondemand::field field;
    if (std::move(element).get(field) != simdjson::SUCCESS || !count_member()) return false;
    Member& member = members.emplace_back();
    if (!read_key(field.key().raw(), member)) return false;
    const Path here{&path, member.key, 0, false, path.depth + 1};
    if (!read_value(field.value(), here, member.value)) return false;
  }
  if (has_duplicate(members)) keep_last_duplicates(members, path);
  if (const auto real = tagged_float(members)) {
    out.type_ = Type::kDouble;
    out.number_.real = *real;
    return true;
  }
  out.type_ = Type::kObject;
  if (!members.empty()) {
    out.data_ = std::make_shared<const std::vector<Member>>(std::move(members));
  }
  return true;
}

bool Reader::read_scalar(std::string_view token, const Path& path, Value& out) {
  if (token == "null") return true;
  if (token == "true" || token == "false") {
    out.type_ = Type::kBool;
    out.bool_ = token == "true";
    return true;
  }
  return read_number(token, path, out);
}

bool Reader::read_number(std::string_view token, const Path& path, Value& out) {
  const auto number = parse_number(token);
  if (!number) return false;
  out.type_ = number->type;
  if (number->type == Type::kInteger) {
    out.number_.integer = number->integer;
  } else {
    out.number_.real = number->real;
  }
  if (out.type_ == Type::kBigInteger || out.number_text() != token) {
    out.data_ = std::make_shared<const std::string>(token);
  }
  if (number->type == Type::kDouble && !std::isfinite(number->real)) {
    warn("JSON-NONFINITE", path,
         parse_nonfinite(token)
             ? fmt::format("{} is not JSON; read as the number, as Python does", token)
             : fmt::format("{} is beyond the largest double; read as infinite", out.brief()));
  }
  return true;
}

bool Reader::read_string(const char* start, const Path& path, Value& out) {
  bool has_escapes = false;
  std::string_view raw = text_.substr(offset_of(start));
  raw = raw.substr(0, string_length(raw, has_escapes));
  out.type_ = Type::kString;
  if (!has_escapes) {
    if (!raw.empty()) out.data_ = std::make_shared<const std::string>(raw);
    return true;
  }
  auto unescaped = unescape(raw);
  if (!unescaped) return false;
  out.data_ = std::make_shared<const std::string>(std::move(unescaped->text));
  out.lone_surrogate_ = unescaped->has_lone_surrogate;
  if (out.lone_surrogate_) {
    warn("JSON-LONE-SURROGATE", path,
         fmt::format("the string {} holds half of a surrogate pair; read as U+FFFD", out.brief()));
  }
  return true;
}

bool Reader::read_key(const char* start, Member& out) {
  bool has_escapes = false;
  out.key_offset = offset_of(start) - 1;
  std::string_view raw = text_.substr(offset_of(start));
  raw = raw.substr(0, string_length(raw, has_escapes));
  if (!has_escapes) {
    out.key = raw;
    return true;
  }
  auto unescaped = unescape(raw);
  if (!unescaped || unescaped->has_lone_surrogate) return false;
  out.key = std::move(unescaped->text);
  return true;
}

// As a Python dict: the key keeps its first place and gets its last value.
void Reader::keep_last_duplicates(std::vector<Member>& members, const Path& path) {
  std::vector<Member> kept;
  std::map<std::string, std::size_t, std::less<>> places;
  for (Member& member : members) {
    const auto [place, is_new] = places.try_emplace(member.key, kept.size());
    if (is_new) {
      kept.push_back(std::move(member));
      continue;
    }
    Member& earlier = kept[place->second];
    const Path here{&path, earlier.key, 0, false, path.depth + 1};
    const std::string before = earlier.value.brief();
    const std::string after = member.value.brief();
    const bool same = earlier.value == member.value;
    warn("JSON-DUPLICATE-KEY", here,
         fmt::format("the key \"{}\" is repeated: {} first, then {}; {}", earlier.key, before,
                     after, same ? "the values are equal" : "the last one counts"));
    earlier.value = std::move(member.value);
    earlier.key_offset = member.key_offset;
  }
  members = std::move(kept);
}

void Reader::warn(std::string_view code, const Path& path, std::string message) {
  if (warnings_.size() >= kMaxWarnings) {
    ++dropped_warnings_;
    return;
  }
  std::string pointer;
  for (const Path* step = &path; step->parent != nullptr; step = step->parent) {
    pointer.insert(0,
                   "/" + (step->is_index ? std::to_string(step->index) : pointer_token(step->key)));
  }
  warnings_.push_back({std::string(code), std::move(pointer), std::move(message)});
}

bool read_tree(std::string& text, const Limits& limits, Value& root,
               std::vector<Warning>& warnings) {
  // Kept between files of ordinary size; a huge one must not leave its buffers behind.
  constexpr std::size_t kOrdinaryBytes = std::size_t{1} << 20;
  thread_local ondemand::parser shared_parser;
  ondemand::parser own_parser;
  ondemand::parser& parser = text.size() <= kOrdinaryBytes ? shared_parser : own_parser;

  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  ondemand::document document;
  const simdjson::padded_string_view view(text.data(), text.size(), text.capacity());
  if (parser.iterate(view).get(document) != simdjson::SUCCESS) return false;
  return Reader(text, limits, warnings).read(document, root);
}

}  // namespace kernelpath::json
