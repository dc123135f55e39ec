#pragma once

#include "tokenizer/decoder.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/split.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The stages that decoder.cpp puts together. Each of them gets whole tokens, unless it says that it
// takes a text in parts.
namespace kernelpath::tokenizer {

// The characters of GPT-2's alphabet are bytes; a token with any other character stands for itself.
class ByteLevelStage final : public DecodeStage {
 public:
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& sink) override;

 private:
  std::string pending_;  // the start of a UTF-8 sequence
};

// Tokens "<0x0A>" in a row are a text if it is valid as a whole, else one U+FFFD a byte. With
// `part_by_part` only the bytes that are not valid become U+FFFD, as sentencepiece does it.
class ByteFallbackStage final : public DecodeStage {
 public:
  explicit ByteFallbackStage(bool part_by_part) : part_by_part_(part_by_part) {}
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& sink) override;

 private:
  bool part_by_part_;
  std::string bytes_;
};

// Takes at most `start` of `content` from the start of a token and `stop` from its end.
class StripStage final : public DecodeStage {
 public:
  StripStage(std::string content, std::size_t start, std::size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& /*sink*/) override {}

 private:
  std::string content_;
  std::size_t start_;
  std::size_t stop_;
};

// The same from the start of a text that comes in parts.
class StripStartStage final : public DecodeStage {
 public:
  StripStartStage(std::string content, std::size_t count)
      : content_(std::move(content)), left_(count) {}
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& sink) override;

 private:
  std::string content_;
  std::size_t left_;
  std::string pending_;
};

class ReplaceStage final : public DecodeStage {
 public:
  ReplaceStage(std::shared_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& /*sink*/) override {}

 private:
  std::shared_ptr<const Pattern> pattern_;
  std::string content_;
};

// Replaces a literal in a text that comes in parts.
class ReplaceInPartsStage final : public DecodeStage {
 public:
  ReplaceInPartsStage(std::string literal, std::string content)
      : literal_(std::move(literal)), content_(std::move(content)) {}
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& sink) override;

 private:
  std::string literal_;
  std::string content_;
  std::string pending_;
};

class MetaspaceStage final : public DecodeStage {
 public:
  explicit MetaspaceStage(MetaspaceOptions options) : options_(std::move(options)) {}
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& /*sink*/) override {}

 private:
  MetaspaceOptions options_;
  bool is_first_ = true;
};

// The suffix of a word's last token becomes a space, at the end of the text nothing.
class WordSuffixStage final : public DecodeStage {
 public:
  explicit WordSuffixStage(std::string suffix) : suffix_(std::move(suffix)) {}
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& sink) override;

 private:
  std::string suffix_;
  std::string last_;
  bool has_last_ = false;
};

// Tokens that do not continue a word begin with a space.
class WordPieceStage final : public DecodeStage {
 public:
  WordPieceStage(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& /*sink*/) override {}

 private:
  std::string prefix_;
  bool cleanup_;
  bool is_first_ = true;
};

class JoinStage final : public DecodeStage {
 public:
  void push(std::string text, const Sink& sink) override;
  void finish(const Sink& /*sink*/) override {}

 private:
  bool is_first_ = true;
};

// Waits for the whole of a text that comes in parts and gives it to a stage as one token.
class WholeTextStage final : public DecodeStage {
 public:
  explicit WholeTextStage(std::unique_ptr<DecodeStage> stage) : stage_(std::move(stage)) {}
  void push(std::string text, const Sink& /*sink*/) override { text_ += text; }
  void finish(const Sink& sink) override;

 private:
  std::unique_ptr<DecodeStage> stage_;
  std::string text_;
};

// Replaces every `from`, left to right.
std::string replace_literal(std::string_view text, std::string_view from, std::string_view to);

}  // namespace kernelpath::tokenizer
