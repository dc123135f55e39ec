#include "features/suggest.h"

#include <algorithm>

namespace kernelpath::features {
namespace {

// The rules of one table over one context: a fault is the id of a rule that holds.
class RuleProblem final : public Problem {
 public:
  RuleProblem(const Context& start, const SuggestOptions& options)
      : start_(start), options_(options), finder_(start.table(), options.devices, options.names) {}

  [[nodiscard]] std::optional<std::vector<std::string>> faults(
      const Changes& changes) const override {
    std::vector<std::string> out;
    for (const Violation& violation : violations_after(changes)) out.push_back(violation.rule->id);
    return out;
  }

  [[nodiscard]] Changes remedies(const Changes& changes, const std::string& fault) const override {
    const Context context = after(changes);
    for (const Violation& violation : violations(context, options_.scope, options_.level)) {
      if (violation.rule->id != fault) continue;
      return finder_.for_rule(*violation.rule, context, violation.values);
    }
    return {};
  }

 private:
  [[nodiscard]] Context after(const Changes& changes) const {
    Context context = start_;
    for (const Change& change : changes) apply(change, context);
    return context;
  }
  [[nodiscard]] std::vector<Violation> violations_after(const Changes& changes) const {
    return violations(after(changes), options_.scope, options_.level);
  }

  const Context& start_;
  const SuggestOptions& options_;
  CandidateFinder finder_;
};

}  // namespace

SearchResult suggest_for(const Context& context, const Rule& rule, const SuggestOptions& options) {
  return search_for(RuleProblem(context, options), rule.id, options.limits);
}

SearchResult suggest_all(const Context& context, const SuggestOptions& options) {
  return search_all(RuleProblem(context, options), options.limits);
}

}  // namespace kernelpath::features
