#include "features/matrix.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kernelpath::features {
namespace {

// Objects that hold a field: setting a member states them.
std::vector<std::uint32_t> objects_of(const Schema& schema, std::uint32_t field) {
  std::vector<std::uint32_t> out;
  std::string_view name = schema.field(field).name;
  for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos; dot = name.rfind('.')) {
    name = name.substr(0, dot);
    if (const auto object = schema.find(name)) out.push_back(*object);
  }
  return out;
}

// The rules that can come out differently when the axes' fields change, and those that must be
// walked with them: a rule varies if it reads a field that varies; a field varies if an axis sets
// it or a varying rule assigns it; and a rule that assigns a field which a varying rule reads has
// to do so at its place among them.
class VaryingRules {
 public:
  VaryingRules(const RuleTable& table, const std::vector<MatrixAxis>& axes)
      : table_(table),
        rules_(table.rules.size(), false),
        varying_(table.schema.size(), false),
        read_(table.schema.size(), false) {
    for (const MatrixAxis& axis : axes) {
      varying_[axis.field] = true;
      for (const std::uint32_t object : objects_of(table.schema, axis.field)) {
        varying_[object] = true;
      }
    }
  }

  std::vector<bool> run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < rules_.size(); ++i) {
        if (rules_[i] || !varies(table_.rules[i])) continue;
        rules_[i] = true;
        changed = true;
        note(table_.rules[i]);
      }
    }
    return rules_;
  }

 private:
  template <class Visit>
  static void each_expression(const Rule& rule, Visit visit) {
    visit(rule.when);
    for (const Effect& effect : rule.effects) {
      if (effect.when) visit(*effect.when);
      if (effect.value) visit(*effect.value);
    }
  }

  bool varies(const Rule& rule) const {
    bool out = false;
    each_expression(rule, [&](const Expression& expression) {
      for (const std::uint32_t field : expression.fields()) out = out || varying_[field];
    });
    for (const Effect& effect : rule.effects) {
      out = out || (effect.assigns && (varying_[*effect.assigns] || read_[*effect.assigns]));
    }
    return out;
  }

  void note(const Rule& rule) {
    each_expression(rule, [&](const Expression& expression) {
      for (const std::uint32_t field : expression.fields()) read_[field] = true;
    });
    for (const Effect& effect : rule.effects) {
      if (effect.assigns) varying_[*effect.assigns] = true;
    }
  }

  const RuleTable& table_;
  std::vector<bool> rules_;
  std::vector<bool> varying_;
  std::vector<bool> read_;
};

// Judges combination after combination over one working copy of the values.
class MatrixJudge {
 public:
  MatrixJudge(const Context& context, const std::vector<MatrixAxis>& axes, const Scope& scope)
      : context_(context),
        base_stated_(context.slots().stated, context.slots().stated + context.values().size()),
        stated_(base_stated_),
        values_(context.values()) {
    const auto& rules = context.table().rules;
    const std::vector<bool> varying = VaryingRules(context.table(), axes).run();
    for (const MatrixAxis& axis : axes) {
      objects_.push_back(objects_of(context.table().schema, axis.field));
    }
    const Slots slots{.values = values_.data(), .stated = stated_.data()};
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const Rule& rule = rules[i];
      if (!is_asked(rule, scope)) continue;
      // A rule that does not vary has one outcome for all combinations.
      if (!varying[i]) {
        if (evaluate(rule.when, slots).is_true()) settle(rule, scope, i);
        continue;
      }
      steps_.push_back({.rule = &rule, .shown = is_shown(rule, scope), .order = i});
    }
  }

  Judgement judge(const std::vector<MatrixAxis>& axes, const std::vector<std::size_t>& choice) {
    // What the last combination stated and assigned is undone by starting from the same values.
    values_ = context_.values();
    stated_ = base_stated_;
    for (std::size_t a = 0; a < axes.size(); ++a) set(axes[a], objects_[a], choice[a]);
    const Slots slots{.values = values_.data(), .stated = stated_.data()};
    Found found = fixed_;
    for (const Step& step : steps_) {
      if (!evaluate(step.rule->when, slots).is_true()) continue;
      if (step.shown) add(found, *step.rule, step.order);
      assign(*step.rule, slots);
    }
    return {.worst = found.worst, .deciding = found.deciding};
  }

 private:
  struct Step {
    const Rule* rule;
    bool shown;
    std::size_t order;
  };
  struct Found {
    Level worst = Level::kDerive;
    const Rule* deciding = nullptr;
    std::size_t order = 0;
  };

  // The worst level, and among its rules the first in the engine's order.
  static void add(Found& found, const Rule& rule, std::size_t order) {
    const bool worse = rule.level > found.worst;
    const bool earlier = rule.level == found.worst && order < found.order;
    if (worse || earlier) found = {.worst = rule.level, .deciding = &rule, .order = order};
  }

  // A rule that does not vary assigns only fields that no varying rule reads.
  void settle(const Rule& rule, const Scope& scope, std::size_t order) {
    if (is_shown(rule, scope)) add(fixed_, rule, order);
    const Slots slots{.values = values_.data(), .stated = stated_.data()};
    for (const Effect& effect : rule.effects) {
      if (!effect.assigns || (effect.when && !evaluate(*effect.when, slots).is_true())) continue;
      values_[*effect.assigns] = evaluate(*effect.value, slots);
    }
  }

  void set(const MatrixAxis& axis, const std::vector<std::uint32_t>& objects, std::size_t index) {
    const Value& value = axis.values[index];
    const bool left_out = value.is_null();
    values_[axis.field] =
        left_out ? context_.table().schema.field(axis.field).default_value : value;
    stated_[axis.field] = left_out ? 0 : 1;
    for (const std::uint32_t object : left_out ? std::vector<std::uint32_t>() : objects) {
      if (values_[object].type() == ValueType::kObject) continue;
      values_[object] = Value::object(1);
      stated_[object] = 1;
    }
  }

  void assign(const Rule& rule, const Slots& slots) {
    changes_.clear();
    for (const Effect& effect : rule.effects) {
      if (!effect.assigns || (effect.when && !evaluate(*effect.when, slots).is_true())) continue;
      changes_.emplace_back(*effect.assigns, evaluate(*effect.value, slots));
    }
    for (const auto& [field, value] : changes_) values_[field] = value;
  }

  const Context& context_;
  std::vector<std::uint8_t> base_stated_;
  std::vector<std::uint8_t> stated_;
  std::vector<Value> values_;
  std::vector<std::vector<std::uint32_t>> objects_;  // by axis
  std::vector<Step> steps_;
  std::vector<std::pair<std::uint32_t, Value>> changes_;
  Found fixed_;
};

}  // namespace

Result<ValueMatrix> judge_matrix(const Context& context, std::vector<MatrixAxis> axes,
                                 const Scope& scope, std::size_t limit) {
  std::size_t total = 1;
  for (const MatrixAxis& axis : axes) {
    if (axis.values.empty() || total > limit / axis.values.size()) {
      return fail({.code = ErrorCode::kUsage,
                   .message = fmt::format("the matrix has more than {} combinations", limit),
                   .where = "--matrix",
                   .hint = "fewer axes, or fewer values of them"});
    }
    total *= axis.values.size();
  }
  ValueMatrix out{.axes = std::move(axes), .cells = {}};
  out.cells.reserve(total);
  MatrixJudge judge(context, out.axes, scope);
  std::vector<std::size_t> choice(out.axes.size(), 0);
  for (std::size_t i = 0; i < total; ++i) {
    out.cells.push_back(judge.judge(out.axes, choice));
    for (std::size_t a = choice.size(); a-- > 0;) {
      if (++choice[a] < out.axes[a].values.size()) break;
      choice[a] = 0;
    }
  }
  return out;
}

namespace {

// Merges equal slices, axis by axis: values of the first axis whose sub-matrices are equal share
// one branch, and so on downwards.
class Grouper {
 public:
  explicit Grouper(const ValueMatrix& matrix) : matrix_(matrix) {
    std::size_t stride = 1;
    strides_.resize(matrix.axes.size());
    for (std::size_t a = matrix.axes.size(); a-- > 0;) {
      strides_[a] = stride;
      stride *= matrix.axes[a].values.size();
    }
  }

  std::vector<MatrixRegion> run() {
    descend(0, 0, 1);
    return std::move(out_);
  }

 private:
  bool same_slice(std::size_t a, std::size_t b, std::size_t size) const {
    for (std::size_t i = 0; i < size; ++i) {
      const Judgement& x = matrix_.cells[a + i];
      const Judgement& y = matrix_.cells[b + i];
      if (x.worst != y.worst || x.deciding != y.deciding) return false;
    }
    return true;
  }

  void descend(std::size_t axis, std::size_t offset, std::size_t multiplicity) {
    if (axis == matrix_.axes.size()) {
      out_.push_back({.worst = matrix_.cells[offset].worst,
                      .deciding = matrix_.cells[offset].deciding,
                      .values = path_,
                      .num_combinations = multiplicity});
      return;
    }
    const std::size_t count = matrix_.axes[axis].values.size();
    std::vector<bool> done(count, false);
    for (std::size_t first = 0; first < count; ++first) {
      if (done[first]) continue;
      std::vector<std::string> group;
      const std::size_t begin = offset + first * strides_[axis];
      for (std::size_t other = first; other < count; ++other) {
        const std::size_t start = offset + other * strides_[axis];
        if (done[other] || !same_slice(begin, start, strides_[axis])) continue;
        done[other] = true;
        group.push_back(text_of(matrix_.axes[axis].values[other]));
      }
      const std::size_t members = group.size();
      path_.push_back(members == count ? std::vector<std::string>{"*"} : std::move(group));
      descend(axis + 1, begin, multiplicity * members);
      path_.pop_back();
    }
  }

  static std::string text_of(const Value& value) {
    return value.is_null() ? "(default)" : to_display(value);
  }

  const ValueMatrix& matrix_;
  std::vector<std::size_t> strides_;
  std::vector<std::vector<std::string>> path_;
  std::vector<MatrixRegion> out_;
};

}  // namespace

std::vector<MatrixRegion> regions(const ValueMatrix& matrix) { return Grouper(matrix).run(); }

}  // namespace kernelpath::features
