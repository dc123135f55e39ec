#include "cli/run_memory.h"

#include "base/units.h"

#include <fmt/format.h>

#include <string_view>

namespace kernelpath::cli {

std::string plan_table(const runtime::SessionPlan& plan) {
  std::string text;
  const auto row = [&](std::string_view name, std::int64_t bytes, std::string_view about) {
    text += fmt::format("{:<13} {:>12}  {:>13}  {}\n", name, format_bytes(bytes), bytes, about);
  };
  row("weights", plan.weight_bytes, "as they lie in memory");
  row("KV cache", plan.kv_bytes,
      fmt::format("{} pages of {}", plan.kv_blocks, format_bytes(plan.kv_block_bytes)));
  row("construction", plan.construction_bytes, "the most while the model is built");
  row("states", plan.state_bytes, "of layers that keep one");
  row("activations", plan.workspace_bytes, "of the largest step, and its logits");
  row("together", plan.total(), "weights, KV cache, states and activations");
  return text;
}

std::string memory_line(const runtime::SessionPlan& plan, const runtime::SessionMemory& memory) {
  if (!memory.before || !memory.construction_peak) return "";
  return fmt::format(
      "memory until the model was built: {} predicted ({} before, {} to build it), "
      "{} measured",
      format_bytes(*memory.before + plan.construction_bytes), format_bytes(*memory.before),
      format_bytes(plan.construction_bytes), format_bytes(*memory.construction_peak));
}

}  // namespace kernelpath::cli
