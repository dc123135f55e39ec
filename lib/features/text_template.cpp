#include "features/text_template.h"

#include "base/units.h"

#include <fmt/format.h>

namespace kernelpath::features {
namespace {

constexpr std::string_view kBytes = ":bytes";

std::string display(const Value& value, bool bytes) {
  return bytes && value.type() == ValueType::kInteger ? format_bytes(value.as_integer())
                                                      : to_display(value);
}

}  // namespace

Result<TextTemplate> TextTemplate::parse(std::string_view source, const Schema& schema,
                                         Arena& arena) {
  TextTemplate out;
  out.source_ = std::string(source);
  Piece piece;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    const bool doubled = i + 1 < source.size() && source[i + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      piece.text += c;
      ++i;
      continue;
    }
    if (c != '{') {
      piece.text += c;
      continue;
    }
    const std::size_t end = source.find('}', i);
    if (end == std::string_view::npos) {
      return fail({.code = ErrorCode::kInputSchema,
                   .message = "a brace is not closed",
                   .where = fmt::format("offset {}", i)});
    }
    std::string_view inner = source.substr(i + 1, end - i - 1);
    piece.bytes = inner.ends_with(kBytes);
    if (piece.bytes) inner.remove_suffix(kBytes.size());
    piece.item = inner == "item";
    if (!piece.item) {
      KERNELPATH_TRY(expression, parse_expression(inner, schema, arena));
      piece.expression = std::move(expression);
    }
    out.pieces_.push_back(std::move(piece));
    piece = {};
    i = end;
  }
  out.pieces_.push_back(std::move(piece));
  return out;
}

std::string TextTemplate::render(const Slots& slots, std::string_view item) const {
  std::string out;
  for (const Piece& piece : pieces_) {
    out += piece.text;
    if (piece.item) out += item;
    if (piece.expression) out += display(evaluate(*piece.expression, slots), piece.bytes);
  }
  return out;
}

}  // namespace kernelpath::features
