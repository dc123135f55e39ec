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

const RuleInfo& gguf_input_rule() { return kRule; }

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
