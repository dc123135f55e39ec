#pragma once

#include "engines/engine.h"
#include "engines/sglang/profile.h"

#include <string_view>

namespace kernelpath::engines::sglang {

// What refuses the attention backend `name` for a request, and the smallest changes that admit it.
// A backend is admitted where it serves a phase. Error kUsageUnknown for a name that is none.
Result<Engine::WhyNot> why_not(const Request& request, std::string_view name,
                               const Profile& profile);

}  // namespace kernelpath::engines::sglang
