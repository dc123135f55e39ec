#pragma once

#include "engines/request.h"
#include "engines/vllm/selector_input.h"

#include <optional>
#include <string_view>

namespace kernelpath::engines::vllm {

// What the rules see of a device and of what is installed on it. Nothing: the engine has no
// platform for the device.
std::optional<Machine> machine_of(const hardware::Device& device, const Environment& environment);

// Whether a variable of the engine's process is set to "1" or "true".
bool variable_is_on(const Environment& environment, std::string_view name);

}  // namespace kernelpath::engines::vllm
