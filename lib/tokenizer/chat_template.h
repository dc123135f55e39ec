#pragma once

#include "base/result.h"
#include "json/value.h"
#include "tokenizer/tokenizer.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::tokenizer {

// A Jinja2 template that makes one text of a conversation.
struct ChatTemplate {
  std::string name;  // "default", "tool_use", …
  std::string text;
  std::string file;   // where it came from
  std::string where;  // JSON pointer within that file; empty for a .jinja file
};

// The templates beside a tokenizer, in this order of preference: chat_template.jinja ("default")
// with the files of additional_chat_templates/; else chat_template of tokenizer_config.json, a text
// ("default") or a list of {"name", "template"}. None is no error. Errors: what read_file and
// json::parse give, kConfigType, kConfigMissing.
Result<std::vector<ChatTemplate>> load_chat_templates(const std::string& folder);

// The template of that name; with an empty name "tool_use" where there are tools and it is there,
// else "default". Errors: kConfigMissing (there is no template at all, or several and none is
// "default"), kUsageUnknown (no such name).
Result<const ChatTemplate*> choose_chat_template(std::span<const ChatTemplate> templates,
                                                 std::string_view name, bool has_tools,
                                                 const std::string& folder);

// What a template is rendered with.
struct ChatRequest {
  json::Value messages;  // a list of {"role": …, "content": …} and what else the template reads
  json::Value tools = {};      // a list of JSON schemas, or null
  json::Value documents = {};  // a list of objects, or null
  // End with the start of the assistant's turn.
  bool add_generation_prompt = true;
  // Further variables ("enable_thinking"); they count more than special tokens of the same name.
  std::vector<json::Member> variables = {};
};

struct RenderLimits {
  std::chrono::milliseconds time{10'000};
  std::size_t memory_bytes = std::size_t{512} << 20;  // address space of the child process
  std::size_t output_characters = std::size_t{4} << 20;
};

// Renders a template as transformers does it: Jinja2 in its immutable sandbox with trim_blocks,
// lstrip_blocks, loop controls, raise_exception, strftime_now and tojson; the special tokens of
// tokenizer_config.json are variables. It runs in a child process (python3), which gets everything
// on its standard input and is killed at a limit. The result has its special tokens: encode it with
// add_special_tokens = false.
//
// Errors: kConfigValue with the template's file and place (a syntax error; what raise_exception
// says; any other error while rendering), kInputLimit (time, memory or output), kUnavailable (no
// python3, no Jinja2 3.1 or newer, or the script that belongs to this program is missing).
Result<std::string> render_chat(const ChatTemplate& chat_template, const SpecialTokens& special,
                                const ChatRequest& request, const RenderLimits& limits = {});

}  // namespace kernelpath::tokenizer
