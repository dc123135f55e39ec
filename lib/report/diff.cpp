#include "report/diff.h"

#include "base/text.h"
#include "report/blocks.h"
#include "report/diff_summary.h"
#include "report/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpath::report {
namespace {

constexpr std::size_t kNamedModels = 3;  // of a shared change; the rest is counted

std::string safe(std::string_view text) { return escape_for_terminal(text); }

std::string version_text(const engines::Resolution& resolution) {
  return fmt::format("{}@{}", resolution.engine, resolution.version);
}

std::string aspect_text(std::string_view aspect, std::string_view where) {
  return where.empty() ? std::string(aspect) : fmt::format("{}, {}", aspect, where);
}

std::string rules_text(const std::vector<std::string>& rules) {
  return rules.empty() ? "-" : join(rules, " ");
}

std::string models_text(const std::vector<std::string>& models) {
  std::vector<std::string> named(
      models.begin(),
      models.begin() + static_cast<std::ptrdiff_t>(std::min(models.size(), kNamedModels)));
  std::string text = join(named, ", ");
  if (models.size() > kNamedModels)
    text += fmt::format(", … {} more", models.size() - kNamedModels);
  return safe(text);
}

void append_summary(const std::vector<DiffAnswer>& answers, std::vector<Block>& out) {
  const DiffSummary summary = summarise(answers);
  out.push_back(title_block(
      fmt::format("{} -> {}: {} models on {}", version_text(answers.front().from),
                  version_text(answers.front().to), summary.models, safe(answers.front().device))));
  out.push_back(line_block(
      fmt::format("{} unchanged, {} changed only in how the cache is laid out or written down, {} "
                  "changed",
                  summary.unchanged, summary.unchanged_but_form,
                  summary.models - summary.unchanged - summary.unchanged_but_form)));
  out.push_back(gap_block());
  Block counts{.kind = Block::Kind::kTable};
  counts.header = {"what changes", "models"};
  for (const AspectCount& count : summary.aspects) {
    counts.rows.push_back({{count.aspect}, {fmt::to_string(count.models)}});
  }
  if (!counts.rows.empty()) out.push_back(std::move(counts));
  out.push_back(gap_block());
  Block changes{.kind = Block::Kind::kTable};
  changes.header = {"what", "from", "to", "models", "rules", "which"};
  for (const SharedChange& change : summary.changes) {
    if (change.form) continue;
    changes.rows.push_back({{safe(aspect_text(change.aspect, change.where))},
                            {safe(change.from)},
                            {safe(change.to)},
                            {fmt::to_string(change.models.size())},
                            {rules_text(change.rules)},
                            {models_text(change.models)}});
  }
  if (!changes.rows.empty()) out.push_back(std::move(changes));
  out.push_back(gap_block());
}

void append_errors(const DiffAnswer& answer, std::vector<Block>& out) {
  for (const engines::Resolution* side : {&answer.from, &answer.to}) {
    if (!side->error) continue;
    out.push_back(line_block(fmt::format("{}: {} [{}]", version_text(*side),
                                         safe(side->error->message), safe(side->error->code)),
                             Tone::kBad));
  }
}

// What the sizes of the two are made of, where that differs.
void append_accounts(const DiffAnswer& answer, std::vector<Block>& out) {
  Block table{.kind = Block::Kind::kTable};
  table.header = {"size", "made of", version_text(answer.from), version_text(answer.to)};
  for (const AccountDifference& row : account_differences(answer.from.memory, answer.to.memory)) {
    table.rows.push_back({{std::string(figure_name(row.figure))},
                          {safe(row.cause)},
                          {signed_bytes(row.from_bytes)},
                          {signed_bytes(row.to_bytes)}});
  }
  if (table.rows.empty()) return;
  out.push_back(gap_block());
  out.push_back(std::move(table));
}

void append_model(const DiffAnswer& answer, std::vector<Block>& out) {
  out.push_back(heading_block(fmt::format("{}  {}", safe(answer.model), safe(answer.device))));
  if (answer.differences.empty()) {
    out.push_back(line_block("no difference", Tone::kGood));
    append_errors(answer, out);
    append_accounts(answer, out);
    out.push_back(gap_block());
    return;
  }
  Block table{.kind = Block::Kind::kTable};
  table.header = {"what", version_text(answer.from), version_text(answer.to), "rules"};
  for (const engines::Difference& difference : answer.differences) {
    table.rows.push_back({{safe(aspect_text(difference.aspect, difference.where))},
                          {safe(difference.from)},
                          {safe(difference.to)},
                          {rules_text(difference.rules)}});
  }
  out.push_back(std::move(table));
  append_errors(answer, out);
  append_accounts(answer, out);
  out.push_back(gap_block());
}

// Models that do not change are counted in the summary; one alone is always shown.
std::vector<Block> diff_blocks(const std::vector<DiffAnswer>& answers) {
  std::vector<Block> out;
  if (answers.empty()) return out;
  const bool several = answers.size() > 1;
  if (several) append_summary(answers, out);
  for (const DiffAnswer& answer : answers) {
    if (!several || !answer.differences.empty()) append_model(answer, out);
  }
  return out;
}

}  // namespace

std::string diff_text(const std::vector<DiffAnswer>& answers, const View& view) {
  return render_text(diff_blocks(answers), view);
}

std::string diff_markdown(const std::vector<DiffAnswer>& answers, const View& view) {
  if (answers.size() > 1 && !view.layers) {
    std::vector<Block> out;
    append_summary(answers, out);
    return render_markdown(out);
  }
  return render_markdown(diff_blocks(answers));
}

}  // namespace kernelpath::report
