#pragma once

#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/model.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"

#include <memory>
#include <string>
#include <vector>

namespace kernelpath::tokenizer {

// The stages of a tokenizer, in the order in which a text goes through them.
struct Tokenizer::Parts {
  std::string file;
  AddedTokens added;
  std::unique_ptr<const Normalizer> normalizer;       // may be null
  std::unique_ptr<const PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<const Model> model;
  PostProcessor post_processor;
  Decoder decoder = Decoder::joined_by_spaces();
  SpecialTokens special;
  std::vector<Warning> warnings;

  // Added tokens come before those of the model.
  [[nodiscard]] std::optional<TokenId> find(std::string_view token) const {
    if (const AddedToken* token_added = added.by_content(token)) return token_added->id;
    return model->find(token);
  }
};

// tokenizer.json, by its path or its text.
Result<std::unique_ptr<Tokenizer::Parts>> read_tokenizer_json(const std::string& path);
Result<std::unique_ptr<Tokenizer::Parts>> parse_tokenizer_json(std::string text,
                                                               const std::string& file);

// tokenizer.model (sentencepiece). kUnavailable where this build cannot.
Result<std::unique_ptr<Tokenizer::Parts>> read_sentence_piece(const std::string& path);

// Fills `special` and the added tokens from tokenizer_config.json, generation_config.json and
// config.json of a folder, those that are there.
Result<void> read_special_tokens(const std::string& folder, Tokenizer::Parts& parts);

// An added token, looked for in the text as `normalizer` makes it where it says so.
Result<void> add_token(AddedToken token, Tokenizer::Parts& parts);

// Reads an added token's flags and content: an entry of added_tokens or added_tokens_decoder.
Result<AddedToken> read_added_token(const JsonNode& node);

}  // namespace kernelpath::tokenizer
