#include "report/diff_summary.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kernelpath::report {
namespace {

// The shape's notation and the name of the layout: the same bytes in the same place.
bool is_form(const engines::Difference& difference) {
  return difference.aspect == "KV shape" || difference.aspect == "KV layout";
}

void add_change(const DiffAnswer& answer, const engines::Difference& difference,
                DiffSummary& summary) {
  auto& changes = summary.changes;
  auto known = std::find_if(changes.begin(), changes.end(), [&](const SharedChange& change) {
    return change.aspect == difference.aspect && change.where == difference.where &&
           change.from == difference.from && change.to == difference.to;
  });
  if (known == changes.end()) {
    changes.push_back({.aspect = difference.aspect,
                       .where = difference.where,
                       .from = difference.from,
                       .to = difference.to,
                       .rules = {},
                       .models = {},
                       .form = is_form(difference)});
    known = std::prev(changes.end());
  }
  known->models.push_back(answer.model);
  for (const std::string& rule : difference.rules) {
    if (std::find(known->rules.begin(), known->rules.end(), rule) == known->rules.end()) {
      known->rules.push_back(rule);
    }
  }
}

std::size_t rank_of(std::string_view aspect) {
  const auto& aspects = engines::difference_aspects();
  return static_cast<std::size_t>(std::find(aspects.begin(), aspects.end(), aspect) -
                                  aspects.begin());
}

}  // namespace

DiffSummary summarise(const std::vector<DiffAnswer>& answers) {
  DiffSummary out;
  out.models = answers.size();
  for (const std::string_view aspect : engines::difference_aspects()) {
    out.aspects.push_back({std::string(aspect), 0});
  }
  for (const DiffAnswer& answer : answers) {
    std::set<std::size_t> seen;
    bool only_form = true;
    for (const engines::Difference& difference : answer.differences) {
      const std::size_t rank = rank_of(difference.aspect);
      if (seen.insert(rank).second && rank < out.aspects.size()) ++out.aspects[rank].models;
      only_form = only_form && is_form(difference);
      add_change(answer, difference, out);
    }
    if (answer.differences.empty()) {
      ++out.unchanged;
    } else if (only_form) {
      ++out.unchanged_but_form;
    }
  }
  std::erase_if(out.aspects, [](const AspectCount& count) { return count.models == 0; });
  std::stable_sort(out.changes.begin(), out.changes.end(),
                   [](const SharedChange& a, const SharedChange& b) {
                     const std::size_t rank_a = rank_of(a.aspect);
                     const std::size_t rank_b = rank_of(b.aspect);
                     return rank_a != rank_b ? rank_a < rank_b : a.models.size() > b.models.size();
                   });
  return out;
}

}  // namespace kernelpath::report
