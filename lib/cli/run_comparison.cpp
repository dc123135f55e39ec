#include "cli/run_comparison.h"

#include <fmt/format.h>

#include <utility>

namespace kernelpath::cli {
namespace {

std::string outcome_text(const Comparison& comparison) {
  if (!comparison.difference) return comparison.finished ? "as expected" : "not finished";
  const runtime::Difference& difference = *comparison.difference;
  return fmt::format(
      "step {}: expected token {}, found {} (gap {:.3g})", difference.step, difference.expected,
      difference.found ? std::to_string(*difference.found) : "the end", difference.gap);
}

}  // namespace

Comparison compare_run(const runtime::ExpectedRun& run, std::string request,
                       std::span<const std::int32_t> found, bool finished) {
  Comparison out{.prompt = run.id,
                 .request = std::move(request),
                 .finished = finished,
                 .difference = runtime::first_difference(run, found)};
  // Tokens that an interruption left out are no difference.
  if (!finished && out.difference && !out.difference->found) out.difference.reset();
  return out;
}

std::string_view verdict_of(const Comparison& comparison) {
  if (comparison.difference) return "differs";
  return comparison.finished ? "equal" : "unfinished";
}

std::string comparison_text(std::span<const Comparison> comparisons) {
  std::string out;
  for (const Comparison& comparison : comparisons) {
    out += fmt::format("prompt {}: {}\n", comparison.prompt, outcome_text(comparison));
  }
  return out;
}

report::Block comparison_table(std::span<const Comparison> comparisons) {
  report::Block table{.kind = report::Block::Kind::kTable, .header = {"prompt", "tokens"}};
  table.rows.reserve(comparisons.size());
  for (const Comparison& comparison : comparisons) {
    table.rows.push_back({{std::to_string(comparison.prompt)},
                          {outcome_text(comparison),
                           comparison.difference ? report::Tone::kBad : report::Tone::kGood}});
  }
  return table;
}

}  // namespace kernelpath::cli
