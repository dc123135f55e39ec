#pragma once

#include "base/result.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::tokenizer {

// A part of a text, and whether it is what was looked for or what lies between.
struct Match {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_match = true;
};

// A pattern in the dialect of tokenizer files (Oniguruma with Ruby's syntax, see
// pattern_dialect.h), compiled by PCRE2 for Unicode. Immutable; may be used by several threads.
class Regex {
 public:
  // Errors: kConfigValue without file and place, which the caller adds.
  static Result<Regex> compile(std::string_view pattern);

  Regex(Regex&& other) noexcept;
  Regex& operator=(Regex&& other) noexcept;
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;
  ~Regex();

  // Cuts valid UTF-8 into matches and what lies between them, in order and without gaps. A match
  // may be empty. Error: kInputLimit where the pattern needs too many steps on this text.
  [[nodiscard]] Result<void> find_all(std::string_view text, std::vector<Match>& out) const;

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace kernelpath::tokenizer
