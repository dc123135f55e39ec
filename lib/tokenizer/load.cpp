#include "base/file.h"
#include "tokenizer/parts.h"

#include <array>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

constexpr std::array<std::string_view, 2> kFileNames = {"tokenizer.json", "tokenizer.model"};

// The file to read: the path itself, or the first name that a folder has.
Result<std::string> find_tokenizer(const std::string& path) {
  KERNELPATH_TRY(kind, path_kind(path));
  if (kind != PathKind::kFolder) return path;
  for (const std::string_view name : kFileNames) {
    std::string file = join_path(path, name);
    KERNELPATH_TRY(found, path_kind(file));
    if (found == PathKind::kFile) return file;
    if (found == PathKind::kMissing) continue;
    return fail({.code = ErrorCode::kInputKind,
                 .message = found == PathKind::kFolder ? "is a folder, and not the tokenizer"
                                                       : "is no regular file",
                 .file = file});
  }
  return fail({.code = ErrorCode::kInputKind,
               .message = "the folder has neither tokenizer.json nor tokenizer.model",
               .file = path,
               .hint = "copy the tokenizer's files from where the model was published, or give "
                       "token ids instead of a text"});
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load(const std::string& path) {
  KERNELPATH_TRY(file, find_tokenizer(path));
  auto parts =
      file_name(file).ends_with(".model") ? read_sentence_piece(file) : read_tokenizer_json(file);
  if (!parts) return fail(std::move(parts).error());
  KERNELPATH_CHECK_OK(read_special_tokens(parent_path(file), **parts));
  return std::make_unique<Tokenizer>(*std::move(parts));
}

Result<std::unique_ptr<Tokenizer>> load_text(std::string text, const std::string& file) {
  auto parts = parse_tokenizer_json(std::move(text), file);
  if (!parts) return fail(std::move(parts).error());
  return std::make_unique<Tokenizer>(*std::move(parts));
}

}  // namespace kernelpath::tokenizer
