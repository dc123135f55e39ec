#pragma once

#include "engines/kernelpath/launch.h"
#include "engines/kernelpath/layers.h"
#include "engines/request.h"
#include "engines/resolution.h"

#include <vector>

namespace kernelpath::engines::kernelpath {

// How the ranks of --tp and --dcp share the model; nothing for one rank.
void append_rank_steps(const Request& request, const Launch& launch, const OwnModelLayers& layers,
                       std::vector<Step>& steps);

}  // namespace kernelpath::engines::kernelpath
