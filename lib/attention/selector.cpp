#include "attention/selector.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::attention {
namespace {

Selection select_named(const NamedBackend& named, const SelectorKey& key) {
  const BackendRow& row = backend_row(named.id);
  Selection out{.candidates = {{.row = &row, .refusals = refusals(row, key.layer)}}};
  if (named.alias) out.alias = key.backend;
  if (out.candidates.front().refusals.empty()) out.chosen = &row;
  return out;
}

Selection select_first(const SelectorKey& key) {
  Selection out;
  for (const BackendRow& row : backend_table()) {
    out.candidates.push_back({.row = &row, .refusals = refusals(row, key.layer)});
    if (!out.candidates.back().refusals.empty()) continue;
    out.chosen = &row;
    break;
  }
  return out;
}

}  // namespace

Result<NamedBackend> find_backend(std::string_view name) {
  std::vector<std::string_view> names;
  for (const BackendRow& row : backend_table()) {
    if (equal_ignoring_case(row.name, name)) return NamedBackend{.id = row.id};
    names.push_back(row.name);
  }
  for (const BackendAlias& alias : kBackendAliases) {
    if (equal_ignoring_case(alias.name, name)) return NamedBackend{.id = alias.id, .alias = true};
    names.push_back(alias.name);
  }
  const std::vector<std::string> known(names.begin(), names.end());
  return fail({.code = ErrorCode::kUsageUnknown,
               .message = fmt::format("unknown attention backend; there are {}", join_words(known)),
               .value = std::string(name),
               .hint = "leave it out to get the first that can",
               .near_matches = near_matches(name, names)});
}

Result<Selection> select(const SelectorKey& key) {
  const std::vector<Refusal> faults = request_faults(key.layer);
  if (!faults.empty()) {
    std::vector<std::string> reasons;
    reasons.reserve(faults.size());
    for (const Refusal& fault : faults) reasons.push_back(fault.reason);
    return fail({.code = ErrorCode::kConfigValue, .message = join(reasons, "; ")});
  }
  if (key.backend.empty()) return select_first(key);
  KERNELPATH_TRY(named, find_backend(key.backend));
  return select_named(named, key);
}

const Result<Selection>& Selector::select(const SelectorKey& key) {
  const auto known = std::ranges::find(answers_, key, &Answer::key);
  if (known != answers_.end()) return known->selection;
  answers_.push_back({.key = key, .selection = attention::select(key)});
  return answers_.back().selection;
}

}  // namespace kernelpath::attention
