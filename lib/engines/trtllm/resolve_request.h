#pragma once

#include "base/result.h"
#include "engines/json_fields.h"
#include "engines/trtllm/class_question.h"
#include "engines/trtllm/model_registry.h"
#include "registry/registry.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernelpath::engines::trtllm {

// The parts of a --batch question about model classes. Every error is kBatchRequest and names the
// field; a field that nobody reads is an error as well, since it would silently change nothing.

// in.config: architectures (a list of strings, null or absent), draft_vocab_size (its presence
// counts), num_hidden_layers, hidden_size, num_local_experts. Other fields of a config.json are
// passed over.
Result<ClassInput> read_class_input(const JsonFields& in);

// in.options: mm_encoder_only, modeling_v2, sm ([major, minor]), world_size, within_bounds,
// raises_no_target, loader_attrs.
Result<ClassOptions> read_class_options(const JsonFields& in);

// in.external_modules: module → list of {arch, class}, {vision_for, encoder, base} or {spec_mode,
// builder}; in.broken_modules: module → {missing: true}, {missing_dep: name} or {attribute_error:
// text}.
Result<ModuleOverrides> read_modules(const JsonFields& in);

// One entry of in.events_before.
struct ResolveEvent {
  enum class Op : std::uint8_t { kImport, kDeclare, kLookUp, kVision, kBuilder, kAttribute };
  Op op = Op::kImport;
  std::string name = {};                   // module, architecture, mode or attribute
  registry::Declaration declaration = {};  // kDeclare
};
Result<std::vector<ResolveEvent>> read_events(const JsonFields& in);

// in.layer_idx_sequence: integers, strings or null, as Python's str() spells them.
Result<std::vector<std::string>> read_layer_indices(const JsonFields& in);

}  // namespace kernelpath::engines::trtllm
