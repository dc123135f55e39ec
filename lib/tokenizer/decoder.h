#pragma once

#include "base/result.h"
#include "tokenizer/json_node.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kernelpath::tokenizer {

// One stage of turning tokens back into text, for one stream of tokens: takes texts one by one and
// passes on what is certain, so that decoding at once and step by step are the same thing.
class DecodeStage {
 public:
  using Sink = std::function<void(std::string)>;

  DecodeStage() = default;
  DecodeStage(const DecodeStage&) = delete;
  DecodeStage& operator=(const DecodeStage&) = delete;
  virtual ~DecodeStage() = default;

  // The text of the next token, or of the stage before.
  virtual void push(std::string text, const Sink& sink) = 0;
  // The end: passes on what was held back.
  virtual void finish(const Sink& sink) = 0;
};

// The "decoder" of tokenizer.json: ByteFallback, ByteLevel, BPEDecoder, Fuse, Metaspace, Replace,
// Sequence, Strip and WordPiece; others are refused by name. Immutable; makes the stages of any
// number of streams.
class Decoder {
 public:
  static Result<Decoder> read(const JsonNode& node);
  // Without a decoder the tokens are joined by spaces.
  static Decoder joined_by_spaces();
  // What sentencepiece does: ▁ is a space, bytes become characters, and at most `leading_spaces` go
  // from the start.
  static Decoder sentence_piece(std::size_t leading_spaces);

  using Stages = std::vector<std::unique_ptr<DecodeStage>>;
  [[nodiscard]] Stages make_stages() const;

 private:
  using StageMaker = std::function<std::unique_ptr<DecodeStage>()>;

  // Reads one decoder. `fused`: the stages before made one text of all tokens, which now comes in
  // parts.
  Result<void> add(const JsonNode& node, bool& fused);
  Result<void> add_byte_fallback(const JsonNode& node, bool& fused);
  Result<void> add_byte_level(const JsonNode& node, bool& fused);
  Result<void> add_fuse(const JsonNode& node, bool& fused);
  Result<void> add_metaspace(const JsonNode& node, bool& fused);
  Result<void> add_replace(const JsonNode& node, bool& fused);
  Result<void> add_sequence(const JsonNode& node, bool& fused);
  Result<void> add_strip(const JsonNode& node, bool& fused);
  Result<void> add_word_piece(const JsonNode& node, bool& fused);
  Result<void> add_word_suffix(const JsonNode& node, bool& fused);
  // A stage that works on whole tokens: in a fused text it waits for the end.
  void add_stage(StageMaker maker, bool fused);

  std::vector<StageMaker> makers_;
};

}  // namespace kernelpath::tokenizer
