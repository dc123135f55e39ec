#include "runtime/stop_strings.h"

#include <algorithm>

namespace kernelpath::runtime {
namespace {

// Length of the longest end of `text` that begins `stop` without being all of it.
std::size_t pending(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  std::erase_if(strings_, [](const std::string& text) { return text.empty(); });
}

std::string StopStrings::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  std::size_t first = std::string::npos;
  for (const std::string& stop : strings_) {
    const std::size_t at = held_.find(stop);
    if (at >= first) continue;
    first = at;
    found_ = stop;
  }
  std::size_t keep = 0;
  if (!found_) {
    for (const std::string& stop : strings_) keep = std::max(keep, pending(held_, stop));
    first = held_.size() - keep;
  }
  std::string out = held_.substr(0, first);
  held_ = found_ ? std::string() : held_.substr(first);
  return out;
}

std::string StopStrings::finish() {
  std::string out = std::move(held_);
  held_.clear();
  return out;
}

}  // namespace kernelpath::runtime
