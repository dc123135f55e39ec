#include "features/yaml.h"

#include <fmt/format.h>

#include <algorithm>

#if KERNELPATH_HAVE_YAML
#include <yaml.h>
#endif

namespace kernelpath::features {

std::optional<json::Position> YamlDocument::position(std::string_view pointer) const {
  // The last one: of a repeated key the last value counts.
  const auto found = std::find_if(places.rbegin(), places.rend(),
                                  [pointer](const auto& place) { return place.first == pointer; });
  if (found == places.rend()) return std::nullopt;
  return found->second;
}

#if KERNELPATH_HAVE_YAML

namespace {

constexpr int kMaxDepth = 64;
// Values in the whole document, aliases counted as often as they are used.
constexpr std::size_t kMaxNodes = 100'000;

json::Position position_of(const yaml_mark_t& mark) {
  return {.line = static_cast<std::uint32_t>(mark.line + 1),
          .column = static_cast<std::uint32_t>(mark.column + 1)};
}

std::string scalar_text(const yaml_node_t& node) {
  return {reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length};
}

std::string tag_of(const yaml_node_t& node) {
  return node.tag == nullptr ? std::string() : reinterpret_cast<const char*>(node.tag);
}

// One loaded document of libyaml, and its parser.
class Loaded {
 public:
  Loaded() = default;
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (document_ready_) yaml_document_delete(&document_);
    if (parser_ready_) yaml_parser_delete(&parser_);
  }

  bool start(const std::string& text) {
    parser_ready_ = yaml_parser_initialize(&parser_) != 0;
    if (!parser_ready_) return false;
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
    return true;
  }
  bool next() {
    if (document_ready_) yaml_document_delete(&document_);
    document_ready_ = yaml_parser_load(&parser_, &document_) != 0;
    return document_ready_;
  }

  [[nodiscard]] const yaml_parser_t& parser() const { return parser_; }
  [[nodiscard]] yaml_document_t& document() { return document_; }

 private:
  yaml_parser_t parser_ = {};
  yaml_document_t document_ = {};
  bool parser_ready_ = false;
  bool document_ready_ = false;
};

class YamlReader {
 public:
  explicit YamlReader(std::string file) { out_.file = std::move(file); }

  Result<YamlDocument> run(const std::string& text) {
    Loaded loaded;
    if (!loaded.start(text)) return fail({.code = ErrorCode::kResource, .message = "no memory"});
    if (!loaded.next()) return syntax(loaded.parser());
    document_ = &loaded.document();
    yaml_node_t* const root = yaml_document_get_root_node(document_);
    if (root == nullptr) return std::move(out_);
    KERNELPATH_TRY(value, convert(*root, "", 0));
    if (!value.is_object() && !value.is_null()) {
      return error(*root, ErrorCode::kInputSchema, "the root must be a mapping of options");
    }
    if (value.is_object()) out_.root = value;
    if (!loaded.next()) return syntax(loaded.parser());
    if (yaml_node_t* const second = yaml_document_get_root_node(document_)) {
      return error(*second, ErrorCode::kInputSchema, "a second document; one is read");
    }
    return std::move(out_);
  }

 private:
  Result<json::Value> convert(const yaml_node_t& node, const std::string& pointer, int depth) {
    if (depth > kMaxDepth) return error(node, ErrorCode::kInputLimit, "nested too deeply");
    if (++nodes_ > kMaxNodes) {
      return error(node, ErrorCode::kInputLimit, "too many values, aliases counted in full");
    }
    out_.places.emplace_back(pointer, position_of(node.start_mark));
    switch (node.type) {
      case YAML_SCALAR_NODE:
        return scalar(node);
      case YAML_SEQUENCE_NODE:
        return sequence(node, pointer, depth);
      case YAML_MAPPING_NODE:
        return mapping(node, pointer, depth);
      default:
        return json::Value::null();
    }
  }

  Result<json::Value> scalar(const yaml_node_t& node) {
    const std::string text = scalar_text(node);
    const std::string tag = tag_of(node);
    const bool plain = node.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    // libyaml gives every untagged scalar the string tag.
    if (tag == YAML_STR_TAG) return plain ? resolve_plain_scalar(text) : json::Value::string(text);
    if (tag == YAML_INT_TAG || tag == YAML_FLOAT_TAG || tag == YAML_BOOL_TAG ||
        tag == YAML_NULL_TAG) {
      return resolve_plain_scalar(text);
    }
    return error(node, ErrorCode::kInputSchema, fmt::format("the tag {} is not accepted", tag));
  }

  Result<json::Value> sequence(const yaml_node_t& node, const std::string& pointer, int depth) {
    std::vector<json::Value> items;
    for (const yaml_node_item_t* item = node.data.sequence.items.start;
         item != node.data.sequence.items.top; ++item) {
      const std::string place = fmt::format("{}/{}", pointer, items.size());
      KERNELPATH_TRY(value, convert(*yaml_document_get_node(document_, *item), place, depth + 1));
      items.push_back(std::move(value));
    }
    return json::Value::array(std::move(items));
  }

  Result<json::Value> mapping(const yaml_node_t& node, const std::string& pointer, int depth) {
    std::vector<json::Member> members;
    for (const yaml_node_pair_t* pair = node.data.mapping.pairs.start;
         pair != node.data.mapping.pairs.top; ++pair) {
      const yaml_node_t& key_node = *yaml_document_get_node(document_, pair->key);
      const yaml_node_t& value_node = *yaml_document_get_node(document_, pair->value);
      if (key_node.type != YAML_SCALAR_NODE) {
        return error(key_node, ErrorCode::kInputSchema, "a key must be a single value");
      }
      const std::string key = scalar_text(key_node);
      const std::string place = pointer + "/" + json::pointer_token(key);
      KERNELPATH_TRY(value, convert(value_node, place, depth + 1));
      add(members, key, std::move(value), place);
    }
    return json::Value::object(std::move(members));
  }

  void add(std::vector<json::Member>& members, const std::string& key, json::Value value,
           const std::string& place) {
    // "<<" brings the members of another mapping; those that stand here win.
    if (key == "<<" && value.is_object()) {
      for (const json::Member& member : value.members()) {
        if (find(members, member.key) == members.end()) members.push_back(member);
      }
      return;
    }
    const auto found = find(members, key);
    if (found == members.end()) {
      members.push_back({.key = key, .value = std::move(value)});
      return;
    }
    out_.warnings.push_back(
        {.code = "YAML-DUPLICATE-KEY",
         .where = place,
         .message = fmt::format("'{}' stands twice; the last one counts", key)});
    found->value = std::move(value);
  }

  static std::vector<json::Member>::iterator find(std::vector<json::Member>& members,
                                                  const std::string& key) {
    return std::find_if(members.begin(), members.end(),
                        [&key](const json::Member& member) { return member.key == key; });
  }

  [[nodiscard]] Unexpected error(const yaml_node_t& node, ErrorCode code,
                                 std::string message) const {
    const json::Position at = position_of(node.start_mark);
    return fail({.code = code,
                 .message = std::move(message),
                 .file = out_.file,
                 .where = fmt::format("{}:{}", at.line, at.column)});
  }

  [[nodiscard]] Unexpected syntax(const yaml_parser_t& parser) const {
    const json::Position at = position_of(parser.problem_mark);
    const bool encoding = parser.error == YAML_READER_ERROR;
    return fail({.code = encoding ? ErrorCode::kInputEncoding : ErrorCode::kInputSchema,
                 .message = fmt::format("not YAML: {}",
                                        parser.problem != nullptr ? parser.problem : "unreadable"),
                 .file = out_.file,
                 .where = encoding ? fmt::format("byte {}", parser.problem_offset)
                                   : fmt::format("{}:{}", at.line, at.column)});
  }

  yaml_document_t* document_ = nullptr;
  std::size_t nodes_ = 0;
  YamlDocument out_;
};

}  // namespace

bool yaml_available() { return true; }

Result<YamlDocument> parse_yaml(const std::string& text, std::string file) {
  return YamlReader(std::move(file)).run(text);
}

#else

bool yaml_available() { return false; }

Result<YamlDocument> parse_yaml(const std::string& /*text*/, std::string file) {
  return fail({.code = ErrorCode::kUnavailable,
               .message = "this build cannot read YAML",
               .file = std::move(file),
               .hint = "build with libyaml (libyaml-dev), or give the options as JSON"});
}

#endif

}  // namespace kernelpath::features
