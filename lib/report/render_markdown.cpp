#include "report/blocks.h"

#include <cctype>
#include <string_view>

namespace kernelpath::report {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Text that Markdown shows as it is, also inside a table. An underscore inside a word is one
// already; the other marks that matter at the start of a line never stand there.
std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*[]<>|";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool inside_word =
        i > 0 && i + 1 < text.size() && is_word(text[i - 1]) && is_word(text[i + 1]);
    const bool underscore = text[i] == '_' && !inside_word;
    if (underscore || kSpecial.find(text[i]) != std::string_view::npos) out += '\\';
    out += text[i];
  }
  return out;
}

void append_table(std::string& out, const Block& table) {
  out += '|';
  for (const std::string& name : table.header) out += " " + escaped(name) + " |";
  out += "\n|";
  for (std::size_t i = 0; i < table.header.size(); ++i) out += " --- |";
  out += '\n';
  for (const auto& row : table.rows) {
    out += '|';
    for (const Cell& cell : row) out += " " + escaped(cell.text) + " |";
    out += '\n';
  }
  out += '\n';
}

}  // namespace

std::string render_markdown(const std::vector<Block>& blocks) {
  std::string out;
  for (const Block& block : blocks) {
    const std::string text = escaped(block.line.text);
    switch (block.kind) {
      case Block::Kind::kTitle:
        out += "## " + text + "\n\n";
        break;
      case Block::Kind::kHeading:
        out += "### " + text + "\n\n";
        break;
      case Block::Kind::kSubheading:
        out += "#### " + text + "\n\n";
        break;
      case Block::Kind::kLine:
        out += text + "\n\n";
        break;
      case Block::Kind::kTable:
        append_table(out, block);
        break;
      case Block::Kind::kGap:
        break;
    }
  }
  while (out.size() >= 2 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace kernelpath::report
