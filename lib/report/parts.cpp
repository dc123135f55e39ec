#include "report/parts.h"

#include "base/text.h"
#include "base/units.h"
#include "config/show.h"
#include "report/facts.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace kernelpath::report {
namespace {

using engines::Stage;
using engines::Step;

std::string safe(std::string_view text) { return escape_for_terminal(text); }

Tone tone_of(const Step& step) {
  if (step.severity == engines::Severity::kError) return Tone::kBad;
  if (step.severity == engines::Severity::kWarn) return Tone::kWarn;
  return step.verdict == engines::Verdict::kSelected ? Tone::kGood : Tone::kPlain;
}

std::string engine_heading(const engines::Resolution& resolution, std::string_view what) {
  return fmt::format("{} {}: {}", safe(resolution.engine), safe(resolution.version), what);
}

std::string source_text(const engines::Source& source) {
  std::string out = safe(source.project);
  if (!source.file.empty()) out += (out.empty() ? "" : " ") + safe(source.file);
  if (!source.version.empty()) out += " @ " + safe(source.version);
  return out;
}

std::vector<Cell> step_row(const Step& step, const std::string& number, const View& view) {
  std::string reason = safe(step.reason);
  if (view.sources) {
    const std::string source = source_text(step.source);
    if (!source.empty()) reason += " (" + source + ")";
  }
  return {{number},
          {safe(step.rule)},
          {step.candidate.empty() ? "-" : safe(step.candidate)},
          {std::string(engines::verdict_name(step.verdict)), tone_of(step)},
          {std::string(engines::severity_name(step.severity)), tone_of(step)},
          {std::move(reason)}};
}

Block steps_table() {
  return {.kind = Block::Kind::kTable,
          .header = {"#", "rule", "candidate", "verdict", "level", "reason"}};
}

// "attn_backend = FLASHINFER  (--backend)"; what nobody touched is only counted.
std::vector<Block> option_lines(const engines::Resolution& resolution) {
  std::vector<Block> out;
  std::size_t untouched = 0;
  for (const engines::Resolution::Option& option : resolution.options) {
    if (option.set_by == "engine default") {
      ++untouched;
      continue;
    }
    out.push_back(line_block(
        fmt::format("{} = {}  ({})", safe(option.name), safe(option.value), safe(option.set_by))));
  }
  if (untouched > 0) {
    out.push_back(line_block(
        fmt::format("{} options are at the engine's default (--show backend)", untouched),
        Tone::kDim));
  }
  return out;
}

std::string kernel_text(const engines::KernelChoice& choice) {
  std::string out = choice.kernel.empty() ? "none" : safe(choice.kernel);
  if (!choice.note.empty()) out += " (" + safe(choice.note) + ")";
  return out;
}

void append_rejected(std::vector<Block>& out, std::string_view phase,
                     const engines::KernelChoice& choice) {
  for (const engines::RejectedKernel& rejected : choice.rejected) {
    out.push_back(line_block(fmt::format("{}: not {}: {} [{}]", phase, safe(rejected.kernel),
                                         safe(rejected.reason), safe(rejected.rule)),
                             Tone::kDim));
  }
}

std::string kind_text(const engines::LayerGroup& group) {
  const std::string_view kind = config::layer_kind_name(group.kind);
  return group.draft ? fmt::format("draft, {}", kind) : std::string(kind);
}

std::vector<Cell> layer_row(const engines::LayerGroup& group, const View& view) {
  std::vector<Cell> row = {{layer_ranges(group.layers)},
                           {kind_text(group)},
                           {group.window ? fmt::format("{}", *group.window) : "-"},
                           {group.backend.empty() ? "-" : safe(group.backend)}};
  if (view.prefill) row.push_back({kernel_text(group.prefill)});
  if (view.decode) row.push_back({kernel_text(group.decode)});
  const std::string cache = kv_text(group.kv);
  row.push_back({cache.empty() ? "-" : safe(cache)});
  row.push_back({format_bytes(group.kv_bytes_per_token)});
  return row;
}

Block pairs_table(std::vector<std::string> header, std::vector<std::vector<Cell>> rows) {
  return {.kind = Block::Kind::kTable, .header = std::move(header), .rows = std::move(rows)};
}

std::string bytes_or_unknown(const std::optional<std::int64_t>& bytes) {
  return bytes ? fmt::format("{} ({} bytes)", format_bytes(*bytes), *bytes) : "unknown";
}

std::vector<std::vector<Cell>> memory_rows(const engines::Memory& memory) {
  std::vector<std::vector<Cell>> rows = {
      {{"weights"}, {bytes_or_unknown(memory.weight_bytes)}},
      {{"KV per token, pool"}, {bytes_or_unknown(memory.kv_bytes_per_token)}},
      {{"KV per token, estimate"}, {bytes_or_unknown(memory.kv_bytes_per_token_estimate)}},
      {{"KV pool"}, {bytes_or_unknown(memory.kv_pool_bytes)}},
      {{"KV pool tokens"},
       {memory.kv_pool_tokens ? fmt::format("{}", *memory.kv_pool_tokens) : "unknown"}},
      {{"KV per sequence"}, {bytes_or_unknown(memory.kv_bytes_per_sequence)}}};
  if (memory.batch_sequences) {
    rows.push_back({{fmt::format("KV of {} sequences", *memory.batch_sequences)},
                    {bytes_or_unknown(memory.kv_bytes_per_batch)}});
  }
  if (memory.state_bytes_per_sequence) {
    rows.push_back({{"state per sequence"}, {bytes_or_unknown(memory.state_bytes_per_sequence)}});
  }
  if (memory.construction_host_bytes) {
    rows.push_back({{"host, while built"}, {bytes_or_unknown(memory.construction_host_bytes)}});
  }
  return rows;
}

std::string bandwidth_text(const std::optional<double>& bytes_per_s) {
  constexpr double kGiga = 1e9;
  return bytes_per_s ? fmt::format("{:.0f} GB/s", *bytes_per_s / kGiga) : "unknown";
}

}  // namespace

void append_device(std::vector<Block>& out, const InputAnswer& answer, const View& view) {
  if (!view.shows("device")) return;
  const hardware::Device& device = answer.device;
  const std::string capability =
      device.capability ? hardware::capability_text(*device.capability) : device.gfx_target;
  out.push_back(gap_block());
  out.push_back(heading_block("device " + safe(device.id)));
  out.push_back(pairs_table(
      {"what", "answer"},
      {{{"name"}, {device.label.empty() ? "-" : safe(device.label)}},
       {{"platform"}, {std::string(hardware::platform_name(device.platform))}},
       {{"capability"}, {capability.empty() ? "-" : safe(capability)}},
       {{"memory"}, {bytes_or_unknown(device.memory_bytes)}},
       {{"usable by a process"}, {bytes_or_unknown(device.usable_bytes())}},
       {{"multiprocessors"}, {device.sm_count ? fmt::to_string(*device.sm_count) : "unknown"}},
       {{"memory bandwidth"}, {bandwidth_text(device.memory_bandwidth_bytes_per_s)}},
       {{"source"}, {device.source.empty() ? "the options" : safe(device.source)}}}));
}

void append_values(std::vector<Block>& out, const InputAnswer& answer, const View& view) {
  std::vector<std::vector<Cell>> rows;
  for (const std::string_view group : config::show_groups()) {
    if (!view.shows(group)) continue;
    for (const config::ShownValue& shown : config::show_values(answer.model, group)) {
      rows.push_back(
          {{safe(shown.group)}, {safe(shown.name)}, {safe(shown.value)}, {safe(shown.origin)}});
    }
  }
  if (rows.empty()) return;
  out.push_back(gap_block());
  out.push_back(pairs_table({"part", "name", "value", "from"}, std::move(rows)));
}

void append_options(std::vector<Block>& out, const EngineAnswer& answer, const View& view) {
  const engines::Resolution& resolution = answer.resolution;
  if (view.shows("backend") && !resolution.options.empty()) {
    std::vector<std::vector<Cell>> rows;
    for (const engines::Resolution::Option& option : resolution.options) {
      rows.push_back({{safe(option.name)}, {safe(option.value)}, {safe(option.set_by)}});
    }
    out.push_back(gap_block());
    out.push_back(heading_block(engine_heading(resolution, "resolved options")));
    out.push_back(pairs_table({"option", "value", "set by"}, std::move(rows)));
  }
  if (view.shows("memory")) {
    out.push_back(gap_block());
    out.push_back(heading_block(engine_heading(resolution, "memory of one rank")));
    out.push_back(pairs_table({"what", "bytes"}, memory_rows(resolution.memory)));
  }
}

void append_layers(std::vector<Block>& out, const EngineAnswer& answer, const View& view) {
  const engines::Resolution& resolution = answer.resolution;
  if (resolution.layers.empty()) return;
  Block table{.kind = Block::Kind::kTable};
  table.header = {"layers", "kind", "window", "backend"};
  if (view.prefill) table.header.emplace_back("prefill");
  if (view.decode) table.header.emplace_back("decode");
  table.header.insert(table.header.end(), {"kv cache", "KV per token"});
  out.push_back(gap_block());
  out.push_back(heading_block(engine_heading(resolution, "layers")));
  for (const engines::LayerGroup& group : resolution.layers) {
    table.rows.push_back(layer_row(group, view));
  }
  out.push_back(std::move(table));
  if (!view.why) return;
  for (const engines::LayerGroup& group : resolution.layers) {
    const std::string layers = "layers " + layer_ranges(group.layers) + ", ";
    if (view.prefill) append_rejected(out, layers + "prefill", group.prefill);
    if (view.decode) append_rejected(out, layers + "decode", group.decode);
  }
}

void append_steps(std::vector<Block>& out, const EngineAnswer& answer, const View& view) {
  constexpr std::array kOrder = {Stage::kModelClass,   Stage::kFinalValue,   Stage::kFallback,
                                 Stage::kAvailability, Stage::kConstruction, Stage::kRewrite,
                                 Stage::kInnerKernel,  Stage::kMemory};
  const engines::Resolution& resolution = answer.resolution;
  out.push_back(gap_block());
  out.push_back(
      heading_block(engine_heading(resolution, "steps (# is the engine's order of decisions)")));
  for (const Stage stage : kOrder) {
    Block table = steps_table();
    for (std::size_t i = 0; i < resolution.steps.size(); ++i) {
      const Step& step = resolution.steps[i];
      if (step.stage != stage) continue;
      table.rows.push_back(step_row(step, fmt::format("{}", i + 1), view));
    }
    const std::vector<Block> options =
        stage == Stage::kFinalValue ? option_lines(resolution) : std::vector<Block>();
    if (table.rows.empty() && options.empty()) continue;
    out.push_back(subheading_block(std::string(stage_title(stage))));
    out.insert(out.end(), options.begin(), options.end());
    if (!table.rows.empty()) out.push_back(std::move(table));
  }
}

void append_why_not(std::vector<Block>& out, const EngineAnswer& answer, const View& view) {
  if (!answer.why_not) return;
  out.push_back(gap_block());
  out.push_back(
      heading_block(engine_heading(answer.resolution, "why not " + safe(answer.why_not_backend))));
  if (answer.why_not->admitted) {
    out.push_back(line_block("ok    it is admitted: nothing refuses it here", Tone::kGood));
    return;
  }
  Block table = steps_table();
  for (std::size_t i = 0; i < answer.why_not->refusals.size(); ++i) {
    table.rows.push_back(step_row(answer.why_not->refusals[i], fmt::format("{}", i + 1), view));
  }
  if (!table.rows.empty()) out.push_back(std::move(table));
  if (answer.why_not->remedies.empty()) {
    out.push_back(line_block("No change of flags or device would admit it."));
    return;
  }
  out.push_back(line_block("Smallest changes that would admit it:"));
  for (const auto& changes : answer.why_not->remedies) {
    std::vector<std::string> parts;
    parts.reserve(changes.size());
    for (const engines::Engine::WhyNot::Change& change : changes) {
      parts.push_back(safe(change.option) +
                      (change.effect.empty() ? "" : " (" + safe(change.effect) + ")"));
    }
    out.push_back(line_block("  do: " + join_words(parts)));
  }
}

}  // namespace kernelpath::report
