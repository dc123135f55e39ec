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

// The rules that can come out differently when some fields change, and those that must be walked
// with them: a rule varies if it reads a field that varies; a field varies if it is one of these or
// a varying rule assigns it; and a rule that assigns a field which a varying rule reads has to do
// so at its place among them.
class VaryingRules {
 public:
  VaryingRules(const RuleTable& table, const std::vector<std::uint32_t>& fields)
      : table_(table),
        rules_(table.rules.size(), false),
        varying_(table.schema.size(), false),
        read_(table.schema.size(), false) {
    for (const std::uint32_t field : fields) varying_[field] = true;
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

  [[nodiscard]] bool varies(const Rule& rule) const {
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

// What is judged: the axes that are fields of the table, and the facts that change with axes.
struct Varying {
  const std::vector<MatrixAxis>* axes = nullptr;  // null pointer: none is a field
  const std::vector<MatrixFact>* facts = nullptr;
  std::vector<std::size_t> sizes = {};  // of all axes
};

std::vector<std::uint32_t> varying_fields(const RuleTable& table, const Varying& varying) {
  std::vector<std::uint32_t> out;
  for (const MatrixAxis& axis :
       varying.axes != nullptr ? *varying.axes : std::vector<MatrixAxis>()) {
    out.push_back(axis.field);
    const auto objects = objects_of(table.schema, axis.field);
    out.insert(out.end(), objects.begin(), objects.end());
  }
  for (const MatrixFact& fact : *varying.facts) out.push_back(fact.field);
  return out;
}

// Judges combination after combination over one working copy of the values.
class MatrixJudge {
 public:
  MatrixJudge(const Context& context, Varying varying, const Scope& scope)
      : context_(context),
        varying_(std::move(varying)),
        base_stated_(context.slots().stated, context.slots().stated + context.values().size()),
        stated_(base_stated_),
        values_(context.values()) {
    const RuleTable& table = context.table();
    const std::vector<bool> varies = VaryingRules(table, varying_fields(table, varying_)).run();
    if (varying_.axes != nullptr) {
      for (const MatrixAxis& axis : *varying_.axes) {
        objects_.push_back(objects_of(table.schema, axis.field));
      }
    }
    const Slots slots{.values = values_.data(), .stated = stated_.data()};
    for (std::size_t i = 0; i < table.rules.size(); ++i) {
      const Rule& rule = table.rules[i];
      if (!is_asked(rule, scope)) continue;
      // A rule that does not vary has one outcome for all combinations.
      if (!varies[i]) {
        if (evaluate(rule.when, slots).is_true()) settle(rule, scope, i);
        continue;
      }
      steps_.push_back({.rule = &rule, .shown = is_shown(rule, scope), .order = i});
    }
  }

  Judgement judge(const std::vector<std::size_t>& choice) {
    // What the last combination stated and assigned is undone by starting from the same values.
    values_ = context_.values();
    stated_ = base_stated_;
    for (std::size_t a = 0; a < objects_.size(); ++a) {
      set((*varying_.axes)[a], objects_[a], choice[a]);
    }
    for (const MatrixFact& fact : *varying_.facts) set(fact, choice);
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

  void set(const MatrixFact& fact, const std::vector<std::size_t>& choice) {
    std::size_t index = 0;
    for (const std::size_t axis : fact.axes) index = index * varying_.sizes[axis] + choice[axis];
    const Value& value = fact.values[index];
    // Unknown, as if nobody had stated it.
    values_[fact.field] =
        value.is_null() ? context_.table().schema.field(fact.field).default_value : value;
    stated_[fact.field] = value.is_null() ? 0 : 1;
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
  Varying varying_;
  std::vector<std::uint8_t> base_stated_;
  std::vector<std::uint8_t> stated_;
  std::vector<Value> values_;
  std::vector<std::vector<std::uint32_t>> objects_;  // by axis
  std::vector<Step> steps_;
  std::vector<std::pair<std::uint32_t, Value>> changes_;
  Found fixed_;
};

std::vector<std::size_t> sizes_of(const std::vector<MatrixAxis>& axes) {
  std::vector<std::size_t> out;
  out.reserve(axes.size());
  for (const MatrixAxis& axis : axes) out.push_back(axis.values.size());
  return out;
}

// The next combination of the axes in `counted`, the last one fastest; the others stay.
void advance(std::vector<std::size_t>& choice, const std::vector<std::size_t>& counted,
             const std::vector<std::size_t>& sizes) {
  for (std::size_t i = counted.size(); i-- > 0;) {
    const std::size_t axis = counted[i];
    if (++choice[axis] < sizes[axis]) return;
    choice[axis] = 0;
  }
}

std::vector<std::size_t> all_axes(std::size_t count) {
  std::vector<std::size_t> out;
  for (std::size_t a = 0; a < count; ++a) out.push_back(a);
  return out;
}

// The axes that some fact depends on, ascending.
std::vector<std::size_t> axes_of(const std::vector<MatrixFact>& facts) {
  std::vector<std::size_t> out;
  for (const MatrixFact& fact : facts) out.insert(out.end(), fact.axes.begin(), fact.axes.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

Result<ValueMatrix> judge_matrix(const Context& context, std::vector<MatrixAxis> axes,
                                 const MatrixOptions& options) {
  std::size_t total = 1;
  for (const MatrixAxis& axis : axes) {
    if (axis.values.empty() || total > options.limit / axis.values.size()) {
      return fail(
          {.code = ErrorCode::kUsage,
           .message = fmt::format("the matrix has more than {} combinations", options.limit),
           .where = "--matrix",
           .hint = "fewer axes, or fewer values of them"});
    }
    total *= axis.values.size();
  }
  ValueMatrix out{.axes = std::move(axes), .cells = {}, .arena = context.shared_arena()};
  out.cells.reserve(total);
  const std::vector<std::size_t> sizes = sizes_of(out.axes);
  MatrixJudge judge(context, {.axes = &out.axes, .facts = &options.facts, .sizes = sizes},
                    options.scope);
  const std::vector<std::size_t> counted = all_axes(sizes.size());
  std::vector<std::size_t> choice(sizes.size(), 0);
  for (std::size_t i = 0; i < total; ++i) {
    out.cells.push_back(judge.judge(choice));
    advance(choice, counted, sizes);
  }
  return out;
}

void add_rules(ValueMatrix& matrix, const Context& context, const std::vector<MatrixFact>& facts,
               const Scope& scope) {
  const std::vector<std::size_t> sizes = sizes_of(matrix.axes);
  const std::vector<std::size_t> counted = axes_of(facts);
  MatrixJudge judge(context, {.axes = nullptr, .facts = &facts, .sizes = sizes}, scope);
  std::size_t total = 1;
  for (const std::size_t axis : counted) total *= sizes[axis];
  std::vector<std::size_t> choice(sizes.size(), 0);
  std::vector<Judgement> judged;
  judged.reserve(total);
  for (std::size_t i = 0; i < total; ++i) {
    judged.push_back(judge.judge(choice));
    advance(choice, counted, sizes);
  }
  const std::vector<std::size_t> every = all_axes(sizes.size());
  std::fill(choice.begin(), choice.end(), 0);
  for (Judgement& cell : matrix.cells) {
    std::size_t index = 0;
    for (const std::size_t axis : counted) index = index * sizes[axis] + choice[axis];
    if (judged[index].worst > cell.worst) cell = judged[index];
    advance(choice, every, sizes);
  }
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
  [[nodiscard]] bool same_slice(std::size_t a, std::size_t b, std::size_t size) const {
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
