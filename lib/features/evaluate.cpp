#include "base/checked.h"
#include "base/text.h"
#include "features/expression.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kernelpath::features {
namespace {

constexpr std::size_t kMaxVariables = 4;  // as the parser allows

// Whole numbers keep their type; anything else is computed in double.
Value add_like(NodeKind kind, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  const bool overflow = kind == NodeKind::kAdd        ? __builtin_add_overflow(a, b, &out)
                        : kind == NodeKind::kSubtract ? __builtin_sub_overflow(a, b, &out)
                                                      : __builtin_mul_overflow(a, b, &out);
  return overflow ? Value() : Value::integer(out);
}

// Python's // and %: rounded down, the remainder has the divisor's sign.
Value divide_whole(NodeKind kind, std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return {};
  const std::int64_t quotient = a / b;
  const std::int64_t remainder = a % b;
  const bool down = remainder != 0 && (remainder < 0) != (b < 0);
  if (kind == NodeKind::kFloorDivide) return Value::integer(down ? quotient - 1 : quotient);
  return Value::integer(down ? remainder + b : remainder);
}

Value arithmetic(NodeKind kind, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) return {};
  if (a.type() == ValueType::kInteger && b.type() == ValueType::kInteger) {
    if (kind <= NodeKind::kMultiply) return add_like(kind, a.as_integer(), b.as_integer());
    if (kind != NodeKind::kDivide) return divide_whole(kind, a.as_integer(), b.as_integer());
  }
  const double x = a.as_double();
  const double y = b.as_double();
  switch (kind) {
    case NodeKind::kAdd:
      return Value::number(x + y);
    case NodeKind::kSubtract:
      return Value::number(x - y);
    case NodeKind::kMultiply:
      return Value::number(x * y);
    case NodeKind::kDivide:
      return y == 0 ? Value() : Value::number(x / y);
    case NodeKind::kFloorDivide:
      return y == 0 ? Value() : Value::number(std::floor(x / y));
    default:
      return y == 0 ? Value() : Value::number(x - y * std::floor(x / y));
  }
}

bool ordered(NodeKind kind, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) return false;
  const bool whole = a.type() == ValueType::kInteger && b.type() == ValueType::kInteger;
  const bool less = whole ? a.as_integer() < b.as_integer() : a.as_double() < b.as_double();
  const bool equal = whole ? a.as_integer() == b.as_integer() : a.as_double() == b.as_double();
  const bool greater = whole ? a.as_integer() > b.as_integer() : a.as_double() > b.as_double();
  switch (kind) {
    case NodeKind::kLess:
      return less;
    case NodeKind::kLessEqual:
      return less || equal;
    case NodeKind::kGreater:
      return greater;
    default:
      return greater || equal;
  }
}

bool contains(const Value& list, const Value& item) {
  if (list.type() != ValueType::kList) return false;
  const auto& items = list.as_list().items;
  return std::find(items.begin(), items.end(), item) != items.end();
}

bool same_set(const Value& a, const Value& b) {
  if (a.type() != ValueType::kList || b.type() != ValueType::kList) return false;
  const auto within = [](const Value& inner, const Value& outer) {
    const auto& items = inner.as_list().items;
    return std::all_of(items.begin(), items.end(),
                       [&outer](const Value& item) { return contains(outer, item); });
  };
  return within(a, b) && within(b, a);
}

Value sum(const Value& list) {
  if (list.type() != ValueType::kList) return {};
  Value total = Value::integer(0);
  for (const Value& item : list.as_list().items) {
    total = arithmetic(NodeKind::kAdd, total, item);
    if (total.is_null()) break;
  }
  return total;
}

Value length(const Value& value) {
  switch (value.type()) {
    case ValueType::kList:
      return Value::integer(static_cast<std::int64_t>(value.as_list().items.size()));
    case ValueType::kString:
      return Value::integer(static_cast<std::int64_t>(value.as_text().text.size()));
    case ValueType::kObject:
      return Value::integer(value.as_integer());
    default:
      return {};
  }
}

Value of_string(Function function, const Value& value) {
  if (value.type() != ValueType::kString) return {};
  const Text& text = value.as_text();
  switch (function) {
    case Function::kUpper:
      return Value::string(text.upper);
    case Function::kLower:
      return Value::string(text.lower);
    default:
      return Value::boolean(trim(text.text).empty());
  }
}

Value starts_with(const Value& text, const Value& prefix) {
  if (text.type() != ValueType::kString || prefix.type() != ValueType::kString) return {};
  return Value::boolean(text.as_text().text.starts_with(prefix.as_text().text));
}

Value of_number(Function function, const Value& value) {
  if (!value.is_number()) return {};
  if (function == Function::kAbs) {
    if (value.type() == ValueType::kDouble) return Value::number(std::abs(value.as_double()));
    return value.as_integer() == INT64_MIN ? Value() : Value::integer(std::abs(value.as_integer()));
  }
  if (value.type() == ValueType::kInteger) return value;
  const double up = std::ceil(value.as_double());
  // 2^63 as a double; beyond it no 64-bit integer exists.
  if (!(std::abs(up) < 9223372036854775808.0)) return {};
  return Value::integer(static_cast<std::int64_t>(up));
}

// type_of() answers with texts that live as long as the program.
Value type_name_value(ValueType type) {
  static Arena arena;
  static const std::array<Value, 7> names = [] {
    std::array<Value, 7> out;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = arena.string(value_type_name(static_cast<ValueType>(i)));
    }
    return out;
  }();
  return names[static_cast<std::size_t>(type)];
}

class Evaluator {
 public:
  Evaluator(const Expression& expression, const Slots& slots)
      : nodes_(expression.nodes.data()), children_(expression.children.data()), slots_(slots) {}

  Value node(std::uint32_t index) {
    const Node& node = nodes_[index];
    switch (node.kind) {
      case NodeKind::kLiteral:
        return node.literal;
      case NodeKind::kField:
        return slots_.values[node.field];
      case NodeKind::kVariable:
        return locals_[node.field];
      case NodeKind::kOr:
        return Value::boolean(child(node, 0).is_true() || child(node, 1).is_true());
      case NodeKind::kAnd:
        return Value::boolean(child(node, 0).is_true() && child(node, 1).is_true());
      case NodeKind::kNot:
        return Value::boolean(!child(node, 0).is_true());
      case NodeKind::kEqual:
        return Value::boolean(child(node, 0) == child(node, 1));
      case NodeKind::kNotEqual:
        return Value::boolean(!(child(node, 0) == child(node, 1)));
      case NodeKind::kIn:
        return Value::boolean(contains(child(node, 1), child(node, 0)));
      case NodeKind::kNotIn:
        return Value::boolean(!contains(child(node, 1), child(node, 0)));
      case NodeKind::kNegate:
        return arithmetic(NodeKind::kSubtract, Value::integer(0), child(node, 0));
      case NodeKind::kCall:
        return call(node);
      case NodeKind::kAny:
      case NodeKind::kAll:
        return quantified(node);
      default:
        break;
    }
    const Value left = child(node, 0);
    const Value right = child(node, 1);
    if (node.kind < NodeKind::kAdd) return Value::boolean(ordered(node.kind, left, right));
    return arithmetic(node.kind, left, right);
  }

 private:
  Value child(const Node& node, std::uint32_t index) {
    return this->node(children_[node.first_child + index]);
  }

  Value quantified(const Node& node) {
    const Value list = child(node, 0);
    const bool any = node.kind == NodeKind::kAny;
    if (list.type() != ValueType::kList) return Value::boolean(!any);
    for (const Value& item : list.as_list().items) {
      locals_[node.field] = item;
      if (child(node, 1).is_true() == any) return Value::boolean(any);
    }
    return Value::boolean(!any);
  }

  Value call(const Node& node) {
    switch (node.function) {
      case Function::kUpper:
      case Function::kLower:
      case Function::kBlank:
        return of_string(node.function, child(node, 0));
      case Function::kStartsWith:
        return starts_with(child(node, 0), child(node, 1));
      case Function::kLen:
        return length(child(node, 0));
      case Function::kSum:
        return sum(child(node, 0));
      case Function::kMin:
      case Function::kMax:
        return extreme(node);
      case Function::kAbs:
      case Function::kCeil:
        return of_number(node.function, child(node, 0));
      case Function::kSameSet:
        return Value::boolean(same_set(child(node, 0), child(node, 1)));
      case Function::kChoose:
        return child(node, 0).is_true() ? child(node, 1) : child(node, 2);
      case Function::kHas:
        return Value::boolean(slots_.stated[nodes_[children_[node.first_child]].field] != 0);
      case Function::kTypeOf:
        return type_name_value(child(node, 0).type());
    }
    return {};
  }

  Value extreme(const Node& node) {
    const NodeKind order = node.function == Function::kMin ? NodeKind::kLess : NodeKind::kGreater;
    Value best = child(node, 0);
    for (std::uint32_t i = 0; i < node.num_children; ++i) {
      const Value next = child(node, i);
      if (!next.is_number()) return {};
      if (ordered(order, next, best)) best = next;
    }
    return best;
  }

  const Node* nodes_;
  const std::uint32_t* children_;
  Slots slots_;
  std::array<Value, kMaxVariables> locals_ = {};
};

}  // namespace

Value evaluate(const Expression& expression, const Slots& slots) {
  return Evaluator(expression, slots).node(expression.root);
}

Value evaluate_node(const Expression& expression, std::uint32_t node, const Slots& slots) {
  return Evaluator(expression, slots).node(node);
}

}  // namespace kernelpath::features
