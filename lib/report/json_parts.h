#pragma once

#include "engines/resolution.h"
#include "json/writer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Parts that several documents have.
namespace kernelpath::report {

// Members that are left out where there is nothing to say: absent is not applicable.
template <class T>
void member_if(json::Writer& w, std::string_view name, const std::optional<T>& value) {
  if (value) w.member(name, *value);
}
inline void member_if(json::Writer& w, std::string_view name, const std::string& value) {
  if (!value.empty()) w.member(name, value);
}

inline void write_strings(json::Writer& w, std::string_view name,
                          const std::vector<std::string>& values) {
  w.key(name).begin_array();
  for (const std::string& value : values) w.value(value);
  w.end_array();
}

// The member "source": where a rule was read.
inline void write_source(json::Writer& w, const engines::Source& source) {
  w.key("source").begin_object();
  member_if(w, "project", source.project);
  member_if(w, "file", source.file);
  member_if(w, "version", source.version);
  w.end_object();
}

}  // namespace kernelpath::report
