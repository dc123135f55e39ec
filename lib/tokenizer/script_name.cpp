#include "tokenizer/script_name.h"

#include <string>

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): pcre2.h asks for it
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace kernelpath::tokenizer {

// PCRE2 has no list of its names to ask, but refuses a pattern with an unknown one.
bool is_script_name(std::string_view name) {
  std::string pattern = "\\p{sc:";
  pattern += name;
  pattern += '}';
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF, &error, &offset, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

}  // namespace kernelpath::tokenizer
