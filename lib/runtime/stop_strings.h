#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::runtime {

// Watches generated text for stop strings. Text that may be the beginning of one is held back until
// more text decides, so that nothing of a stop string is ever given out.
class StopStrings {
 public:
  // Empty strings are left out: they would stop everything.
  explicit StopStrings(std::vector<std::string> strings);

  // Takes the next piece of text and returns what is safe to give out. Once a stop string was found
  // nothing more is given out.
  std::string push(std::string_view text);
  // The text held back, at the end of a sequence without a stop string.
  std::string finish();

  // The stop string that was found first.
  [[nodiscard]] const std::optional<std::string>& found() const { return found_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  std::optional<std::string> found_;
};

}  // namespace kernelpath::runtime
