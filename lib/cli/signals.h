#pragma once

namespace kernelpath::cli {

// SIGPIPE and SIGXFSZ are ignored (a closed pipe shows as EPIPE, a file as large as is allowed as
// EFBIG); SIGINT, SIGTERM and SIGHUP ask the program to stop after what it is doing; another one
// half a second later or more ends it at once.
void install_signal_handlers();

// The signal that asked to stop, or 0.
int stop_signal();

// Makes sure that descriptors 0, 1 and 2 are open, so that no file of ours becomes one of them.
void open_standard_streams();

}  // namespace kernelpath::cli
