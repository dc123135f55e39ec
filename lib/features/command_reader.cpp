#include "features/command_reader.h"

#include "base/text.h"
#include "features/argument_tree.h"
#include "features/command_value.h"
#include "json/document.h"
#include "json/writer.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::features {
namespace {

std::string text_of_scalar(const json::Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  return value.is_number() ? value.number_text() : json::to_text(value);
}

bool is_negative_number(const std::string& text) {
  return text.size() > 1 && text[0] == '-' && std::all_of(text.begin() + 1, text.end(), [](char c) {
           return (c >= '0' && c <= '9') || c == '.';
         });
}

// The words that a member of an options file becomes, and why it becomes none.
struct FileWords {
  std::vector<std::string> texts = {};
  std::string dropped = {};
  std::string refused = {};
};

FileWords words_of_member(const CommandTable& table, const json::Member& member) {
  const json::Value& value = member.value;
  const std::string flag = "--" + member.key;
  const CommandOption* const option = table.find(flag);
  const bool known_flag = option != nullptr && option->is_flag();
  if (option != nullptr && option->not_in_file) {
    return {.refused = "an options file must not name it: its reader refuses the option"};
  }
  if (value.is_bool() && table.file_spells_bools && !known_flag) {
    return {.texts = {flag, value.as_bool() ? "true" : "false"}};
  }
  if (value.is_bool() && value.as_bool()) return {.texts = {flag}};
  if (value.is_bool()) {
    // A flag without a negative states its default by its absence.
    if (table.file_spells_bools && known_flag) return {};
    // Only the key as it stands is looked up: one with underscores is not found.
    const std::string negative = "--no-" + member.key;
    if (table.file_negates && table.find(negative) != nullptr) return {.texts = {negative}};
    return {.dropped = "false states nothing here"};
  }
  if (!value.is_array()) return {.texts = {flag, text_of_scalar(value)}};
  if (value.items().empty()) return {.dropped = "an empty list states nothing"};
  FileWords out{.texts = {flag}};
  for (const json::Value& item : value.items()) out.texts.push_back(text_of_scalar(item));
  return out;
}

// Lists are appended, objects merged; of other values the last counts.
json::Value merged(const json::Value& base, const json::Value& over) {
  if (base.is_array() && over.is_array()) {
    std::vector<json::Value> items(base.items().begin(), base.items().end());
    items.insert(items.end(), over.items().begin(), over.items().end());
    return json::Value::array(std::move(items));
  }
  return merge_arguments(base, over);
}

}  // namespace

std::vector<CommandWord> words_of_files(const CommandTable& table,
                                        std::span<const YamlDocument> files,
                                        std::vector<CommandNote>& notes) {
  std::vector<CommandWord> out;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const json::Member& member : files[i].root.members()) {
      const FileWords words = words_of_member(table, member);
      for (const std::string& text : words.texts) {
        out.push_back({.text = text, .file = i, .pointer = "/" + json::pointer_token(member.key)});
      }
      if (!words.refused.empty()) {
        notes.push_back({.kind = CommandNote::Kind::kBadValue,
                         .word = member.key,
                         .message = fmt::format("{}: {}", files[i].file, words.refused)});
      }
      if (words.dropped.empty()) continue;
      notes.push_back({.kind = CommandNote::Kind::kDropped,
                       .word = member.key,
                       .message = fmt::format("{} in {} is dropped: {}", member.value.brief(),
                                              files[i].file, words.dropped)});
    }
  }
  return out;
}

void CommandReader::read(std::vector<CommandWord> words) {
  words_ = std::move(words);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    expand_level(i);
    normalise(words_[i]);
  }
  for (at_ = 0; at_ < words_.size(); ++at_) word();
  state_members();
  state_defaults();
  const CommandOption* const named = table_.find(table_.first_word);
  const json::Value* const model =
      find_argument_value(out_.arguments, named != nullptr ? named->sets : table_.model);
  if (out_.model.empty() && model != nullptr && model->is_string()) out_.model = model->as_string();
}

void CommandReader::note(CommandNote::Kind kind, std::string word, std::string message) {
  out_.notes.push_back({.kind = kind, .word = std::move(word), .message = std::move(message)});
}

// --a_b.c_d=e_f is --a-b.c_d=e_f.
void CommandReader::normalise(CommandWord& word) const {
  if (!table_.underscores || !word.text.starts_with("--")) return;
  const std::size_t end = std::min(word.text.find_first_of(".="), word.text.size());
  std::replace(word.text.begin(), word.text.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
}

// "-O3", "-O=3" and "-O 3" are "--optimization-level 3".
void CommandReader::expand_level(std::size_t index) {
  for (const auto& [level, flag] : table_.levels) {
    const std::string text = words_[index].text;
    if (!text.starts_with(level) || text.starts_with("--")) continue;
    std::string value = text.substr(level.size());
    if (value.starts_with('=')) value.erase(0, 1);
    words_[index].text = value.empty() ? flag : fmt::format("{}={}", flag, value);
  }
}

void CommandReader::word() {
  const CommandWord word = words_[at_];
  if (only_positionals_ || word.text.size() < 2 || word.text[0] != '-') {
    positional(word.text);
  } else if (word.text == "--") {
    only_positionals_ = true;
  } else if (!take_member(word)) {
    option(word);
  }
}

void CommandReader::positional(const std::string& text) {
  if (!table_.positionals || !table_.first_word.empty()) {
    note(CommandNote::Kind::kUnknown, text, "no option takes this word");
  } else if (out_.model.empty()) {
    out_.model = text;
  } else {
    note(CommandNote::Kind::kUnknown, text, "a second positional argument");
  }
}

// --attention-config.backend=X, --attention-config.backend X,
// --compilation-config.splitting_ops+=a,b
bool CommandReader::take_member(const CommandWord& word) {
  const std::size_t equals = std::min(word.text.find('='), word.text.size());
  const std::string key = word.text.substr(0, equals);
  const std::size_t dot = key.find('.');
  if (!table_.dotted || dot == std::string::npos) return false;
  const std::string name = key.substr(0, dot);
  const CommandOption* const option = table_.find(name);
  if (option == nullptr) {
    unknown(name);
    return true;
  }
  std::string value;
  if (equals < word.text.size()) {
    value = word.text.substr(equals + 1);
  } else if (at_ + 1 < words_.size()) {
    value = words_[++at_].text;
  }
  std::string path = key.substr(dot + 1);
  json::Value read = read_member_value(value);
  if (path.ends_with('+')) {
    path.pop_back();
    std::vector<json::Value> items;
    for (const std::string& item : split(value, ',')) items.push_back(json::Value::string(item));
    read = json::Value::array(std::move(items));
  }
  auto found = std::find_if(members_.begin(), members_.end(),
                            [&name](const auto& entry) { return entry.first == name; });
  if (found == members_.end()) found = members_.insert(members_.end(), {name, {option, {}, {}}});
  Members& members = found->second;
  if (members.value.is_null()) members.value = json::Value::object({});
  const json::Value one = with_argument(json::Value::object({}), path, std::move(read));
  const json::Value* const old = find_argument_value(members.value, path);
  if (old != nullptr && old->is_array()) {
    members.value =
        with_argument(members.value, path, merged(*old, *find_argument_value(one, path)));
  } else {
    members.value = merge_arguments(members.value, one);
  }
  members.stated_by.emplace_back(path, key);
  return true;
}

void CommandReader::option(const CommandWord& word) {
  const std::size_t equals = word.text.find('=');
  const std::string name = word.text.substr(0, equals);
  if (!table_.equals && equals != std::string::npos && table_.find(name) != nullptr) {
    note(CommandNote::Kind::kUnknown, word.text,
         fmt::format("{} takes its value as a word of its own: {} VALUE", table_.program, name));
    return;
  }
  const CommandOption* const option = find(name);
  if (option == nullptr) return;
  if (!option->removed.empty()) {
    note(CommandNote::Kind::kBadValue, name, option->removed);
    if (!option->is_flag()) at_ += option->words;
  } else if (option->words > 1) {
    fixed_words(*option, word, name);
  } else if (option->is_flag()) {
    flag(*option, name, equals != std::string::npos);
  } else if (option->multiple && equals == std::string::npos) {
    several(*option, word, name);
  } else {
    one(*option, word, name);
  }
}

const CommandOption* CommandReader::find(const std::string& name) {
  if (const CommandOption* const exact = table_.find(name)) return exact;
  const auto longer = table_.abbreviations && name.starts_with("--")
                          ? table_.beginning_with(name)
                          : std::vector<std::string_view>();
  if (longer.size() == 1) return table_.find(longer.front());
  if (longer.empty()) {
    unknown(name);
    return nullptr;
  }
  const std::vector<std::string> names(longer.begin(), longer.end());
  note(CommandNote::Kind::kBadValue, name, "may be " + join_words(names, "or"));
  return nullptr;
}

void CommandReader::flag(const CommandOption& option, const std::string& name, bool has_value) {
  if (has_value) {
    note(CommandNote::Kind::kBadValue, name, "the flag takes no value");
    return;
  }
  const bool negative =
      std::any_of(option.negative_flags.begin(), option.negative_flags.end(),
                  [&](const std::string& flag) { return flag.starts_with(name); });
  state(option, name, json::Value::boolean(!negative), words_[at_]);
}

// argparse takes no word with a dash for a value, click does.
bool CommandReader::is_value(std::size_t index) const {
  if (index >= words_.size()) return false;
  const std::string& text = words_[index].text;
  return !table_.abbreviations || text == "-" || !text.starts_with('-') || is_negative_number(text);
}

void CommandReader::several(const CommandOption& option, const CommandWord& word,
                            const std::string& name) {
  std::vector<json::Value> items;
  while (at_ + 1 < words_.size() && !words_[at_ + 1].text.starts_with("--") && is_value(at_ + 1)) {
    CommandValue read = read_command_value(option, words_[++at_].text);
    if (read.fault.empty()) {
      items.push_back(std::move(read.value));
    } else {
      note(CommandNote::Kind::kBadValue, name, std::move(read.fault));
    }
    if (!table_.abbreviations) break;  // click repeats the option instead
  }
  state(option, name, json::Value::array(std::move(items)), word);
}

// As many words as the option takes, whatever they look like.
void CommandReader::fixed_words(const CommandOption& option, const CommandWord& word,
                                const std::string& name) {
  std::vector<json::Value> items;
  while (items.size() < option.words && at_ + 1 < words_.size()) {
    items.push_back(json::Value::string(words_[++at_].text));
  }
  if (items.size() < option.words) {
    note(CommandNote::Kind::kBadValue, name, "the option's value is missing");
    return;
  }
  state(option, name, json::Value::array(std::move(items)), word);
}

void CommandReader::one(const CommandOption& option, const CommandWord& word,
                        const std::string& name) {
  const std::size_t equals = word.text.find('=');
  if (equals != std::string::npos) {
    const bool unread = option.options_file && table_.file_of_options;
    if (unread) {
      note(CommandNote::Kind::kDropped, name,
           fmt::format("the file is not read: only '{} FILE', as two words, is", name));
      return;
    }
    valued(option, name, word.text.substr(equals + 1), word);
  } else if (is_value(at_ + 1)) {
    ++at_;
    valued(option, name, words_[at_].text, word);
  } else if (option.optional_value) {
    state(option, name, json::Value::boolean(true), word);
  } else {
    note(CommandNote::Kind::kBadValue, name, "the option's value is missing");
  }
}

void CommandReader::valued(const CommandOption& option, const std::string& name,
                           const std::string& value, const CommandWord& word) {
  if (option.options_file) {
    out_.options_files.push_back(value);
    return;
  }
  CommandValue read = read_command_value(option, value);
  if (!read.fault.empty()) {
    note(CommandNote::Kind::kBadValue, name, std::move(read.fault));
    return;
  }
  if (!read.dropped.empty()) {
    note(CommandNote::Kind::kDropped, name, std::move(read.dropped));
  }
  if (option.multiple) read.value = json::Value::array({std::move(read.value)});
  state(option, name, std::move(read.value), word);
}

void CommandReader::state(const CommandOption& option, const std::string& name, json::Value value,
                          const CommandWord& word) {
  const bool on_line = word.pointer.empty();
  if (!option.deprecated.empty()) {
    note(CommandNote::Kind::kDeprecated, name, "deprecated: " + option.deprecated);
  }
  for (const auto& [path, stated] : option.states) {
    out_.arguments = with_argument(out_.arguments, path, stated);
    out_.stated_by.emplace_back(path, name);
  }
  if (option.sets.empty()) {
    if (!option.states.empty()) return;
    note(CommandNote::Kind::kUnused, name, "does not concern the engine's arguments");
    return;
  }
  const json::Value* const old = find_argument_value(out_.arguments, option.sets);
  const auto before = stated_.find(option.sets);
  const bool twice = old != nullptr && before != stated_.end() && before->second == on_line;
  if (option.appends && old != nullptr && old->is_array() && value.is_array()) {
    value = merged(*old, value);
  } else if (twice && !option.multiple && !(*old == value)) {
    note(CommandNote::Kind::kDropped, name,
         fmt::format("{} replaces {}, which an earlier word states", value.brief(), old->brief()));
  }
  out_.arguments = with_argument(out_.arguments, option.sets, std::move(value));
  out_.stated_by.emplace_back(option.sets, name);
  std::erase_if(out_.in_files, [&](const auto& entry) { return entry.argument == option.sets; });
  if (!on_line) {
    out_.in_files.push_back({.argument = option.sets, .file = word.file, .pointer = word.pointer});
  }
  stated_[option.sets] = on_line;
  if (option.file_wins) out_.file_wins.push_back(option.sets);
}

void CommandReader::state_defaults() {
  for (const auto& [path, value] : table_.defaults) {
    if (find_argument_value(out_.arguments, path) != nullptr) continue;
    out_.arguments = with_argument(out_.arguments, path, value);
    out_.stated_by.emplace_back(path, table_.program);
  }
}

void CommandReader::state_members() {
  for (const auto& [name, members] : members_) {
    const CommandOption& option = *members.option;
    const bool takes_json = option.type == "json" || option.type == "string_or_json";
    if (!takes_json) {
      note(CommandNote::Kind::kBadValue, members.stated_by.front().second,
           fmt::format("{} takes no JSON, so it has no members", name));
      continue;
    }
    state(option, name, members.value, {});
    for (const auto& [path, key] : members.stated_by) {
      out_.stated_by.emplace_back(option.sets + "." + path, key);
    }
  }
}

void CommandReader::unknown(const std::string& name) {
  CommandNote note{.kind = CommandNote::Kind::kUnknown,
                   .word = name,
                   .message = fmt::format("{} has no such option", table_.program)};
  for (const CommandTable& other : command_tables()) {
    if (other.engine != table_.engine) continue;
    if (other.version == table_.version) {
      if (other.find(name) != nullptr) note.message += fmt::format("; {} has it", other.program);
      continue;
    }
    note.message = fmt::format("{} {} has no such option", table_.program, table_.version);
    if (other.find(name) != nullptr) note.message += fmt::format("; {} has it", other.version);
  }
  note.near_matches = table_.near(name);
  const bool with_value = words_[at_].text.find('=') != std::string::npos;
  out_.notes.push_back(std::move(note));
  // What follows an unknown option may be its value: it must not become the model.
  const bool value =
      !with_value && at_ + 1 < words_.size() && !words_[at_ + 1].text.starts_with('-');
  const bool no_model = !table_.positionals || !table_.first_word.empty();
  if (value && (!out_.model.empty() || no_model)) {
    ++at_;
    out_.notes.push_back({.kind = CommandNote::Kind::kUnknown,
                          .word = words_[at_].text,
                          .message = "taken as the value of " + name,
                          .value_of = name});
  }
}

}  // namespace kernelpath::features
