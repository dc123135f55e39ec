#pragma once

#include <cstdint>
#include <optional>

namespace kernelpath {

// Bytes that this process can still take without the system swapping or ending it: the kernel's
// MemAvailable, or what the process's control group (version 2) leaves of its limit, whichever is
// less. Nothing where the system does not say.
std::optional<std::int64_t> available_host_bytes();

// Bytes of this process that lie in memory now, and the most that did since it began (VmRSS and
// VmHWM of /proc/self/status). Nothing where the system does not say.
std::optional<std::int64_t> resident_bytes();
std::optional<std::int64_t> peak_resident_bytes();

}  // namespace kernelpath
