#include "base/text.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace kernelpath {
namespace {

char lower(char c) { return (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c; }
char upper(char c) { return (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c; }

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::string to_upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), upper);
  return out;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string escape_for_terminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode_utf8(text.substr(i));
    if (point.length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text[i]));
      i += 1;
      continue;
    }
    if (!is_dangerous_on_terminal(point.value)) {
      out.append(text, i, point.length);
    } else if (point.value == '\n') {
      out += "\\n";
    } else if (point.value == '\t') {
      out += "\\t";
    } else if (point.value == '\r') {
      out += "\\r";
    } else if (point.value < 0x100) {
      out += fmt::format("\\x{:02x}", point.value);
    } else {
      out += fmt::format("\\u{:04x}", point.value);
    }
    i += point.length;
  }
  return out;
}

std::string shorten(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (static_cast<std::uint8_t>(text[end]) & 0xc0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "…";
}

std::vector<std::string> near_matches(std::string_view name,
                                      std::span<const std::string_view> candidates,
                                      std::size_t limit) {
  constexpr std::size_t kLongestName = 128;
  if (name.empty() || name.size() > kLongestName) return {};
  std::vector<std::pair<std::size_t, std::string_view>> scored;
  for (const std::string_view candidate : candidates) {
    const std::size_t longest = std::max(name.size(), candidate.size());
    const std::size_t allowed = std::max<std::size_t>(2, longest / 3);
    const std::size_t distance = edit_distance(name, candidate);
    if (distance <= allowed && distance < longest) scored.emplace_back(distance, candidate);
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (std::size_t i = 0; i < scored.size() && i < limit; ++i) {
    out.emplace_back(scored[i].second);
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  if (text.empty()) return out;
  std::size_t start = 0;
  while (true) {
    const std::size_t end = text.find(separator, start);
    out.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return out;
    start = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string join_words(std::span<const std::string> words, std::string_view last) {
  if (words.size() < 2) return words.empty() ? std::string() : words[0];
  return join(words.first(words.size() - 1), ", ") + " " + std::string(last) + " " + words.back();
}

}  // namespace kernelpath
