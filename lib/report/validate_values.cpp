#include "base/text.h"
#include "json/writer.h"
#include "report/validate_document.h"
#include "report/validate_matrix.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::report {
namespace {

using features::Level;
using features::MatrixRegion;
using features::ValueMatrix;

// Nothing that the engine refuses: a downgrade runs, and its line says so.
bool is_valid(const MatrixRegion& region) { return region.worst < Level::kError; }

std::size_t valid_count(const std::vector<MatrixRegion>& regions) {
  std::size_t out = 0;
  for (const MatrixRegion& region : regions) out += is_valid(region) ? region.num_combinations : 0;
  return out;
}

std::string values_text(const MatrixRegion& region, std::size_t axis) {
  return join(region.values[axis], "|");
}

std::string rule_text(const MatrixRegion& region) {
  return region.deciding == nullptr ? std::string() : region.deciding->id;
}

std::vector<std::size_t> column_widths(const ValueMatrix& matrix,
                                       const std::vector<MatrixRegion>& regions) {
  std::vector<std::size_t> out;
  for (std::size_t a = 0; a < matrix.axes.size(); ++a) {
    std::size_t widest = matrix.axes[a].name.size();
    for (const MatrixRegion& region : regions) {
      widest = std::max(widest, values_text(region, a).size());
    }
    out.push_back(widest);
  }
  return out;
}

}  // namespace

std::string value_matrix_text(const ValueMatrix& matrix) {
  const auto regions = features::regions(matrix);
  const auto widths = column_widths(matrix, regions);
  std::string out;
  const auto row = [&](const auto& cell, std::string_view verdict, const std::string& rule,
                       const std::string& number) {
    std::string line;
    for (std::size_t a = 0; a < matrix.axes.size(); ++a) {
      line += fmt::format("{:<{}}  ", cell(a), widths[a]);
    }
    line += fmt::format("{:<8}{:>8}  {}", verdict, number, rule);
    while (line.ends_with(' ')) line.pop_back();
    out += escape_for_terminal(line) + '\n';
  };
  row([&](std::size_t a) { return matrix.axes[a].name; }, "verdict", "rule", "number");
  for (const MatrixRegion& region : regions) {
    row([&](std::size_t a) { return values_text(region, a); }, level_word(region.worst),
        rule_text(region), fmt::to_string(region.num_combinations));
  }
  return out + fmt::format("{} of {} combinations are valid\n", valid_count(regions),
                           matrix.cells.size());
}

std::string value_matrix_markdown(const ValueMatrix& matrix) {
  const auto regions = features::regions(matrix);
  std::string out = "|";
  std::string rule = "|";
  for (const features::MatrixAxis& axis : matrix.axes) {
    out += fmt::format(" {} |", axis.name);
    rule += " --- |";
  }
  out += " verdict | number | rule |\n" + rule + " --- | ---: | --- |\n";
  for (const MatrixRegion& region : regions) {
    out += '|';
    for (const auto& values : region.values) out += fmt::format(" {} |", join(values, ", "));
    out += fmt::format(" {} | {} | {} |\n", level_word(region.worst), region.num_combinations,
                       rule_text(region));
  }
  return out + fmt::format("\n{} of {} combinations are valid\n", valid_count(regions),
                           matrix.cells.size());
}

std::string value_matrix_json(const Tool& tool, const ValueMatrix& matrix, std::string_view engine,
                              int indent) {
  const auto regions = features::regions(matrix);
  json::Writer w;
  w.begin_object();
  w.member("schema", kValueMatrixSchema).member("schema_version", kMatrixSchemaVersion);
  w.key("tool").begin_object();
  w.member("name", tool.name).member("version", tool.version).end_object();
  w.member("engine", engine);
  w.key("axes").begin_array();
  for (const features::MatrixAxis& axis : matrix.axes) {
    w.begin_object().member("name", axis.name).key("values").begin_array();
    for (const features::Value& value : axis.values) w.value(features::to_json(value));
    w.end_array().end_object();
  }
  w.end_array();
  w.member("combinations", static_cast<std::int64_t>(matrix.cells.size()));
  w.member("valid", static_cast<std::int64_t>(valid_count(regions)));
  w.key("regions").begin_array();
  for (const MatrixRegion& region : regions) {
    w.begin_object().key("values").begin_array();
    for (const auto& values : region.values) {
      w.begin_array();
      for (const std::string& value : values) w.value(value);
      w.end_array();
    }
    w.end_array();
    w.member("verdict", level_word(region.worst));
    w.member("combinations", static_cast<std::int64_t>(region.num_combinations));
    if (region.deciding != nullptr) w.member("rule", region.deciding->id);
    w.end_object();
  }
  w.end_array().end_object();
  return w.take(indent) + "\n";
}

}  // namespace kernelpath::report
