#include "base/text.h"
#include "checkpoint/broken_file.h"
#include "checkpoint/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kernelpath::checkpoint {
namespace {

// A relative path that stays in its folder whatever links or letters mean on other systems.
bool stays_inside(std::string_view shard) {
  if (shard.empty() || shard.front() == '/') return false;
  if (shard.find('\0') != std::string_view::npos) return false;
  if (shard.find('\\') != std::string_view::npos) return false;
  if (shard.size() > 1 && shard[1] == ':') return false;
  return std::ranges::none_of(split(shard, '/'),
                              [](const std::string& step) { return step == ".."; });
}

// metadata.total_size; some tools write it as 16060522496.0.
void read_total_size(const json::Value& root, Index& index) {
  const json::Value* const metadata = root.find_non_null("metadata");
  const json::Value* const total = metadata == nullptr ? nullptr : metadata->find("total_size");
  if (total == nullptr) return;
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (total->is_integer() && total->as_integer() >= 0) {
    index.total_size = total->as_integer();
  } else if (total->type() == json::Type::kDouble && total->as_double() >= 0 &&
             total->as_double() < kTwoTo63 &&
             std::trunc(total->as_double()) == total->as_double()) {
    index.total_size = static_cast<std::int64_t>(total->as_double());
  } else {
    index.warnings.push_back({"CHECKPOINT-TOTAL-SIZE",
                              fmt::format("{}:/metadata/total_size", kIndexName),
                              fmt::format("{} is no number of bytes; not used", total->brief())});
  }
}

}  // namespace

Result<Index> parse_index(std::string text, const std::string& file) {
  const json::Limits limits{.max_bytes = kMaxIndexBytes, .max_members = kMaxMembers};
  KERNELPATH_TRY(document, json::parse_object(std::move(text), file, limits));
  const json::Value* const map = document.root.find("weight_map");
  if (map == nullptr || !map->is_object()) {
    return broken_file(file, "/weight_map",
                       map == nullptr ? "missing" : "must be an object, tensor name to shard",
                       map == nullptr ? "" : map->brief());
  }
  Index index;
  for (json::Warning& warning : document.warnings) {
    warning.where = fmt::format("{}:{}", kIndexName, warning.where);
    index.warnings.push_back(std::move(warning));
  }
  read_total_size(document.root, index);
  std::map<std::string, std::size_t, std::less<>> numbers;
  index.weight_map.reserve(map->members().size());
  for (const json::Member& member : map->members()) {
    const bool is_name = member.value.is_string() && !member.value.has_lone_surrogate();
    if (!is_name || !stays_inside(member.value.as_string())) {
      return broken_file(file, fmt::format("/weight_map/{}", json::pointer_token(member.key)),
                         is_name ? "shard outside the folder" : "must be the name of a shard",
                         member.value.brief());
    }
    const std::string& shard = member.value.as_string();
    const auto [number, is_new] = numbers.try_emplace(shard, index.shards.size());
    if (is_new) index.shards.push_back(shard);
    index.weight_map.emplace_back(member.key, number->second);
  }
  return index;
}

}  // namespace kernelpath::checkpoint
