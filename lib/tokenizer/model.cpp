#include "tokenizer/model.h"

#include <string>

namespace kernelpath::tokenizer {

std::string byte_token(std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out = "<0x00>";
  out[3] = digits[byte >> 4U];
  out[4] = digits[byte & 15U];
  return out;
}

Result<std::unique_ptr<Model>> read_model(const JsonNode& node, std::vector<Warning>& warnings) {
  KERNELPATH_CHECK_OK(node.expect(json::Type::kObject));
  // Files of before 2020 have no type; the library tells them apart by their fields.
  std::string type = node.find("merges") ? "BPE" : "Unigram";
  if (node.find("type")) {
    KERNELPATH_TRY(named, node.string("type"));
    type = named;
  }
  if (type == "BPE") return read_bpe(node, warnings);
  if (type == "Unigram") return read_unigram(node);
  return fail(node.member("type")->error(
      ErrorCode::kUnavailable, "this kind of model is not supported; known are BPE and Unigram"));
}

}  // namespace kernelpath::tokenizer
