#include "report/blocks.h"

#include "base/text.h"
#include "base/units.h"
#include "hardware/probe.h"
#include "report/facts.h"
#include "report/memory.h"
#include "report/parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::report {
namespace {

using engines::Resolution;
using engines::Status;

std::string safe(std::string_view text) { return escape_for_terminal(text); }

std::string or_dash(const std::string& text) { return text.empty() ? "-" : safe(text); }

// "bfloat16" → "bf16"; other names as they are.
std::string short_dtype(const std::string& name) {
  if (name == "bfloat16") return "bf16";
  if (name == "float16") return "fp16";
  return name == "float32" ? "fp32" : name;
}

std::string rope_text(const config::Rope& rope) {
  const std::string type = rope.type.value_or("default");
  if (type == "default") return "";
  std::string text = "rope " + safe(type);
  if (rope.factor) text += fmt::format(" x{:g}", *rope.factor);
  return text;
}

Block model_line(const config::ModelConfig& model) {
  std::vector<std::string> parts = {
      safe(model.name), model.architectures.empty() ? "-" : safe(model.architectures.front()),
      safe(config::attention_summary(model))};
  if (model.head_dim && !model.mla) parts.push_back(fmt::format("head_dim {}", *model.head_dim));
  if (model.dtype) parts.push_back(safe(short_dtype(*model.dtype)));
  if (model.quantization.any()) parts.push_back("quantised " + safe(quantization_word(model)));
  if (const std::string rope = rope_text(model.rope); !rope.empty()) parts.push_back(rope);
  if (model.max_position_embeddings) {
    parts.push_back(fmt::format("context {}", *model.max_position_embeddings));
  }
  return title_block(join(parts, "  "));
}

Block device_line(const InputAnswer& answer) {
  const hardware::Device& device = answer.device;
  std::vector<std::string> facts;
  if (device.capability) facts.push_back(hardware::capability_text(*device.capability));
  if (device.memory_bytes) facts.push_back(format_bytes(*device.memory_bytes));
  std::string text = "device " + safe(device.id);
  if (!facts.empty()) text += " (" + join(facts, ", ") + ")";
  if (hardware::is_probed(device)) text += "   found by: " + safe(device.source);
  if (!answer.lacks.empty()) text += "   missing: " + safe(join(answer.lacks, ", "));
  if (!answer.has.empty()) text += "   also installed: " + safe(join(answer.has, ", "));
  return line_block(std::move(text));
}

// A cell holds so much of an engine's own words; the rest follows the table.
constexpr std::size_t kReasonBytes = 80;

Cell outcome_cell(const Resolution& resolution) {
  switch (resolution.status) {
    case Status::kOk:
      return {"no", Tone::kGood};
    case Status::kFallback:
      return {fmt::format("yes: {} [{}]", safe(shorten(resolution.fallback_reason, kReasonBytes)),
                          safe(resolution.fallback_rule)),
              Tone::kWarn};
    case Status::kUnsupported:
    case Status::kError:
      break;
  }
  std::string text(engines::status_name(resolution.status));
  if (resolution.error) {
    text += fmt::format(": {} [{}]", safe(shorten(resolution.error->message, kReasonBytes)),
                        safe(resolution.error->code));
    if (!resolution.error->near_matches.empty()) {
      text += "; near: " + safe(join(resolution.error->near_matches, ", "));
    }
  }
  return {std::move(text), Tone::kBad};
}

// The cache of all groups that have one, where they agree.
std::string cache_text(const Resolution& resolution) {
  std::string common;
  for (const engines::LayerGroup& group : resolution.layers) {
    const std::string text = kv_text(group.kv);
    if (text.empty() || text == common) continue;
    if (!common.empty()) return "differs by layer (--layers)";
    common = text;
  }
  return or_dash(common);
}

// The backend, with the version of FlashAttention where its layers agree on one: "FLASH_ATTN
// (FA3)".
std::string backend_text(const Resolution& resolution) {
  std::string version;
  for (const engines::LayerGroup& group : resolution.layers) {
    if (group.backend != resolution.selected_backend) continue;
    const std::string& kernel = group.decode.kernel;
    if (!kernel.starts_with("FA") || (!version.empty() && version != kernel)) {
      return or_dash(resolution.selected_backend);
    }
    version = kernel;
  }
  const std::string name = or_dash(resolution.selected_backend);
  return version.empty() ? name : fmt::format("{} ({})", name, safe(version));
}

Block engine_table(const InputAnswer& answer) {
  Block table{.kind = Block::Kind::kTable};
  table.header = {"engine", "version", "model class", "attention backend", "kv cache", "fallback"};
  for (const EngineAnswer& engine : answer.engines) {
    const Resolution& resolution = engine.resolution;
    table.rows.push_back({{safe(resolution.engine)},
                          {safe(resolution.version)},
                          {or_dash(resolution.model_class)},
                          {backend_text(resolution)},
                          {cache_text(resolution)},
                          outcome_cell(resolution)});
  }
  return table;
}

void append_warnings(std::vector<Block>& out, const InputAnswer& answer) {
  for (const json::Warning& warning : answer.model.warnings) {
    const std::string where = warning.where.empty() ? "" : safe(warning.where) + ": ";
    out.push_back(
        line_block(fmt::format("warn  {}{} [{}]", where, safe(warning.message), safe(warning.code)),
                   Tone::kWarn));
  }
  for (const EngineAnswer& engine : answer.engines) {
    const Resolution& resolution = engine.resolution;
    const std::string& reason =
        resolution.error ? resolution.error->message : resolution.fallback_reason;
    if (reason.size() > kReasonBytes) {
      out.push_back(
          line_block(fmt::format("{}: {}", safe(resolution.engine), safe(reason)), Tone::kPlain));
    }
    for (const std::string& warning : engine.resolution.warnings) {
      out.push_back(line_block(
          fmt::format("warn  {}: {}", safe(engine.resolution.engine), safe(warning)), Tone::kWarn));
    }
  }
}

}  // namespace

Block title_block(std::string text) {
  return {.kind = Block::Kind::kTitle, .line = {std::move(text)}};
}
Block heading_block(std::string text) {
  return {.kind = Block::Kind::kHeading, .line = {std::move(text)}};
}
Block subheading_block(std::string text) {
  return {.kind = Block::Kind::kSubheading, .line = {std::move(text)}};
}
Block line_block(std::string text, Tone tone) {
  return {.kind = Block::Kind::kLine, .line = {std::move(text), tone}};
}
Block gap_block() { return {.kind = Block::Kind::kGap}; }

std::vector<Block> inspect_blocks(const InputAnswer& answer, const View& view) {
  std::vector<Block> out = {model_line(answer.model), device_line(answer), gap_block(),
                            engine_table(answer), gap_block()};
  append_memory(out, answer);
  if (answer.engines.size() > 1 || view.shows("memory")) {
    append_memory_differences(out, answer.engines);
  }
  append_warnings(out, answer);
  append_device(out, answer, view);
  append_values(out, answer, view);
  for (const EngineAnswer& engine : answer.engines) {
    append_options(out, engine, view);
    if (view.layers) append_layers(out, engine, view);
    if (view.why || view.shows("candidates")) append_steps(out, engine, view);
    append_why_not(out, engine, view);
  }
  return out;
}

std::string inspect_text(const InputAnswer& answer, const View& view) {
  return render_text(inspect_blocks(answer, view), view);
}

std::string inspect_markdown(const InputAnswer& answer, const View& view) {
  return render_markdown(inspect_blocks(answer, view));
}

}  // namespace kernelpath::report
