#include "bench/range.h"

#include "base/text.h"
#include "base/units.h"

#include <limits>
#include <optional>

namespace kernelpath::bench {
namespace {

Error bad_range(std::string_view text, std::string_view where, std::string message) {
  return {.code = ErrorCode::kUsage,
          .message = std::move(message),
          .where = std::string(where),
          .value = shorten(text, 64),
          .hint = "write 8, 1..64*2 (1 2 4 … 64) or 1..8+1 (1 2 3 … 8)"};
}

// A whole number of at least 1, or nothing.
std::optional<std::int64_t> positive(std::string_view text) {
  const Result<std::int64_t> number = parse_integer(text);
  if (!number || *number < 1) return std::nullopt;
  return *number;
}

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  char kind = '+';  // or '*'
  std::int64_t step = 0;
};

std::vector<std::int64_t> values_of(const Range& range) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> out;
  for (std::int64_t value = range.first; value <= range.last;) {
    out.push_back(value);
    if (out.size() > kMostRangeValues) break;
    const bool overflows =
        range.kind == '*' ? value > kMost / range.step : value > kMost - range.step;
    if (overflows) break;
    value = range.kind == '*' ? value * range.step : value + range.step;
  }
  return out;
}

}  // namespace

Result<std::vector<std::int64_t>> parse_range(std::string_view text, std::string_view where) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    const auto number = positive(text);
    if (!number) return fail(bad_range(text, where, "not a whole number of at least 1"));
    return std::vector<std::int64_t>{*number};
  }
  const std::string_view rest = text.substr(dots + 2);
  const std::size_t sign = rest.find_first_of("*+");
  if (sign == std::string_view::npos) {
    return fail(bad_range(text, where, "a range says by what it grows"));
  }
  const auto first = positive(text.substr(0, dots));
  const auto last = positive(rest.substr(0, sign));
  const auto step = positive(rest.substr(sign + 1));
  if (!first || !last || !step) {
    return fail(bad_range(text, where, "a range is made of whole numbers of at least 1"));
  }
  if (rest[sign] == '*' && *step < 2) {
    return fail(bad_range(text, where, "a range that grows by a factor needs one of at least 2"));
  }
  if (*first > *last) return fail(bad_range(text, where, "the range ends before it begins"));
  std::vector<std::int64_t> out =
      values_of({.first = *first, .last = *last, .kind = rest[sign], .step = *step});
  if (out.size() > kMostRangeValues) {
    return fail(bad_range(text, where, "the range has more than 4096 values"));
  }
  return out;
}

Result<std::vector<std::int64_t>> parse_ranges(const std::vector<std::string>& texts,
                                               std::string_view where) {
  std::vector<std::int64_t> out;
  for (const std::string& text : texts) {
    KERNELPATH_TRY(values, parse_range(text, where));
    out.insert(out.end(), values.begin(), values.end());
    if (out.size() > kMostRangeValues) {
      return fail(bad_range(text, where, "the list has more than 4096 values"));
    }
  }
  return out;
}

}  // namespace kernelpath::bench
