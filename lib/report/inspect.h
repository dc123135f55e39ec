#pragma once

#include "config/model_config.h"
#include "engines/engine.h"
#include "engines/resolution.h"
#include "hardware/device.h"
#include "json/writer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::report {

// Semantic version of the JSON documents; every change of their fields bumps it (CHANGELOG.md).
inline constexpr std::string_view kInspectSchema = "kernelpath/inspect";
inline constexpr std::string_view kInspectSchemaVersion = "1.1.0";

struct Tool {
  std::string name;     // "llm-inspect"
  std::string version;  // "0.1.0"
};

// What one engine version answers for one model.
struct EngineAnswer {
  engines::Resolution resolution;
  std::string why_not_backend;  // of --why-not; empty if nobody asked
  std::optional<engines::Engine::WhyNot> why_not = {};
};

// One model and everything that was asked about it.
struct InputAnswer {
  config::ModelConfig model;
  hardware::Device device;
  std::vector<std::string> lacks;
  std::vector<std::string> has;
  std::vector<EngineAnswer> engines;
};

// What of an answer is printed, and how. Nothing here changes an answer.
struct View {
  bool prefill = true;
  bool decode = true;
  bool layers = false;
  bool why = false;
  bool sources = false;
  std::vector<std::string> show = {};  // parts of --show; "all" for every part
  std::int64_t width = 0;              // columns of the terminal; 0: no limit
  bool color = false;

  [[nodiscard]] bool shows(std::string_view part) const;
};

// Names that --show takes: the groups of config::show_groups() and those of a Resolution.
std::vector<std::string_view> show_parts();

// The inspect document: schema header, tool, one entry in "inputs" per answer.
void write_inspect(json::Writer& writer, const Tool& tool, const std::vector<InputAnswer>& answers,
                   const View& view);
std::string inspect_json(const Tool& tool, const std::vector<InputAnswer>& answers,
                         const View& view);

// JSON Lines: the header object, and the entry of "inputs" for each answer on a line of its own.
std::string inspect_jsonl_header(const Tool& tool);
std::string inspect_jsonl_line(const InputAnswer& answer, const View& view);

std::string inspect_text(const InputAnswer& answer, const View& view);
std::string inspect_markdown(const InputAnswer& answer, const View& view);

}  // namespace kernelpath::report
