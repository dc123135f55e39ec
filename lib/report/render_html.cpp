#include "report/blocks.h"
#include "report/validate_markup.h"

#include <fmt/format.h>

#include <string_view>

namespace kernelpath::report {
namespace {

constexpr std::string_view kStyle =
    "<style>\n"
    "body{font-family:sans-serif;max-width:90em;margin:2em auto;padding:0 1em}\n"
    "table{border-collapse:collapse;margin:.5em 0}\n"
    "th,td{border:1px solid #bbb;padding:.3em .5em;text-align:left;vertical-align:top}\n"
    ".good{background:#dfd}.warn{background:#ffe9c4}.bad{background:#fdd}.dim{color:#666}\n"
    "</style>\n";

std::string_view tone_class(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return " class=\"good\"";
    case Tone::kWarn:
      return " class=\"warn\"";
    case Tone::kBad:
      return " class=\"bad\"";
    case Tone::kDim:
      return " class=\"dim\"";
    case Tone::kPlain:
      break;
  }
  return "";
}

std::string element(std::string_view name, const Cell& cell) {
  return fmt::format("<{}{}>{}</{}>", name, tone_class(cell.tone), escape_markup(cell.text), name);
}

void append_table(std::string& out, const Block& table) {
  out += "<table>\n<tr>";
  for (const std::string& name : table.header) out += element("th", {name});
  out += "</tr>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const Cell& cell : row) out += element("td", cell);
    out += "</tr>\n";
  }
  out += "</table>\n";
}

}  // namespace

std::string render_html(std::string_view title, const std::vector<Block>& blocks) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<title>{}</title>\n{}</head>\n<body>\n",
      escape_markup(title), kStyle);
  for (const Block& block : blocks) {
    switch (block.kind) {
      case Block::Kind::kTitle:
        out += element("h1", block.line) + "\n";
        break;
      case Block::Kind::kHeading:
        out += element("h2", block.line) + "\n";
        break;
      case Block::Kind::kSubheading:
        out += element("h3", block.line) + "\n";
        break;
      case Block::Kind::kLine:
        out += element("p", block.line) + "\n";
        break;
      case Block::Kind::kTable:
        append_table(out, block);
        break;
      case Block::Kind::kGap:
        break;
    }
  }
  return out + "</body>\n</html>\n";
}

}  // namespace kernelpath::report
