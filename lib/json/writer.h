#pragma once

#include "json/value.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kernelpath::json {

// Builds JSON text in one pass, keys in the order of the calls. Non-finite numbers become null.
// Strings that are not valid UTF-8 are written with U+FFFD.
//
//   Writer w;
//   w.begin_object().key("kv_bytes").value(131072).key("layers").begin_array().end_array().end_object();
//   std::string text = w.take(/*indent=*/2);
class Writer {
 public:
  Writer();
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Writer& begin_object();
  Writer& end_object();
  Writer& begin_array();
  Writer& end_array();
  Writer& key(std::string_view name);
  Writer& value(std::nullptr_t);
  Writer& value(bool value);
  Writer& value(int value) { return this->value(static_cast<std::int64_t>(value)); }
  Writer& value(std::int64_t value);
  Writer& value(double value);
  Writer& value(std::string_view value);
  Writer& value(const char* value) { return this->value(std::string_view(value)); }
  Writer& value(const Value& value);  // a whole tree

  // key(name).value(v)
  template <class T>
  Writer& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  // The finished text; indent 0 gives one line without spaces. Asserts that all is closed.
  std::string take(int indent);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string to_text(const Value& value, int indent = 0);

}  // namespace kernelpath::json
