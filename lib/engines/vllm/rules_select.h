#pragma once

#include "engines/engine.h"
#include "engines/resolution.h"
#include "engines/step_draft.h"
#include "engines/vllm/profile.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

// Rules of the model class, of arguments, of the choice of backends and of a rank's memory. The
// versions of their files are those of the profile in use.
std::span<const RuleInfo> select_rules();

// The rule of a selector's reason ("compute capability not supported"), as the engine words it.
std::string_view rule_of_reason(std::string_view reason);
// The same for the selector of MLA prefill backends.
std::string_view rule_of_prefill_reason(std::string_view reason);

using StepDraft = StepDraftOf<Stage::kFallback>;

// Appends steps of one release: every step names its rule's file at that version.
class StepWriter {
 public:
  // `rules`: every rule that a step may name. Both must outlive the writer.
  StepWriter(std::span<const RuleInfo> rules, const Profile& profile, std::vector<Step>& steps)
      : rules_(rules), profile_(profile), steps_(steps) {}

  // A rule that no table holds keeps its id and has no file.
  void add(StepDraft draft);

 private:
  std::span<const RuleInfo> rules_;
  const Profile& profile_;
  std::vector<Step>& steps_;
};

// "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend" → its file.
std::string file_of_class(std::string_view path);

}  // namespace kernelpath::engines::vllm
