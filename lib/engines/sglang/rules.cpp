#include "engines/sglang/rules.h"

#include <algorithm>
#include <vector>

namespace kernelpath::engines::sglang {

std::span<const RuleInfo> all_rules() {
  static const std::vector<RuleInfo> rules = [] {
    std::vector<RuleInfo> out;
    for (const auto& part : {arguments_rules(), attention_rules(), model_rules(), families_rules(),
                             cache_rules(), moe_rules()}) {
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }();
  return rules;
}

const RuleInfo* find_rule(std::string_view id) {
  const auto rules = all_rules();
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const RuleInfo& rule) { return rule.id == id; });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace kernelpath::engines::sglang
