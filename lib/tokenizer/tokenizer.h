#pragma once

#include "base/result.h"
#include "tokenizer/token_id.h"
#include "tokenizer/warning.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::tokenizer {

struct EncodeOptions {
  // Put the special tokens around the text that the files name (a <s> before it). Off for texts
  // that a chat template made, which has them already.
  bool add_special_tokens = true;
  // Read the names of special tokens in the text ("<|eot_id|>") as these tokens. Off for texts of
  // strangers; added tokens that are not special are always read.
  bool parse_special = true;
};

struct DecodeOptions {
  bool skip_special = false;
  // An id without a token is an error. Off, it has no text: models may have more rows of logits
  // than their tokenizer has tokens.
  bool refuse_unknown_ids = true;
};

// A special token of tokenizer_config.json ("bos_token").
struct SpecialToken {
  std::string key;      // "bos_token"
  std::string content;  // "<s>"
  std::optional<TokenId> id;
};

// What the files beside the vocabulary say about its tokens.
struct SpecialTokens {
  std::vector<SpecialToken> named;  // in the order of the file
  // bos_token of tokenizer_config.json, else bos_token_id of generation_config.json, else of
  // config.json.
  std::optional<TokenId> bos;
  // Tokens that end a text: eos_token_id of generation_config.json (else of config.json), a number
  // or a list, then eos_token of tokenizer_config.json. Each once.
  std::vector<TokenId> eos;
  std::optional<TokenId> pad;
  std::optional<TokenId> unk;
};

class StreamDecoder;

// Text to tokens and back, as the model's own files define it. Immutable: any number of threads may
// use one object.
//
// Reads `tokenizer.json` as Hugging Face's `tokenizers` library does (model BPE or Unigram), or
// `tokenizer.model` by sentencepiece where this build has it.
class Tokenizer {
 public:
  struct Parts;  // what load() puts together
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // The ids of a text. Errors: kInputEncoding (not UTF-8; `where` is the byte), kInputLimit (longer
  // than 256 MiB, or a pattern of the file takes too many steps on it), kConfigValue (a character
  // that the model cannot write).
  [[nodiscard]] Result<std::vector<TokenId>> encode(std::string_view text,
                                                    const EncodeOptions& options = {}) const;

  // The text of ids: always valid UTF-8, with U+FFFD for bytes that make no character. Error:
  // kConfigValue where an id has no token (`where` is its index).
  [[nodiscard]] Result<std::string> decode(std::span<const TokenId> ids,
                                           const DecodeOptions& options = {}) const;

  // Decodes the ids of one text step by step; must not outlive the tokenizer. Ids without a token
  // have no text.
  [[nodiscard]] StreamDecoder stream_decoder(bool skip_special = false) const;

  // The id of a token by its name in the vocabulary ("Ġthe", "<s>"), added tokens included.
  [[nodiscard]] std::optional<TokenId> token_to_id(std::string_view token) const;
  [[nodiscard]] std::optional<std::string> id_to_token(TokenId id) const;
  [[nodiscard]] bool is_special(TokenId id) const;

  // How many tokens there are, added ones included. Ids may have gaps: id_limit() is one more than
  // the highest.
  [[nodiscard]] std::size_t vocabulary_size() const;
  [[nodiscard]] TokenId id_limit() const;

  [[nodiscard]] const SpecialTokens& special_tokens() const;
  [[nodiscard]] std::span<const Warning> warnings() const;
  // The file that the vocabulary came from.
  [[nodiscard]] const std::string& file() const;

 private:
  friend class StreamDecoder;

  [[nodiscard]] std::optional<std::string_view> text_of(TokenId id) const;

  std::unique_ptr<const Parts> parts_;
};

// One text as it grows, token by token. What push() and flush() return, put together, is what
// decode() gives for all ids; each is valid UTF-8 by itself. A character that is not complete yet,
// or may still change (bytes that may turn out not to be UTF-8), is held back.
class StreamDecoder {
 public:
  StreamDecoder(StreamDecoder&& other) noexcept;
  StreamDecoder& operator=(StreamDecoder&& other) noexcept;
  StreamDecoder(const StreamDecoder&) = delete;
  StreamDecoder& operator=(const StreamDecoder&) = delete;
  ~StreamDecoder();

  // The text that is certain now; often empty.
  [[nodiscard]] std::string push(TokenId id);
  // The end of the text: what was held back. The object is as new afterwards.
  [[nodiscard]] std::string flush();

 private:
  friend class Tokenizer;
  struct State;

  StreamDecoder(const Tokenizer& tokenizer, bool skip_special);

  std::unique_ptr<State> state_;
};

// Reads a tokenizer: a folder with tokenizer.json or tokenizer.model, or one of these files. The
// special tokens come from tokenizer_config.json, generation_config.json and config.json beside it,
// where they are there.
//
// Errors: kInputMissing, kInputKind (no tokenizer there), what json::parse and read_file give,
// kConfigMissing, kConfigType and kConfigValue with the JSON pointer (a merge of tokens that are
// not there, a pattern that is none, an eos_token that no token is), kUnavailable (a kind of
// component that is not supported, by name; a tokenizer.model without sentencepiece).
Result<std::unique_ptr<Tokenizer>> load(const std::string& path);

// Reads the text of a tokenizer.json alone; `file` stands in errors. Errors as load().
Result<std::unique_ptr<Tokenizer>> load_text(std::string text, const std::string& file);

// Can this build read tokenizer.model?
bool has_sentence_piece();

}  // namespace kernelpath::tokenizer
