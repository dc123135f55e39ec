#pragma once

#include "cli/settings.h"

#include <cstdint>
#include <string_view>

namespace kernelpath::cli {

bool is_terminal(int fd);

// Columns of the terminal behind `fd`; 0 if it is none.
std::int64_t terminal_width(int fd);

// --color, then CLICOLOR_FORCE, NO_COLOR, TERM=dumb, then whether the stream is a terminal.
bool use_color(std::string_view color_option, const ProcessEnvironment& environment,
               bool stream_is_terminal);

}  // namespace kernelpath::cli
