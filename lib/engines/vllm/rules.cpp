#include "engines/vllm/rules.h"

#include "engines/vllm/rules_kv_cache.h"
#include "engines/vllm/rules_run.h"
#include "engines/vllm/rules_select.h"
#include "engines/vllm/rules_speculation.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kernelpath::engines::vllm {
namespace {

// The rules of one release; `tag` holds the text that they point to.
struct ReleaseRules {
  std::string tag;
  std::vector<RuleInfo> rules;
};

void append(std::span<const RuleInfo> rules, ReleaseRules& out) {
  for (RuleInfo rule : rules) {
    const bool known = std::any_of(out.rules.begin(), out.rules.end(),
                                   [&](const RuleInfo& other) { return other.id == rule.id; });
    if (known) continue;
    rule.version = out.tag;
    out.rules.push_back(rule);
  }
}

}  // namespace

std::span<const RuleInfo> rules_of(std::string_view version) {
  static std::mutex mutex;
  static std::map<std::string, ReleaseRules, std::less<>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(version);
  if (found != known.end()) return found->second.rules;
  ReleaseRules& added = known[std::string(version)];
  added.tag = "v" + std::string(version);
  append(select_rules(), added);
  append(run_rules(), added);
  append(kv_cache_rules(), added);
  append(speculation_rules(), added);
  return added.rules;
}

}  // namespace kernelpath::engines::vllm
