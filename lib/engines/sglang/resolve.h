#pragma once

#include "engines/request.h"
#include "engines/resolution.h"
#include "engines/sglang/profile.h"

namespace kernelpath::engines::sglang {

// From a request to everything that the engine decides, in its order: arguments, model class,
// attention, cache, graphs, memory. A refusal of the engine ends the walk and is the Resolution's
// error; the steps before it stay.
Resolution resolve(const Request& request, const Profile& profile);

}  // namespace kernelpath::engines::sglang
