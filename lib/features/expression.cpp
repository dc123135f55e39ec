#include "features/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::features {

std::span<const FunctionInfo> function_table() {
  using enum ExprType;
  static constexpr std::array<FunctionInfo, 14> kFunctions = {{
      {Function::kUpper, "upper", 1, 1, kString, kString, "the string in upper case"},
      {Function::kLower, "lower", 1, 1, kString, kString, "the string in lower case"},
      {Function::kBlank, "blank", 1, 1, kString, kBool, "nothing but white space"},
      {Function::kStartsWith, "starts_with", 2, 2, kString, kBool,
       "the first begins with the second"},
      {Function::kLen, "len", 1, 1, kAny, kNumber,
       "items of a list, members of an object, bytes of a string"},
      {Function::kSum, "sum", 1, 1, kList, kNumber, "of the numbers of a list"},
      {Function::kMin, "min", 2, 8, kNumber, kNumber, "the smallest; null if one is null"},
      {Function::kMax, "max", 2, 8, kNumber, kNumber, "the largest; null if one is null"},
      {Function::kAbs, "abs", 1, 1, kNumber, kNumber, "without its sign"},
      {Function::kCeil, "ceil", 1, 1, kNumber, kNumber, "the next whole number"},
      {Function::kSameSet, "same_set", 2, 2, kList, kBool,
       "the same items, whatever their order and repetition"},
      {Function::kChoose, "choose", 3, 3, kAny, kAny,
       "the second if the first is true, else the third"},
      {Function::kHas, "has", 1, 1, kAny, kBool, "the field was stated, whatever its value"},
      {Function::kTypeOf, "type_of", 1, 1, kAny, kString,
       "null, bool, integer, number, string, list or object"},
  }};
  return kFunctions;
}

std::vector<std::uint32_t> Expression::fields() const {
  std::vector<std::uint32_t> out;
  for (const Node& node : nodes) {
    if (node.kind == NodeKind::kField) out.push_back(node.field);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

namespace {

// Binding strength, as in the parser: a child that binds less tightly than its place needs gets
// parentheses.
int strength(const Node& node) {
  switch (node.kind) {
    case NodeKind::kOr:
      return 1;
    case NodeKind::kAnd:
      return 2;
    case NodeKind::kNot:
      return 3;
    case NodeKind::kEqual:
    case NodeKind::kNotEqual:
    case NodeKind::kLess:
    case NodeKind::kLessEqual:
    case NodeKind::kGreater:
    case NodeKind::kGreaterEqual:
    case NodeKind::kIn:
    case NodeKind::kNotIn:
      return 4;
    case NodeKind::kAdd:
    case NodeKind::kSubtract:
      return 5;
    case NodeKind::kMultiply:
    case NodeKind::kDivide:
    case NodeKind::kFloorDivide:
    case NodeKind::kModulo:
      return 6;
    case NodeKind::kNegate:
      return 7;
    default:
      return 8;
  }
}

std::string_view symbol(NodeKind kind) {
  constexpr std::array<std::string_view, 22> kSymbols = {
      "",   "",   "",       "or", "and", "not", "==", "!=", "<", "<=", ">",
      ">=", "in", "not in", "+",  "-",   "*",   "/",  "//", "%", "-",  ""};
  return kSymbols[static_cast<std::size_t>(kind)];
}

class Printer {
 public:
  Printer(const Expression& expression, const Schema& schema)
      : expression_(expression), schema_(schema) {}

  [[nodiscard]] std::string node(std::uint32_t index) const {
    const Node& node = expression_.nodes[index];
    const auto children = expression_.children_of(node);
    switch (node.kind) {
      case NodeKind::kLiteral:
        return to_source(node.literal);
      case NodeKind::kField:
        return schema_.field(node.field).name;
      case NodeKind::kVariable:
        return node.name;
      case NodeKind::kNot:
        return "not " + child(children[0], 3);
      case NodeKind::kNegate:
        return "-" + child(children[0], 7);
      case NodeKind::kAny:
      case NodeKind::kAll:
        return fmt::format("{}({} : {}, {})", node.kind == NodeKind::kAny ? "any" : "all",
                           node.name, this->node(children[0]), this->node(children[1]));
      case NodeKind::kCall:
        return call(node, children);
      default:
        return binary(node, children);
    }
  }

 private:
  [[nodiscard]] std::string child(std::uint32_t index, int least) const {
    const bool loose = strength(expression_.nodes[index]) < least;
    return loose ? "(" + node(index) + ")" : node(index);
  }

  [[nodiscard]] std::string binary(const Node& node,
                                   std::span<const std::uint32_t> children) const {
    const int own = strength(node);
    // Comparisons do not chain; the other operators group to the left.
    const int left = own == 4 ? own + 1 : own;
    return fmt::format("{} {} {}", child(children[0], left), symbol(node.kind),
                       child(children[1], own + 1));
  }

  [[nodiscard]] std::string call(const Node& node, std::span<const std::uint32_t> children) const {
    std::string out(function_table()[static_cast<std::size_t>(node.function)].name);
    out += '(';
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (i > 0) out += ", ";
      out += this->node(children[i]);
    }
    return out + ')';
  }

  const Expression& expression_;
  const Schema& schema_;
};

bool same_node(const Expression& a, std::uint32_t x, const Expression& b, std::uint32_t y) {
  const Node& left = a.nodes[x];
  const Node& right = b.nodes[y];
  if (left.kind != right.kind || left.num_children != right.num_children) return false;
  if (left.kind == NodeKind::kCall && left.function != right.function) return false;
  if (left.field != right.field || left.name != right.name) return false;
  if (left.kind == NodeKind::kLiteral &&
      (left.literal.type() != right.literal.type() || !(left.literal == right.literal))) {
    return false;
  }
  const auto left_children = a.children_of(left);
  const auto right_children = b.children_of(right);
  for (std::size_t i = 0; i < left_children.size(); ++i) {
    if (!same_node(a, left_children[i], b, right_children[i])) return false;
  }
  return true;
}

}  // namespace

std::string print(const Expression& expression, const Schema& schema) {
  return Printer(expression, schema).node(expression.root);
}

bool same_expression(const Expression& a, const Expression& b) {
  return same_node(a, a.root, b, b.root);
}

}  // namespace kernelpath::features
