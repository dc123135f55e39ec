// A hostile tokenizer.json, and hostile texts and ids for what could be loaded.
//
// The input is the file, then a line "%%", then the text. Whatever loads must encode the text
// without leaving its vocabulary, decode to valid UTF-8, and give the same as a stream.

#include "base/assert.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using kernelpath::tokenizer::StreamDecoder;
using kernelpath::tokenizer::TokenId;
using kernelpath::tokenizer::Tokenizer;

void check(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text);
  // The bytes as ids, too.
  std::vector<TokenId> all = ids ? *ids : std::vector<TokenId>();
  for (const char byte : text) all.push_back(static_cast<std::uint8_t>(byte));
  const std::string decoded =
      tokenizer.decode(all, {.skip_special = false, .refuse_unknown_ids = false}).value();
  KERNELPATH_ASSERT(kernelpath::tokenizer::find_invalid_utf8(decoded) == std::string::npos);
  StreamDecoder stream = tokenizer.stream_decoder();
  std::string streamed;
  for (const TokenId id : all) {
    const std::string step = stream.push(id);
    KERNELPATH_ASSERT(kernelpath::tokenizer::find_invalid_utf8(step) == std::string::npos);
    streamed += step;
  }
  streamed += stream.flush();
  KERNELPATH_ASSERT(streamed == decoded);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view separator = "\n%%\n";
  const std::size_t cut = input.find(separator);
  const std::string_view file = input.substr(0, cut);
  const std::string_view text =
      cut == std::string_view::npos ? "" : input.substr(cut + separator.size());
  const auto tokenizer = kernelpath::tokenizer::load_text(std::string(file), "tokenizer.json");
  if (tokenizer) check(**tokenizer, text);
  return 0;
}
