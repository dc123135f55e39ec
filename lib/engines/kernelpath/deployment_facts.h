#pragma once

#include "engines/request.h"
#include "engines/resolution.h"
#include "hardware/device.h"

#include <vector>

namespace kernelpath::engines::kernelpath {

// What the engine says of a deployment without any model, for the rules of
// data/rules/kernelpath.json. It is asked of the functions and the capability table that a run
// asks, so a rule cannot differ from what a run does:
//   launch.faults       what read_launch() refuses
//   launch.ranks, .quantization, .dtype, .speculative   unsupported_options(), by their option
//   launch.aliases      the other engine's name and what it stands for
//   table.refusals      why no backend, or not the named one, runs a plain causal layer on this
//                       device with this cache
// Each is a list of sentences, empty where there is nothing to say.
std::vector<Resolution::Fact> deployment_facts(const hardware::Device& device,
                                               const Deployment& deployment);

}  // namespace kernelpath::engines::kernelpath
