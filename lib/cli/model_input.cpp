#include "cli/model_input.h"

#include "base/file.h"
#include "cli/signals.h"
#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace kernelpath::cli {
namespace {

// Standard input up to one byte more than a configuration may have; the reader refuses that.
Result<std::string> read_standard_input() {
  const std::size_t most = json::Limits{}.max_bytes + 1;
  std::string out;
  std::array<char, 1 << 16> block{};
  while (out.size() < most && stop_signal() == 0) {
    const ssize_t count = read(STDIN_FILENO, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return fail({.code = ErrorCode::kRuntime,
                   .message = std::string("reading failed: ") + std::strerror(errno),
                   .file = "-"});
    }
    if (count == 0) break;
    out.append(block.data(), static_cast<std::size_t>(count));
  }
  return out;
}

std::optional<json::Document> parsed(std::string text, const std::string& file) {
  Result<json::Document> document = json::parse_object(std::move(text), file);
  if (!document) return std::nullopt;
  return std::move(*document);
}

}  // namespace

Result<void> check_models(const std::vector<std::string>& models) {
  const auto from_stdin = std::count(models.begin(), models.end(), "-");
  if (from_stdin > 1) {
    return fail({.code = ErrorCode::kUsageConflict,
                 .message = "standard input can be one MODEL only, '-' stands twice"});
  }
  if (from_stdin == 1 && is_terminal(STDIN_FILENO)) {
    return fail(
        {.code = ErrorCode::kUsage, .message = "MODEL is '-', but standard input is a terminal"});
  }
  return {};
}

Result<config::ModelConfig> load_input(const std::string& path,
                                       const config::LoadOptions& options) {
  if (path != "-") return config::load_model(path, options);
  KERNELPATH_TRY(text, read_standard_input());
  return config::load_model(path, options, text);
}

Result<LoadedModel> load_with_text(const std::string& path, const config::LoadOptions& options) {
  if (path == "-") {
    KERNELPATH_TRY(text, read_standard_input());
    KERNELPATH_TRY(config, config::load_model(path, options, text));
    return LoadedModel{.config = std::move(config), .document = parsed(std::move(text), path)};
  }
  KERNELPATH_TRY(config, config::load_model(path, options));
  LoadedModel out{.config = std::move(config)};
  Result<FileContents> file = read_file(out.config.path, json::Limits{}.max_bytes);
  if (file) out.document = parsed(std::move(file->text), out.config.path);
  return out;
}

}  // namespace kernelpath::cli
