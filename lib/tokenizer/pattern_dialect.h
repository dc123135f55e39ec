#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace kernelpath::tokenizer {

// Writes a pattern of tokenizer files for PCRE2 (UTF, UCP, MULTILINE), so that both mean the same.
//
// Tokenizer files are read by Oniguruma with Ruby's syntax, which differs: \h is a hexadecimal
// digit, \s the property White_Space, \w the alphabetic characters, marks, decimal digits and
// connectors, \v a vertical tab; {n,m}+ repeats and is not possessive, {,n} is an interval; (?m)
// lets the dot match newlines; \p{Han} is a script and not its extensions; sets may hold sets and
// be intersected (&&). An escaped letter without a meaning is that letter. Error: kConfigValue, for
// what has no equivalent.
Result<std::string> to_pcre(std::string_view pattern);

}  // namespace kernelpath::tokenizer
