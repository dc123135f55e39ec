#include "base/text.h"
#include "report/validate_document.h"
#include "report/width.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kernelpath::report {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::size_t kEngineColumn = 10;
constexpr std::size_t kLevelColumn = 8;

std::string_view color_of(features::Level level) {
  switch (level) {
    case features::Level::kError:
      return "\x1b[31m";
    case features::Level::kWarn:
      return "\x1b[33m";
    case features::Level::kNote:
      return "\x1b[2m";
    default:
      return "\x1b[32m";
  }
}

std::string padded(std::string_view text, std::size_t column) {
  const std::size_t width = display_width(text);
  return std::string(text) + std::string(width < column ? column - width : 1, ' ');
}

// "vllm", or with its version where several of the engine are judged.
std::string shown_name(const ValidatedInput& input, const EngineFindings& engine) {
  const bool several = std::any_of(
      input.engines.begin(), input.engines.end(), [&engine](const EngineFindings& other) {
        return other.engine == engine.engine && other.version != engine.version;
      });
  return several ? fmt::format("{}@{}", engine.engine, engine.version) : engine.engine;
}

class TextPrinter {
 public:
  explicit TextPrinter(const View& view) : view_(view) {}

  std::string run(const ValidateReport& report, int exit_code) {
    for (const ValidatedInput& input : report.inputs) {
      if (report.inputs.size() > 1 || !input.model.empty()) title(input);
      for (const EngineFindings& engine : input.engines) print(shown_name(input, engine), engine);
    }
    summary(report, exit_code);
    return std::move(out_);
  }

 private:
  void title(const ValidatedInput& input) {
    if (!out_.empty()) out_ += '\n';
    const std::string name = input.model.empty() ? "combination" : input.model;
    out_ += fmt::format("{}   {}\n", escape_for_terminal(name), escape_for_terminal(input.device));
  }

  void print(std::string name, const EngineFindings& engine) {
    // Notes alone do not take the verdict's place.
    if (worst_level(engine) < features::Level::kWarn && !has_known(engine)) {
      line(name, features::Level::kDerive, engine.summary);
      name.clear();
    }
    for (const ReportedFinding& finding : engine.findings) {
      print(name, finding);
      name.clear();
    }
    if (!engine.suggestion.empty()) more("all errors: " + engine.suggestion);
  }

  static bool has_known(const EngineFindings& engine) {
    return std::any_of(engine.findings.begin(), engine.findings.end(),
                       [](const ReportedFinding& finding) { return finding.known; });
  }

  void print(const std::string& name, const ReportedFinding& reported) {
    const features::Finding& finding = reported.finding;
    line(name, finding.level,
         fmt::format("[{}] {}{}", finding.id, finding.message,
                     reported.known ? " (in the baseline)" : ""));
    std::string places;
    if (!reported.place.shown.empty()) places = "at: " + reported.place.shown;
    if (reported.place.position) {
      places += fmt::format(" ({}:{}:{})", reported.place.file, reported.place.position->line,
                            reported.place.position->column);
    }
    if (!finding.fix.empty()) places += (places.empty() ? "do: " : "   do: ") + finding.fix;
    if (!places.empty()) more(places);
    if (!reported.suggestion.empty()) more("change: " + reported.suggestion);
    if (view_.why && finding.rule != nullptr) more("why: " + finding.rule->why);
    if (view_.sources && finding.rule != nullptr) {
      const engines::Source& source = finding.rule->source;
      more(fmt::format("source: {} {} {}", source.project, source.file, source.version));
    }
  }

  void line(const std::string& name, features::Level level, const std::string& text) {
    const std::string word = padded(level_word(level), kLevelColumn);
    std::string row = padded(name, kEngineColumn);
    row += view_.color ? fmt::format("{}{}{}", color_of(level), word, kReset) : word;
    row += escape_for_terminal(text);
    while (row.ends_with(' ')) row.pop_back();
    out_ += row + '\n';
  }

  void more(const std::string& text) {
    out_ += std::string(kEngineColumn + kLevelColumn, ' ') + escape_for_terminal(text) + '\n';
  }

  void summary(const ValidateReport& report, int exit_code) {
    std::size_t engines = 0;
    for (const ValidatedInput& input : report.inputs) {
      engines += static_cast<std::size_t>(
          std::count_if(input.engines.begin(), input.engines.end(),
                        [](const EngineFindings& engine) { return engine.engine != "all"; }));
    }
    const FindingCounts counts = count_findings(report);
    std::string text = fmt::format("{} {}: {} error, {} warn", engines,
                                   engines == 1 ? "engine" : "engines", counts.error, counts.warn);
    if (counts.note > 0) text += fmt::format(", {} note", counts.note);
    if (counts.known > 0) text += fmt::format(", {} in the baseline", counts.known);
    out_ += fmt::format("{}   exit {}\n", text, exit_code);
  }

  const View& view_;
  std::string out_;
};

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : escape_for_terminal(text)) {
    if (c == '|' || c == '<' || c == '*' || c == '_' || c == '`' || c == '[') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string validate_text(const ValidateReport& report, const View& view, int exit_code) {
  return TextPrinter(view).run(report, exit_code);
}

std::string validate_markdown(const ValidateReport& report) {
  std::string out;
  for (const ValidatedInput& input : report.inputs) {
    const std::string name = input.model.empty() ? "Combination" : input.model;
    out += fmt::format(
        "## {} on {}\n\n| engine | level | rule | what | at | do |\n"
        "| --- | --- | --- | --- | --- | --- |\n",
        markdown_cell(name), markdown_cell(input.device));
    for (const EngineFindings& engine : input.engines) {
      if (engine.findings.empty()) {
        out += fmt::format("| {} | ok |  | {} |  |  |\n", markdown_cell(shown_name(input, engine)),
                           markdown_cell(engine.summary));
      }
      for (const ReportedFinding& reported : engine.findings) {
        const features::Finding& finding = reported.finding;
        out += fmt::format("| {} | {} | {} | {} | {} | {} |\n",
                           markdown_cell(shown_name(input, engine)), level_word(finding.level),
                           finding.id, markdown_cell(finding.message),
                           markdown_cell(reported.place.shown), markdown_cell(finding.fix));
      }
    }
    out += '\n';
  }
  const FindingCounts counts = count_findings(report);
  return out + fmt::format("{} error, {} warn, {} note, {} in the baseline\n", counts.error,
                           counts.warn, counts.note, counts.known);
}

}  // namespace kernelpath::report
