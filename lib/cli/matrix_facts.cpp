#include "cli/matrix_facts.h"

#include "cli/validate_changes.h"
#include "features/argument_tree.h"
#include "features/facts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace kernelpath::cli {
namespace {

using features::Context;
using features::MatrixAxis;
using features::MatrixFact;
using Axes = std::vector<std::size_t>;

bool reads(const features::Expression& expression, std::uint32_t field) {
  const auto fields = expression.fields();
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

bool is_read(const features::RuleTable& table, std::uint32_t field) {
  for (const features::Rule& rule : table.rules) {
    if (reads(rule.when, field)) return true;
    for (const features::Effect& effect : rule.effects) {
      if (effect.when && reads(*effect.when, field)) return true;
      if (effect.value && reads(*effect.value, field)) return true;
    }
  }
  return false;
}

// The fact's field in a table, if a rule there reads it.
std::optional<std::uint32_t> field_read(const features::RuleTable& table, const std::string& fact) {
  const auto field = table.schema.find(fact);
  return field && is_read(table, *field) ? field : std::nullopt;
}

Axes axes_among(const std::vector<MatrixAxis>& axes, const features::Schema& schema,
                const std::vector<std::string>& inputs) {
  Axes out;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::string& name = schema.field(axes[a].field).name;
    if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) out.push_back(a);
  }
  return out;
}

// What the facts are after each combination of some axes.
class FactGroup {
 public:
  FactGroup(Axes axes, const std::vector<MatrixAxis>& all) : axes_(std::move(axes)), all_(all) {}

  void add(const features::RuleTable& table, const std::string& fact, bool shared) {
    const auto field = field_read(table, fact);
    if (!field) return;
    facts_.push_back({.name = fact, .shared = shared, .fact = {.field = *field, .axes = axes_}});
  }

  void run(const Judge& judge, const EngineCombination& base, Context& own, Context& shared) {
    if (facts_.empty()) return;
    std::size_t total = 1;
    for (const std::size_t axis : axes_) total *= all_[axis].values.size();
    for (std::size_t i = 0; i < total; ++i) {
      const JudgedEngine judged = judge(combination(base, own.table(), i));
      const json::Value tree = features::to_tree(judged.combination.facts);
      for (Fact& fact : facts_) {
        Context& context = fact.shared ? shared : own;
        const json::Value* const value = features::find_argument_value(tree, fact.name);
        fact.fact.values.push_back(value != nullptr ? context.arena().from_json(*value)
                                                    : features::Value());
      }
    }
  }

  void move_to(MatrixFacts& out) {
    for (Fact& fact : facts_) (fact.shared ? out.shared : out.own).push_back(std::move(fact.fact));
  }

 private:
  struct Fact {
    std::string name = {};
    bool shared = false;
    MatrixFact fact = {};
  };

  // The last axis varies fastest.
  [[nodiscard]] EngineCombination combination(const EngineCombination& base,
                                              const features::RuleTable& table,
                                              std::size_t index) const {
    EngineCombination out = base;
    for (std::size_t i = axes_.size(); i-- > 0;) {
      const MatrixAxis& axis = all_[axes_[i]];
      const features::Value& value = axis.values[index % axis.values.size()];
      index /= axis.values.size();
      features::Change change{.name = table.schema.field(axis.field).name,
                              .text = table.schema.field(axis.field).option};
      if (!value.is_null()) change.value = features::to_json(value);
      apply_change(change, out);
    }
    return out;
  }

  Axes axes_;
  const std::vector<MatrixAxis>& all_;
  std::vector<Fact> facts_;
};

}  // namespace

MatrixFacts matrix_facts(const Judge& judge, const EngineCombination& base,
                         const std::vector<MatrixAxis>& axes, Context& own, Context& shared) {
  MatrixFacts out;
  std::map<Axes, FactGroup> groups;
  for (const features::ResolvedFact& fact : own.table().resolution) {
    const Axes depends = axes_among(axes, own.table().schema, fact.arguments);
    if (depends.empty()) continue;
    FactGroup& group = groups.try_emplace(depends, depends, axes).first->second;
    group.add(own.table(), fact.name, false);
    group.add(shared.table(), fact.name, true);
  }
  for (auto& [depends, group] : groups) {
    group.run(judge, base, own, shared);
    group.move_to(out);
  }
  return out;
}

}  // namespace kernelpath::cli
