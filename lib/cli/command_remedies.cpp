#include "cli/command_remedies.h"

#include "base/text.h"
#include "features/command_table.h"
#include "features/shell_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::cli {
namespace {

using features::Change;
using features::Changes;
using features::CommandNote;
using features::WordChange;

bool covers(const Changes& changes, std::size_t word) {
  return std::any_of(changes.begin(), changes.end(), [word](const Change& change) {
    return change.word && change.word->first <= word &&
           word < change.word->first + change.word->count;
  });
}

// The word that the note is about: "--tp_szie", also where "--tp_szie=8" was written.
std::optional<std::size_t> place_of(const std::vector<std::string>& words, const Changes& changes,
                                    const std::string& noted) {
  const std::string name = noted.substr(0, noted.find('='));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool same = words[i] == noted || words[i].substr(0, words[i].find('=')) == name;
    if (same && !covers(changes, i)) return i;
  }
  return std::nullopt;
}

Change replaced(std::size_t first, std::size_t count, std::vector<std::string> words,
                const std::vector<std::string>& all) {
  const std::vector<std::string> old(all.begin() + static_cast<std::ptrdiff_t>(first),
                                     all.begin() + static_cast<std::ptrdiff_t>(first + count));
  Change out;
  out.text = words.empty() ? "leave out " + join(old, " ")
                           : fmt::format("{} instead of {}", join(words, " "), join(old, " "));
  out.word = WordChange{.first = first, .count = count, .words = std::move(words)};
  return out;
}

// The option at a word, whose value may be the next one.
struct OptionAt {
  std::size_t word = 0;
  std::string name = {};
  std::string suffix = {};  // "=8", or nothing
  bool followed = false;    // by a word that is no option
};

OptionAt option_at(const std::vector<std::string>& words, std::size_t place) {
  const std::size_t equals = words[place].find('=');
  OptionAt out{.word = place, .name = words[place].substr(0, equals)};
  if (equals != std::string::npos) out.suffix = words[place].substr(equals);
  out.followed = out.suffix.empty() && out.name.starts_with('-') && place + 1 < words.size() &&
                 !words[place + 1].starts_with('-');
  return out;
}

// With its value first: a value that stays behind would be read as the model.
void add_left_out(const OptionAt& option, const std::vector<std::string>& words, Changes& out) {
  if (option.followed) out.push_back(replaced(option.word, 2, {}, words));
  out.push_back(replaced(option.word, 1, {}, words));
}

void add_choices(const OptionAt& option, const features::CommandOption& known,
                 const std::vector<std::string>& words, Changes& out) {
  const std::string value = !option.suffix.empty() ? option.suffix.substr(1)
                            : option.followed      ? words[option.word + 1]
                                                   : std::string();
  const std::vector<std::string_view> choices(known.choices.begin(), known.choices.end());
  std::vector<std::string> order = near_matches(value, choices);
  for (const std::string& choice : known.choices) {
    if (std::find(order.begin(), order.end(), choice) == order.end()) order.push_back(choice);
  }
  for (const std::string& choice : order) {
    std::vector<std::string> instead = {option.name, choice};
    if (!option.suffix.empty()) instead = {option.name + "=" + choice};
    out.push_back(replaced(option.word, option.followed ? 2 : 1, std::move(instead), words));
  }
}

}  // namespace

Changes command_remedies(const ValidateQuestion& question, const Changes& changes,
                         const features::CommandReading& reading, const std::string& word) {
  const auto note = std::find_if(
      reading.notes.begin(), reading.notes.end(), [&word](const CommandNote& candidate) {
        const bool wrong = candidate.kind == CommandNote::Kind::kUnknown ||
                           candidate.kind == CommandNote::Kind::kBadValue;
        return wrong && candidate.word == word;
      });
  if (note == reading.notes.end()) return {};
  // The value of an unknown option goes or stays with its option.
  if (!note->value_of.empty()) {
    return command_remedies(question, changes, reading, note->value_of);
  }
  const auto words = features::split_words(question.command_text);
  if (!words) return {};
  const auto place = place_of(*words, changes, word);
  if (!place) return {};
  const OptionAt option = option_at(*words, *place);
  Changes out;
  if (note->kind == CommandNote::Kind::kUnknown) {
    for (const std::string& near : note->near_matches) {
      out.push_back(replaced(*place, 1, {near + option.suffix}, *words));
    }
  } else if (const auto* const table =
                 features::find_command_table(reading.engine, reading.version)) {
    const features::CommandOption* const known = table->find(option.name);
    if (known != nullptr) add_choices(option, *known, *words, out);
  }
  add_left_out(option, *words, out);
  return out;
}

std::optional<ValidateQuestion> with_changed_command(const ValidateQuestion& question,
                                                     const Changes& changes) {
  const auto words = features::split_words(question.command_text);
  if (!words) return std::nullopt;
  std::vector<std::string> edited;
  for (std::size_t i = 0; i < words->size(); ++i) {
    if (!covers(changes, i)) {
      edited.push_back((*words)[i]);
      continue;
    }
    for (const Change& change : changes) {
      if (!change.word || change.word->first != i) continue;
      edited.insert(edited.end(), change.word->words.begin(), change.word->words.end());
    }
  }
  ValidateQuestion out = question;
  out.command_text = features::quote_words(edited);
  if (!read_command_into(out)) return std::nullopt;
  return out;
}

}  // namespace kernelpath::cli
