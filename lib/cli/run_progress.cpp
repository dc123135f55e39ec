#include "cli/run_progress.h"

#include "cli/output.h"
#include "cli/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

constexpr std::chrono::milliseconds kInterval{100};
constexpr std::int64_t kBarColumns = 24;
constexpr std::string_view kTakeBack = "\r\x1b[K";

}  // namespace

void Progress::draw() {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  if (!stale_ && visible_ && now - drawn_ < kInterval) return;
  stale_ = false;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const std::int64_t full = kBarColumns * done_ / std::max<std::int64_t>(requests_, 1);
  std::string text =
      fmt::format("[{}{}] {}/{} requests  {} tokens  {:.1f} tokens/s",
                  std::string(static_cast<std::size_t>(full), '#'),
                  std::string(static_cast<std::size_t>(kBarColumns - full), '.'), done_, requests_,
                  tokens_, seconds > 0 ? static_cast<double>(tokens_) / seconds : 0.0);
  // A line that wraps could not be taken back.
  const std::int64_t width = terminal_width(STDERR_FILENO);
  if (width > 1) text.resize(std::min(text.size(), static_cast<std::size_t>(width - 1)));
  visible_ = true;
  write_all(STDERR_FILENO, std::string(kTakeBack) + text);
}

void Progress::hide() {
  if (!visible_) return;
  visible_ = false;
  write_all(STDERR_FILENO, kTakeBack);
}

bool shows_progress(const Settings& settings, const ProcessEnvironment& environment,
                    std::int64_t requests) {
  const std::string* const terminal = environment.find("TERM");
  const bool dumb = terminal != nullptr && *terminal == "dumb";
  const bool unwanted = settings.flag(Option::kNoProgress) || settings.flag(Option::kQuiet) ||
                        settings.flag(Option::kLogJson);
  return requests > 1 && !unwanted && !dumb && is_terminal(STDERR_FILENO);
}

}  // namespace kernelpath::cli
