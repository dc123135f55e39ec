// The rules about a backend by name against the selector's recorded answers: a rule holds exactly
// where the engine gave its reason.

#include "base/text.h"
#include "equality.h"
#include "features/argument_tree.h"
#include "features/validate.h"
#include "json/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kernelpath::features {
namespace {

constexpr std::array kPlain = {"FLASH_ATTN",     "FLASHINFER", "TRITON_ATTN",
                               "FLEX_ATTENTION", "TURBOQUANT", "HPC_ATTN"};

struct Reason {
  std::string_view text;
  std::string_view rule;
  bool plain_only = false;  // the rule looks at heads, which MLA does not have
};
constexpr std::array kReasons = {
    Reason{"head_size not supported", "VLLM-BACKEND-HEAD-SIZE", true},
    Reason{"dtype not supported", "VLLM-BACKEND-DTYPE"},
    Reason{"kv_cache_dtype not supported", "VLLM-BACKEND-KV-TYPE"},
    Reason{"block_size not supported", "VLLM-BACKEND-BLOCK-SIZE"},
    Reason{"attention sinks not supported", "VLLM-BACKEND-SINKS", true},
    Reason{"compute capability not supported", "VLLM-BACKEND-CAPABILITY"},
    Reason{"non-causal attention not supported", "VLLM-BACKEND-NON-CAUSAL"},
    Reason{"batch invariance not supported", "VLLM-BACKEND-BATCH-INVARIANT"},
    Reason{"DCP not supported", "VLLM-BACKEND-DCP"}};

const std::map<std::string, std::vector<std::string>, std::less<>> kLacks = {
    {"full", {}},
    {"no_fa3", {"flash_attn_3"}},
    {"no_fa4", {"flash_attn_4"}},
    {"no_fa34", {"flash_attn_3", "flash_attn_4"}},
    {"no_flashmla", {"flashmla"}},
    {"no_tokenspeed", {"tokenspeed_mla"}},
    {"no_trtllm_cubins", {"flashinfer_cubin"}},
    {"no_sm120_sparse", {"flashinfer_sparse_sm120"}}};

std::string text_of(const json::Value& object, std::string_view key, std::string otherwise) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : otherwise;
}

bool is_true(const json::Value& object, std::string_view key) {
  const json::Value* const found = object.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

// The arguments and facts of a recorded question; nothing where it is none that the rules know.
std::optional<json::Value> arguments_of(const json::Value& in, bool plain) {
  const auto lacks = kLacks.find(text_of(in, "profile", "full"));
  if (lacks == kLacks.end()) return std::nullopt;
  std::string sm = text_of(in, "cap", "");
  std::erase(sm, '.');
  json::Value out = json::Value::object({});
  const auto put = [&out](std::string_view path, json::Value value) {
    out = with_argument(out, path, std::move(value));
  };
  const auto copy = [&](std::string_view key, std::string_view path) {
    if (const json::Value* const value = in.find(key)) put(path, *value);
  };
  put("device.sm", json::Value::integer(std::stoll(sm)));
  put("dtype", json::Value::string(text_of(in, "dtype", "bfloat16")));
  copy("backend", "attention_backend");
  copy("kv_cache_dtype", "kv_cache_dtype");
  copy("block_size", "block_size");
  copy("flash_attn_version", "attention_config.flash_attn_version");
  copy("use_trtllm_attention", "attention_config.use_trtllm_attention");
  copy("use_non_causal", "attention_config.use_non_causal");
  copy("dcp", "decode_context_parallel_size");
  if (is_true(in, "use_batch_invariant")) {
    put("environment.batch_invariant", json::Value::string("1"));
  }
  if (plain) {
    copy("head_size", "model.head_dim");
    copy("has_sink", "model.has_attention_sinks");
  }
  for (const std::string& package : lacks->second) {
    put("available." + package, json::Value::boolean(false));
  }
  return out;
}

std::set<std::string> holding_rules(const RuleTable& table, const json::Value& arguments) {
  Context context(table);
  context.state(arguments);
  std::set<std::string> out;
  for (const Violation& violation : violations(context, {}, Level::kError)) {
    out.insert(violation.rule->id);
  }
  return out;
}

std::set<std::string> recorded_reasons(const json::Value& out) {
  std::set<std::string> reasons;
  for (const json::Value& candidate : out.find("rejected")->items()) {
    for (const json::Value& reason : candidate.find("reasons")->items()) {
      reasons.insert(reason.as_string());
    }
  }
  return reasons;
}

bool is_import_failure(const std::set<std::string>& reasons) {
  return std::any_of(reasons.begin(), reasons.end(), [](const std::string& reason) {
    return reason.find("Error") != std::string::npos;
  });
}

// A backend that the rules describe, asked by name on an NVIDIA device.
bool is_asked(const RuleTable& table, const json::Value& in, const json::Value& out) {
  const std::string name = to_upper(text_of(in, "backend", ""));
  const std::string cap = text_of(in, "cap", "");
  const bool device = !cap.empty() && cap.find_first_not_of("0123456789.") == std::string::npos;
  const json::Value* const error = out.find("error");
  const bool early =
      error != nullptr && error->is_object() && text_of(*error, "stage", "select") != "select";
  const auto& known = table.schema.field(*table.schema.find("attention_backend")).values;
  const bool described =
      std::any_of(known.begin(), known.end(),
                  [&name](const Value& value) { return value.as_text().text == name; }) ||
      name == "HPC_ATTN";
  const bool composite =
      name.starts_with("TRITON_FLASH") || name.ends_with("_SM90") || name.ends_with("_FA4");
  return described && !composite && device && !early && !is_true(in, "mla_prefill");
}

void expect_rules_give_the_reasons(const std::string& version, std::size_t at_least) {
  const RuleTable& table = *find_rule_table("vllm", version);
  std::size_t asked = 0;
  std::size_t failures = 0;
  for (const golden::Case& recorded : golden::read_cases("vllm-" + version + "/select.jsonl")) {
    if (!is_asked(table, recorded.in(), recorded.out())) continue;
    const std::string name = to_upper(text_of(recorded.in(), "backend", ""));
    const bool plain = std::find(kPlain.begin(), kPlain.end(), name) != kPlain.end();
    const auto arguments = arguments_of(recorded.in(), plain);
    const std::set<std::string> reasons = recorded_reasons(recorded.out());
    if (!arguments || is_import_failure(reasons)) continue;
    ++asked;
    const std::set<std::string> rules = holding_rules(table, *arguments);
    for (const Reason& reason : kReasons) {
      // A turboquant cache holds FlashAttention at version 2, which has no sinks: the selector
      // alone does not know of it.
      const bool rewritten = text_of(recorded.in(), "kv_cache_dtype", "").starts_with("turboquant");
      if (reason.plain_only && (!plain || rewritten)) continue;
      if (table.find(reason.rule) == nullptr) continue;
      const bool given = reasons.contains(std::string(reason.text));
      if (given == rules.contains(std::string(reason.rule)) || ++failures > 20) continue;
      ADD_FAILURE() << json::to_text(recorded.in()) << '\n'
                    << reason.rule << (given ? " misses" : " holds without") << " the reason";
    }
  }
  EXPECT_GE(asked, at_least);
  EXPECT_EQ(failures, 0U);
}

TEST(VllmRules, ReasonsOf0251_AreGivenByRules) { expect_rules_give_the_reasons("0.25.1", 900); }

TEST(VllmRules, ReasonsOf0330_AreGivenByRules) { expect_rules_give_the_reasons("0.33.0", 800); }

}  // namespace
}  // namespace kernelpath::features
