#include "cli/config_file.h"

#include "base/file.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kernelpath::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

bool is_scalar_character(char c) { return is_key_character(c) || c == '+' || c == '.'; }

// 12, -3 and 0.25; TOML's other spellings of numbers are not read.
bool is_number(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  const std::size_t dot = word.find('.');
  const auto is_digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (dot == std::string_view::npos) return is_digits(word);
  return is_digits(word.substr(0, dot)) && is_digits(word.substr(dot + 1));
}

// Reads one line from left to right.
class LineReader {
 public:
  LineReader(std::string_view text, const std::string& file, int line)
      : text_(text), file_(file), line_(line) {}

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  [[nodiscard]] bool at_end() const { return at_ >= text_.size() || text_[at_] == '#'; }
  bool accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<std::string> key() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_key_character(text_[at_])) ++at_;
    if (at_ == start) return fail(error("a key is letters, digits, '-' and '_'"));
    return std::string(text_.substr(start, at_ - start));
  }

  Result<std::vector<std::string>> value() {
    if (!accept('[')) {
      KERNELPATH_TRY(single, scalar());
      return std::vector<std::string>{single};
    }
    std::vector<std::string> values;
    skip_spaces();
    while (!accept(']')) {
      KERNELPATH_TRY(item, scalar());
      values.push_back(item);
      skip_spaces();
      if (accept(',')) {
        skip_spaces();
      } else if (at_ >= text_.size() || text_[at_] != ']') {
        return fail(error("expected ',' or ']' (an array stands on one line)"));
      }
    }
    return values;
  }

  [[nodiscard]] Error error(std::string message) const {
    return {.code = ErrorCode::kUsage,
            .message = std::move(message),
            .file = file_,
            .where = fmt::format("{}:{}", line_, at_ + 1),
            .hint = R"(write key = "text", key = 12, key = true or key = ["a", "b"])"};
  }

 private:
  Result<std::string> scalar() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    if (at_ < text_.size() && text_[at_] == '\'') return literal();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_scalar_character(text_[at_])) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word == "true" || word == "false" || is_number(word)) return std::string(word);
    at_ = start;
    return fail(error("expected a quoted text, a number, true, false or an array"));
  }

  Result<std::string> literal() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return fail(error("the text has no closing quote"));
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }

  Result<std::string> quoted() {
    constexpr std::string_view kEscapes = "\"\\bfnrt";
    constexpr std::string_view kMeanings = "\"\\\b\f\n\r\t";
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        return out;
      }
      if (text_[at_] != '\\') {
        out += text_[at_];
        continue;
      }
      const std::size_t escape =
          ++at_ < text_.size() ? kEscapes.find(text_[at_]) : std::string_view::npos;
      if (escape == std::string_view::npos) return fail(error("unknown escape in a quoted text"));
      out += kMeanings[escape];
    }
    return fail(error("the text has no closing quote"));
  }

  std::string_view text_;
  const std::string& file_;
  int line_;
  std::size_t at_ = 0;
};

// Reads one line; entries go to `out`, a section header changes `section`.
Result<void> read_line(LineReader reader, int line, std::string& section,
                       std::vector<ConfigEntry>& out) {
  reader.skip_spaces();
  if (reader.at_end()) return {};
  if (reader.accept('[')) {
    KERNELPATH_TRY(name, reader.key());
    if (!reader.accept(']')) return fail(reader.error("expected ']' after the section's name"));
    section = name;
  } else {
    ConfigEntry entry{.section = section, .key = {}, .values = {}, .line = line};
    KERNELPATH_TRY(key, reader.key());
    entry.key = key;
    reader.skip_spaces();
    if (!reader.accept('=')) return fail(reader.error("expected '=' after the key"));
    reader.skip_spaces();
    KERNELPATH_TRY(values, reader.value());
    entry.values = std::move(values);
    out.push_back(std::move(entry));
  }
  reader.skip_spaces();
  if (!reader.at_end()) return fail(reader.error("unexpected text at the end of the line"));
  return {};
}

// The file to read, and whether somebody named it.
struct ConfigPath {
  std::string path;
  bool named = false;
};

ConfigPath config_path(const Arguments& arguments, const ProcessEnvironment& environment) {
  const std::vector<std::string>& option = arguments.of(Option::kConfigFile);
  if (!option.empty()) return {option.back(), true};
  const std::string* variable = environment.find(environment_name("config-file"));
  if (variable != nullptr && !variable->empty()) return {*variable, true};
  const std::string* base = environment.find("XDG_CONFIG_HOME");
  if (base != nullptr && !base->empty()) return {*base + "/kernelpath/config.toml", false};
  const std::string* home = environment.find("HOME");
  if (home != nullptr && !home->empty()) return {*home + "/.config/kernelpath/config.toml", false};
  return {};
}

// Nothing if there is no file and nobody named it.
Result<std::optional<std::string>> read_config(const ConfigPath& config) {
  if (config.path.empty()) return std::nullopt;
  Result<FileContents> file = read_file(config.path, kMostBytes);
  if (file) return std::move(file->text);
  if (!config.named && file.error().code == ErrorCode::kInputMissing) return std::nullopt;
  return fail(std::move(file).error());
}

Result<void> apply_entry(Settings& settings, const ConfigEntry& entry, const std::string& file) {
  const std::string where = fmt::format("{}:{}", file, entry.line);
  const OptionRow* row = find_option(entry.key);
  if (row == nullptr || entry.key.size() == 1) {
    return fail({.code = ErrorCode::kUsageUnknown,
                 .message = "no such option",
                 .file = file,
                 .where = std::to_string(entry.line),
                 .value = entry.key,
                 .near_matches = near_options(entry.key)});
  }
  if (row->scope == Scope::kCommandLine) {
    return fail({.code = ErrorCode::kUsage,
                 .message = "this option can be given on the command line only",
                 .file = file,
                 .where = std::to_string(entry.line),
                 .value = entry.key});
  }
  return settings.set(row->id, entry.values, SetBy::kConfigFile, where);
}

}  // namespace

Result<std::vector<ConfigEntry>> parse_config_text(std::string_view text, const std::string& file) {
  std::vector<ConfigEntry> entries;
  std::string section;
  int line = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view content = rest.substr(0, end);
    if (!content.empty() && content.back() == '\r') content.remove_suffix(1);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line;
    KERNELPATH_CHECK_OK(read_line(LineReader(content, file, line), line, section, entries));
  }
  return entries;
}

Result<void> apply_config_file(Settings& settings, const Arguments& arguments,
                               const ProcessEnvironment& environment, std::string_view program) {
  const ConfigPath config = config_path(arguments, environment);
  KERNELPATH_TRY(text, read_config(config));
  if (!text) return {};
  KERNELPATH_TRY(entries, parse_config_text(*text, config.path));
  // The program's own section wins over the top, wherever it stands.
  for (const std::string_view section : {std::string_view(), program}) {
    for (const ConfigEntry& entry : entries) {
      if (entry.section == section) KERNELPATH_CHECK_OK(apply_entry(settings, entry, config.path));
    }
  }
  return {};
}

}  // namespace kernelpath::cli
