#include "cli/batch.h"

#include "base/text.h"
#include "cli/batch_request.h"
#include "cli/line_reader.h"
#include "cli/report_files.h"
#include "cli/signals.h"
#include "json/document.h"
#include "json/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

constexpr std::int64_t kMostLines = 10'000'000;

// An open descriptor that closes itself, but for standard input.
class InputFile {
 public:
  explicit InputFile(int fd) : fd_(fd) {}
  ~InputFile() {
    if (fd_ > STDIN_FILENO) close(fd_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

Result<std::unique_ptr<InputFile>> open_batch(const std::string& path) {
  if (path == "-") return std::make_unique<InputFile>(STDIN_FILENO);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return fail({.code = errno == ENOENT ? ErrorCode::kInputMissing : ErrorCode::kInputPermission,
                 .message = errno == ENOENT ? "no such file" : std::strerror(errno),
                 .file = path});
  }
  auto file = std::make_unique<InputFile>(fd);
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    return fail({.code = ErrorCode::kInputKind, .message = "a folder, not a file", .file = path});
  }
  return file;
}

Result<void> check_options(const Invocation& invocation) {
  if (!invocation.models.empty()) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "--batch names its models in its lines; MODEL is given as well",
                 .value = shorten(invocation.models.front(), 64)});
  }
  const std::string& format = invocation.settings.text(Option::kFormat);
  const bool chosen = invocation.settings.of(Option::kFormat).set_by == SetBy::kCommandLine;
  if (chosen && format != "json" && format != "jsonl") {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "--batch answers in JSON lines, --format asks for " + format});
  }
  if (invocation.settings.list(Option::kOutput).size() > 1) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "--batch writes one stream of answers, --output is given twice"});
  }
  return {};
}

class Batch {
 public:
  Batch(const Invocation& invocation, BatchAnswers& answers, Output& output)
      : invocation_(invocation), answers_(answers), output_(output) {}

  Result<void> run(LineReader& reader);
  [[nodiscard]] int exit_code() const { return exit_code_; }

 private:
  Result<void> answer_line(const LineReader::Line& line);
  // The text of one answer line, without its end.
  Result<std::string> answer(const json::Value& request, std::int64_t number);
  Result<std::string> answer_model(const json::Value& request, const std::string& model,
                                   std::int64_t number);
  void warn_ignored(const std::vector<std::string>& fields, std::int64_t number);

  const Invocation& invocation_;
  BatchAnswers& answers_;
  Output& output_;
  std::set<std::string> warned_fields_;
  int exit_code_ = kExitOk;
};

std::string error_line(const json::Value& id, const Error& error) {
  json::Writer w;
  w.begin_object().key("id").value(id).key("error").begin_object();
  w.member("code", error_info(error.code).id);
  std::string message = error.text();
  if (!error.near_matches.empty()) {
    message += "; did you mean " + join_words(error.near_matches, "or") + "?";
  }
  w.member("message", message);
  w.end_object().end_object();
  return w.take(0);
}

Error bad_request(std::string message) {
  return {.code = ErrorCode::kBatchRequest, .message = std::move(message)};
}

json::Value id_of(const json::Value& request) {
  const json::Value* id = request.find("id");
  return id == nullptr ? json::Value::null() : *id;
}

std::string answer_line_of(const json::Value& request, const std::string& members) {
  return fmt::format("{{\"id\":{},{}}}", json::to_text(id_of(request)), members);
}

Result<std::string> Batch::answer_model(const json::Value& request, const std::string& model,
                                        std::int64_t number) {
  KERNELPATH_TRY(line, batch_settings(request, invocation_.settings));
  warn_ignored(line.ignored_fields, number);
  int code = kExitOk;
  KERNELPATH_TRY(document, answers_.answer_model(line.settings, model, code));
  exit_code_ = worse(exit_code_, code);
  return answer_line_of(request, "\"out\":" + document);
}

// A misspelt option must not pass in silence; the protocol says that other fields are ignored.
void Batch::warn_ignored(const std::vector<std::string>& fields, std::int64_t number) {
  for (const std::string& field : fields) {
    if (!warned_fields_.insert(field).second) continue;
    std::string text = fmt::format("line {}: the field '{}' is ignored", number, field);
    std::vector<std::string> near = near_options(field);
    for (std::string& option : near) option = field_name(option.substr(2));
    if (!near.empty()) text += "; did you mean " + join_words(near, "or") + "?";
    invocation_.log.warn(text);
  }
}

Result<std::string> Batch::answer(const json::Value& request, std::int64_t number) {
  const json::Value* in = request.find("in");
  if (in != nullptr) {
    if (!in->is_object()) return fail(bad_request("\"in\" is not an object"));
    KERNELPATH_TRY(members, answers_.answer_in(request, *in));
    return answer_line_of(request, members);
  }
  const json::Value* model = request.find("model");
  if (model == nullptr) {
    return fail(bad_request(R"(the request has neither "in" nor "model")"));
  }
  if (!model->is_string()) return fail(bad_request("\"model\" is not a string"));
  if (model->as_string() == "-") {
    return fail(bad_request("a line cannot read its model from standard input"));
  }
  return answer_model(request, model->as_string(), number);
}

Result<void> Batch::answer_line(const LineReader::Line& line) {
  if (!line.too_long && trim(line.text).empty()) return {};
  json::Value id = json::Value::null();
  Result<std::string> text = fail(
      Error{.code = ErrorCode::kInputLimit,
            .message = fmt::format("the line is longer than {} bytes", json::Limits{}.max_bytes)});
  if (!line.too_long) {
    const Result<json::Document> document = json::parse(std::string(line.text), "");
    if (!document) {
      text = fail(document.error());
    } else if (!document->root.is_object()) {
      text = fail(bad_request("the request is not a JSON object"));
    } else {
      id = id_of(document->root);
      text = answer(document->root, line.number);
    }
  }
  if (!text) exit_code_ = kExitFinding;
  KERNELPATH_CHECK_OK(output_.write(text ? *text : error_line(id, text.error())));
  return output_.write("\n");
}

Result<void> Batch::run(LineReader& reader) {
  while (stop_signal() == 0 && !output_.reader_is_gone()) {
    KERNELPATH_TRY(line, reader.next());
    if (line.end) break;
    if (line.number > kMostLines) {
      return fail({.code = ErrorCode::kInputLimit,
                   .message = fmt::format("the batch has more than {} lines", kMostLines)});
    }
    KERNELPATH_CHECK_OK(answer_line(line));
  }
  return {};
}

Result<int> run(const Invocation& invocation, BatchAnswers& answers) {
  KERNELPATH_CHECK_OK(check_options(invocation));
  const std::string& path = invocation.settings.text(Option::kBatch);
  Result<std::unique_ptr<InputFile>> input = open_batch(path);
  if (!input) return fail(std::move(input).error());
  std::vector<ReportFile> reports = make_reports(invocation, {});
  Output& output = reports.front().output;
  LineReader reader((*input)->fd(), json::Limits{}.max_bytes, [&] { return output.flush(); });
  Batch batch(invocation, answers, output);
  Result<void> done = batch.run(reader);
  // What was answered stands, also where the input broke off.
  Result<void> committed = output.commit();
  if (!done) {
    if (done.error().file.empty()) done.error().file = path;
    return fail(std::move(done).error());
  }
  if (!committed) return fail(std::move(committed).error());
  return batch.exit_code();
}

}  // namespace

int run_batch(const Invocation& invocation, BatchAnswers& answers) {
  const Result<int> code = run(invocation, answers);
  if (code) return *code;
  return report_error(invocation.log, code.error());
}

}  // namespace kernelpath::cli
