#pragma once

#include "base/result.h"
#include "tokenizer/json_node.h"
#include "tokenizer/token_id.h"

#include <vector>

namespace kernelpath::tokenizer {

// What is put around the tokens of a text: the "post_processor" of tokenizer.json for one text.
// ByteLevel changes nothing, TemplateProcessing, BertProcessing and RobertaProcessing add special
// tokens, a Sequence may hold one of these.
struct PostProcessor {
  // A part of the result: given tokens, or the text's own.
  struct Part {
    bool is_text = false;
    std::vector<TokenId> ids = {};
  };
  std::vector<Part> parts = {{.is_text = true}};

  static Result<PostProcessor> read(const JsonNode& node);

  // The tokens of a text without and with what is added.
  [[nodiscard]] std::vector<TokenId> apply(std::vector<TokenId> text, bool add_special) const;
};

}  // namespace kernelpath::tokenizer
