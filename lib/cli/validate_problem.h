#pragma once

#include "cli/validate_part.h"
#include "features/search.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kernelpath::cli {

// The name of an error in every combination of a search: its rule, and the item that it is about
// where one rule can be violated several times.
std::string fault_name(const report::ReportedFinding& finding);

// One engine's combination as llm-validate reports it: the faults are the errors of the report.
class CombinationProblem final : public features::Problem {
 public:
  // All three must outlive the problem.
  CombinationProblem(const ValidateQuestion& question, const EngineQuestion& engine,
                     const Judge& judge);

  [[nodiscard]] std::optional<std::vector<std::string>> faults(
      const features::Changes& changes) const override;
  [[nodiscard]] features::Changes remedies(const features::Changes& changes,
                                           const std::string& fault) const override;

 private:
  // The combination after some changes.
  struct Stated {
    EngineCombination combination = {};
    std::optional<features::CommandReading> command = {};
  };
  [[nodiscard]] std::optional<Stated> state(const features::Changes& changes) const;
  [[nodiscard]] features::Changes rule_remedies(const report::ReportedFinding& finding,
                                                const JudgedEngine& judged) const;
  [[nodiscard]] features::Changes shared_remedies(const features::Rule& rule,
                                                  const JudgedEngine& judged) const;
  [[nodiscard]] features::Changes refusal_remedies(const JudgedEngine& judged) const;

  const ValidateQuestion& question_;
  const EngineQuestion& engine_;
  const Judge& judge_;
  std::optional<Stated> start_;
  std::vector<features::DeviceChoice> devices_;
  // One search after another asks for the same combinations.
  mutable std::unordered_map<std::string, std::vector<std::string>> known_;
};

}  // namespace kernelpath::cli
