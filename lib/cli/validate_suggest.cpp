#include "cli/validate_suggest.h"

#include "cli/validate_problem.h"

#include <algorithm>

namespace kernelpath::cli {
namespace {

constexpr features::SearchLimits kForOne{.max_changes = 4, .max_combinations = 1500};
constexpr features::SearchLimits kForAll{.max_changes = 4, .max_combinations = 4000};

std::vector<report::ReportedFinding*> errors_of(EnginePart& part) {
  std::vector<report::ReportedFinding*> out;
  for (report::EngineFindings* findings : {&part.own, &part.shared}) {
    for (report::ReportedFinding& finding : findings->findings) {
      if (finding.finding.level == features::Level::kError) out.push_back(&finding);
    }
  }
  return out;
}

}  // namespace

void add_suggestions(const ValidateQuestion& question, const EngineQuestion& engine,
                     const Judge& judge, EnginePart& part) {
  const std::vector<report::ReportedFinding*> errors = errors_of(part);
  if (errors.empty()) return;
  const CombinationProblem problem(question, engine, judge);
  for (report::ReportedFinding* error : errors) {
    error->suggestion =
        features::search_text(features::search_for(problem, fault_name(*error), kForOne), kForOne);
  }
  if (errors.size() < 2) return;
  features::SearchLimits limits = kForAll;
  // A rank count or a sequence that was refused hides that the weights or the cache do not fit.
  limits.max_changes = std::max(limits.max_changes, errors.size() + 3);
  part.own.suggestion = features::search_text(features::search_all(problem, limits), limits);
}

}  // namespace kernelpath::cli
