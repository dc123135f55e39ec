#include "cli/bench_baseline.h"

#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace kernelpath::cli {
namespace {

using json::Value;

std::optional<double> number_in(const Value& object, std::string_view key) {
  const Value* const value = object.find_non_null(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double number = value->as_double();
  return std::isfinite(number) && number > 0 ? std::optional(number) : std::nullopt;
}

std::string text_in(const Value& object, std::string_view key) {
  const Value* const value = object.find_non_null(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

bool flag_in(const Value& object, std::string_view key) {
  const Value* const value = object.find_non_null(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

// The rows of a document of `schema`, whose major version is 1.
Result<json::Document> read_document(std::string_view text, const std::string& file,
                                     std::string_view schema) {
  KERNELPATH_TRY(document, json::parse_object(std::string(text), file, {.max_bytes = text.size()}));
  const std::string found = text_in(document.root, "schema");
  const std::string version = text_in(document.root, "schema_version");
  const Value* const rows = document.root.find_non_null("rows");
  const bool fits =
      found == schema && version.starts_with("1.") && rows != nullptr && rows->is_array();
  if (fits) return std::move(document);
  return fail({.code = ErrorCode::kInputSchema,
               .message = fmt::format("not a document of {} 1.x with rows", schema),
               .file = file,
               .value = found.empty() ? "no schema" : found + " " + version});
}

std::string row_key(std::string_view key, std::string_view cache, bool rotated) {
  return fmt::format("{}|{}|{}", key, cache, rotated ? "rotated" : "");
}

}  // namespace

Result<BenchBaseline> BenchBaseline::read(std::string_view text, const std::string& file) {
  KERNELPATH_TRY(document, read_document(text, file, "kernelpath/bench"));
  BenchBaseline out;
  const Value* const environment = document.root.find_non_null("environment");
  if (environment != nullptr) out.device_ = text_in(*environment, "label");
  for (const Value& row : document.root.find("rows")->items()) {
    const Value* const timing = row.find_non_null("timing");
    if (timing == nullptr || !flag_in(row, "valid")) continue;
    const auto median = number_in(*timing, "median_s");
    if (!median) continue;
    out.medians_[row_key(text_in(row, "key"), text_in(row, "cache"), flag_in(row, "rotated"))] =
        *median;
  }
  return out;
}

std::optional<bench::BaselineChange> BenchBaseline::compare(const bench::Row& row,
                                                            double most) const {
  if (row.error || row.measured.samples.empty()) return std::nullopt;
  const auto found = medians_.find(
      row_key(bench::key_of(row.shape), bench::cache_state_name(row.cache), row.rotated));
  if (found == medians_.end()) return std::nullopt;
  const double change = row.measured.summary.median / found->second - 1;
  return bench::BaselineChange{
      .before_s = found->second, .change = change, .regressed = change > most};
}

Result<std::map<std::string, std::vector<bench::PeerRow>>> read_peers(std::string_view text,
                                                                      const std::string& file) {
  KERNELPATH_TRY(document, read_document(text, file, "kernelpath/bench-peers"));
  std::map<std::string, std::vector<bench::PeerRow>> out;
  for (const Value& row : document.root.find("rows")->items()) {
    bench::PeerRow peer{.name = text_in(row, "peer"), .median_s = number_in(row, "median_s")};
    peer.reason = text_in(row, "error");
    const Value* const paged = row.find_non_null("paged");
    peer.paged = paged == nullptr || !paged->is_bool() || paged->as_bool();
    if (!peer.name.empty()) out[text_in(row, "shape")].push_back(std::move(peer));
  }
  return out;
}

void add_peers(const std::vector<bench::PeerRow>& peers, bench::Row& row) {
  for (const bench::PeerRow& peer : peers) {
    const auto same = std::ranges::find(row.peers, peer.name, &bench::PeerRow::name);
    if (same == row.peers.end()) {
      row.peers.push_back(peer);
    } else if (!same->median_s && peer.median_s) {
      *same = peer;
    }
  }
}

}  // namespace kernelpath::cli
