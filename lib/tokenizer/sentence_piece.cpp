#include "base/file.h"
#include "json/document.h"
#include "tokenizer/parts.h"

#include <cstddef>
#include <exception>
#include <sentencepiece_processor.h>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

// Models of 256 000 pieces have some 5 MB.
constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
// More spaces than a text begins with.
constexpr std::size_t kAllSpaces = std::size_t{1} << 40U;

using Processor = sentencepiece::SentencePieceProcessor;

// The library throws what protobuf and the standard library throw.
template <class Call>
Result<void> guarded(const Call& call) {
  std::string message;
  try {
    const sentencepiece::util::Status status = call();
    if (status.ok()) return {};
    message = status.ToString();
  } catch (const std::exception& error) {
    message = error.what();
  }
  return fail({.code = ErrorCode::kConfigValue, .message = "sentencepiece: " + message});
}

class SentencePiece final : public Model {
 public:
  explicit SentencePiece(std::unique_ptr<Processor> processor) : processor_(std::move(processor)) {}

  [[nodiscard]] Result<void> encode(const PieceList& list,
                                    std::vector<TokenId>& out) const override {
    for (const Piece& piece : list.pieces) {
      if (piece.token != kNoToken) {
        out.push_back(piece.token);
        continue;
      }
      std::vector<int> ids;
      KERNELPATH_CHECK_OK(guarded([&] { return processor_->Encode(list.view(piece), &ids); }));
      out.insert(out.end(), ids.begin(), ids.end());
    }
    return {};
  }

  // PieceToId gives the unknown token for what it does not know.
  [[nodiscard]] std::optional<TokenId> find(std::string_view token) const override {
    const int id = processor_->PieceToId(token);
    if (id < 0 || id > highest_id() || processor_->IdToPiece(id) != token) return std::nullopt;
    return id;
  }
  [[nodiscard]] std::optional<std::string_view> token(TokenId id) const override {
    if (id < 0 || id > highest_id()) return std::nullopt;
    return processor_->IdToPiece(id);
  }
  [[nodiscard]] std::size_t size() const override {
    return static_cast<std::size_t>(processor_->GetPieceSize());
  }
  [[nodiscard]] TokenId highest_id() const override { return processor_->GetPieceSize() - 1; }

 private:
  std::unique_ptr<Processor> processor_;
};

// Spaces at the start of a text that decoding takes away. The library does not tell what the model
// says about them, but its tokens of a small text do.
Result<std::size_t> leading_spaces(const Processor& processor) {
  std::vector<std::string> once;
  std::vector<std::string> twice;
  KERNELPATH_CHECK_OK(guarded([&] { return processor.Encode("a", &once); }));
  KERNELPATH_CHECK_OK(guarded([&] { return processor.Encode("  a", &twice); }));
  if (once == twice) return kAllSpaces;  // remove_extra_whitespaces
  return !once.empty() && once.front().starts_with("\xe2\x96\x81") ? std::size_t{1} : 0;
}

Result<void> add_special_pieces(const Processor& processor, Tokenizer::Parts& parts) {
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    if (!processor.IsControl(id) && !processor.IsUnknown(id)) continue;
    const std::string& content = processor.IdToPiece(id);
    if (content.empty() || content.size() > AddedTokens::kMaxTokenBytes) continue;
    KERNELPATH_CHECK_OK(add_token({.content = content, .id = id, .special = true}, parts));
  }
  return {};
}

// As transformers' classes for such files: <s> before a text unless the configuration says
// otherwise, </s> behind it only if it says so.
Result<void> read_frame(const Processor& processor, const std::string& path,
                        Tokenizer::Parts& parts) {
  bool add_bos = true;
  bool add_eos = false;
  const std::string config_path = join_path(parent_path(path), "tokenizer_config.json");
  KERNELPATH_TRY(config_kind, path_kind(config_path));
  if (config_kind != PathKind::kMissing) {
    KERNELPATH_TRY(contents, read_file(config_path, json::Limits{}.max_bytes));
    KERNELPATH_TRY(document, json::parse_object(std::move(contents.text), config_path));
    const JsonNode config(document.root, "", document.file);
    KERNELPATH_TRY(bos, config.boolean("add_bos_token", true));
    KERNELPATH_TRY(eos, config.boolean("add_eos_token", false));
    add_bos = bos;
    add_eos = eos;
  }
  std::vector<PostProcessor::Part>& frame = parts.post_processor.parts;
  frame.clear();
  if (add_bos && processor.bos_id() >= 0) frame.push_back({.ids = {processor.bos_id()}});
  frame.push_back({.is_text = true});
  if (add_eos && processor.eos_id() >= 0) frame.push_back({.ids = {processor.eos_id()}});
  return {};
}

}  // namespace

bool has_sentence_piece() { return true; }

Result<std::unique_ptr<Tokenizer::Parts>> read_sentence_piece(const std::string& path) {
  KERNELPATH_TRY(contents, read_file(path, kMaxBytes));
  auto processor = std::make_unique<Processor>();
  auto loaded = guarded([&] { return processor->LoadFromSerializedProto(contents.text); });
  if (!loaded) {
    Error error = std::move(loaded).error();
    error.file = path;
    error.hint = "the file is no sentencepiece model, or it is incomplete; fetch it again";
    return fail(std::move(error));
  }
  auto parts = std::make_unique<Tokenizer::Parts>();
  parts->file = path;
  KERNELPATH_TRY(spaces, leading_spaces(*processor));
  parts->decoder = Decoder::sentence_piece(spaces);
  KERNELPATH_CHECK_OK(add_special_pieces(*processor, *parts));
  KERNELPATH_CHECK_OK(read_frame(*processor, path, *parts));
  parts->model = std::make_unique<SentencePiece>(std::move(processor));
  return parts;
}

}  // namespace kernelpath::tokenizer
