#include "cli/variable_inputs.h"

#include "features/argument_tree.h"
#include "features/command_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kernelpath::cli {
namespace {

using features::StatedArguments;
using Variables = std::vector<std::pair<std::string, std::string>>;

// The table of the engine's program that the command line names, or of its main one.
const features::CommandTable* command_table_of(const ValidateQuestion& question,
                                               const EngineQuestion& engine) {
  const bool named = question.command && question.command->engine == engine.engine->name();
  return features::find_command_table(engine.engine->name(), engine.engine->version(),
                                      named ? question.command->program : std::string());
}

// Of --env, and those before the program of --command.
Variables all_variables(const ValidateQuestion& question, const EngineQuestion& engine) {
  Variables out = engine.variables;
  if (!question.command) return out;
  for (const auto& variable : question.command->variables) {
    const bool known =
        std::ranges::any_of(out, [&](const auto& other) { return other.first == variable.first; });
    if (!known) out.push_back(variable);
  }
  return out;
}

void add_leaves(const json::Value& value, const std::string& path, const StatedArguments& from,
                StatedArguments& to) {
  if (!value.is_object() || value.members().empty()) {
    const features::ArgumentOrigin* const origin = from.origin(path);
    to.set(path, value, origin != nullptr ? *origin : features::ArgumentOrigin{.shown = path});
    return;
  }
  for (const json::Member& member : value.members()) {
    add_leaves(member.value, path.empty() ? member.key : path + "." + member.key, from, to);
  }
}

void leave_out_defaults(const features::CommandTable& table, const StatedArguments& variables,
                        StatedArguments& arguments) {
  for (const auto& [path, value] : table.defaults) {
    const features::ArgumentOrigin* const origin = arguments.origin(path);
    const bool by_default = origin != nullptr && origin->shown == table.program;
    if (by_default && variables.origin(path) != nullptr) arguments.erase(path);
  }
}

}  // namespace

bool states_option(const ValidateQuestion& question, const EngineQuestion& engine,
                   std::string_view variable) {
  const features::CommandTable* const table = command_table_of(question, engine);
  return table != nullptr && features::option_of_variable(*table, variable) != nullptr;
}

StatedArguments over_variables(const ValidateQuestion& question, const EngineQuestion& engine,
                               StatedArguments arguments) {
  const features::CommandTable* const table = command_table_of(question, engine);
  if (table == nullptr) return arguments;
  const features::CommandReading read =
      features::read_option_variables(*table, all_variables(question, engine));
  if (read.arguments.members().empty() && read.notes.empty()) return arguments;
  StatedArguments out;
  out.add_command(read);
  for (const features::CommandNote& note : read.notes) {
    out.add_unread(fmt::format("{}: {}", note.word, note.message));
  }
  leave_out_defaults(*table, out, arguments);
  if (!arguments.tree().members().empty()) add_leaves(arguments.tree(), "", arguments, out);
  for (const std::string& text : arguments.unread()) out.add_unread(text);
  return out;
}

}  // namespace kernelpath::cli
