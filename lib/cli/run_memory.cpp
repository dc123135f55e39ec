#include "cli/run_memory.h"

#include "base/units.h"
#include "kernels/cpu/isa.h"
#include "memory/weights.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace kernelpath::cli {
namespace {

// "1.24 B parameters", "143.9 K parameters".
std::string parameters_text(std::int64_t count) {
  constexpr std::array<std::pair<double, std::string_view>, 3> kUnits{
      {{1e9, "B"}, {1e6, "M"}, {1e3, "K"}}};
  for (const auto& [size, unit] : kUnits) {
    const double amount = static_cast<double>(count) / size;
    if (amount >= 1) return fmt::format("{:.4g} {} parameters", amount, unit);
  }
  return fmt::format("{} parameters", count);
}

// Who chose the backend.
std::string reason_of(const engines::Resolution& resolution) {
  if (resolution.status == engines::Status::kFallback) {
    return fmt::format("in place of {}", resolution.requested_backend);
  }
  return resolution.requested_by == "user" ? "as asked" : "the first that can";
}

}  // namespace

std::vector<std::string> plan_lines(const report::InputAnswer& answer,
                                    const runtime::SessionPlan& plan,
                                    const runtime::SessionOptions& options) {
  const engines::Resolution& resolution = answer.engines.front().resolution;
  const auto ledger = memory::count_weights(answer.model);
  std::vector<std::string> out;
  out.push_back(
      fmt::format("{}  {}{}  weights {}  {} on the CPU, {} ({}, {} thread{})  KV {} in {} pages",
                  answer.model.name, resolution.model_class,
                  ledger ? "  " + parameters_text(ledger->parameters) : "",
                  format_bytes(plan.weight_bytes), resolution.selected_backend,
                  reason_of(resolution), kernels::cpu::isa_phases(options.isa), options.threads,
                  options.threads == 1 ? "" : "s", format_bytes(plan.kv_bytes), plan.kv_blocks));
  const comm::Placement& ranks = options.ranks;
  if (ranks.ranks() == 1) return out;
  out.push_back(fmt::format("{} ranks (tp {}, dcp {}); the sizes are those of each{}",
                            ranks.ranks(), ranks.tp, ranks.dcp,
                            ranks.dcp > 1 ? "; --dcp divides the cache and no weights" : ""));
  return out;
}

report::Block plan_table(const runtime::SessionPlan& plan, const comm::Placement& ranks) {
  report::Block table{.kind = report::Block::Kind::kTable,
                      .header = {"what", "memory", "bytes", "of what"}};
  const auto row = [&](std::string name, std::int64_t bytes, std::string about) {
    table.rows.push_back(
        {{std::move(name)}, {format_bytes(bytes)}, {std::to_string(bytes)}, {std::move(about)}});
  };
  row("weights", plan.weight_bytes,
      ranks.dcp > 1 ? "as they lie in memory; each rank of --dcp has all of its --tp part"
                    : "as they lie in memory");
  row("KV cache", plan.kv_bytes,
      fmt::format("{} pages of {}", plan.kv_blocks, format_bytes(plan.kv_block_bytes)));
  row("construction", plan.construction_bytes, "the most while the model is built");
  row("states", plan.state_bytes, "of layers that keep one");
  row("activations", plan.workspace_bytes, "of the largest step, and its logits");
  row("kernels", plan.kernel_bytes, "what the matrix kernels of all threads work in");
  row("together", plan.total(), "weights, KV cache, states, activations and kernels");
  return table;
}

std::optional<std::string> length_warning(const engines::Request& request) {
  const std::int64_t asked = request.deployment.max_model_len.value_or(0);
  const config::IntField& own = request.model.max_position_embeddings;
  // A dynamic base is made for longer texts, the others are not.
  const bool grows = request.model.rope.type.value_or("") == "dynamic";
  if (!own || asked <= *own || grows) return std::nullopt;
  return fmt::format("--max-model-len {} is beyond the {} positions that the model is made for",
                     asked, *own);
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
