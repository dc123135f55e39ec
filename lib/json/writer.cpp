#include "json/writer.h"

#include "base/assert.h"
#include "json/number.h"
#include "json/string_text.h"

#include <cmath>
#include <string>
#include <utility>

namespace kernelpath::json {
namespace {

// Spreads compact text over lines. Knows only what Writer produces: no spaces, valid JSON.
std::string indented(std::string_view compact, int indent) {
  std::string out;
  out.reserve(compact.size() * 2);
  std::size_t depth = 0;
  const auto new_line = [&] {
    out += '\n';
    out.append(depth * static_cast<std::size_t>(indent), ' ');
  };
  for (std::size_t i = 0; i < compact.size(); ++i) {
    const char c = compact[i];
    if (c == '"') {
      bool has_escapes = false;
      const std::size_t length = string_length(compact.substr(i + 1), has_escapes) + 2;
      out += compact.substr(i, length);
      i += length - 1;
    } else if ((c == '{' || c == '[') && (compact[i + 1] == '}' || compact[i + 1] == ']')) {
      out += compact.substr(i, 2);
      ++i;
    } else if (c == '{' || c == '[') {
      out += c;
      ++depth;
      new_line();
    } else if (c == '}' || c == ']') {
      --depth;
      new_line();
      out += c;
    } else {
      out += c;
      if (c == ',') new_line();
      if (c == ':') out += ' ';
    }
  }
  return out;
}

}  // namespace

struct Writer::State {
  std::string out;
  std::string open;  // the brackets that are open
  bool needs_comma = false;
  bool key_pending = false;  // a key was written and waits for its value

  void before_value() {
    const bool in_object = !open.empty() && open.back() == '{';
    KERNELPATH_ASSERT(in_object == key_pending);
    KERNELPATH_ASSERT(!open.empty() || out.empty());  // one value at the top level
    if (!key_pending && needs_comma) out += ',';
    key_pending = false;
    needs_comma = true;
  }

  void begin(char bracket) {
    before_value();
    out += bracket;
    open += bracket;
    needs_comma = false;
  }

  void end(char opening, char closing) {
    KERNELPATH_ASSERT(!open.empty() && open.back() == opening && !key_pending);
    open.pop_back();
    out += closing;
    needs_comma = true;
  }
};

Writer::Writer() : state_(std::make_unique<State>()) {}
Writer::~Writer() = default;

Writer& Writer::begin_object() {
  state_->begin('{');
  return *this;
}

Writer& Writer::end_object() {
  state_->end('{', '}');
  return *this;
}

Writer& Writer::begin_array() {
  state_->begin('[');
  return *this;
}

Writer& Writer::end_array() {
  state_->end('[', ']');
  return *this;
}

Writer& Writer::key(std::string_view name) {
  KERNELPATH_ASSERT(!state_->open.empty() && state_->open.back() == '{' && !state_->key_pending);
  if (state_->needs_comma) state_->out += ',';
  append_quoted(name, state_->out);
  state_->out += ':';
  state_->key_pending = true;
  return *this;
}

Writer& Writer::value(std::nullptr_t) {
  state_->before_value();
  state_->out += "null";
  return *this;
}

Writer& Writer::value(bool value) {
  state_->before_value();
  state_->out += value ? "true" : "false";
  return *this;
}

Writer& Writer::value(std::int64_t value) {
  state_->before_value();
  state_->out += std::to_string(value);
  return *this;
}

Writer& Writer::value(double value) {
  if (!std::isfinite(value)) return this->value(nullptr);
  state_->before_value();
  state_->out += format_double(value);
  return *this;
}

Writer& Writer::value(std::string_view value) {
  state_->before_value();
  append_quoted(value, state_->out);
  return *this;
}

Writer& Writer::value(const Value& value) {
  switch (value.type()) {
    case Type::kNull:
      return this->value(nullptr);
    case Type::kBool:
      return this->value(value.as_bool());
    case Type::kInteger:
      return this->value(value.as_integer());
    case Type::kDouble:
      return this->value(value.as_double());
    case Type::kString:
      return this->value(value.as_string());
    case Type::kBigInteger:
      state_->before_value();
      state_->out += value.number_text();
      return *this;
    case Type::kArray:
      begin_array();
      for (const Value& item : value.items()) this->value(item);
      return end_array();
    case Type::kObject:
      begin_object();
      for (const Member& each : value.members()) key(each.key).value(each.value);
      return end_object();
  }
  return *this;
}

std::string Writer::take(int indent) {
  KERNELPATH_ASSERT(state_->open.empty() && !state_->out.empty());
  State finished = std::exchange(*state_, State{});
  return indent > 0 ? indented(finished.out, indent) : std::move(finished.out);
}

std::string to_text(const Value& value, int indent) {
  Writer writer;
  writer.value(value);
  return writer.take(indent);
}

}  // namespace kernelpath::json
