#include "cli/logits_file.h"

#include <string_view>

namespace kernelpath::cli {

Result<LogitsFile> LogitsFile::open(const std::string& path, std::int64_t requests) {
  LogitsFile out;
  if (path.empty()) return out;
  if (path == "-") {
    return fail({.code = ErrorCode::kUsage,
                 .message = "takes a file: standard output has the text",
                 .where = "--dump-logits"});
  }
  if (requests > 1) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "the logits of several requests would mix in one file",
                 .where = "--dump-logits",
                 .hint = "give one prompt"});
  }
  out.output_ = Output::file(path);
  out.output_->keep_part();
  return out;
}

Result<void> LogitsFile::append(std::span<const float> logits) {
  if (!output_) return {};
  const std::span<const std::byte> bytes = std::as_bytes(logits);
  return output_->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<void> LogitsFile::commit() {
  if (!output_) return {};
  return output_->commit();
}

}  // namespace kernelpath::cli
