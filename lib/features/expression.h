#pragma once

#include "base/result.h"
#include "features/schema.h"
#include "features/value.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// The language of rule conditions (docs/rules/language.md):
//
//   a or b, a and b, not a            booleans; an unknown (null) operand counts as false
//   == != < <= > >=                   numbers by value; an order with null is false
//   x in [1, 2], x not in list        membership
//   + - * / // %                      null if an operand is null, if it divides by zero or
//   overflows any(x : list, condition), all(…)  over the items of a list; a null list has none
//   upper(s) …                        the functions of function_table()
//   kv_cache_config.dtype             a field of the schema, by its dotted name
enum class NodeKind : std::uint8_t {
  kLiteral,
  kField,
  kVariable,  // the item of an enclosing any() or all()
  kOr,
  kAnd,
  kNot,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kNegate,
  kCall,
  kAny,  // children: list, condition
  kAll,
};

enum class Function : std::uint8_t {
  kUpper,
  kLower,
  kBlank,
  kStartsWith,
  kLen,
  kSum,
  kMin,
  kMax,
  kAbs,
  kCeil,
  kSameSet,
  kChoose,
  kHas,
  kTypeOf,
};

// What a part of an expression can be; kAny where only the argument's value tells.
enum class ExprType : std::uint8_t { kAny, kNull, kBool, kNumber, kString, kList, kObject };

struct FunctionInfo {
  Function function;
  std::string_view name;
  int min_arguments;
  int max_arguments;
  ExprType argument;  // of every argument; kAny: not restricted
  ExprType result;
  std::string_view about;
};
std::span<const FunctionInfo> function_table();

struct Node {
  NodeKind kind = NodeKind::kLiteral;
  Function function = Function::kUpper;  // of kCall
  std::uint32_t first_child = 0;         // index into Expression::children
  std::uint32_t num_children = 0;
  std::uint32_t field = 0;  // of kField; depth of the variable for kVariable, kAny, kAll
  std::string name = {};    // of a variable
  Value literal = {};
};

// A parsed and type-checked expression: one array of nodes, fields resolved to slots, so that it is
// evaluated without look-ups or allocation.
struct Expression {
  std::vector<Node> nodes;
  std::vector<std::uint32_t> children;
  std::uint32_t root = 0;
  ExprType type = ExprType::kAny;

  [[nodiscard]] std::span<const std::uint32_t> children_of(const Node& node) const {
    return std::span(children).subspan(node.first_child, node.num_children);
  }
  // Slots of the fields that it reads, ascending, each once.
  [[nodiscard]] std::vector<std::uint32_t> fields() const;
};

// Parses and checks `source`; literals are placed in `arena`.
// Error kInputSchema: syntax, an unknown field (with near names), or operands whose types cannot
// meet; `where` is the byte offset.
Result<Expression> parse_expression(std::string_view source, const Schema& schema, Arena& arena);

// The same, and the result must be a boolean.
Result<Expression> parse_condition(std::string_view source, const Schema& schema, Arena& arena);

// The canonical spelling: single spaces, only the parentheses that are needed. Parsing it gives an
// equal expression.
std::string print(const Expression& expression, const Schema& schema);

// The same tree.
bool same_expression(const Expression& a, const Expression& b);

// The values of all fields, by slot, and which of them the user stated.
struct Slots {
  const Value* values = nullptr;
  const std::uint8_t* stated = nullptr;
};

// The value of an expression. A function given a value that it cannot take gives null.
Value evaluate(const Expression& expression, const Slots& slots);
// The value of one part of it; `locals` are the items of the enclosing any() and all().
Value evaluate_node(const Expression& expression, std::uint32_t node, const Slots& slots);

}  // namespace kernelpath::features
