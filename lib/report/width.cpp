#include "report/width.h"

#include "base/text.h"
#include "base/utf8.h"

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <utility>

namespace kernelpath::report {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// wcwidth() answers for the thread's locale; this one knows Unicode and is part of glibc itself.
locale_t unicode_locale() {
  static const locale_t kLocale = newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
  return kLocale;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  if (is_ascii(text)) return text.size();
  const locale_t unicode = unicode_locale();
  const locale_t before = unicode == locale_t{} ? locale_t{} : uselocale(unicode);
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text.substr(i));
    const int width = before == locale_t{} ? 1 : wcwidth(static_cast<wchar_t>(point.value));
    columns += width < 0 ? 1 : static_cast<std::size_t>(width);
    i += std::max<std::size_t>(point.length, 1);
  }
  if (before != locale_t{}) uselocale(before);
  return columns;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  if (width == 0 || display_width(text) <= width) return {std::string(text)};
  std::vector<std::string> lines;
  std::string line;
  for (const std::string& word : split(text, ' ')) {
    const bool fits = display_width(line) + 1 + display_width(word) <= width;
    if (!line.empty() && !fits) lines.push_back(std::exchange(line, {}));
    if (!line.empty()) line += ' ';
    line += word;
  }
  lines.push_back(std::move(line));
  return lines;
}

}  // namespace kernelpath::report
