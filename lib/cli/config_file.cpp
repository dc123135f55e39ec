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

// 12, -3, 0.25 and 1_024, whose underscores are taken out; TOML's other spellings of numbers
// (0x40, 1e3, inf) are not read.
std::optional<std::string> number_of(std::string_view word) {
  std::string digits;
  char before = 0;
  for (const char c : word) {
    const bool splits = c == '_';
    if (splits && (before < '0' || before > '9')) return std::nullopt;
    if (before == '_' && (c < '0' || c > '9')) return std::nullopt;
    if (!splits) digits += c;
    before = c;
  }
  if (before == '_') return std::nullopt;
  const std::string_view rest = std::string_view(digits).substr(digits.starts_with('-') ? 1 : 0);
  const std::size_t dot = rest.find('.');
  const auto is_digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const bool fits = dot == std::string_view::npos
                        ? is_digits(rest)
                        : is_digits(rest.substr(0, dot)) && is_digits(rest.substr(dot + 1));
  return fits ? std::optional(digits) : std::nullopt;
}

// Reads a text from its begin to its end.
class ConfigReader {
 public:
  ConfigReader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  Result<std::vector<ConfigEntry>> read() {
    while (at_ < text_.size()) {
      KERNELPATH_CHECK_OK(read_line());
      skip_spaces();
      if (!at_line_end()) return fail(error("unexpected text at the end of the line"));
      next_line();
    }
    return std::move(entries_);
  }

 private:
  // A section's header, or a key with its value, whose array may end lines below.
  Result<void> read_line() {
    skip_spaces();
    if (at_line_end()) return {};
    if (accept('[')) {
      KERNELPATH_TRY(name, key());
      if (!accept(']')) return fail(error("expected ']' after the section's name"));
      section_ = std::move(name);
      return {};
    }
    ConfigEntry entry{.section = section_, .key = {}, .values = {}, .line = line_};
    KERNELPATH_TRY(name, key());
    entry.key = std::move(name);
    skip_spaces();
    if (!accept('=')) return fail(error("expected '=' after the key"));
    skip_spaces();
    KERNELPATH_TRY(values, value());
    entry.values = std::move(values);
    entries_.push_back(std::move(entry));
    return {};
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  // At a comment, or behind the line's last character.
  [[nodiscard]] bool at_line_end() const {
    if (at_ >= text_.size() || text_[at_] == '#' || text_[at_] == '\n') return true;
    return text_.substr(at_).starts_with("\r\n") || text_.substr(at_) == "\r";
  }
  void next_line() {
    at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
    line_start_ = at_;
    ++line_;
  }
  // Spaces, comments and ends of lines.
  void skip_lines() {
    skip_spaces();
    while (at_ < text_.size() && at_line_end()) {
      next_line();
      skip_spaces();
    }
  }
  bool accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<std::string> key() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    if (at_ < text_.size() && text_[at_] == '\'') return literal();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_key_character(text_[at_])) ++at_;
    if (at_ == start) {
      return fail(error("a key is letters, digits, '-' and '_', or stands in quotes"));
    }
    return std::string(text_.substr(start, at_ - start));
  }

  Result<std::vector<std::string>> value() {
    if (!accept('[')) {
      KERNELPATH_TRY(single, scalar());
      return std::vector<std::string>{single};
    }
    std::vector<std::string> values;
    skip_lines();
    while (!accept(']')) {
      KERNELPATH_TRY(item, scalar());
      values.push_back(item);
      skip_lines();
      if (accept(',')) {
        skip_lines();
      } else if (at_ >= text_.size() || text_[at_] != ']') {
        return fail(error("expected ',' or ']'"));
      }
    }
    return values;
  }

  Result<std::string> scalar() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    if (at_ < text_.size() && text_[at_] == '\'') return literal();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_scalar_character(text_[at_])) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word == "true" || word == "false") return std::string(word);
    if (std::optional<std::string> number = number_of(word)) return *std::move(number);
    at_ = start;
    return fail(error("expected a quoted text, a number, true, false or an array"));
  }

  Result<std::string> literal() {
    const std::size_t end = text_.find_first_of("'\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n') return fail(unclosed());
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }

  Result<std::string> quoted() {
    constexpr std::string_view kEscapes = "\"\\bfnrt";
    constexpr std::string_view kMeanings = "\"\\\b\f\n\r\t";
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
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
    return fail(unclosed());
  }

  // Points behind the line, where the quote is missing.
  [[nodiscard]] Error unclosed() {
    at_ = std::min(text_.find('\n', at_), text_.size());
    if (at_ > line_start_ && text_[at_ - 1] == '\r') --at_;
    return error("the text has no closing quote");
  }

  [[nodiscard]] Error error(std::string message) const {
    return {.code = ErrorCode::kUsage,
            .message = std::move(message),
            .file = file_,
            .where = fmt::format("{}:{}", line_, at_ - line_start_ + 1),
            .hint = R"(write key = "text", key = 12, key = true or key = ["a", "b"])"};
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  std::string section_;
  std::vector<ConfigEntry> entries_;
};

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
  return ConfigReader(text, file).read();
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
