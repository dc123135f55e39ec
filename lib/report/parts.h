#pragma once

#include "report/blocks.h"

#include <vector>

// The parts of a report that an option asks for.

namespace kernelpath::report {

// --show device: what is known of it, and who says so.
void append_device(std::vector<Block>& out, const InputAnswer& answer, const View& view);
// --show: derived values of the model with their origins.
void append_values(std::vector<Block>& out, const InputAnswer& answer, const View& view);
// --show backend and --show memory: resolved options and all ledger entries.
void append_options(std::vector<Block>& out, const EngineAnswer& answer, const View& view);
// --layers: one row per group of layers.
void append_layers(std::vector<Block>& out, const EngineAnswer& answer, const View& view);
// --why: all steps by stage, numbered in the engine's order of decisions.
void append_steps(std::vector<Block>& out, const EngineAnswer& answer, const View& view);
// --why-not: refusals and remedies.
void append_why_not(std::vector<Block>& out, const EngineAnswer& answer, const View& view);

}  // namespace kernelpath::report
