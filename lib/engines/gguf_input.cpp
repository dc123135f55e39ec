#include "engines/gguf_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace kernelpath::engines {
namespace {

constexpr std::array<std::string_view, 2> kTakeGguf{"llamacpp", "kernelpath"};

bool takes_gguf(const Engine& engine) {
  return std::ranges::find(kTakeGguf, engine.name()) != kTakeGguf.end();
}

constexpr RuleInfo kRule = {"GGUF-INPUT",
                            "A GGUF file, for an engine that loads none.",
                            "The engine builds a model from config.json and safetensors files.",
                            "Give the Hugging Face folder, or ask llamacpp or kernelpath.",
                            "",
                            ""};

}  // namespace

std::vector<RuleInfo> listed_rules(const Engine& engine) {
  const auto rules = engine.rules();
  std::vector<RuleInfo> out(rules.begin(), rules.end());
  if (!takes_gguf(engine)) out.push_back(kRule);
  return out;
}

Resolution resolve_input(const Engine& engine, const Request& request) {
  if (request.model.gguf == nullptr || takes_gguf(engine)) return engine.resolve(request);
  Resolution out;
  out.engine = engine.name();
  out.version = engine.version();
  out.status = Status::kUnsupported;
  const std::string message = fmt::format(
      "{} is a GGUF file; {} reads config.json and safetensors files; the engines {} take GGUF "
      "files",
      request.model.name, engine.name(), fmt::join(kTakeGguf, " and "));
  out.steps.push_back({.rule = std::string(kRule.id),
                       .candidate = request.model.name,
                       .verdict = Verdict::kRejected,
                       .severity = Severity::kError,
                       .reason = message,
                       .source = {},
                       .stage = Stage::kModelClass});
  out.error = EngineError{
      .type = "input", .code = std::string(kRule.id), .message = message, .near_matches = {}};
  return out;
}

}  // namespace kernelpath::engines
