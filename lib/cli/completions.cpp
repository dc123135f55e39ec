#include "base/text.h"
#include "cli/information.h"

#include <fmt/format.h>

#include <algorithm>

// Completion scripts, generated from the option table and the tables of this build.

namespace kernelpath::cli {
namespace {

bool takes_value(const OptionRow& row) {
  return row.kind != ValueKind::kFlag && row.kind != ValueKind::kCount &&
         row.kind != ValueKind::kOptionalText;
}

bool takes_file(const OptionRow& row) {
  return row.id == Option::kBatch || row.id == Option::kOutput || row.id == Option::kConfigFile ||
         row.id == Option::kYaml || row.id == Option::kBaseline || row.id == Option::kPeersFile ||
         row.id == Option::kRoofline;
}

bool takes_folder(const OptionRow& row) {
  return row.id == Option::kCustomModuleDirs || row.id == Option::kProfileDir;
}

std::vector<std::string> words_of(const Program& program, const OptionRow& row) {
  if (row.id == Option::kFormat) return split(program.formats, '|');
  // Not what this machine has: a script is written once, and read on others too.
  if (row.id == Option::kDevice && computes_here(program.kind)) return {"auto", "cpu", "cuda:0"};
  if (row.choices.substr(0, 1) == "@") return table_words(row.choices.substr(1));
  return option_choices(row);
}

std::vector<std::string> spellings(const OptionRow& row) {
  std::vector<std::string> out;
  if (row.short_name != 0) out.push_back(std::string("-") + row.short_name);
  out.push_back("--" + std::string(row.name));
  if (!row.alias.empty()) out.push_back("--" + std::string(row.alias));
  return out;
}

// "llm-inspect" → "_llm_inspect".
std::string function_name(std::string_view program) {
  std::string out = "_" + std::string(program);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

// The first sentence, for a menu.
std::string brief(const OptionRow& row) {
  const std::size_t end = row.help.find(". ");
  std::string out(row.help.substr(0, end));
  if (!out.empty() && out.back() == '.') out.pop_back();
  return out;
}

// Inside single quotes of any of the three shells.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + out + "'";
}

std::string bash_case(const Program& program, const OptionRow& row) {
  const std::string pattern = join(spellings(row), "|");
  if (takes_file(row)) {
    return fmt::format("    {}) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", pattern);
  }
  if (takes_folder(row)) {
    return fmt::format("    {}) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n", pattern);
  }
  return fmt::format("    {}) COMPREPLY=($(compgen -W {} -- \"$cur\")); return ;;\n", pattern,
                     quoted(join(words_of(program, row), " ")));
}

std::string bash_script(const Program& program) {
  std::string cases;
  std::string names;
  for (const OptionRow* row : options_of(program.kind)) {
    if (takes_value(*row)) cases += bash_case(program, *row);
    for (const std::string& spelling : spellings(*row)) names += spelling + " ";
  }
  names.pop_back();
  return fmt::format(
      "# bash completion for {0}; put it where bash-completion looks, or source it.\n"
      "{1}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  case \"$prev\" in\n{2}  esac\n"
      "  if [[ $cur == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W {3} -- \"$cur\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F {1} {0}\n",
      program.name, function_name(program.name), cases, quoted(names));
}

// In the brackets of _arguments ']' and ':' have a meaning.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ']' || c == '[' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const Program& program, const OptionRow& row) {
  if (!takes_value(row)) return "";
  const std::string name = zsh_text(row.value_name);
  if (takes_file(row)) return fmt::format(":{}:_files", name);
  if (takes_folder(row)) return fmt::format(":{}:_files -/", name);
  const std::vector<std::string> words = words_of(program, row);
  if (words.empty()) return fmt::format(":{}: ", name);
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : " ") + zsh_text(word);
  return fmt::format(":{}:({})", name, list);
}

std::string zsh_script(const Program& program) {
  std::string specs;
  for (const OptionRow* row : options_of(program.kind)) {
    const std::string action = zsh_action(program, *row);
    for (const std::string& spelling : spellings(*row)) {
      specs += "    " + quoted(fmt::format("*{}[{}]{}", spelling, zsh_text(brief(*row)), action)) +
               " \\\n";
    }
  }
  return fmt::format(
      "#compdef {0}\n"
      "# zsh completion for {0}; name it _{0} in a folder of $fpath.\n"
      "{1}() {{\n"
      "  _arguments -s -S \\\n{2}    '*:model:_files'\n"
      "}}\n"
      "{1} \"$@\"\n",
      program.name, function_name(program.name), specs);
}

std::string fish_script(const Program& program) {
  std::string out =
      fmt::format("# fish completion for {0}: ~/.config/fish/completions/{0}.fish\n", program.name);
  for (const OptionRow* option : options_of(program.kind)) {
    const OptionRow& row = *option;
    std::string line = fmt::format("complete -c {}", program.name);
    if (row.short_name != 0) line += fmt::format(" -s {}", row.short_name);
    line += fmt::format(" -l {}", row.name);
    if (!row.alias.empty()) line += fmt::format(" -l {}", row.alias);
    if (takes_value(row)) line += takes_file(row) || takes_folder(row) ? " -r -F" : " -x";
    const std::vector<std::string> words = words_of(program, row);
    if (takes_value(row) && !words.empty()) line += " -a " + quoted(join(words, " "));
    out += line + " -d " + quoted(brief(row)) + "\n";
  }
  return out;
}

}  // namespace

std::string completion_script(const Program& program, std::string_view shell) {
  if (shell == "zsh") return zsh_script(program);
  if (shell == "fish") return fish_script(program);
  return bash_script(program);
}

}  // namespace kernelpath::cli
