// Fields that have made other tools run code of a model's author. They are reported and ignored.

#include "base/text.h"
#include "config/derive.h"
#include "json/document.h"

#include <fmt/format.h>

namespace kernelpath::config {
namespace {

// "other/repo--module.Class": code of another repository than the model's own.
void check_auto_map_entry(const Derivation& d, const json::Value& value, const std::string& where) {
  if (value.is_array()) {
    std::size_t index = 0;
    for (const json::Value& item : value.items()) {
      if (item.is_string()) check_auto_map_entry(d, item, fmt::format("{}/{}", where, index));
      ++index;
    }
    return;
  }
  if (!value.is_string() || value.as_string().find("--") == std::string::npos) return;
  d.read.warn("CONFIG-CODE-ELSEWHERE", where,
              fmt::format("code of another repository: {}; never fetched",
                          escape_for_terminal(shorten(value.as_string(), 80))));
}

bool names_repository(const json::Value& value) {
  return value.is_string() && value.as_string().find('/') != std::string::npos;
}

void check_member(const Derivation& d, const json::Member& member, const std::string& where) {
  const std::string& key = member.key;
  if (key == "auto_map" && member.value.is_object()) {
    for (const json::Member& entry : member.value.members()) {
      check_auto_map_entry(d, entry.value,
                           fmt::format("{}/{}", where, json::pointer_token(entry.key)));
    }
    return;
  }
  const bool attention = (key == "_attn_implementation_internal" || key == "_attn_implementation" ||
                          key == "attn_implementation") &&
                         names_repository(member.value);
  const bool runs = key == "model_file" || key == "trust_remote_code";
  if (!attention && !(runs && !member.value.is_null())) return;
  d.read.warn("CONFIG-CODE-FIELD", where,
              fmt::format("{} is {}: a field that has made other tools run code; ignored", key,
                          member.value.brief()));
}

void search(const Derivation& d, const json::Value& object, const std::string& pointer) {
  for (const json::Member& member : object.members()) {
    const bool code_field = member.key == "auto_map" || member.key == "model_file" ||
                            member.key == "trust_remote_code" ||
                            member.key.ends_with("attn_implementation") ||
                            member.key == "_attn_implementation_internal";
    const bool nest =
        member.value.is_object() && member.key != "quantization_config" &&
        (member.key.ends_with("config") || member.key == "decoder" || member.key == "encoder");
    if (!code_field && !nest) continue;
    const std::string where = fmt::format("{}/{}", pointer, json::pointer_token(member.key));
    if (code_field) check_member(d, member, where);
    if (nest) search(d, member.value, where);
  }
}

}  // namespace

void find_foreign_code(Derivation& d) { search(d, *d.read.outer, ""); }

}  // namespace kernelpath::config
