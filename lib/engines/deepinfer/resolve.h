#pragma once

#include "engines/deepinfer/start_up.h"
#include "engines/request.h"
#include "engines/resolution.h"

#include <optional>
#include <string_view>
#include <vector>

namespace kernelpath::engines::deepinfer {

inline constexpr std::string_view kBackend = "FLASHMLA";

// What the engine does with a request, its first refusal included; a refusal that it would meet
// only after loading weights says so.
Resolution resolve(const Request& request);

// The memory of one rank, with the layers of `out`. Appends its steps there.
Memory resolve_memory(const Request& request, const Arguments& arguments, const StartUp& run,
                      Resolution& out);

// The kernel call that FlashMLA refuses first; nothing where it takes all.
std::optional<Fault> first_kernel_refusal(const StartUp& run, const Machine& machine);

}  // namespace kernelpath::engines::deepinfer
