#include "base/text.h"
#include "hardware/device.h"

#include <algorithm>
#include <array>

namespace kernelpath::hardware {
namespace {

// 7.2 (Xavier) and 8.8 exist too, but no engine here has a rule for them.
constexpr std::array kKnown = {Capability{7, 0},  Capability{7, 5},  Capability{8, 0},
                               Capability{8, 6},  Capability{8, 7},  Capability{8, 9},
                               Capability{9, 0},  Capability{10, 0}, Capability{10, 3},
                               Capability{11, 0}, Capability{12, 0}, Capability{12, 1}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A run of one to three digits without a leading zero, or -1.
int small_number(std::string_view text) {
  if (text.empty() || text.size() > 3 || !std::all_of(text.begin(), text.end(), is_digit))
    return -1;
  if (text.size() > 1 && text.front() == '0') return -1;
  int value = 0;
  for (const char c : text) value = value * 10 + (c - '0');
  return value;
}

std::optional<Capability> known(auto&& matches) {
  const auto* found = std::find_if(kKnown.begin(), kKnown.end(), matches);
  if (found == kKnown.end()) return std::nullopt;
  return *found;
}

// "9.0" after prefix and suffix are gone.
std::optional<Capability> from_dotted(std::string_view text, std::size_t dot) {
  const int major = small_number(text.substr(0, dot));
  const int minor = small_number(text.substr(dot + 1));
  return known([&](Capability c) { return c.major == major && c.minor == minor; });
}

// "90", or a bare major "9", which stands for 9.0. No known capability could be read both ways: a
// bare major's number as an SM ("12" as 1.2) is older than anything that is known.
std::optional<Capability> from_number(std::string_view text, bool allow_bare_major) {
  const int number = small_number(text);
  return known([&](Capability c) {
    return c.sm() == number || (allow_bare_major && c.minor == 0 && c.major == number);
  });
}

bool strip_prefix(std::string_view& text) {
  for (const std::string_view prefix : {"sm_", "sm", "compute_"}) {
    if (text.substr(0, prefix.size()) == prefix) {
      text.remove_prefix(prefix.size());
      return true;
    }
  }
  return false;
}

// `number` is `text` without prefix and suffix.
Error unknown_capability_error(std::string_view text, std::string_view number) {
  std::vector<std::string> names;
  names.reserve(kKnown.size());
  for (const Capability c : kKnown) {
    names.push_back(std::to_string(c.major) + "." + std::to_string(c.minor));
  }
  Error error{.code = ErrorCode::kUsageUnknown,
              .message = "unknown compute capability '" + escape_for_terminal(shorten(text, 32)) +
                         "'; known: " + join(names, ", "),
              .hint = "write 9.0, 90 or sm90"};
  if (number == "101" || number == "10.1") {
    error.hint = "CUDA 13 renamed 10.1 (Jetson Thor) to 11.0";
  }
  return error;
}

}  // namespace

std::span<const Capability> known_capabilities() { return kKnown; }

std::string capability_text(Capability capability) {
  return "sm" + std::to_string(capability.sm());
}

Result<Capability> parse_capability(std::string_view text) {
  const std::string lower = to_lower(trim(text));
  std::string_view rest = lower;
  const bool prefixed = strip_prefix(rest);
  // The suffixes of architecture- and family-specific code name the same machine.
  const bool suffixed = !rest.empty() && (rest.back() == 'a' || rest.back() == 'f');
  if (suffixed) rest.remove_suffix(1);
  const std::size_t dot = rest.find('.');
  const auto capability = dot != std::string_view::npos
                              ? from_dotted(rest, dot)
                              : from_number(rest, /*allow_bare_major=*/!prefixed && !suffixed);
  // 'a' exists from 9.0 on, 'f' from 10.0 on.
  const int first_major = lower.empty() || lower.back() != 'f' ? 9 : 10;
  if (!capability || (suffixed && capability->major < first_major)) {
    return fail(unknown_capability_error(text, rest));
  }
  return *capability;
}

}  // namespace kernelpath::hardware
