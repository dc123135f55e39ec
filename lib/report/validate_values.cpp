#include "base/text.h"
#include "json/writer.h"
#include "report/validate_document.h"
#include "report/validate_markup.h"
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

std::string summary(const EngineMatrix& engine, const std::vector<MatrixRegion>& regions) {
  return fmt::format("{} of {} combinations are valid", valid_count(regions),
                     engine.matrix.cells.size());
}

// "trtllm 2026-11, Llama-3.1-8B on h200 (sm90, 141 GiB)".
std::string heading(const ValueMatrices& matrices, const EngineMatrix& engine) {
  const std::string model = matrices.model.empty() ? "any model" : matrices.model;
  return fmt::format("{} {}, {} on {}", engine.engine, engine.version, model, matrices.device);
}

std::string engine_text(const ValueMatrices& matrices, const EngineMatrix& engine) {
  const ValueMatrix& matrix = engine.matrix;
  const auto regions = features::regions(matrix);
  const auto widths = column_widths(matrix, regions);
  std::string out = escape_for_terminal(heading(matrices, engine)) + '\n';
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
  return out + summary(engine, regions) + '\n';
}

std::string engine_markdown(const ValueMatrices& matrices, const EngineMatrix& engine) {
  const auto regions = features::regions(engine.matrix);
  std::string out = fmt::format("### {}\n\n|", heading(matrices, engine));
  std::string rule = "|";
  for (const features::MatrixAxis& axis : engine.matrix.axes) {
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
  return out + fmt::format("\n{}\n", summary(engine, regions));
}

std::string engine_html(const ValueMatrices& matrices, const EngineMatrix& engine) {
  const auto regions = features::regions(engine.matrix);
  std::string out =
      fmt::format("<h2>{}</h2>\n<table>\n<tr>", escape_markup(heading(matrices, engine)));
  for (const features::MatrixAxis& axis : engine.matrix.axes) {
    out += fmt::format("<th>{}</th>", escape_markup(axis.name));
  }
  out += "<th>verdict</th><th>number</th><th>rule</th></tr>\n";
  for (const MatrixRegion& region : regions) {
    out += "<tr>";
    for (const auto& values : region.values) {
      out += fmt::format("<td>{}</td>", escape_markup(join(values, ", ")));
    }
    const std::string why = region.deciding == nullptr ? std::string() : region.deciding->why;
    out += fmt::format("<td class=\"{0}\">{0}</td><td>{1}</td><td title=\"{2}\">{3}</td></tr>\n",
                       level_word(region.worst), region.num_combinations, escape_markup(why),
                       escape_markup(rule_text(region)));
  }
  return out + fmt::format("</table>\n<p>{}</p>\n", summary(engine, regions));
}

void write_engine(json::Writer& w, const EngineMatrix& engine) {
  const auto regions = features::regions(engine.matrix);
  w.begin_object();
  w.member("engine", engine.engine).member("version", engine.version);
  w.key("axes").begin_array();
  for (const features::MatrixAxis& axis : engine.matrix.axes) {
    w.begin_object().member("name", axis.name).key("values").begin_array();
    for (const features::Value& value : axis.values) w.value(features::to_json(value));
    w.end_array().end_object();
  }
  w.end_array();
  w.member("combinations", static_cast<std::int64_t>(engine.matrix.cells.size()));
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
}

constexpr std::string_view kHtmlHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<title>value matrix</title>\n<style>table{border-collapse:collapse}"
    "th,td{border:1px solid #bbb;padding:.2em .4em;text-align:left}"
    ".error{background:#fdd}.warn{background:#ffe9c4}.note{background:#eef}.ok{background:#dfd}"
    "</style>\n</head>\n<body>\n";

}  // namespace

std::string value_matrix_text(const ValueMatrices& matrices) {
  std::vector<std::string> parts;
  for (const EngineMatrix& engine : matrices.engines) {
    parts.push_back(engine_text(matrices, engine));
  }
  return join(parts, "\n");
}

std::string value_matrix_markdown(const ValueMatrices& matrices) {
  std::vector<std::string> parts;
  for (const EngineMatrix& engine : matrices.engines) {
    parts.push_back(engine_markdown(matrices, engine));
  }
  return join(parts, "\n");
}

std::string value_matrix_html(const ValueMatrices& matrices) {
  std::string out(kHtmlHead);
  for (const EngineMatrix& engine : matrices.engines) out += engine_html(matrices, engine);
  return out + "</body>\n</html>\n";
}

std::string value_matrix_json(const Tool& tool, const ValueMatrices& matrices, int indent) {
  json::Writer w;
  w.begin_object();
  w.member("schema", kValueMatrixSchema).member("schema_version", kValueMatrixSchemaVersion);
  w.key("tool").begin_object();
  w.member("name", tool.name).member("version", tool.version).end_object();
  if (!matrices.model.empty()) w.member("model", matrices.model);
  w.member("device", matrices.device);
  w.key("engines").begin_array();
  for (const EngineMatrix& engine : matrices.engines) write_engine(w, engine);
  w.end_array().end_object();
  return w.take(indent) + "\n";
}

}  // namespace kernelpath::report
