#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/option_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::cli {

// Who gave an option its value; a later one wins over an earlier one.
enum class SetBy : std::uint8_t { kDefault, kConfigFile, kEnvironment, kCommandLine, kBatchLine };

struct Setting {
  std::vector<std::string> values;  // of lists all, of others one; empty: unset
  SetBy set_by = SetBy::kDefault;
  std::string where;  // "--kv", "KERNELPATH_KV", "config.toml:3"; empty for a default
};

// The value of every option and where it comes from.
class Settings {
 public:
  explicit Settings(ProgramKind program = ProgramKind::kInspect);  // the defaults

  [[nodiscard]] ProgramKind program() const { return program_; }

  [[nodiscard]] const Setting& of(Option option) const {
    return settings_[static_cast<std::size_t>(option)];
  }
  // True if somebody set it, not only the default.
  [[nodiscard]] bool is_set(Option option) const { return of(option).set_by != SetBy::kDefault; }
  // The value as written; empty if there is none.
  [[nodiscard]] const std::string& text(Option option) const;
  [[nodiscard]] std::optional<std::string> optional_text(Option option) const;
  [[nodiscard]] const std::vector<std::string>& list(Option option) const {
    return of(option).values;
  }
  [[nodiscard]] bool flag(Option option) const { return text(option) == "true"; }
  // kInteger, kSize (in bytes) and kCount; checked when they were set.
  [[nodiscard]] std::optional<std::int64_t> integer(Option option) const;
  // kNumber, kPercent (a fraction) and kSeconds; 0 where it is unset.
  [[nodiscard]] double number(Option option) const;

  // Replaces the value of an option by `values` as a user wrote them, if `set_by` does not rank
  // below who set it before. Lists are split at commas. Errors name `where`.
  Result<void> set(Option option, const std::vector<std::string>& values, SetBy set_by,
                   std::string_view where);

 private:
  ProgramKind program_;
  std::vector<Setting> settings_;
};

// What this process was started with, read once by the program.
struct ProcessEnvironment {
  std::vector<std::pair<std::string, std::string>> variables;
  [[nodiscard]] const std::string* find(std::string_view name) const;
};

// Defaults < config file < KERNELPATH_… < command line. Reads the config file that --config-file,
// KERNELPATH_CONFIG_FILE or XDG_CONFIG_HOME names.
Result<Settings> make_settings(const Arguments& arguments, const ProcessEnvironment& environment,
                               const Program& program);

}  // namespace kernelpath::cli
