// Cases from public reports (tests/data/cases) of every engine but vLLM, whose rows are in
// public_cases_test.cpp. What users met is asked of the programs; where the version that this build
// has behaves otherwise than the reported one, the row says so and is tested for what it does.

#include "../unit/checkpoint/build_gguf.h"
#include "json/document.h"
#include "public_cases.h"
#include "validate_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace kernelpath::testing {
namespace {

using checkpoint::GgufBuilder;
using ::testing::HasSubstr;

// A value of one engine's answer: members and indices joined by "/", and what it must be ("!x":
// must not be x, "~x": must contain x).
struct Fact {
  std::string engine;
  std::string path;
  std::string value;
};

struct Case {
  std::string id;           // of the row
  std::string config = {};  // config.json, or a folder of tests/data/configs without braces
  std::vector<std::string> options = {};
  std::vector<Fact> facts = {};            // of llm-inspect
  std::vector<std::string> findings = {};  // of llm-validate, each "LEVEL ID"
  std::vector<std::string> absent = {};    // findings that must not be there
  std::string note = {};                   // how the version here differs from the report
};

constexpr const char* kLlama =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","num_hidden_layers":32,
"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,
"vocab_size":128256,"max_position_embeddings":8192,"torch_dtype":"bfloat16"})";
constexpr const char* kLlama64 =
    R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","num_hidden_layers":80,
"hidden_size":8192,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":128,
"intermediate_size":28672,"vocab_size":128256,"max_position_embeddings":8192,
"torch_dtype":"bfloat16"})";
constexpr const char* kQwen3 =
    R"({"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","num_hidden_layers":36,
"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,
"intermediate_size":12288,"vocab_size":151936,"torch_dtype":"bfloat16"})";
constexpr const char* kMixtral =
    R"({"architectures":["MixtralForCausalLM"],"model_type":"mixtral","num_hidden_layers":56,
"hidden_size":6144,"num_attention_heads":48,"num_key_value_heads":8,"head_dim":null,
"intermediate_size":16384,"vocab_size":32768,"num_local_experts":8,"num_experts_per_tok":2,
"torch_dtype":"bfloat16"})";
constexpr const char* kSmallQwen3 =
    R"({"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","num_hidden_layers":36,
"hidden_size":2560,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,
"intermediate_size":9728,"vocab_size":151936,"torch_dtype":"bfloat16"})";

const std::string kBackend = "attention/selected";
const std::string kTokenBytes = "memory/kv_bytes_per_token";

const std::vector<Case>& trtllm_cases() {
  static const std::vector<Case> kCases = {
      {.id = "silent-07",
       .config = "nvidia__Qwen3.6-35B-A3B-NVFP4",
       .options = {"--engine", "trtllm", "--sm", "120", "--kv", "fp8", "--set",
                   "trtllm.kv_cache_config.enable_block_reuse=true"},
       .facts = {{"trtllm", "layers/1/prefill/kernel", "fallback"}},
       .findings = {"error FMHA-CONTEXT-MISSING"}},
      {.id = "silent-08",
       .config = "nvidia__Qwen3.6-35B-A3B-NVFP4",
       .options = {"--engine", "trtllm", "--sm", "121", "--dtype", "bfloat16", "--set",
                   "trtllm.kv_cache_config.enable_block_reuse=true", "--kv", "bf16"},
       .facts = {{"trtllm", kBackend, "TRTLLM"}},
       .absent = {"FMHA-CONTEXT-MISSING"},
       .note = "the kernel that 16-bit heads of 256 get is chosen behind the Python code here: the "
               "library is named, and no finding says that there is none"},
      {.id = "reject-10",
       .config = "deepseek-ai__DeepSeek-V3",
       .options = {"--engine", "trtllm", "--sm", "120", "--tp", "8"},
       .findings = {"warn XQA-MLA-HEADS"}},
      {.id = "arch-01",
       .config = "deepseek-ai__DeepSeek-V3",
       .options = {"--engine", "trtllm", "--tp", "8"},
       .facts = {{"trtllm", "model_class", "DeepseekV3ForCausalLM"}},
       .note = "the version here has the class that 0.17 lacked"},
      {.id = "wrong-03",
       .config = "openai__gpt-oss-120b",
       .options = {"--engine", "trtllm", "--sm", "100"},
       .facts = {{"trtllm", "layers/0/rope_fused", "true"}},
       .note = "rope is fused unless cache compression turns it off, which [ROPE-FUSION-OFF] says"},
  };
  return kCases;
}

const std::vector<Case>& sglang_cases() {
  static const std::vector<Case> kCases = {
      {.id = "silent-02",
       .config = kLlama,
       .options = {"--engine", "sglang", "--sm", "90", "--speculative", "eagle"},
       .facts = {{"sglang", kBackend, "fa3"}, {"sglang", "options/speculative_eagle_topk", "4"}}},
      {.id = "silent-02",
       .config = kLlama,
       .options = {"--engine", "sglang", "--sm", "90", "--speculative", "eagle", "--set",
                   "sglang.speculative_num_steps=5", "--set", "sglang.speculative_eagle_topk=4",
                   "--set", "sglang.speculative_num_draft_tokens=8"},
       .facts = {{"sglang", kBackend, "flashinfer"}},
       .note = "the same numbers, typed out"},
      {.id = "silent-03",
       .config = kLlama64,
       .options = {"--engine", "sglang", "--sm", "100", "--speculative", "eagle3"},
       .facts = {{"sglang", kBackend, "flashinfer"}}},
      {.id = "silent-04",
       .config = kQwen3,
       .options = {"--engine", "sglang", "--sm", "120"},
       .facts = {{"sglang", kBackend, "flashinfer"}}},
      {.id = "silent-04",
       .config = kQwen3,
       .options = {"--engine", "sglang", "--sm", "100"},
       .facts = {{"sglang", kBackend, "trtllm_mha"}},
       .note = "the data-centre family, whose rule it was"},
      {.id = "silent-05",
       .config = "openai__gpt-oss-120b",
       .options = {"--engine", "sglang", "--sm", "89"},
       .facts = {{"sglang", kBackend, "triton"}}},
      {.id = "feat-03",
       .config = "deepseek-ai__DeepSeek-V2-Lite",
       .options = {"--engine", "sglang", "--sm", "90", "--backend", "flashmla", "--page-size", "64",
                   "--tp", "4", "--set", "sglang.dcp_size=2"},
       .facts = {{"sglang", kBackend, "flashmla"}},
       .findings = {"warn SGL-GRAPH-DCP", "error SGL-RUN-FLASHMLA-DCP"},
       .note = "0.5.23 starts, and fails at the first write into the cache: FlashMLA writes by "
               "MLATokenToKVPool.set_kv_buffer, which asserts that there is no decode context "
               "parallelism (mem_cache/memory_pool.py)"},
      {.id = "feat-04",
       .config = "google__gemma-3-4b-it",
       .options = {"--engine", "sglang", "--sm", "90", "--speculative", "eagle"},
       .facts = {{"sglang", "status", "ok"}, {"sglang", kBackend, "fa3"}},
       .note =
           "0.5.23 has no such check when it starts, and takes fa3, of which the report does not "
           "speak"},
      {.id = "wrong-01",
       .config = "deepseek-ai__DeepSeek-V3",
       .options = {"--engine", "sglang", "--device", "b200", "--backend", "trtllm_mla", "--tp",
                   "8"},
       .findings = {"warn SGL-RUN-PREFIX-LSE"}},
      {.id = "wrong-04",
       .config = kLlama,
       .options = {"--engine", "sglang", "--sm", "90", "--kv", "fp8_e4m3", "--backend", "triton",
                   "--set", "sglang.quantization_param_path=kv_scales.json"},
       .findings = {"warn SGL-KV-SCALES-FILE"}},
  };
  return kCases;
}

const std::vector<Case>& llamacpp_cases() {
  static const std::vector<Case> kCases = {
      {.id = "silent-09",
       .config = "meta-llama__Meta-Llama-3.1-8B",
       .options = {"--engine", "llamacpp", "--sm", "89", "--kv", "q5_1", "--backend", "on"},
       .facts = {{"llamacpp", "layers/0/decode/kernel", "fattn-vec"}},
       .findings = {"warn LC-KV-PAIR"},
       .note =
           "the version here converts the pair to f16 at every step, on the GPU, and tells once"},
      {.id = "silent-10",
       .config = "Qwen__Qwen3-8B",
       .options = {"--engine", "llamacpp", "--backend", "off", "--set",
                   "llamacpp.cache_type_v=q4_0"},
       .facts = {{"llamacpp", "status", "error"},
                 {"llamacpp", "error/message",
                  "quantized V cache requires flash_attn to be enabled"}},
       .findings = {"error LC-FLASH-V"}},
      {.id = "kv-07",
       .config = "deepseek-ai__DeepSeek-V3",
       .options = {"--engine", "llamacpp", "--kv", "q8_0", "--set", "llamacpp.n_ctx=32768"},
       .facts = {{"llamacpp", "memory/kv_pool_bytes", "1223294976"},
                 {"llamacpp", kTokenBytes, "37332"}}},
  };
  return kCases;
}

const std::vector<Case>& general_cases() {
  static const std::vector<Case> kCases = {
      {.id = "reject-09",
       .config = "deepseek-ai__DeepSeek-V4-Flash",
       .options = {"--engine", "vllm", "--sm", "120", "--tp", "8", "--page-size", "128", "--kv",
                   "fp8"},
       .facts = {{"vllm", "layers/FLASHINFER_MLA_SPARSE_DSV4/kv/shape", "~[num_blocks, 1, 32, "}},
       .note = "the page of 32 states that follows from block 128 and ratio 4 is shown; which "
               "pages FlashInfer's build has entries for is not in the engine's source"},
      {.id = "reject-11",
       .config = "google__gemma-4-26B-A4B",
       .options = {"--engine", "vllm", "--sm", "89"},
       .facts = {{"vllm", "layers/0/backend", "TRITON_ATTN"},
                 {"vllm", "layers/1/backend", "TRITON_ATTN"},
                 {"vllm", "steps/VLLM-HOOK-GEMMA4-TRITON/reason", "~heads of 256 and 512"}}},
      {.id = "config-01",
       .config = kMixtral,
       .facts = {{"trtllm", kTokenBytes, "229376"},
                 {"vllm", kTokenBytes, "229376"},
                 {"sglang", kTokenBytes, "229376"},
                 {"llamacpp", kTokenBytes, "229376"},
                 {"", "facts/head_dim", "128"}}},
      {.id = "config-06",
       .config = "nvidia__NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
       .facts = {{"", "warnings/0/code", "JSON-NONFINITE"},
                 {"", "warnings/0/where", "/time_step_limit/1"},
                 {"trtllm", "status", "ok"},
                 {"vllm", "status", "ok"},
                 {"sglang", "status", "ok"}}},
      {.id = "config-07",
       .config = "nvidia__Qwen3.6-35B-A3B-NVFP4",
       .options = {"--sm", "100"},
       .facts = {{"trtllm", kTokenBytes, "10240"},
                 {"vllm", kTokenBytes, "10240"},
                 {"sglang", kTokenBytes, "20480"}},
       .note = "the winner differs by engine: SGLang 0.5.23 reads config.json's own block, which "
               "says nothing of the cache"},
      {.id = "config-08",
       .config = "nvidia__NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4",
       .options = {"--engine", "trtllm", "--sm", "100", "--tp", "8"},
       .facts = {{"", "facts/quantization", "~NVFP4"}, {"trtllm", kTokenBytes, "3072"}}},
      {.id = "config-08",
       .config = "nvidia__NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
       .options = {"--engine", "trtllm", "--sm", "100", "--tp", "8"},
       .facts = {{"", "facts/quantization", ""}, {"trtllm", kTokenBytes, "6144"}},
       .note = "the same config.json without the file beside it"},
      {.id = "kv-01",
       .config = kSmallQwen3,
       .facts = {{"trtllm", kTokenBytes, "147456"},
                 {"vllm", kTokenBytes, "147456"},
                 {"sglang", kTokenBytes, "147456"},
                 {"llamacpp", kTokenBytes, "147456"}}},
      {.id = "kv-04",
       .config = "deepseek-ai__DeepSeek-V3",
       .options = {"--tp", "8", "--engine", "trtllm", "--engine", "vllm", "--engine", "sglang"},
       .facts = {{"trtllm", kTokenBytes, "70272"},
                 {"vllm", kTokenBytes, "70272"},
                 {"sglang", kTokenBytes, "70272"},
                 {"vllm", "accounts/kv_bytes_per_token/latent on every rank", "61488"}}},
      {.id = "kv-04",
       .config = "deepseek-ai__DeepSeek-V3",
       .options = {"--tp", "8", "--kv", "fp8", "--engine", "sglang", "--device", "h200"},
       .facts = {{"sglang", kTokenBytes, "35136"}}},
      {.id = "kv-05",
       .config = "nvidia__Qwen3.6-35B-A3B-NVFP4",
       .options = {"--tp", "8", "--kv", "bf16", "--engine", "vllm", "--engine", "sglang"},
       .facts = {{"vllm", kTokenBytes, "10240"},
                 {"sglang", kTokenBytes, "10240"},
                 {"vllm", "accounts/kv_bytes_per_token/KV heads replicated", "7680"}}},
      {.id = "kv-06",
       .config = "nvidia__Llama-3_3-Nemotron-Super-49B-v1",
       .facts = {{"trtllm", kTokenBytes, "200704"},
                 {"vllm", kTokenBytes, "200704"},
                 {"llamacpp", kTokenBytes, "200704"},
                 {"sglang", kTokenBytes, "327680"}},
       .note =
           "SGLang 0.5.23 counts 8 KV heads as expected (get_total_num_kv_heads), and makes its "
           "pool for all num_hidden_layers (num_attention_layers, configs/model_config.py)"},
  };
  return kCases;
}

// Rows of which a part is about running a model, which no program here does.
const std::map<std::string, std::string>& run_parts() {
  static const std::map<std::string, std::string> kRows = {
      {"silent-08", "llm-bench: both kernels timed"},
      {"wrong-01", "llm-run: two parts of a sequence merged against one pass"},
      {"wrong-02", "llm-run: shards combined"},
      {"wrong-03", "llm-run: positions 16 and 4096 compared"},
      {"wrong-04", "llm-run: an FP8 cache with scale 0.04"},
  };
  return kRows;
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const auto* cases :
       {&trtllm_cases(), &sglang_cases(), &llamacpp_cases(), &general_cases()}) {
    out.insert(out.end(), cases->begin(), cases->end());
  }
  return out;
}

std::string plain_text(const json::Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_null()) return "null";
  return value.brief(100);
}

// An entry of an array: by index, or by a member that has the name.
const json::Value* entry_of(const json::Value& array, const std::string& name) {
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos) {
    const std::size_t index = std::stoul(name);
    return index < array.items().size() ? &array.items()[index] : nullptr;
  }
  for (const json::Value& item : array.items()) {
    for (const char* key : {"name", "figure", "cause", "candidate", "rule", "backend"}) {
      const json::Value* member = item.find(key);
      if (member != nullptr && member->is_string() && member->as_string() == name) return &item;
    }
  }
  return nullptr;
}

// "options/x" is the value of option x, "accounts/figure/cause" the bytes of a cause.
const json::Value* find_value(const json::Value& root, const std::string& path) {
  std::string rest = path.starts_with("accounts/") ? "memory/" + path : path;
  const json::Value* at = &root;
  while (!rest.empty() && at != nullptr) {
    const std::size_t slash = rest.find('/');
    const std::string name = rest.substr(0, slash);
    rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
    if (at->is_array()) {
      at = entry_of(*at, name);
    } else if (const json::Value* differences = at->find("differences"); differences != nullptr) {
      at = entry_of(*differences, name);
    } else {
      at = at->find(name);
    }
  }
  if (at == nullptr || !at->is_object()) return at;
  const json::Value* value = at->find("value");
  return value != nullptr ? value : at->find("bytes");
}

void check_fact(const json::Value& input, const Fact& fact, const std::string& id) {
  const json::Value* root = &input;
  if (!fact.engine.empty()) {
    root = nullptr;
    for (const json::Value& engine : input.find("engines")->items()) {
      if (text_of(engine, "engine") == fact.engine) root = &engine;
    }
    ASSERT_NE(root, nullptr) << id << fact.engine;
  }
  const json::Value* value = find_value(*root, fact.path);
  if (fact.value.empty()) {
    EXPECT_EQ(value, nullptr) << id << ' ' << fact.path;
    return;
  }
  ASSERT_NE(value, nullptr) << id << ' ' << fact.engine << ' ' << fact.path;
  const std::string text = plain_text(*value);
  if (fact.value.starts_with("~")) {
    EXPECT_THAT(text, HasSubstr(fact.value.substr(1))) << id << ' ' << fact.path;
  } else {
    EXPECT_EQ(text, fact.value) << id << ' ' << fact.engine << ' ' << fact.path;
  }
}

class PublicCase : public ::testing::TestWithParam<Case> {
 protected:
  std::vector<std::string> arguments() {
    const Case& row = GetParam();
    std::vector<std::string> out = {row.config.starts_with("{")
                                        ? folder_.write("config.json", row.config)
                                        : config_folder(row.config)};
    out.insert(out.end(), row.options.begin(), row.options.end());
    return out;
  }

 private:
  TemporaryFolder folder_;
};

TEST_P(PublicCase, IsAnswered) {
  const Case& row = GetParam();
  if (!row.facts.empty()) {
    std::vector<std::string> asked = arguments();
    asked.emplace_back("--json");
    const Outcome outcome = inspect(asked);
    const Result<json::Document> document = json::parse_object(outcome.out, "stdout");
    ASSERT_TRUE(document) << row.id << outcome.err;
    const json::Value& input = document->root.find("inputs")->items()[0];
    for (const Fact& fact : row.facts) check_fact(input, fact, row.id);
  }
  if (row.findings.empty() && row.absent.empty()) return;
  std::vector<std::string> asked = arguments();
  asked.insert(asked.end(), {"--fail-on", "never"});
  const json::Value document = validate_document(asked, 0);
  for (const std::string& finding : row.findings) {
    const std::size_t space = finding.find(' ');
    const auto found = findings_of(document, finding.substr(space + 1));
    ASSERT_FALSE(found.empty()) << row.id << ": " << finding;
    EXPECT_EQ(text_of(found[0], "level"), finding.substr(0, space)) << row.id;
  }
  for (const std::string& id : row.absent) {
    EXPECT_TRUE(findings_of(document, id).empty()) << row.id << ": " << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, PublicCase, ::testing::ValuesIn(all_cases()),
                         [](const auto& row) {
                           std::string name = row.param.id;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name + "_" + std::to_string(row.index);
                         });

// arch-05: a GGUF file whose architecture is empty, missing or unknown is refused, each in its own
// words, and nothing crashes.
TEST(PublicCases, GgufArchitectures_AreToldApart) {
  const TemporaryFolder folder;
  const auto message = [&](const GgufBuilder& file) {
    const Outcome outcome =
        inspect({folder.write("m.gguf", file.bytes()), "--engine", "llamacpp", "--json"});
    EXPECT_LT(outcome.exit_code, 128) << outcome.err;
    return outcome.out + outcome.err;
  };
  GgufBuilder empty;
  empty.text("general.architecture", "");
  GgufBuilder missing;
  missing.text("general.name", "no architecture");
  GgufBuilder unknown;
  unknown.text("general.architecture", "no-such-model");
  EXPECT_THAT(message(empty), HasSubstr("is empty"));
  EXPECT_THAT(message(missing), HasSubstr("general.architecture"));
  EXPECT_THAT(message(unknown), HasSubstr("unknown model architecture: 'no-such-model'"));
}

// Every row of every engine is somewhere: here, or with vLLM's.
TEST(PublicCases, EveryRow_IsTested) {
  std::set<std::string> known = {"arch-05"};
  for (const Case& row : all_cases()) known.insert(row.id);
  std::set<std::string> rows;
  for (const json::Value& row : public_cases()) {
    if (text_of(row, "engine") != "vllm") rows.insert(text_of(row, "id"));
  }
  EXPECT_EQ(rows, known);
}

// What running a model would show is not shown yet: the rows that ask for it, counted.
TEST(PublicCases, RowsThatRunAModel_AreNamed) {
  std::set<std::string> rows;
  for (const json::Value& row : public_cases()) {
    const json::Value* caught_by = row.find("caught_by");
    ASSERT_NE(caught_by, nullptr);
    const bool runs =
        caught_by->find("llm-run") != nullptr || caught_by->find("llm-bench") != nullptr;
    if (runs) rows.insert(text_of(row, "id"));
  }
  std::set<std::string> known;
  for (const auto& [id, reason] : run_parts()) known.insert(id);
  EXPECT_EQ(rows, known);
}

}  // namespace
}  // namespace kernelpath::testing
