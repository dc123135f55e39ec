#pragma once

#include "base/result.h"
#include "cli/settings.h"
#include "config/model_config.h"
#include "runtime/expectation.h"
#include "runtime/generator.h"
#include "runtime/request.h"
#include "tokenizer/tokenizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpath::cli {

// A request that cannot be run: its id, or its line's number where the line has none.
struct FailedRequest {
  std::string id;
  Error error;
};

// What the command line asks to be generated.
struct RunRequests {
  std::vector<runtime::GenerationRequest> requests;
  // Of --prompts: a line that cannot be answered does not keep the others from being answered.
  bool answers_each = false;
  std::vector<FailedRequest> failed;
  // Of --expect: the run that each request must equal, in their order; empty without it.
  std::vector<runtime::ExpectedRun> expected;
  bool picks_expected = false;  // the command line's prompt names one of them
};

// Whether prompts come from standard input.
bool reads_standard_input(const Settings& settings);

// Options of drawing that change nothing, since tokens are not drawn but the likeliest are taken.
std::vector<std::string> ignored_sampling(const Settings& settings);

// Reads --prompt, --prompt-tokens, --prompts or --expect and the sampling options. Lines of
// --prompts that are no requests are in `failed`. Errors: kUsage, kUsageConflict, kInputSchema (no
// line at all), those of load_expectation and read_file.
Result<RunRequests> read_requests(const Settings& settings);

// The tokenizer beside the weights. Null, with the reason in `missing`, where there is none and no
// request needs one. Errors: those of tokenizer::load.
struct RunTokenizer {
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  std::optional<Error> missing = {};
};
Result<RunTokenizer> load_tokenizer(const std::string& folder, const RunRequests& requests);

// The requests as token ids. Errors: those of encode, render_chat and choose_chat_template, with
// the request in `where`; where each request is answered by itself they go to `failed`.
Result<std::vector<runtime::Prompt>> encode_requests(RunRequests& requests,
                                                     const std::string& folder,
                                                     const tokenizer::Tokenizer* tokenizer);

// With --expect and a prompt of the command line: keeps the run of the same prompt, and runs it as
// that says. Error: kUsage where there is none.
Result<void> match_expected(RunRequests& requests, std::vector<runtime::Prompt>& prompts);

// Tokens that end a text: the tokenizer's, or without one those that config.json states.
std::vector<std::int32_t> end_tokens(const tokenizer::Tokenizer* tokenizer,
                                     const config::ModelConfig& config);

}  // namespace kernelpath::cli
