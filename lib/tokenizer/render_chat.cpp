#include "base/file.h"
#include "json/document.h"
#include "json/writer.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/child_process.h"

#include <algorithm>
#include <array>
#include <climits>
#include <optional>
#include <unistd.h>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

// Relative to the folder of the program: in an installation bin/ and share/ stand beside each
// other, and in the build folder, too.
constexpr std::string_view kScript = "../share/kernelpath/render_chat_template.py";

constexpr std::string_view kInstallHint =
    "install it (Debian: apt-get install python3-jinja2), or give the prompt as it is";

Result<std::string> find_script() {
  std::array<char, PATH_MAX> program{};
  const ssize_t length = readlink("/proc/self/exe", program.data(), program.size() - 1);
  if (length <= 0) {
    return fail({.code = ErrorCode::kUnavailable,
                 .message = "cannot tell where this program lies",
                 .file = "/proc/self/exe"});
  }
  std::string script =
      join_path(parent_path({program.data(), static_cast<std::size_t>(length)}), kScript);
  if (is_file(script)) return script;
  return fail({.code = ErrorCode::kUnavailable,
               .message = "the script that renders chat templates is missing",
               .file = script,
               .hint = "install kernelpath as a whole: the program and its share folder"});
}

json::Value variables_of(const SpecialTokens& special, const ChatRequest& request) {
  std::vector<json::Member> members;
  const auto set = [&](std::string key, json::Value value) {
    const auto found = std::ranges::find(members, key, &json::Member::key);
    if (found != members.end()) {
      found->value = std::move(value);
    } else {
      members.push_back({.key = std::move(key), .value = std::move(value)});
    }
  };
  for (const SpecialToken& token : special.named) {
    set(token.key, json::Value::string(token.content));
  }
  for (const json::Member& member : request.variables) set(member.key, member.value);
  set("messages", request.messages);
  set("tools", request.tools);
  set("documents", request.documents);
  set("add_generation_prompt", json::Value::boolean(request.add_generation_prompt));
  return json::Value::object(std::move(members));
}

Error template_error(const ChatTemplate& chat_template, ErrorCode code, std::string message) {
  return {.code = code,
          .message = std::move(message),
          .file = chat_template.file,
          .where = chat_template.where};
}

Error unavailable(std::string message) {
  return {.code = ErrorCode::kUnavailable,
          .message = "chat templates need Python 3 with Jinja2 3.1 or newer: " + std::move(message),
          .hint = std::string(kInstallHint)};
}

// The error of a process that did not answer.
std::optional<Error> process_error(const ProcessResult& result, const ChatTemplate& chat_template,
                                   const RenderLimits& limits) {
  const auto limit = [&](const std::string& what) {
    return template_error(chat_template, ErrorCode::kInputLimit,
                          "the chat template was stopped: " + what);
  };
  switch (result.end) {
    case ProcessResult::End::kTimedOut:
      return limit("it took longer than " + std::to_string(limits.time.count()) + " ms");
    case ProcessResult::End::kTooMuchOutput:
      return limit("it writes more text than is allowed");
    case ProcessResult::End::kKilled:
      return limit("the process was killed by signal " + std::to_string(result.code));
    case ProcessResult::End::kExited:
      break;
  }
  if (result.code == 0) return std::nullopt;
  std::string_view errors = result.errors;
  while (errors.ends_with('\n')) errors.remove_suffix(1);
  // The last line of a Python traceback says what happened.
  errors = errors.substr(errors.rfind('\n') + 1);
  return unavailable("python3 ended with status " + std::to_string(result.code) +
                     (errors.empty() ? "" : ": " + std::string(errors)));
}

// What the script answered. No value: this Python has no Jinja2.
Result<std::optional<std::string>> read_answer(const std::string& output,
                                               const ChatTemplate& chat_template,
                                               std::string& missing) {
  const json::Limits limits = {.max_bytes = output.size() + 1};
  KERNELPATH_TRY(document, json::parse_object(output, "render_chat_template.py", limits));
  const json::Value* text = document.root.find("text");
  if (text != nullptr && text->is_string()) return std::optional(text->as_string());
  const json::Value* kind = document.root.find("error");
  const json::Value* message = document.root.find("message");
  const std::string reason =
      message != nullptr && message->is_string() ? message->as_string() : output;
  if (kind != nullptr && kind->is_string() && kind->as_string() == "missing") {
    missing = reason;
    return std::optional<std::string>();
  }
  const std::string name = kind != nullptr && kind->is_string() ? kind->as_string() : "refused";
  if (name == "limit") {
    return fail(template_error(chat_template, ErrorCode::kInputLimit,
                               "the chat template was stopped: " + reason));
  }
  return fail(template_error(chat_template, ErrorCode::kConfigValue,
                             (name == "syntax" ? "the chat template is no Jinja2 template: "
                                               : "the chat template refuses this conversation: ") +
                                 reason));
}

}  // namespace

Result<std::string> render_chat(const ChatTemplate& chat_template, const SpecialTokens& special,
                                const ChatRequest& request, const RenderLimits& limits) {
  KERNELPATH_TRY(script, find_script());
  const json::Value question =
      json::Value::object({{.key = "template", .value = json::Value::string(chat_template.text)},
                           {.key = "variables", .value = variables_of(special, request)}});
  const std::string input = json::to_text(question);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(limits.time).count();
  // A character takes at most 12 bytes in the answer ("😀").
  const ProcessLimits process_limits = {.time = limits.time,
                                        .output_bytes = 12 * limits.output_characters + 4096};
  std::string missing = "python3 was not found";
  // The system's own has what its packages install; the first on PATH may be of a virtual
  // environment.
  for (const char* python : {"/usr/bin/python3", "python3"}) {
    const std::vector<std::string> arguments = {python,
                                                "-I",
                                                "-X",
                                                "utf8",
                                                script,
                                                std::to_string(limits.memory_bytes),
                                                std::to_string(seconds + 1),
                                                std::to_string(limits.output_characters)};
    const auto result = run_process(arguments, input, process_limits);
    if (!result) {
      missing = result.error().message;
      continue;
    }
    if (auto error = process_error(*result, chat_template, limits)) return fail(*std::move(error));
    KERNELPATH_TRY(text, read_answer(result->output, chat_template, missing));
    if (text) return *std::move(text);
  }
  return fail(unavailable(missing));
}

}  // namespace kernelpath::tokenizer
