#include "equality.h"
#include "json/document.h"
#include "json/writer.h"
#include "run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

// --diff against the recorded whole runs of both releases: over the configurations that both files
// hold, it finds exactly the differences that the files show.

namespace kernelpath::testing {
namespace {

using Aspects = std::set<std::string>;  // "backend", "option block_size"

constexpr std::int64_t kRecordedLength = 4096;  // of sequences, where the flags say nothing

std::string text_of(const json::Value& value) {
  return value.is_string() ? value.as_string() : json::to_text(value);
}

std::string key_of(const json::Value& in) {
  return json::to_text(*in.find("cap")) + json::to_text(*in.find("config")) +
         json::to_text(*in.find("flags")) +
         (in.find("env") != nullptr ? json::to_text(*in.find("env")) : std::string());
}

// The recorded question as a line of --batch; every flag is an argument of the engine.
std::string batch_line(const json::Value& in, std::int64_t id, const TemporaryFolder& folder) {
  const std::string model =
      folder.write(std::to_string(id) + "/config.json", json::to_text(*in.find("config")));
  std::vector<json::Value> set;
  const json::Value& flags = *in.find("flags");
  for (const json::Member& flag : flags.members()) {
    set.push_back(json::Value::string("vllm." + flag.key + "=" + text_of(flag.value)));
  }
  const json::Value* length = in.find("config")->find("max_position_embeddings");
  const bool longer =
      length != nullptr && length->is_integer() && length->as_integer() > kRecordedLength;
  if (flags.find("max_model_len") == nullptr && longer) {
    set.push_back(json::Value::string("vllm.max_model_len=" + std::to_string(kRecordedLength)));
  }
  std::vector<json::Member> line = {
      {"id", json::Value::integer(id), 0},
      {"model", json::Value::string(model), 0},
      {"sm", *in.find("cap"), 0},
      {"diff",
       json::Value::array({json::Value::string("vllm@0.25.1"), json::Value::string("vllm@0.33.0")}),
       0},
      {"set", json::Value::array(std::move(set)), 0}};
  if (in.find("env") != nullptr) line.push_back({"env", *in.find("env"), 0});
  return json::to_text(json::Value::object(std::move(line))) + "\n";
}

// --- what the files show ------------------------------------------------------------------------

// A member of every attention layer that keeps a cache, each value once, in order.
std::vector<std::string> values_of(const json::Value& out, std::string_view name) {
  std::vector<std::string> values;
  const json::Value* layers = out.find_non_null("layers");
  if (layers == nullptr) return values;
  for (const json::Value& layer : layers->items()) {
    const json::Value* spec = layer.find_non_null("spec");
    const bool state = spec != nullptr && spec->as_string() == "MambaSpec";
    if (name != "backend" && (spec == nullptr || state)) continue;
    const json::Value* value = layer.find_non_null(name);
    if (value == nullptr) continue;
    const std::string text = text_of(*value);
    if (std::find(values.begin(), values.end(), text) == values.end()) values.push_back(text);
  }
  return values;
}

std::string first_error(const json::Value& out) {
  const auto errors = out.find("errors")->items();
  return errors.empty() ? std::string() : text_of(*errors.front().find("type"));
}

std::string final_mode(const json::Value& out) {
  const json::Value* graphs = out.find_non_null("cudagraph");
  return graphs == nullptr ? std::string() : text_of(*graphs->find("final"));
}

// Names of the engine's arguments behind the recorded names of final values.
const std::map<std::string, std::string>& option_names() {
  static const std::map<std::string, std::string> kNames = {
      {"cache_dtype", "kv_cache_dtype"},
      {"block_size", "block_size"},
      {"attention_backend", "attention_backend"},
      {"flash_attn_version", "attention_config.flash_attn_version"},
      {"enable_prefix_caching", "enable_prefix_caching"},
      {"mamba_cache_mode", "mamba_cache_mode"},
      {"mamba_block_size", "mamba_block_size"},
      {"mamba_page_size_padded", "mamba_page_size_padded"},
      {"mamba_ssm_cache_dtype", "mamba_ssm_cache_dtype"},
      {"use_non_causal", "attention_config.use_non_causal"},
      {"disable_hybrid_kv_cache_manager", "disable_hybrid_kv_cache_manager"}};
  return kNames;
}

Aspects shown(const json::Value& from, const json::Value& to) {
  Aspects out;
  if (first_error(from) != first_error(to)) out.insert("error");
  const json::Value* from_config = from.find_non_null("resolved_config");
  const json::Value* to_config = to.find_non_null("resolved_config");
  if (from_config != nullptr && to_config != nullptr &&
      *from_config->find("model_class") != *to_config->find("model_class")) {
    out.insert("model class");
  }
  const std::pair<std::string_view, std::string> kLayers[] = {{"backend", "backend"},
                                                              {"block_size", "page size"},
                                                              {"kv_cache_dtype", "KV dtype"},
                                                              {"kv_cache_shape", "KV shape"}};
  for (const auto& [name, aspect] : kLayers) {
    const std::vector<std::string> a = values_of(from, name);
    const std::vector<std::string> b = values_of(to, name);
    // A run that ended early has no layers, and answers worked out by reading few members.
    if (!a.empty() && !b.empty() && a != b) out.insert(aspect);
  }
  if (!final_mode(from).empty() && !final_mode(to).empty() && final_mode(from) != final_mode(to)) {
    out.insert("option compilation_config.cudagraph_mode");
  }
  const json::Value* from_final = from.find_non_null("final_config");
  const json::Value* to_final = to.find_non_null("final_config");
  for (const auto& [recorded, name] : option_names()) {
    if (from_final == nullptr || to_final == nullptr) break;
    const json::Value* a = from_final->find(recorded);
    const json::Value* b = to_final->find(recorded);
    if (a != nullptr && b != nullptr && *a != *b) out.insert("option " + name);
  }
  return out;
}

// Aspects that one of the recordings does not hold: a run that ended early has no layers, and
// answers that were worked out by reading have few members.
Aspects unrecorded(const json::Value& from, const json::Value& to) {
  Aspects out;
  const std::pair<std::string_view, std::string> kLayers[] = {
      {"block_size", "page size"}, {"kv_cache_dtype", "KV dtype"}, {"kv_cache_shape", "KV shape"}};
  for (const auto& [name, aspect] : kLayers) {
    if (values_of(from, name).empty() || values_of(to, name).empty()) out.insert(aspect);
  }
  return out;
}

// A recorded run ends before the builders of metadata, unless its name says otherwise.
bool fails_after_the_recording(const json::Value& model, std::string_view id) {
  const json::Value* error = model.find("from")->find("error");
  return error != nullptr && error->find("code")->as_string().find("WINDOW") != std::string::npos &&
         !id.ends_with("-runtime");
}

// --- what the program says
// ------------------------------------------------------------------------

Aspects found(const json::Value& model) {
  const std::set<std::string> compared = {"error",     "model class", "backend",
                                          "page size", "KV dtype",    "KV shape"};
  Aspects out;
  for (const json::Value& row : model.find("differences")->items()) {
    const std::string aspect = row.find("aspect")->as_string();
    if (compared.count(aspect) != 0) out.insert(aspect);
    if (aspect != "option") continue;
    const std::string name = row.find("where")->as_string();
    const bool recorded = std::any_of(option_names().begin(), option_names().end(),
                                      [&](const auto& pair) { return pair.second == name; });
    if (recorded || name == "compilation_config.cudagraph_mode") out.insert("option " + name);
  }
  return out;
}

std::string joined(const Aspects& aspects) {
  std::string out;
  for (const std::string& aspect : aspects) out += (out.empty() ? "" : ", ") + aspect;
  return out;
}

TEST(VllmUpgrade, Diff_FindsExactlyWhatTheRecordingsShow) {
  const auto older = golden::read_cases("vllm-0.25.1/end_to_end.jsonl");
  const auto newer = golden::read_cases("vllm-0.33.0/end_to_end.jsonl");
  std::map<std::string, const golden::Case*> by_key;
  for (const golden::Case& entry : newer) by_key[key_of(entry.in())] = &entry;
  std::vector<std::pair<const golden::Case*, const golden::Case*>> both;
  const TemporaryFolder folder;
  std::string lines;
  for (const golden::Case& entry : older) {
    const auto other = by_key.find(key_of(entry.in()));
    if (other == by_key.end()) continue;
    lines += batch_line(entry.in(), static_cast<std::int64_t>(both.size()), folder);
    both.emplace_back(&entry, other->second);
  }
  ASSERT_GT(both.size(), 50U);
  const Outcome outcome =
      run_program("llm-inspect",
                  {.arguments = {"--batch", folder.write("batch.jsonl", lines)}, .timeout_s = 120});
  std::size_t at = 0;
  std::size_t different = 0;
  for (const auto& [from, to] : both) {
    const std::size_t end = outcome.out.find('\n', at);
    ASSERT_NE(end, std::string::npos) << outcome.exit_code << outcome.err;
    const auto answer = json::parse(outcome.out.substr(at, end - at), "");
    at = end + 1;
    ASSERT_TRUE(answer);
    const Aspects expected = shown(from->out(), to->out());
    different += expected.empty() ? 0 : 1;
    const json::Value* out = answer->root.find("out");
    // A name that neither release knows is wrong use already.
    Aspects actual;
    if (out != nullptr) {
      const json::Value& model = out->find("models")->items()[0];
      actual = found(model);
      for (const std::string& aspect : unrecorded(from->out(), to->out())) actual.erase(aspect);
      if (fails_after_the_recording(model, from->id)) actual.erase("error");
    }
    EXPECT_EQ(joined(actual), joined(expected))
        << from->id << " on " << text_of(*from->in().find("cap")) << " "
        << (out == nullptr ? json::to_text(answer->root) : std::string());
  }
  EXPECT_GT(different, both.size() / 4);
}

}  // namespace
}  // namespace kernelpath::testing
