#pragma once

#include <string>
#include <string_view>

namespace kernelpath::report {

// Text for the content or a double-quoted attribute of XML and HTML. Characters that XML 1.0 cannot
// hold (control characters, and bytes that are no UTF-8) become U+FFFD.
std::string escape_markup(std::string_view text);

}  // namespace kernelpath::report
