#include "base/text.h"
#include "cli/information.h"
#include "report/width.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kernelpath::cli {
namespace {

constexpr std::size_t kHelpWidth = 96;
constexpr std::array kGroups = {Group::kQuestion,   Group::kDeployment, Group::kMeasurement,
                                Group::kGeneration, Group::kAnswer,     Group::kOutput,
                                Group::kProgram};

std::string indented(std::string_view text, std::size_t indent) {
  std::string out;
  for (const std::string& line : report::wrap(text, kHelpWidth - indent)) {
    out += std::string(indent, ' ') + line + "\n";
  }
  return out;
}

std::string option_help(const Program& program, const OptionRow& row) {
  std::string text(row.help);
  const std::string_view value = default_value(program.kind, row);
  if (!value.empty()) text += fmt::format(" Default: {}.", value);
  return "  " + option_signature(row) + "\n" + indented(text, 6);
}

std::string usage_line(const Program& program) {
  return fmt::format("usage: {} {}\n", program.name, program.usage);
}

std::string examples(const Program& program) {
  std::string out = "examples:\n";
  for (const std::string_view example : program.examples) out += fmt::format("  {}\n", example);
  return out;
}

std::string_view arguments_text(const Program& program) {
  if (program.kind == ProgramKind::kBench) {
    return "CASE is a name of --list cases or a case file (TOML): named shapes, one a section.";
  }
  if (program.kind == ProgramKind::kRun) {
    return "MODEL is a folder with config.json and weights, such a config.json, or a GGUF file.";
  }
  return "MODEL is a folder with a config.json, such a file, or - for a configuration on standard "
         "input.";
}

std::string_view shorter_name(const OptionRow& row) {
  const bool alias = !row.alias.empty() && row.alias.size() < row.name.size();
  return alias ? row.alias : row.name;
}

bool mentions(const OptionRow& row, std::string_view word) {
  const std::string text = to_lower(fmt::format("{} {} {} {} {}", option_signature(row), row.help,
                                                row.value_name, row.choices, row.default_value));
  return text.find(to_lower(word)) != std::string::npos;
}

constexpr std::string_view kFooter =
    "Every option but those of the last group can be set as KERNELPATH_<OPTION> (dashes become "
    "underscores) or as a key of the config file. The command line wins over the environment, the "
    "environment over the file.";

constexpr std::string_view kExitCodes =
    "exit codes: 0 done; 1 a finding (llm-validate: of --fail-on or worse; --require unmet; a "
    "batch line not answered; llm-run: --expect differs; llm-bench: slower than --baseline, or "
    "a wrong result); 2 wrong use; 3 "
    "the input cannot be used; 4 not possible here; 5 a limit; 6 reading or writing failed; 70 a "
    "bug of ours; 130 and 143 interrupted and terminated.";

}  // namespace

std::string short_help(const Program& program) {
  std::string out = fmt::format("{}: {}\n\n{}\n{}", program.name, program.summary,
                                usage_line(program), examples(program));
  for (const Group group : kGroups) {
    std::string names;
    for (const OptionRow* row : options_of(program.kind)) {
      if (row->group == group) names += fmt::format("--{} ", shorter_name(*row));
    }
    if (names.empty()) continue;
    out += fmt::format("\n{}:\n{}", to_lower(group_title(group)), indented(trim(names), 2));
  }
  return out + "\n--help explains all options, --help=WORD those that mention WORD\n";
}

std::string full_help(const Program& program) {
  std::string out = fmt::format("{}: {}\n\n{}\n{}", program.name, program.summary,
                                usage_line(program), examples(program));
  out += "\n" + indented(arguments_text(program), 0);
  for (const Group group : kGroups) {
    const auto is_of_group = [&](const OptionRow* row) { return row->group == group; };
    if (std::ranges::none_of(options_of(program.kind), is_of_group)) continue;
    out += fmt::format("\n{}\n", group_title(group));
    for (const OptionRow* row : options_of(program.kind)) {
      if (row->group == group) out += option_help(program, *row);
    }
  }
  return out + "\n" + indented(kFooter, 0) + "\n" + indented(kExitCodes, 0);
}

std::string search_help(const Program& program, std::string_view word) {
  std::string out;
  for (const OptionRow* row : options_of(program.kind)) {
    if (mentions(*row, word)) out += option_help(program, *row);
  }
  if (!out.empty()) return out;
  return fmt::format("no option of {} mentions '{}'\n", program.name, escape_for_terminal(word));
}

std::optional<std::string> help_answer(const Program& program, const Arguments& arguments,
                                       const std::vector<std::string>& written) {
  const std::vector<std::string>& asked = arguments.of(Option::kHelp);
  if (asked.empty()) return std::nullopt;
  for (const std::string& word : asked) {
    if (!word.empty()) return search_help(program, word);
  }
  const bool full = std::find(written.begin(), written.end(), "--help") != written.end();
  return full ? full_help(program) : short_help(program);
}

}  // namespace kernelpath::cli
