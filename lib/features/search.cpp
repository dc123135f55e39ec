#include "features/search.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>

namespace kernelpath::features {
namespace {

using Faults = std::vector<std::string>;

// More combinations than this are not carried from one number of changes to the next.
constexpr std::size_t kMostKept = 64;
// A shorter set is looked for without pruning only where that is quick.
constexpr std::size_t kMostProvenChanges = 3;
constexpr std::size_t kMostHittingSteps = 100'000;

bool contains(const Faults& faults, const std::string& fault) {
  return std::find(faults.begin(), faults.end(), fault) != faults.end();
}

bool touches(const Changes& changes, const Change& next) {
  const std::string subject = next.subject();
  return std::any_of(changes.begin(), changes.end(),
                     [&subject](const Change& change) { return change.subject() == subject; });
}

std::tuple<std::ptrdiff_t, std::ptrdiff_t> cost(const Changes& changes) {
  const auto count = [&changes](FieldKind kind) {
    return std::count_if(changes.begin(), changes.end(),
                         [kind](const Change& change) { return change.kind == kind; });
  };
  return {count(FieldKind::kDevice), count(FieldKind::kEnvironment)};
}

struct Node {
  Changes changes = {};
  Faults faults = {};
};

// Every fault needs a change of one of its subjects: no set of changes is smaller than the smallest
// set of subjects that has one of each fault's.
class HittingSet {
 public:
  explicit HittingSet(std::vector<std::set<std::string>> sets) : sets_(std::move(sets)) {}

  // At least this many changes are needed; `most` where that is settled before the end.
  std::size_t lower_bound(std::size_t most) {
    for (std::size_t size = 0; size < most; ++size) {
      std::set<std::string> chosen;
      if (hits_all(chosen, size)) return size;
      if (steps_ > kMostHittingSteps) return 0;  // not settled
    }
    return most;
  }

 private:
  bool hits_all(std::set<std::string>& chosen, std::size_t left) {
    if (++steps_ > kMostHittingSteps) return false;
    const auto missed = std::find_if(sets_.begin(), sets_.end(), [&chosen](const auto& subjects) {
      return std::none_of(subjects.begin(), subjects.end(), [&chosen](const std::string& subject) {
        return chosen.contains(subject);
      });
    });
    if (missed == sets_.end()) return true;
    if (left == 0) return false;
    for (const std::string& subject : *missed) {
      chosen.insert(subject);
      if (hits_all(chosen, left - 1)) return true;
      chosen.erase(subject);
    }
    return false;
  }

  std::vector<std::set<std::string>> sets_;
  std::size_t steps_ = 0;
};

// Breadth first over the number of changes; each step mends one fault, so that a set of changes
// which mends all is reached whatever fault is mended first.
class Search {
 public:
  Search(const Problem& problem, std::string target, const SearchLimits& limits)
      : problem_(problem), target_(std::move(target)), limits_(limits) {}

  SearchResult run() {
    SearchResult out;
    const auto faults = problem_.faults({});
    if (!faults) return out;
    initial_ = *faults;
    if (next_of(initial_) == nullptr) {
      out.changes = Changes{};
      return out;
    }
    // First with changes that each remove the fault they are meant for: few, and nearly always
    // enough. What that may have missed is then looked for without leaving anything out.
    descend(limits_.max_changes, true);
    if (!best_ || !is_smallest()) complete(out);
    out.changes = best_;
    out.combinations = looked_at_;
    if (!best_) out.searched_all = exhausted_;
    return out;
  }

 private:
  // The fault to mend next; null pointer if the goal is met.
  const std::string* next_of(const Faults& faults) const {
    if (target_.empty()) return faults.empty() ? nullptr : &faults.front();
    for (const std::string& fault : faults) {
      if (fault == target_) return &fault;
    }
    for (const std::string& fault : faults) {
      if (!contains(initial_, fault)) return &fault;
    }
    return nullptr;
  }

  void complete(SearchResult& out) {
    const std::size_t known = best_ ? best_->size() : limits_.max_changes + 1;
    if (best_ && known > kMostProvenChanges) {
      out.smallest = false;
      return;
    }
    const std::optional<Changes> found = best_;
    best_.reset();
    seen_.clear();
    looked_at_before_ = looked_at_;
    stopped_ = exhausted_ = false;
    descend(known - 1, false);
    if (!best_) {
      best_ = found;
      out.smallest = !stopped_;
    }
  }

  bool is_smallest() const {
    if (best_->size() < 2) return true;
    std::vector<std::set<std::string>> subjects;
    for (const std::string& fault : target_.empty() ? initial_ : Faults{target_}) {
      std::set<std::string>& of_fault = subjects.emplace_back();
      for (const Change& change : problem_.remedies({}, fault)) of_fault.insert(change.subject());
    }
    return HittingSet(std::move(subjects)).lower_bound(best_->size()) == best_->size();
  }

  void descend(std::size_t max_changes, bool only_effective) {
    std::vector<Node> level = {{.changes = {}, .faults = initial_}};
    for (std::size_t depth = 0; depth < max_changes && !level.empty(); ++depth) {
      std::vector<Node> next;
      for (const Node& node : level) {
        expand(node, only_effective, next);
        if (stopped_) break;
      }
      if (best_ || stopped_) return;
      if (only_effective) keep_best(next);
      level = std::move(next);
    }
    exhausted_ = level.empty();
  }

  // The combinations with the fewest faults.
  static void keep_best(std::vector<Node>& level) {
    if (level.size() <= kMostKept) return;
    std::stable_sort(level.begin(), level.end(), [](const Node& a, const Node& b) {
      return a.faults.size() < b.faults.size();
    });
    level.resize(kMostKept);
  }

  void expand(const Node& node, bool only_effective, std::vector<Node>& next) {
    const std::string mend = *next_of(node.faults);
    // Values of one subject that leave the same faults are alike: the first is preferred.
    std::set<std::pair<std::string, Faults>> alike;
    for (Change& change : problem_.remedies(node.changes, mend)) {
      if (touches(node.changes, change)) continue;
      Node after{.changes = node.changes};
      const std::string subject = change.subject();
      after.changes.push_back(std::move(change));
      if (!seen_.insert(key_of(after.changes)).second) continue;
      if (looked_at_ - looked_at_before_ == limits_.max_combinations) {
        stopped_ = true;
        return;
      }
      ++looked_at_;
      auto faults = problem_.faults(after.changes);
      if (!faults) continue;
      after.faults = std::move(*faults);
      if (next_of(after.faults) == nullptr) {
        if (!best_ || cost(after.changes) < cost(*best_)) best_ = std::move(after.changes);
        continue;
      }
      if (only_effective && contains(after.faults, mend)) continue;
      if (only_effective && !alike.emplace(subject, after.faults).second) continue;
      next.push_back(std::move(after));
    }
  }

  const Problem& problem_;
  const std::string target_;  // empty: every fault
  const SearchLimits limits_;
  Faults initial_;
  std::unordered_set<std::string> seen_;
  std::optional<Changes> best_;
  std::size_t looked_at_ = 0;
  std::size_t looked_at_before_ = 0;  // by the first way of searching
  bool stopped_ = false;
  bool exhausted_ = false;  // no combination was left to go on from
};

}  // namespace

std::string key_of(const Changes& changes) {
  std::vector<std::string> keys;
  for (const Change& change : changes) keys.push_back(change.subject() + "\n" + change.text);
  std::sort(keys.begin(), keys.end());
  return join(keys, "\n");
}

SearchResult search_for(const Problem& problem, const std::string& target,
                        const SearchLimits& limits) {
  return Search(problem, target, limits).run();
}

SearchResult search_all(const Problem& problem, const SearchLimits& limits) {
  return Search(problem, {}, limits).run();
}

std::string search_text(const SearchResult& result, const SearchLimits& limits) {
  if (result.changes) {
    std::vector<std::string> texts;
    for (const Change& change : *result.changes) texts.push_back(change.text);
    return join(texts, ", ") + (result.smallest ? "" : " (fewer changes may do)");
  }
  if (result.searched_all) return "no change of options or device removes it";
  return fmt::format("nothing found with up to {} changes ({} combinations tried)",
                     limits.max_changes, result.combinations);
}

}  // namespace kernelpath::features
