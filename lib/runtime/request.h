#pragma once

#include "base/result.h"
#include "runtime/sampler.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::runtime {

// One message of a conversation, for a chat template.
struct Message {
  std::string role;
  std::string content;
};

// What a user asks to be generated: a text, token ids or a conversation; exactly one of them.
struct GenerationRequest {
  std::string id = {};  // as the answer names it
  std::optional<std::string> prompt = {};
  std::vector<std::int32_t> prompt_ids = {};
  std::vector<Message> messages = {};
  std::int64_t max_tokens = 0;
  bool ignore_eos = false;  // goes on behind an end-of-sequence token
  SamplingParams sampling = {};
  std::vector<std::string> stop = {};
  std::int64_t logprobs = 0;  // of so many tokens beside the chosen one
};

inline constexpr std::size_t kMaxRequestLineBytes = std::size_t{64} << 20;

// Reads one line of a prompts file:
//   {"id": "a", "prompt": "…" | "prompt_ids": [1, 2] | "messages": [{"role": …, "content": …}],
//    "max_tokens": 16, "ignore_eos": false, "temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0,
//    "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "seed": 0,
//    "stop": "…" | ["…"], "logprobs": 0}
// What a line leaves out is as in `defaults`; without "id" the line's number is the id. A field of
// another name is refused with near matches.
// Errors: those of json::parse; kBatchRequest with the line and the field in `where`.
Result<GenerationRequest> parse_request(std::string_view line, std::int64_t line_number,
                                        const std::string& file, const GenerationRequest& defaults);

// The "id" that a line states, also one that parse_request refuses; nothing where it has none that
// is one.
std::optional<std::string> stated_id(std::string_view line);

}  // namespace kernelpath::runtime
