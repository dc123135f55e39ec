#pragma once

#include "base/result.h"
#include "features/expression.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::features {

// A sentence with expressions in braces: "max_batch_size {max_batch_size} exceeds …". "{{" is a
// brace; "{memory.weight_bytes:bytes}" prints with a unit; "{item}" is the entry that a rule with
// `each` speaks of.
class TextTemplate {
 public:
  // Error kInputSchema: a brace without its partner, or an expression that does not parse.
  static Result<TextTemplate> parse(std::string_view source, const Schema& schema, Arena& arena);

  [[nodiscard]] std::string render(const Slots& slots, std::string_view item = {}) const;
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] bool empty() const { return source_.empty(); }

 private:
  struct Piece {
    std::string text;                      // before the expression
    std::optional<Expression> expression;  // absent in the last piece
    bool item = false;
    bool bytes = false;
  };
  std::string source_;
  std::vector<Piece> pieces_;
};

}  // namespace kernelpath::features
