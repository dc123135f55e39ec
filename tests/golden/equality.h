#pragma once

#include "json/value.h"

#include <string>
#include <vector>

// Reading recorded answers and comparing ours with them, by the rules that the recordings' README
// gives: what is evidence, what is a sentence for people, what must be the same.
namespace kernelpath::golden {

// One line of a recording: {"id", "in", "out", …}.
struct Case {
  std::string id;
  json::Value record;
  [[nodiscard]] const json::Value& in() const { return *record.find("in"); }
  [[nodiscard]] const json::Value& out() const { return *record.find("out"); }
};

// All lines of KERNELPATH_GOLDEN_DIR/<name>. Fails the running test and returns nothing if a line
// cannot be read.
std::vector<Case> read_cases(const std::string& name);

// Empty if `answer` equals the recorded `out` by TensorRT-LLM's rules, else the first difference:
// where, what was given, what was recorded.
std::string trtllm_difference(const json::Value& record, const json::Value& answer);

// The same by vLLM's rules for select.jsonl: everything exactly; a case with a note has no recorded
// lists of candidates.
std::string vllm_select_difference(const json::Value& record, const json::Value& answer);

// The same by SGLang's rules: rewrites that set something in their order, each without the function
// in its end; as many infos and warnings as recorded, each with the id of a rule; of an error stage
// and type; of a model's error its type; a model's class where it is recorded.
std::string sglang_select_difference(const json::Value& record, const json::Value& answer);

// The same by DeepInfer's rules: of an error its type and its rule; everything else exactly.
std::string deepinfer_difference(const json::Value& record, const json::Value& answer);

// The same, everything exactly but the evidence at the top (llama.cpp).
std::string exact_difference(const json::Value& record, const json::Value& answer);

}  // namespace kernelpath::golden
