#pragma once

#include "base/result.h"
#include "tokenizer/json_node.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_id.h"
#include "tokenizer/warning.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace kernelpath::tokenizer {

// Turns pieces of text into tokens of a vocabulary. Immutable to its users; may be used by several
// threads at once.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  // Appends the ids of all pieces in order; those that are added tokens as they are. Error:
  // kConfigValue (a character that the model has no token for), kResource.
  [[nodiscard]] virtual Result<void> encode(const PieceList& list,
                                            std::vector<TokenId>& out) const = 0;

  [[nodiscard]] virtual std::optional<TokenId> find(std::string_view token) const = 0;
  [[nodiscard]] virtual std::optional<std::string_view> token(TokenId id) const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  [[nodiscard]] virtual TokenId highest_id() const = 0;
};

// The "model" of tokenizer.json: BPE and Unigram; others are refused by name.
Result<std::unique_ptr<Model>> read_model(const JsonNode& node, std::vector<Warning>& warnings);

Result<std::unique_ptr<Model>> read_bpe(const JsonNode& node, std::vector<Warning>& warnings);
Result<std::unique_ptr<Model>> read_unigram(const JsonNode& node);

// "<0x0A>" for 10: how a vocabulary names a byte.
std::string byte_token(std::uint8_t byte);

}  // namespace kernelpath::tokenizer
