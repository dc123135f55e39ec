#include "tokenizer/parts.h"

// Stands in for sentence_piece.cpp where the library is missing.
namespace kernelpath::tokenizer {

bool has_sentence_piece() { return false; }

Result<std::unique_ptr<Tokenizer::Parts>> read_sentence_piece(const std::string& path) {
  return fail({.code = ErrorCode::kUnavailable,
               .message = "this build cannot read sentencepiece models",
               .file = path,
               .hint = "install libsentencepiece-dev and build again, or use a tokenizer.json"});
}

}  // namespace kernelpath::tokenizer
