#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace kernelpath::cli {

bool is_terminal(int fd) { return isatty(fd) == 1; }

std::int64_t terminal_width(int fd) {
  winsize size{};
  if (!is_terminal(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool use_color(std::string_view color_option, const ProcessEnvironment& environment,
               bool stream_is_terminal) {
  if (color_option == "always") return true;
  if (color_option == "never") return false;
  const std::string* force = environment.find("CLICOLOR_FORCE");
  if (force != nullptr && *force == "1") return true;
  const std::string* no_color = environment.find("NO_COLOR");
  if (no_color != nullptr && !no_color->empty()) return false;
  const std::string* term = environment.find("TERM");
  if (term != nullptr && *term == "dumb") return false;
  return stream_is_terminal;
}

}  // namespace kernelpath::cli
