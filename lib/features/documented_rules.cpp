#include "base/text.h"
#include "features/argument_tree.h"
#include "features/feature_matrix.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::features {
namespace {

Level level_of(PairStatus status) {
  switch (status) {
    case PairStatus::kNo:
      return Level::kError;
    case PairStatus::kKnownIssues:
    case PairStatus::kYesWithLimit:
      return Level::kWarn;
    default:
      return Level::kNote;
  }
}

std::string_view sentence_of(PairStatus status) {
  switch (status) {
    case PairStatus::kNo:
      return "documented as not working together";
    case PairStatus::kKnownIssues:
      return "documented as having known issues together";
    case PairStatus::kYesWithLimit:
      return "documented as working together within a limit";
    default:
      return "not tested together, says the documentation";
  }
}

std::string why_of(const PairCell& cell) {
  if (cell.reason.empty()) return "the documentation gives no reason";
  return cell.reason_is_ours
             ? cell.reason + " (kernelpath's reading; the documentation gives no reason)"
             : cell.reason;
}

class DocumentedRules {
 public:
  DocumentedRules(RuleTable& table, const FeatureMatrix& matrix,
                  const std::vector<FeatureSwitch>& switches)
      : table_(table), matrix_(matrix), switches_(switches) {}

  Result<void> add_all() {
    for (std::size_t row = 0; row < matrix_.features.size(); ++row) {
      for (std::size_t column = 0; column < row; ++column) {
        KERNELPATH_CHECK_OK(add_pair(row, column));
      }
    }
    for (const FeatureMatrix::ModelRow& model : matrix_.models) {
      KERNELPATH_CHECK_OK(add_model(model));
    }
    return {};
  }

 private:
  [[nodiscard]] const FeatureSwitch* switch_of(const std::string& feature) const {
    const auto found =
        std::find_if(switches_.begin(), switches_.end(),
                     [&feature](const FeatureSwitch& s) { return s.name == feature; });
    return found == switches_.end() ? nullptr : &*found;
  }

  Result<void> add_pair(std::size_t row, std::size_t column) {
    const PairCell& cell = *matrix_.cell(row, column);
    const FeatureSwitch* const a = switch_of(matrix_.features[row]);
    const FeatureSwitch* const b = switch_of(matrix_.features[column]);
    // Two speculative modes, or two samplers, cannot be stated at once: their switches read one
    // field.
    if (cell.status == PairStatus::kYes || a == nullptr || b == nullptr || exclusive(*a, *b)) {
      return {};
    }
    Rule rule;
    rule.id = FeatureMatrix::pair_id(row, column);
    rule.level = level_of(cell.status);
    rule.source = matrix_.source;
    rule.why = why_of(cell);
    const std::string when = fmt::format("({}) and ({})", a->when, b->when);
    const std::string message =
        fmt::format("{} and {} are {}", a->name, b->name, sentence_of(cell.status));
    KERNELPATH_CHECK_OK(fill(rule, when, message, "use one of the two"));
    KERNELPATH_CHECK_OK(point(rule, a->at));
    rule.hits.push_back(merge_arguments(b->example, a->example));
    rule.near_misses.push_back(merge_arguments(a->example, b->off));
    return add(std::move(rule));
  }

  static bool exclusive(const FeatureSwitch& a, const FeatureSwitch& b) {
    const std::string spec = "speculative_config.";
    const bool both_spec = a.at.starts_with(spec) && b.at.starts_with(spec);
    return both_spec || a.at == b.at;
  }

  Result<void> add_model(const FeatureMatrix::ModelRow& model) {
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
      const std::string& feature = matrix_.model_features[i];
      const bool no = model.cells[i] == "N";
      const FeatureSwitch* const found = switch_of(feature);
      if ((!no && model.cells[i] != "U") || found == nullptr) continue;
      Rule rule;
      rule.id = fmt::format("KM-{}-{}", to_upper(model.architecture), slug(feature));
      rule.level = no ? Level::kWarn : Level::kNote;
      rule.source = matrix_.models_source;
      rule.why = "the table of key models gives no reason, and it is older than the other rules";
      const std::string when = fmt::format("model.architecture == \"{}\" and has({}) and ({})",
                                           model.architecture, found->at, found->when);
      const std::string message = fmt::format("{} is documented as {} for {}", feature,
                                              no ? "unsupported" : "untested", model.architecture);
      KERNELPATH_CHECK_OK(fill(rule, when, message, "leave the feature out, or test it"));
      KERNELPATH_CHECK_OK(point(rule, found->at));
      rule.hits.push_back(merge_arguments(found->example, with_architecture(model.architecture)));
      rule.near_misses.push_back(
          merge_arguments(found->example, with_architecture("LlamaForCausalLM")));
      KERNELPATH_CHECK_OK(add(std::move(rule)));
    }
    return {};
  }

  static json::Value with_architecture(const std::string& name) {
    return json::Value::object(
        {{.key = "model",
          .value =
              json::Value::object({{.key = "architecture", .value = json::Value::string(name)}})}});
  }

  static std::string slug(const std::string& feature) {
    std::string out;
    for (const char c : to_upper(feature)) {
      const bool kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (kept) out += c;
      if (c == ' ') out += '-';
    }
    return out;
  }

  Result<void> fill(Rule& rule, const std::string& when, const std::string& message,
                    const std::string& fix) {
    rule.stage = Stage::kDocumented;
    KERNELPATH_TRY(condition, parse_condition(when, table_.schema, table_.arena));
    KERNELPATH_TRY(said, TextTemplate::parse(message, table_.schema, table_.arena));
    KERNELPATH_TRY(remedy, TextTemplate::parse(fix, table_.schema, table_.arena));
    rule.when = condition;
    rule.message = said;
    rule.fix = remedy;
    return {};
  }

  Result<void> point(Rule& rule, const std::string& field) const {
    const auto slot = table_.schema.find(field);
    if (!slot) {
      return fail({.code = ErrorCode::kInputSchema,
                   .message = fmt::format("no field is called '{}'", field),
                   .where = "rule " + rule.id});
    }
    rule.at.push_back(*slot);
    return {};
  }

  Result<void> add(Rule rule) {
    if (table_.find(rule.id) != nullptr) {
      return fail({.code = ErrorCode::kInputSchema,
                   .message = "the id stands twice",
                   .where = "rule " + rule.id});
    }
    table_.rules.push_back(std::move(rule));
    return {};
  }

  RuleTable& table_;
  const FeatureMatrix& matrix_;
  const std::vector<FeatureSwitch>& switches_;
};

}  // namespace

Result<void> add_documented_rules(RuleTable& table, const FeatureMatrix& matrix,
                                  const std::vector<FeatureSwitch>& switches) {
  return DocumentedRules(table, matrix, switches).add_all();
}

}  // namespace kernelpath::features
