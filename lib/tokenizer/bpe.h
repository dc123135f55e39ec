#pragma once

#include "tokenizer/merge_table.h"
#include "tokenizer/model.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/vocabulary.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::tokenizer {

// What a BPE model is made of; read_bpe() checks that it fits together.
struct BpeParts {
  Vocabulary vocabulary;
  MergeTable merges;
  // Pairs of characters at which some merge joins two tokens: (last of the left, first of the
  // right). Between two characters of the vocabulary that are no such pair no merge can reach
  // across, so a text may be cut there.
  MergeTable joints;
  std::optional<TokenId> unknown = std::nullopt;
  std::string continuing_prefix = {};  // before each character but the first of a piece
  std::string end_suffix = {};         // behind the last one
  bool fuse_unknown = false;           // unknown characters in a row are one token
  bool byte_fallback = false;          // unknown characters are the tokens of their bytes
  bool ignore_merges = false;          // a piece that is a token is not made by merging
};

// Byte pair encoding: the characters of a piece, merged by rank.
class Bpe final : public Model {
 public:
  explicit Bpe(BpeParts parts);
  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;
  ~Bpe() override;

  [[nodiscard]] Result<void> encode(const PieceList& list,
                                    std::vector<TokenId>& out) const override;
  [[nodiscard]] std::optional<TokenId> find(std::string_view token) const override;
  [[nodiscard]] std::optional<std::string_view> token(TokenId id) const override;
  [[nodiscard]] std::size_t size() const override { return parts_.vocabulary.size(); }
  [[nodiscard]] TokenId highest_id() const override { return parts_.vocabulary.highest_id(); }

 private:
  struct Scratch;

  [[nodiscard]] std::unique_ptr<Scratch> take_scratch() const;
  void give_back(std::unique_ptr<Scratch> scratch) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_cached(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_long(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_word(std::string_view word, Scratch& scratch) const;
  bool add_bytes(std::string_view characters, std::vector<TokenId>& tokens) const;
  [[nodiscard]] std::string_view affixed(std::string_view word, std::size_t at, std::size_t length,
                                         std::string& buffer) const;
  [[nodiscard]] std::optional<TokenId> character_token(std::string_view character,
                                                       std::uint32_t code_point) const;
  [[nodiscard]] std::size_t cut_after(std::string_view text) const;

  BpeParts parts_;
  std::vector<TokenId> characters_;  // tokens of one character below U+0800, by code point
  std::vector<TokenId> bytes_;       // of "<0x00>" to "<0xFF>"
  // One set of buffers is kept for the next call; calls at the same time make their own.
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Scratch> scratch_;
};

}  // namespace kernelpath::tokenizer
