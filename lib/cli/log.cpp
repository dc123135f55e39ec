#include "cli/log.h"

#include "base/text.h"
#include "cli/output.h"
#include "json/writer.h"

#include <fmt/format.h>

namespace kernelpath::cli {
namespace {

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "";
}

std::string_view level_color(LogLevel level) {
  if (level == LogLevel::kError) return "\x1b[31m";
  return level == LogLevel::kWarn ? "\x1b[33m" : "\x1b[2m";
}

std::string message_json(std::string_view level, std::string_view message) {
  json::Writer w;
  w.begin_object().member("level", level).member("message", message).end_object();
  return w.take(0) + "\n";
}

void member_if(json::Writer& w, std::string_view name, const std::string& value) {
  if (!value.empty()) w.member(name, value);
}

}  // namespace

std::string hint_text(const Error& error) {
  std::string out;
  if (!error.near_matches.empty()) {
    out = "did you mean " + join_words(error.near_matches, "or") + "?";
  }
  if (!error.hint.empty()) out += (out.empty() ? "" : " ") + error.hint;
  return out;
}

std::string error_json(const Error& error) {
  const ErrorInfo& info = error_info(error.code);
  json::Writer w;
  w.begin_object();
  w.member("schema", "kernelpath/error").member("schema_version", "1.0.0");
  w.member("code", info.id);
  w.member("exit_code", info.exit_code);
  w.member("exit_name", info.name);
  member_if(w, "file", error.file);
  member_if(w, "where", error.where);
  w.member("what", error.message);
  member_if(w, "value", error.value);
  member_if(w, "hint", error.hint);
  if (!error.near_matches.empty()) {
    w.key("near_matches").begin_array();
    for (const std::string& match : error.near_matches) w.value(match);
    w.end_array();
  }
  w.end_object();
  return w.take(0);
}

Log::Log(std::string program, LogStyle style, int fd)
    : program_(std::move(program)), style_(style), fd_(fd) {}

// Nowhere is left to report that standard error cannot be written.
void Log::put(std::string_view text) const { static_cast<void>(write_all(fd_, text)); }

void Log::error(const Error& error) const {
  if (style_.json_errors || style_.json) {
    put(error_json(error) + "\n");
    return;
  }
  std::string tag = fmt::format("error[{}]", error_info(error.code).id);
  if (style_.color) tag = fmt::format("{}{}\x1b[0m", level_color(LogLevel::kError), tag);
  std::string text = fmt::format("{}: {}: {}\n", program_, tag, error.text());
  const std::string hint = hint_text(error);
  if (!hint.empty()) text += "  hint: " + escape_for_terminal(hint) + "\n";
  put(text);
}

void Log::hint(std::string_view message) const {
  if (style_.json || style_.json_errors || !style_.hints) return;
  put("hint: " + escape_for_terminal(message) + "\n");
}

void Log::note(std::string_view message) const {
  if (style_.level < LogLevel::kWarn) return;
  put(style_.json ? message_json("note", message) : escape_for_terminal(message) + "\n");
}

void Log::finding(std::string_view message) const {
  if (style_.json || style_.json_errors) {
    put(message_json("finding", message));
    return;
  }
  put(fmt::format("{}: finding: {}\n", program_, escape_for_terminal(message)));
}

void Log::line(LogLevel level, std::string_view message) const {
  if (level > style_.level) return;
  if (style_.json) {
    put(message_json(level_name(level), message));
    return;
  }
  std::string tag(level_name(level));
  if (style_.color) tag = fmt::format("{}{}\x1b[0m", level_color(level), tag);
  put(fmt::format("{}: {}: {}\n", program_, tag, escape_for_terminal(message)));
}

}  // namespace kernelpath::cli
