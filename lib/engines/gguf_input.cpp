#include "engines/gguf_input.h"

#include <fmt/format.h>

#include <string>

namespace kernelpath::engines {
namespace {

constexpr std::string_view kTakesGguf = "llamacpp";

constexpr RuleInfo kRule = {"GGUF-INPUT",
                            "A GGUF file, for an engine that loads none.",
                            "The engine builds a model from config.json and safetensors files.",
                            "Give the Hugging Face folder, or ask llamacpp.",
                            "",
                            ""};

}  // namespace

std::vector<RuleInfo> listed_rules(const Engine& engine) {
  const auto rules = engine.rules();
  std::vector<RuleInfo> out(rules.begin(), rules.end());
  if (engine.name() != kTakesGguf) out.push_back(kRule);
  return out;
}

Resolution resolve_input(const Engine& engine, const Request& request) {
  if (request.model.gguf == nullptr || engine.name() == kTakesGguf) return engine.resolve(request);
  Resolution out;
  out.engine = engine.name();
  out.version = engine.version();
  out.status = Status::kUnsupported;
  const std::string message = fmt::format(
      "{} is a GGUF file; {} reads config.json and safetensors files, and kernelpath "
      "answers for GGUF files with llamacpp",
      request.model.name, engine.name());
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
