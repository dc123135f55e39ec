#include "report/blocks.h"
#include "report/width.h"

#include <algorithm>

namespace kernelpath::report {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kUnderline = "\x1b[4m";
constexpr std::size_t kBetweenColumns = 2;
constexpr std::size_t kNarrowestLastColumn = 24;

std::string_view color_of(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kGood:
      return "\x1b[32m";
    case Tone::kWarn:
      return "\x1b[33m";
    case Tone::kBad:
      return "\x1b[31m";
    case Tone::kDim:
      return "\x1b[2m";
  }
  return "";
}

std::string painted(std::string_view text, std::string_view color, bool use_color) {
  if (!use_color || color.empty() || text.empty()) return std::string(text);
  return std::string(color).append(text).append(kReset);
}

std::size_t cell_width(const Cell& cell) { return display_width(cell.text); }

std::vector<std::size_t> column_widths(const Block& table) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.header) widths.push_back(display_width(name));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], cell_width(row[i]));
  }
  return widths;
}

// Appends one printed line of a row; no spaces after the last text.
void append_cells(std::string& out, const std::vector<Cell>& cells,
                  const std::vector<std::size_t>& widths, bool use_color, std::string_view style) {
  std::size_t pending = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t used = cell_width(cells[i]);
    if (used > 0) {
      out.append(pending, ' ');
      pending = 0;
      out += painted(cells[i].text, style.empty() ? color_of(cells[i].tone) : style, use_color);
    }
    pending += std::max(widths[i], used) - used + kBetweenColumns;
  }
  out += '\n';
}

void append_table(std::string& out, const Block& table, const View& view) {
  const std::vector<std::size_t> widths = column_widths(table);
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + kBetweenColumns;
  // The last column holds sentences: it alone is wrapped.
  std::size_t last_width = 0;
  if (view.width > 0) {
    const auto columns = static_cast<std::size_t>(view.width);
    last_width = std::max(columns > before_last ? columns - before_last : 0, kNarrowestLastColumn);
  }
  std::vector<Cell> header;
  for (const std::string& name : table.header) header.push_back({name});
  append_cells(out, header, widths, view.color, kBold);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<Cell> line = row;
    const Cell& last = row.back();
    for (const std::string& part : wrap(last.text, last_width)) {
      line.back() = {part, last.tone};
      append_cells(out, line, widths, view.color, "");
      for (Cell& cell : line) cell.text.clear();
    }
  }
}

void append_line(std::string& out, const Cell& line, const View& view, std::string_view style) {
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(view.width, 0));
  for (const std::string& part : wrap(line.text, width)) {
    out += painted(part, style.empty() ? color_of(line.tone) : style, view.color) + "\n";
  }
}

}  // namespace

std::string render_text(const std::vector<Block>& blocks, const View& view) {
  std::string out;
  for (const Block& block : blocks) {
    switch (block.kind) {
      case Block::Kind::kTitle:
      case Block::Kind::kHeading:
        append_line(out, block.line, view, kBold);
        break;
      case Block::Kind::kSubheading:
        append_line(out, block.line, view, kUnderline);
        break;
      case Block::Kind::kLine:
        append_line(out, block.line, view, "");
        break;
      case Block::Kind::kTable:
        append_table(out, block, view);
        break;
      case Block::Kind::kGap:
        out += '\n';
        break;
    }
  }
  while (out.size() >= 2 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace kernelpath::report
