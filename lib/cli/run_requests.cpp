#include "cli/run_requests.h"

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/terminal.h"
#include "json/value.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unistd.h>
#include <utility>

namespace kernelpath::cli {
namespace {

using runtime::GenerationRequest;

constexpr std::size_t kMaxPromptBytes = std::size_t{256} << 20;

Result<std::string> read_input(const std::string& path, Option option) {
  if (path != "-") {
    KERNELPATH_TRY(contents, read_file(path, kMaxPromptBytes));
    return contents.text;
  }
  if (is_terminal(STDIN_FILENO)) {
    return fail({.code = ErrorCode::kUsage,
                 .message = "is '-', but standard input is a terminal",
                 .where = "--" + std::string(option_row(option).name)});
  }
  return read_stream(STDIN_FILENO, "standard input", kMaxPromptBytes);
}

// The prompt, with the place that it comes from in its errors.
Result<std::string> prompt_text(const std::string& text) {
  const bool is_stream = text == "-";
  const bool is_file = text.starts_with("@");
  std::string out = text;
  if (text == "@") {
    return fail({.code = ErrorCode::kUsage,
                 .message = "'@' names no file",
                 .where = "--prompt",
                 .hint = "say -p @FILE, or write the text itself"});
  }
  if (is_stream || is_file) {
    KERNELPATH_TRY(read, read_input(is_file ? text.substr(1) : text, Option::kPrompt));
    out = std::move(read);
  }
  const std::size_t invalid = tokenizer::find_invalid_utf8(out);
  if (invalid == std::string::npos) return out;
  return fail({.code = ErrorCode::kInputEncoding,
               .message = fmt::format("byte {} of the prompt is not UTF-8", invalid),
               .file = is_file     ? text.substr(1)
                       : is_stream ? "standard input"
                                   : "",
               .where = is_stream || is_file ? "" : "--prompt",
               .hint = "convert it, for example with iconv"});
}

Result<std::vector<std::int32_t>> prompt_tokens(const Settings& settings) {
  std::vector<std::int32_t> out;
  for (const std::string& text : settings.list(Option::kPromptTokens)) {
    const Result<std::int64_t> id = parse_integer(text);
    if (!id || *id < 0 || *id > std::numeric_limits<std::int32_t>::max()) {
      return fail({.code = ErrorCode::kUsage,
                   .message = "not a token id",
                   .where = "--prompt-tokens",
                   .value = shorten(text, 64)});
    }
    out.push_back(static_cast<std::int32_t>(*id));
  }
  return out;
}

Result<GenerationRequest> defaults_of(const Settings& settings) {
  GenerationRequest out;
  out.max_tokens = settings.integer(Option::kMaxTokens).value_or(1);
  out.ignore_eos = settings.flag(Option::kIgnoreEos);
  out.stop = settings.list(Option::kStop);
  out.logprobs = settings.integer(Option::kLogprobs).value_or(0);
  out.sampling = {.temperature = settings.number(Option::kTemperature),
                  .top_k = settings.integer(Option::kTopK).value_or(0),
                  .top_p = settings.number(Option::kTopP),
                  .min_p = settings.number(Option::kMinP),
                  .repetition_penalty = settings.number(Option::kRepetitionPenalty),
                  .presence_penalty = settings.number(Option::kPresencePenalty),
                  .frequency_penalty = settings.number(Option::kFrequencyPenalty),
                  .seed = static_cast<std::uint64_t>(settings.integer(Option::kSeed).value_or(0))};
  Result<void> checked = runtime::check_sampling(out.sampling);
  if (!checked) {
    std::string option = "--" + checked.error().where;
    std::ranges::replace(option, '_', '-');
    checked.error().where = std::move(option);
    return fail(std::move(checked).error());
  }
  return out;
}

// --expect says what is generated: greedy tokens, as many as its file has.
Result<void> check_expectable(const Settings& settings, bool has_prompt) {
  std::vector<Option> others = {Option::kTemperature,
                                Option::kTopK,
                                Option::kTopP,
                                Option::kMinP,
                                Option::kRepetitionPenalty,
                                Option::kPresencePenalty,
                                Option::kFrequencyPenalty,
                                Option::kStop};
  if (!has_prompt) others.insert(others.end(), {Option::kChat, Option::kSystem});
  for (const Option option : others) {
    if (!settings.is_set(option)) continue;
    const OptionRow& row = option_row(option);
    const std::vector<std::string>& values = settings.list(option);
    const bool as_ever = values.size() == 1 && values.front() == row.default_value;
    if (as_ever) continue;
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "--expect compares the greedy tokens of its file's prompts; this asks "
                            "for something else",
                 .where = "--" + std::string(row.name)});
  }
  return {};
}

// What of --prompt, --prompt-tokens, --prompts and --expect is given, where only one may be.
Result<void> check_sources(const Settings& settings) {
  std::vector<std::string> given;
  for (const Option option : {Option::kPrompt, Option::kPromptTokens, Option::kPrompts}) {
    if (settings.is_set(option)) given.push_back("--" + std::string(option_row(option).name));
  }
  const bool expects = settings.is_set(Option::kExpect);
  if (given.size() > 1) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = join_words(given) + " say what to go on from; one of them can"});
  }
  if (expects && settings.is_set(Option::kPrompts)) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "--expect has prompts of its own; --prompts has others"});
  }
  if (expects) return check_expectable(settings, !given.empty());
  if (!given.empty()) return {};
  return fail({.code = ErrorCode::kUsage,
               .message = "nothing is given to go on from",
               .hint = "say -p TEXT, --prompt-tokens IDS, --prompts FILE.jsonl or --expect "
                       "golden.json"});
}

Error repeated_id(const std::string& file, std::int64_t line, const std::string& id) {
  return {.code = ErrorCode::kBatchRequest,
          .message = "another line has the same id",
          .file = file,
          .where = fmt::format("{}:/id", line),
          .value = shorten(id, 64)};
}

Result<RunRequests> requests_of_file(const Settings& settings, const GenerationRequest& defaults) {
  const std::string& path = settings.text(Option::kPrompts);
  KERNELPATH_TRY(text, read_input(path, Option::kPrompts));
  const std::string name = path == "-" ? "standard input" : path;
  RunRequests out;
  out.answers_each = true;
  std::set<std::string, std::less<>> ids;
  std::int64_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    Result<GenerationRequest> request = runtime::parse_request(line, number, name, defaults);
    if (!request) {
      std::string id = runtime::stated_id(line).value_or(fmt::format("line {}", number));
      if (ids.contains(id)) id = fmt::format("line {}", number);
      out.failed.push_back({std::move(id), std::move(request).error()});
    } else if (!ids.insert(request->id).second) {
      out.failed.push_back(
          {fmt::format("line {}", number), repeated_id(name, number, request->id)});
    } else {
      out.requests.push_back(std::move(*request));
    }
  }
  if (!out.requests.empty() || !out.failed.empty()) return out;
  return fail({.code = ErrorCode::kInputSchema,
               .message = "holds no request",
               .file = name,
               .hint = R"(a request is a JSON object on a line of its own: {"prompt": "Hello"})"});
}

// The one request of --prompt or --prompt-tokens; nothing where neither is given.
Result<std::optional<GenerationRequest>> request_of_options(const Settings& settings,
                                                            const GenerationRequest& defaults) {
  if (!settings.is_set(Option::kPrompt) && !settings.is_set(Option::kPromptTokens)) {
    return std::nullopt;
  }
  GenerationRequest out = defaults;
  out.id = "1";
  if (settings.is_set(Option::kPromptTokens)) {
    KERNELPATH_TRY(ids, prompt_tokens(settings));
    out.prompt_ids = std::move(ids);
    return out;
  }
  KERNELPATH_TRY(text, prompt_text(settings.text(Option::kPrompt)));
  const std::string& system = settings.text(Option::kSystem);
  if (!settings.flag(Option::kChat) && system.empty()) {
    out.prompt = std::move(text);
    return out;
  }
  if (!system.empty()) out.messages.push_back({"system", system});
  out.messages.push_back({"user", std::move(text)});
  return out;
}

GenerationRequest request_of_run(const runtime::ExpectedRun& run,
                                 const GenerationRequest& defaults) {
  GenerationRequest out = defaults;
  out.id = std::to_string(run.id);
  out.prompt_ids = run.prompt_ids;
  out.max_tokens = static_cast<std::int64_t>(run.output_ids.size());
  out.ignore_eos = true;
  out.stop.clear();
  return out;
}

bool needs_tokenizer(const GenerationRequest& request) { return request.prompt_ids.empty(); }

json::Value messages_value(const std::vector<runtime::Message>& messages) {
  std::vector<json::Value> out;
  out.reserve(messages.size());
  for (const runtime::Message& message : messages) {
    out.push_back(
        json::Value::object({{.key = "role", .value = json::Value::string(message.role)},
                             {.key = "content", .value = json::Value::string(message.content)}}));
  }
  return json::Value::array(std::move(out));
}

Result<std::vector<std::int32_t>> encode_chat(const GenerationRequest& request,
                                              const std::string& folder,
                                              const tokenizer::Tokenizer& tokenizer) {
  KERNELPATH_TRY(templates, tokenizer::load_chat_templates(folder));
  KERNELPATH_TRY(chosen, tokenizer::choose_chat_template(templates, "", false, folder));
  KERNELPATH_TRY(text, tokenizer::render_chat(*chosen, tokenizer.special_tokens(),
                                              {.messages = messages_value(request.messages)}));
  return tokenizer.encode(text, {.add_special_tokens = false});
}

Result<std::vector<std::int32_t>> tokens_of(const GenerationRequest& request,
                                            const std::string& folder,
                                            const tokenizer::Tokenizer* tokenizer) {
  if (!needs_tokenizer(request)) return request.prompt_ids;
  if (!request.messages.empty()) return encode_chat(request, folder, *tokenizer);
  return tokenizer->encode(request.prompt.value_or(""));
}

}  // namespace

std::vector<std::string> ignored_sampling(const Settings& settings) {
  std::vector<std::string> out;
  const bool may_draw = settings.number(Option::kTemperature) != 0 ||
                        settings.is_set(Option::kPrompts);  // whose lines may have one
  if (may_draw) return out;
  for (const Option option : {Option::kTopK, Option::kTopP, Option::kMinP, Option::kSeed}) {
    if (settings.is_set(option)) out.push_back("--" + std::string(option_row(option).name));
  }
  return out;
}

bool reads_standard_input(const Settings& settings) {
  return settings.text(Option::kPrompt) == "-" || settings.text(Option::kPrompts) == "-";
}

Result<RunRequests> read_requests(const Settings& settings) {
  KERNELPATH_CHECK_OK(check_sources(settings));
  KERNELPATH_TRY(defaults, defaults_of(settings));
  if (settings.is_set(Option::kPrompts)) return requests_of_file(settings, defaults);
  RunRequests out;
  KERNELPATH_TRY(one, request_of_options(settings, defaults));
  if (settings.is_set(Option::kExpect)) {
    KERNELPATH_TRY(expectation, runtime::load_expectation(settings.text(Option::kExpect)));
    out.expected = std::move(expectation.runs);
  }
  if (one) {
    out.requests.push_back(std::move(*one));
    out.picks_expected = !out.expected.empty();
    return out;
  }
  for (const runtime::ExpectedRun& run : out.expected) {
    out.requests.push_back(request_of_run(run, defaults));
  }
  return out;
}

Result<RunTokenizer> load_tokenizer(const std::string& folder, const RunRequests& requests) {
  Result<std::unique_ptr<tokenizer::Tokenizer>> loaded = tokenizer::load(folder);
  if (loaded) return RunTokenizer{.tokenizer = std::move(*loaded)};
  const bool is_absent = loaded.error().code == ErrorCode::kInputMissing ||
                         loaded.error().code == ErrorCode::kInputKind;
  if (!is_absent || std::ranges::any_of(requests.requests, needs_tokenizer)) {
    return fail(std::move(loaded).error());
  }
  return RunTokenizer{.tokenizer = nullptr, .missing = std::move(loaded).error()};
}

Result<std::vector<runtime::Prompt>> encode_requests(RunRequests& requests,
                                                     const std::string& folder,
                                                     const tokenizer::Tokenizer* tokenizer) {
  std::vector<runtime::Prompt> out;
  out.reserve(requests.requests.size());
  for (const GenerationRequest& request : requests.requests) {
    Result<std::vector<std::int32_t>> tokens = tokens_of(request, folder, tokenizer);
    if (!tokens) {
      Error error = std::move(tokens).error();
      if (!requests.answers_each) return fail(std::move(error));
      error.where =
          fmt::format("request {}{}{}", request.id, error.where.empty() ? "" : ": ", error.where);
      requests.failed.push_back({request.id, std::move(error)});
      continue;
    }
    out.push_back({.id = request.id,
                   .tokens = std::move(*tokens),
                   .max_tokens = request.max_tokens,
                   .ignore_eos = request.ignore_eos,
                   .sampling = request.sampling,
                   .stop = request.stop,
                   .logprobs = request.logprobs});
  }
  return out;
}

Result<void> match_expected(RunRequests& requests, std::vector<runtime::Prompt>& prompts) {
  if (!requests.picks_expected) return {};
  const auto is_asked = [&](const runtime::ExpectedRun& run) {
    return run.prompt_ids == prompts.front().tokens;
  };
  const auto run = std::ranges::find_if(requests.expected, is_asked);
  if (run == requests.expected.end()) {
    return fail({.code = ErrorCode::kUsage,
                 .message = "no run of the --expect file has this prompt's tokens",
                 .hint = "leave the prompt out to run all of the file's"});
  }
  prompts.front().max_tokens = static_cast<std::int64_t>(run->output_ids.size());
  prompts.front().ignore_eos = true;
  requests.expected = std::vector{*run};
  return {};
}

std::vector<std::int32_t> end_tokens(const tokenizer::Tokenizer* tokenizer,
                                     const config::ModelConfig& config) {
  if (tokenizer != nullptr) return tokenizer->special_tokens().eos;
  std::vector<std::int32_t> out;
  const json::Value* text = config.file.find("text_config");
  for (const json::Value* place : std::array<const json::Value*, 2>{&config.file, text}) {
    const json::Value* eos = place == nullptr ? nullptr : place->find_non_null("eos_token_id");
    if (eos == nullptr) continue;
    const auto add = [&](const json::Value& id) {
      if (id.is_integer()) out.push_back(static_cast<std::int32_t>(id.as_integer()));
    };
    if (eos->is_array()) {
      std::ranges::for_each(eos->items(), add);
    } else {
      add(*eos);
    }
  }
  return out;
}

}  // namespace kernelpath::cli
