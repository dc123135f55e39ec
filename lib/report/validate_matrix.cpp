#include "report/validate_matrix.h"

#include "base/text.h"
#include "json/writer.h"
#include "report/validate_document.h"
#include "report/validate_markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kernelpath::report {
namespace {

using features::FeatureMatrix;
using features::PairCell;
using features::PairStatus;

std::string_view cell_word(PairStatus status) {
  switch (status) {
    case PairStatus::kYes:
      return "yes";
    case PairStatus::kNo:
      return "no";
    case PairStatus::kUntested:
      return "?";
    case PairStatus::kKnownIssues:
      return "bugs";
    case PairStatus::kYesWithLimit:
      return "limit";
  }
  return "";
}

// A cell that has something to say beyond its word.
struct Footnote {
  std::size_t row = 0;
  std::size_t column = 0;
  const PairCell* cell = nullptr;
};

std::vector<Footnote> footnotes_of(const FeatureMatrix& matrix) {
  std::vector<Footnote> out;
  for (std::size_t row = 0; row < matrix.features.size(); ++row) {
    for (std::size_t column = 0; column < row; ++column) {
      const PairCell& cell = *matrix.cell(row, column);
      if (cell.status != PairStatus::kYes) {
        out.push_back({.row = row, .column = column, .cell = &cell});
      }
    }
  }
  return out;
}

std::string reason_text(const PairCell& cell) {
  if (cell.reason.empty()) return "no reason is documented";
  return cell.reason + (cell.reason_is_ours ? " [ours]" : " [documented]");
}

std::string cell_text(const FeatureMatrix& matrix, std::size_t row, std::size_t column) {
  if (column > row) return "";
  if (column == row) return "-";
  return std::string(cell_word(matrix.cell(row, column)->status));
}

std::string legend() {
  return "yes: works together   no: does not work, says the source   ?: not tested   "
         "bugs: known issues   limit: works within a limit\n";
}

std::string source_line(const FeatureMatrix& matrix) {
  return fmt::format("{} {}, from {} {} {}", matrix.engine, matrix.version, matrix.source.project,
                     matrix.source.file, matrix.source.version);
}

}  // namespace

std::string feature_matrix_text(const FeatureMatrix& matrix) {
  std::size_t widest = 0;
  for (const std::string& name : matrix.features) widest = std::max(widest, name.size());
  std::string out = source_line(matrix) + "\n\n";
  out += std::string(widest + 5, ' ');
  for (std::size_t i = 0; i < matrix.features.size(); ++i) out += fmt::format("{:<6}", i);
  out += '\n';
  for (std::size_t row = 0; row < matrix.features.size(); ++row) {
    std::string line = fmt::format("{:>2} {:<{}}  ", row, matrix.features[row], widest);
    for (std::size_t column = 0; column <= row; ++column) {
      line += fmt::format("{:<6}", cell_text(matrix, row, column));
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + '\n';
  }
  out += '\n' + legend() + '\n';
  for (const Footnote& note : footnotes_of(matrix)) {
    out += fmt::format("{}  {} x {}: {}: {}\n", FeatureMatrix::pair_id(note.row, note.column),
                       matrix.features[note.row], matrix.features[note.column],
                       pair_status_name(note.cell->status), reason_text(*note.cell));
  }
  return out;
}

std::string feature_matrix_markdown(const FeatureMatrix& matrix) {
  std::string out = source_line(matrix) + "\n\n|  |";
  std::string rule = "| --- |";
  for (std::size_t i = 0; i < matrix.features.size(); ++i) {
    out += fmt::format(" {} |", i);
    rule += " --- |";
  }
  out += '\n' + rule + '\n';
  for (std::size_t row = 0; row < matrix.features.size(); ++row) {
    out += fmt::format("| {} {} |", row, matrix.features[row]);
    for (std::size_t column = 0; column < matrix.features.size(); ++column) {
      out += fmt::format(" {} |", cell_text(matrix, row, column));
    }
    out += '\n';
  }
  out += '\n' + legend() + '\n';
  for (const Footnote& note : footnotes_of(matrix)) {
    out += fmt::format("- `{}` {} × {}: {}: {}\n", FeatureMatrix::pair_id(note.row, note.column),
                       matrix.features[note.row], matrix.features[note.column],
                       pair_status_name(note.cell->status), reason_text(*note.cell));
  }
  return out;
}

std::string feature_matrix_html(const FeatureMatrix& matrix) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<title>feature matrix</title>\n<style>table{border-collapse:collapse}"
      "th,td{border:1px solid #bbb;padding:.2em .4em}"
      ".no{background:#fdd}.untested{background:#eef}"
      ".known_issues,.yes_with_limit{background:#ffe9c4}</style>\n</head>\n<body>\n";
  out += fmt::format("<p>{}</p>\n<table>\n<tr><th></th>", escape_markup(source_line(matrix)));
  for (std::size_t i = 0; i < matrix.features.size(); ++i) out += fmt::format("<th>{}</th>", i);
  out += "</tr>\n";
  for (std::size_t row = 0; row < matrix.features.size(); ++row) {
    out += fmt::format("<tr><th>{} {}</th>", row, escape_markup(matrix.features[row]));
    for (std::size_t column = 0; column < matrix.features.size(); ++column) {
      if (column >= row) {
        out += fmt::format("<td>{}</td>", column == row ? "-" : "");
        continue;
      }
      const PairCell& cell = *matrix.cell(row, column);
      const std::string title =
          cell.status == PairStatus::kYes ? "" : escape_markup(reason_text(cell));
      out += fmt::format(R"(<td class="{}" title="{}">{}</td>)", pair_status_name(cell.status),
                         title, cell_word(cell.status));
    }
    out += "</tr>\n";
  }
  out += fmt::format("</table>\n<p>{}</p>\n<ul>\n", legend());
  for (const Footnote& note : footnotes_of(matrix)) {
    out += fmt::format(
        "<li>{} {} &#215; {}: {}: {}</li>\n", FeatureMatrix::pair_id(note.row, note.column),
        escape_markup(matrix.features[note.row]), escape_markup(matrix.features[note.column]),
        pair_status_name(note.cell->status), escape_markup(reason_text(*note.cell)));
  }
  return out + "</ul>\n</body>\n</html>\n";
}

std::string feature_matrix_json(const Tool& tool, const FeatureMatrix& matrix, int indent) {
  json::Writer w;
  w.begin_object();
  w.member("schema", kFeatureMatrixSchema).member("schema_version", kMatrixSchemaVersion);
  w.key("tool").begin_object();
  w.member("name", tool.name).member("version", tool.version).end_object();
  w.member("engine", matrix.engine).member("version", matrix.version);
  w.key("source").begin_object();
  w.member("project", matrix.source.project).member("file", matrix.source.file);
  w.member("version", matrix.source.version).end_object();
  w.key("features").begin_array();
  for (const std::string& name : matrix.features) w.value(name);
  w.end_array();
  w.key("cells").begin_array();
  for (std::size_t row = 0; row < matrix.features.size(); ++row) {
    for (std::size_t column = 0; column < row; ++column) {
      const PairCell& cell = *matrix.cell(row, column);
      w.begin_object();
      w.member("id", FeatureMatrix::pair_id(row, column));
      w.member("features", json::Value::array({json::Value::string(matrix.features[column]),
                                               json::Value::string(matrix.features[row])}));
      w.member("status", pair_status_name(cell.status));
      w.key("reason");
      if (cell.reason.empty()) {
        w.value(nullptr).key("reason_basis").value(nullptr);
      } else {
        w.value(cell.reason).key("reason_basis");
        w.value(cell.reason_is_ours ? "ours" : "documented");
      }
      w.end_object();
    }
  }
  w.end_array().end_object();
  return w.take(indent) + "\n";
}

}  // namespace kernelpath::report
