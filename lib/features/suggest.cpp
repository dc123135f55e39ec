#include "features/suggest.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace kernelpath::features {
namespace {

struct SearchNode {
  Context context;
  std::vector<Change> changes;
};

// The changes whatever their order: two ways to the same combination are one.
std::string key_of(const std::vector<Change>& changes) {
  std::vector<std::string> texts;
  for (const Change& change : changes) texts.push_back(change.text);
  std::sort(texts.begin(), texts.end());
  return join(texts, "\n");
}

bool touches(const std::vector<Change>& changes, const Change& next) {
  return std::any_of(changes.begin(), changes.end(), [&next](const Change& change) {
    const bool device = change.device.has_value();
    return device == next.device.has_value() && (device || change.field == next.field);
  });
}

std::tuple<std::ptrdiff_t, std::ptrdiff_t> cost(const std::vector<Change>& changes) {
  const auto count = [&changes](FieldKind kind) {
    return std::count_if(changes.begin(), changes.end(),
                         [kind](const Change& change) { return change.kind == kind; });
  };
  return {count(FieldKind::kDevice), count(FieldKind::kEnvironment)};
}

// Breadth first over the number of changes. Each step mends one violated rule, so that a set of
// changes which mends all is reached whatever rule is mended first.
class Search {
 public:
  Search(const Context& start, const Rule* target, const SuggestOptions& options)
      : options_(options),
        target_(target),
        finder_(start.table(), options.devices, options.names),
        tolerated_(rules_of(violations(start, options.scope, options.level))),
        start_(start) {}

  SuggestResult run() {
    if (next_of(violations(start_, options_.scope, options_.level)) == nullptr) {
      return {.suggestion = Suggestion{}};
    }
    std::vector<SearchNode> level = {{.context = start_, .changes = {}}};
    for (std::size_t depth = 0; depth < options_.max_changes && !level.empty(); ++depth) {
      level = expand(level);
      if (best_) break;
    }
    SuggestResult out;
    out.validations = validations_;
    out.searched_all = best_ || (level.empty() && !stopped_);
    if (best_) out.suggestion = Suggestion{.changes = *best_};
    return out;
  }

 private:
  static std::vector<const Rule*> rules_of(const std::vector<Violation>& found) {
    std::vector<const Rule*> out;
    for (const Violation& violation : found) out.push_back(violation.rule);
    return out;
  }

  // The violation to mend next; null pointer if the goal is met.
  const Violation* next_of(const std::vector<Violation>& found) const {
    for (const Violation& violation : found) {
      if (target_ == nullptr || violation.rule == target_) return &violation;
    }
    for (const Violation& violation : found) {
      const bool old =
          std::find(tolerated_.begin(), tolerated_.end(), violation.rule) != tolerated_.end();
      if (!old) return &violation;
    }
    return nullptr;
  }

  std::vector<SearchNode> expand(const std::vector<SearchNode>& level) {
    std::vector<SearchNode> next;
    for (const SearchNode& node : level) {
      const auto found = violations(node.context, options_.scope, options_.level);
      const Violation* const mend = next_of(found);
      for (Change& change : finder_.for_rule(*mend->rule, node.context, mend->values)) {
        if (touches(node.changes, change)) continue;
        if (validations_ == options_.max_validations) {
          stopped_ = true;
          return next;
        }
        try_change(node, std::move(change), next);
      }
    }
    return next;
  }

  void try_change(const SearchNode& from, Change change, std::vector<SearchNode>& next) {
    SearchNode node = from;
    apply(change, node.context);
    if (options_.refresh) options_.refresh(node.context);
    node.changes.push_back(std::move(change));
    if (!seen_.insert(key_of(node.changes)).second) return;
    ++validations_;
    if (next_of(violations(node.context, options_.scope, options_.level)) != nullptr) {
      next.push_back(std::move(node));
    } else if (!best_ || cost(node.changes) < cost(*best_)) {
      best_ = std::move(node.changes);
    }
  }

  const SuggestOptions& options_;
  const Rule* target_;
  CandidateFinder finder_;
  std::vector<const Rule*> tolerated_;
  const Context& start_;
  std::unordered_set<std::string> seen_;
  std::optional<std::vector<Change>> best_;
  std::size_t validations_ = 0;
  bool stopped_ = false;
};

// Mends the first violated rule until none is left. No field is changed twice, so that it ends.
std::optional<std::vector<Change>> mend_one_by_one(Context context, const SuggestOptions& options) {
  std::vector<Change> all;
  for (;;) {
    const auto found = violations(context, options.scope, options.level);
    if (found.empty()) return all;
    const auto step = Search(context, found.front().rule, options).run();
    if (!step.suggestion) return std::nullopt;
    for (const Change& change : step.suggestion->changes) {
      if (touches(all, change)) return std::nullopt;
      apply(change, context);
      all.push_back(change);
    }
    if (options.refresh) options.refresh(context);
  }
}

}  // namespace

SuggestResult suggest_for(const Context& context, const Rule& rule, const SuggestOptions& options) {
  return Search(context, &rule, options).run();
}

SuggestResult suggest_all(const Context& context, const SuggestOptions& options) {
  SuggestResult out = Search(context, nullptr, options).run();
  if (out.suggestion || out.searched_all) return out;
  auto changes = mend_one_by_one(context, options);
  if (!changes) return out;
  out.suggestion = Suggestion{.changes = std::move(*changes)};
  out.smallest = false;
  return out;
}

std::string suggestion_text(const SuggestResult& result, const SuggestOptions& options) {
  if (result.suggestion) {
    std::vector<std::string> texts;
    for (const Change& change : result.suggestion->changes) texts.push_back(change.text);
    return join(texts, ", ");
  }
  if (result.searched_all) return "no change of options or device removes it";
  return fmt::format("nothing found with up to {} changes ({} combinations tried)",
                     options.max_changes, result.validations);
}

}  // namespace kernelpath::features
