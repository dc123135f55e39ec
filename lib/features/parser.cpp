#include "base/text.h"
#include "features/expression.h"
#include "features/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::features {
namespace {

// Deeper nesting than any rule needs; the evaluator recurses as deep.
constexpr int kMaxDepth = 40;
constexpr std::size_t kMaxVariables = 4;

struct Operator {
  std::string_view text;
  NodeKind kind;
  int strength;
};

constexpr std::array<Operator, 15> kOperators = {{{"or", NodeKind::kOr, 1},
                                                  {"and", NodeKind::kAnd, 2},
                                                  {"==", NodeKind::kEqual, 4},
                                                  {"!=", NodeKind::kNotEqual, 4},
                                                  {"<", NodeKind::kLess, 4},
                                                  {"<=", NodeKind::kLessEqual, 4},
                                                  {">", NodeKind::kGreater, 4},
                                                  {">=", NodeKind::kGreaterEqual, 4},
                                                  {"in", NodeKind::kIn, 4},
                                                  {"+", NodeKind::kAdd, 5},
                                                  {"-", NodeKind::kSubtract, 5},
                                                  {"*", NodeKind::kMultiply, 6},
                                                  {"/", NodeKind::kDivide, 6},
                                                  {"//", NodeKind::kFloorDivide, 6},
                                                  {"%", NodeKind::kModulo, 6}}};
constexpr int kComparison = 4;
constexpr int kNotStrength = 3;
constexpr int kUnaryStrength = 7;

std::string_view type_text(ExprType type) {
  constexpr std::array<std::string_view, 7> kNames = {"any",    "null", "bool",  "number",
                                                      "string", "list", "object"};
  return kNames[static_cast<std::size_t>(type)];
}

ExprType type_of_field(FieldType type) {
  constexpr std::array<ExprType, 7> kTypes = {
      ExprType::kAny,    ExprType::kBool, ExprType::kNumber, ExprType::kNumber,
      ExprType::kString, ExprType::kList, ExprType::kObject};
  return kTypes[static_cast<std::size_t>(type)];
}

ExprType type_of_value(const Value& value) {
  constexpr std::array<ExprType, 7> kTypes = {
      ExprType::kNull,   ExprType::kBool, ExprType::kNumber, ExprType::kNumber,
      ExprType::kString, ExprType::kList, ExprType::kObject};
  return kTypes[static_cast<std::size_t>(value.type())];
}

bool meets(ExprType a, ExprType b) {
  return a == b || a == ExprType::kAny || b == ExprType::kAny || a == ExprType::kNull ||
         b == ExprType::kNull;
}

// A part under construction: its node and what it can be.
struct Part {
  std::uint32_t node = 0;
  ExprType type = ExprType::kAny;
};

class Parser {
 public:
  Parser(std::vector<Token> tokens, const Schema& schema, Arena& arena)
      : tokens_(std::move(tokens)), schema_(schema), arena_(arena) {}

  Result<Expression> run() {
    KERNELPATH_TRY(part, parse(0));
    if (peek().kind != TokenKind::kEnd) return error(fmt::format("unexpected '{}'", spelling()));
    out_.root = part.node;
    out_.type = part.type;
    return std::move(out_);
  }

 private:
  // Everything that binds at least as tightly as `least`.
  Result<Part> parse(int least) {
    if (++depth_ > kMaxDepth) return error("nested too deeply");
    KERNELPATH_TRY(first, prefix());
    Part left = first;
    while (const Operator* found = infix()) {
      if (found->strength < least) break;
      const std::size_t place = at_;
      const bool negated = is_name("not");
      at_ += negated ? 2 : 1;
      KERNELPATH_TRY(right, parse(found->strength + 1));
      const NodeKind kind = negated ? NodeKind::kNotIn : found->kind;
      KERNELPATH_TRY(joined, binary(kind, left, right, place));
      left = joined;
      const Operator* const next = infix();
      if (found->strength == kComparison && next != nullptr && next->strength == kComparison) {
        return error("comparisons do not chain: use 'and'");
      }
    }
    --depth_;
    return left;
  }

  [[nodiscard]] const Operator* infix() const {
    const Token& token = peek();
    if (token.kind != TokenKind::kSymbol && token.kind != TokenKind::kName) return nullptr;
    const bool not_in = is_name("not") && at_ + 1 < tokens_.size() &&
                        tokens_[at_ + 1].text == "in" && tokens_[at_ + 1].kind == TokenKind::kName;
    const std::string_view text = not_in ? std::string_view("in") : std::string_view(token.text);
    const auto* const found = std::find_if(kOperators.begin(), kOperators.end(),
                                           [text](const Operator& op) { return op.text == text; });
    return found == kOperators.end() ? nullptr : &*found;
  }

  Result<Part> prefix() {
    const Token token = peek();
    switch (token.kind) {
      case TokenKind::kInteger:
      case TokenKind::kDouble:
      case TokenKind::kString:
        return literal(scalar());
      case TokenKind::kName:
        return name();
      case TokenKind::kSymbol:
        if (token.text == "(") return parenthesis();
        if (token.text == "[") return list();
        if (token.text == "-") return negative();
        break;
      case TokenKind::kEnd:
        return error("the expression ends too early");
    }
    return error(fmt::format("unexpected '{}'", token.text));
  }

  Result<Part> parenthesis() {
    ++at_;
    KERNELPATH_TRY(part, parse(0));
    KERNELPATH_CHECK_OK(expect(")"));
    return part;
  }

  Result<Part> negative() {
    const std::size_t place = at_++;
    const Token& token = peek();
    if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kDouble) {
      return literal(negated(scalar()));
    }
    KERNELPATH_TRY(part, parse(kUnaryStrength));
    if (!meets(part.type, ExprType::kNumber)) return mismatch("-", part.type, place);
    // "-(5)" is the constant -5, as its canonical spelling says.
    const Value inner = out_.nodes[part.node].literal;
    if (inner.is_number()) return literal(negated(inner));
    return add({.kind = NodeKind::kNegate}, {part.node}, ExprType::kNumber);
  }

  Result<Part> name() {
    const std::size_t place = at_;
    const std::string text = peek().text;
    ++at_;
    if (text == "not") {
      KERNELPATH_TRY(part, parse(kNotStrength));
      if (!meets(part.type, ExprType::kBool)) return mismatch("not", part.type, place);
      return add({.kind = NodeKind::kNot}, {part.node}, ExprType::kBool);
    }
    if (text == "true" || text == "false") return literal(Value::boolean(text == "true"));
    if (text == "null") return literal({});
    if (text == "any" || text == "all") return quantifier(text == "any");
    if (is_symbol("(")) return call(text, place);
    for (std::size_t i = variables_.size(); i-- > 0;) {
      if (variables_[i] != text) continue;
      return add(
          {.kind = NodeKind::kVariable, .field = static_cast<std::uint32_t>(i), .name = text}, {},
          ExprType::kAny);
    }
    return field(text, place);
  }

  Result<Part> field(const std::string& text, std::size_t place) {
    const auto found = schema_.find(text);
    if (!found) {
      Error unknown{.code = ErrorCode::kInputSchema,
                    .message = fmt::format("no field is called '{}'", text),
                    .where = fmt::format("offset {}", tokens_[place].offset)};
      unknown.near_matches = schema_.near(text);
      return fail(std::move(unknown));
    }
    return add({.kind = NodeKind::kField, .field = *found}, {},
               type_of_field(schema_.field(*found).type));
  }

  // any(x : list, condition)
  Result<Part> quantifier(bool any) {
    const std::size_t place = at_;
    KERNELPATH_CHECK_OK(expect("("));
    if (peek().kind != TokenKind::kName) return error("any() and all() begin with a variable");
    if (variables_.size() == kMaxVariables) return error("too many nested any() and all()");
    const std::string variable = peek().text;
    ++at_;
    KERNELPATH_CHECK_OK(expect(":"));
    KERNELPATH_TRY(list, parse(0));
    if (!meets(list.type, ExprType::kList)) return mismatch("any", list.type, place);
    KERNELPATH_CHECK_OK(expect(","));
    const auto slot = static_cast<std::uint32_t>(variables_.size());
    variables_.push_back(variable);
    KERNELPATH_TRY(condition, parse(0));
    variables_.pop_back();
    if (!meets(condition.type, ExprType::kBool)) return mismatch("any", condition.type, place);
    KERNELPATH_CHECK_OK(expect(")"));
    return add({.kind = any ? NodeKind::kAny : NodeKind::kAll, .field = slot, .name = variable},
               {list.node, condition.node}, ExprType::kBool);
  }

  Result<Part> call(const std::string& text, std::size_t place) {
    const auto functions = function_table();
    const auto found = std::find_if(functions.begin(), functions.end(),
                                    [&text](const FunctionInfo& f) { return f.name == text; });
    if (found == functions.end()) return error(fmt::format("no function is called '{}'", text));
    ++at_;  // the opening parenthesis
    std::vector<Part> arguments;
    while (!is_symbol(")")) {
      if (!arguments.empty()) KERNELPATH_CHECK_OK(expect(","));
      KERNELPATH_TRY(part, parse(0));
      arguments.push_back(part);
    }
    ++at_;
    return finish_call(*found, arguments, place);
  }

  Result<Part> finish_call(const FunctionInfo& info, const std::vector<Part>& arguments,
                           std::size_t place) {
    const auto count = static_cast<int>(arguments.size());
    if (count < info.min_arguments || count > info.max_arguments) {
      return error(fmt::format("{}() takes {} to {} arguments, not {}", info.name,
                               info.min_arguments, info.max_arguments, count));
    }
    std::vector<std::uint32_t> nodes;
    for (const Part& part : arguments) {
      if (!meets(part.type, info.argument)) return mismatch(info.name, part.type, place);
      nodes.push_back(part.node);
    }
    ExprType result = info.result;
    if (info.function == Function::kHas && out_.nodes[nodes[0]].kind != NodeKind::kField) {
      return error("has() asks for a field");
    }
    if (info.function == Function::kChoose) {
      if (!meets(arguments[0].type, ExprType::kBool)) {
        return mismatch(info.name, arguments[0].type, place);
      }
      result = arguments[1].type == arguments[2].type ? arguments[1].type : ExprType::kAny;
    }
    return add({.kind = NodeKind::kCall, .function = info.function}, nodes, result);
  }

  // Only of constants: a list is either a literal or a field.
  Result<Part> list() {
    ++at_;
    std::vector<Value> items;
    while (!is_symbol("]")) {
      if (!items.empty()) KERNELPATH_CHECK_OK(expect(","));
      KERNELPATH_TRY(item, constant());
      items.push_back(item);
    }
    ++at_;
    return literal(arena_.list(std::move(items)));
  }

  Result<Value> constant() {
    const Token& token = peek();
    const bool minus = is_symbol("-");
    if (minus) ++at_;
    if (peek().kind == TokenKind::kInteger || peek().kind == TokenKind::kDouble) {
      const Value value = scalar();
      return minus ? negated(value) : value;
    }
    if (!minus && token.kind == TokenKind::kString) return scalar();
    if (!minus && token.kind == TokenKind::kName) {
      const std::string text = token.text;
      if (text == "true" || text == "false" || text == "null") {
        ++at_;
        return text == "null" ? Value() : Value::boolean(text == "true");
      }
    }
    return error("a list holds constants only");
  }

  // The value of the token here, which is a number or a string; steps over it.
  Value scalar() {
    const Token& token = tokens_[at_++];
    if (token.kind == TokenKind::kInteger) return Value::integer(token.integer);
    if (token.kind == TokenKind::kDouble) return Value::number(token.number);
    return arena_.string(token.text);
  }

  static Value negated(const Value& value) {
    return value.type() == ValueType::kInteger ? Value::integer(-value.as_integer())
                                               : Value::number(-value.as_double());
  }

  Result<Part> binary(NodeKind kind, const Part& left, const Part& right, std::size_t place) {
    const ExprType want = operand_type(kind);
    for (const Part& part : {left, right}) {
      if (want != ExprType::kAny && !meets(part.type, want)) {
        return mismatch(tokens_[place].text, part.type, place);
      }
    }
    const bool membership = kind == NodeKind::kIn || kind == NodeKind::kNotIn;
    if (membership && !meets(right.type, ExprType::kList)) return mismatch("in", right.type, place);
    if (kind == NodeKind::kEqual || kind == NodeKind::kNotEqual) {
      if (!meets(left.type, right.type)) return mismatch(tokens_[place].text, right.type, place);
    }
    const bool arithmetic = kind >= NodeKind::kAdd && kind <= NodeKind::kModulo;
    return add({.kind = kind}, {left.node, right.node},
               arithmetic ? ExprType::kNumber : ExprType::kBool);
  }

  static ExprType operand_type(NodeKind kind) {
    if (kind == NodeKind::kOr || kind == NodeKind::kAnd) return ExprType::kBool;
    if (kind >= NodeKind::kLess && kind <= NodeKind::kGreaterEqual) return ExprType::kNumber;
    if (kind >= NodeKind::kAdd && kind <= NodeKind::kModulo) return ExprType::kNumber;
    return ExprType::kAny;
  }

  Part literal(const Value& value) {
    return add({.kind = NodeKind::kLiteral, .literal = value}, {}, type_of_value(value));
  }

  Part add(Node node, const std::vector<std::uint32_t>& children, ExprType type) {
    node.first_child = static_cast<std::uint32_t>(out_.children.size());
    node.num_children = static_cast<std::uint32_t>(children.size());
    out_.children.insert(out_.children.end(), children.begin(), children.end());
    out_.nodes.push_back(std::move(node));
    return {.node = static_cast<std::uint32_t>(out_.nodes.size() - 1), .type = type};
  }

  [[nodiscard]] const Token& peek() const { return tokens_[at_]; }
  [[nodiscard]] bool is_symbol(std::string_view text) const {
    return peek().kind == TokenKind::kSymbol && peek().text == text;
  }
  [[nodiscard]] bool is_name(std::string_view text) const {
    return peek().kind == TokenKind::kName && peek().text == text;
  }
  [[nodiscard]] std::string spelling() const {
    return peek().kind == TokenKind::kEnd ? "end of the expression" : peek().text;
  }

  Result<void> expect(std::string_view symbol) {
    if (!is_symbol(symbol)) {
      return error(fmt::format("expected '{}', found '{}'", symbol, spelling()));
    }
    ++at_;
    return {};
  }

  [[nodiscard]] Unexpected mismatch(std::string_view what, ExprType found,
                                    std::size_t place) const {
    return fail({.code = ErrorCode::kInputSchema,
                 .message = fmt::format("'{}' cannot take a {} here", what, type_text(found)),
                 .where = fmt::format("offset {}", tokens_[place].offset)});
  }

  [[nodiscard]] Unexpected error(std::string message) const {
    return fail({.code = ErrorCode::kInputSchema,
                 .message = std::move(message),
                 .where = fmt::format("offset {}", peek().offset)});
  }

  std::vector<Token> tokens_;
  const Schema& schema_;
  Arena& arena_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::string> variables_;
  Expression out_;
};

}  // namespace

Result<Expression> parse_expression(std::string_view source, const Schema& schema, Arena& arena) {
  KERNELPATH_TRY(tokens, tokenize(source));
  return Parser(std::move(tokens), schema, arena).run();
}

Result<Expression> parse_condition(std::string_view source, const Schema& schema, Arena& arena) {
  KERNELPATH_TRY(expression, parse_expression(source, schema, arena));
  if (expression.type != ExprType::kBool) {
    return fail({.code = ErrorCode::kInputSchema,
                 .message = "a condition must be true or false",
                 .where = "offset 0"});
  }
  return std::move(expression);
}

}  // namespace kernelpath::features
