#include "tokenizer/decoder.h"

#include "base/text.h"
#include "tokenizer/decode_stages.h"

#include <array>
#include <string_view>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

constexpr std::string_view kMetaspace = "\xe2\x96\x81";
constexpr std::int64_t kMaxStrip = 1'000'000;

}  // namespace

void Decoder::add_stage(StageMaker maker, bool fused) {
  if (!fused) {
    makers_.push_back(std::move(maker));
    return;
  }
  makers_.emplace_back([inner = std::move(maker)]() -> std::unique_ptr<DecodeStage> {
    return std::make_unique<WholeTextStage>(inner());
  });
}

Result<void> Decoder::add_replace(const JsonNode& node, bool& fused) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "pattern", "content"}));
  KERNELPATH_TRY(pattern_node, node.member("pattern"));
  KERNELPATH_TRY(pattern, Pattern::read(pattern_node));
  KERNELPATH_TRY(content, node.string("content"));
  if (fused && pattern.literal()) {
    makers_.emplace_back([literal = std::string(*pattern.literal()), content = content] {
      return std::make_unique<ReplaceInPartsStage>(literal, content);
    });
    return {};
  }
  const auto shared = std::make_shared<const Pattern>(std::move(pattern));
  add_stage([shared, content = content] { return std::make_unique<ReplaceStage>(shared, content); },
            fused);
  return {};
}

Result<void> Decoder::add_strip(const JsonNode& node, bool& fused) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "content", "start", "stop"}));
  KERNELPATH_TRY(content, node.character("content"));
  KERNELPATH_TRY(start, node.integer("start", kMaxStrip));
  KERNELPATH_TRY(stop, node.integer("stop", kMaxStrip));
  const auto from_start = static_cast<std::size_t>(start);
  const auto from_end = static_cast<std::size_t>(stop);
  if (fused && from_end == 0) {
    makers_.emplace_back([content = content, from_start] {
      return std::make_unique<StripStartStage>(content, from_start);
    });
    return {};
  }
  add_stage([content = content, from_start,
             from_end] { return std::make_unique<StripStage>(content, from_start, from_end); },
            fused);
  return {};
}

Result<void> Decoder::add_sequence(const JsonNode& node, bool& fused) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "decoders"}));
  KERNELPATH_TRY(list, node.list("decoders"));
  for (std::size_t i = 0; i < list.value().items().size(); ++i) {
    KERNELPATH_CHECK_OK(add(list.item(i), fused));
  }
  return {};
}

// NOLINTNEXTLINE(readability-convert-member-functions-to-static): a row of the table in add()
Result<void> Decoder::add_fuse(const JsonNode& node, bool& fused) {
  KERNELPATH_CHECK_OK(node.allow_only({"type"}));
  fused = true;
  return {};
}

Result<void> Decoder::add_byte_level(const JsonNode& node, bool& fused) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  add_stage([] { return std::make_unique<ByteLevelStage>(); }, fused);
  fused = true;
  return {};
}

Result<void> Decoder::add_byte_fallback(const JsonNode& node, bool& fused) {
  KERNELPATH_CHECK_OK(node.allow_only({"type"}));
  add_stage([] { return std::make_unique<ByteFallbackStage>(false); }, fused);
  return {};
}

Result<void> Decoder::add_metaspace(const JsonNode& node, bool& fused) {
  KERNELPATH_TRY(options, read_metaspace(node));
  add_stage([options = options] { return std::make_unique<MetaspaceStage>(options); }, fused);
  return {};
}

Result<void> Decoder::add_word_suffix(const JsonNode& node, bool& fused) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "suffix"}));
  KERNELPATH_TRY(suffix, node.string("suffix"));
  add_stage([suffix = suffix] { return std::make_unique<WordSuffixStage>(suffix); }, fused);
  return {};
}

Result<void> Decoder::add_word_piece(const JsonNode& node, bool& fused) {
  KERNELPATH_CHECK_OK(node.allow_only({"type", "prefix", "cleanup"}));
  KERNELPATH_TRY(prefix, node.string("prefix"));
  KERNELPATH_TRY(cleanup, node.boolean("cleanup", true));
  add_stage([prefix = prefix,
             cleanup = cleanup] { return std::make_unique<WordPieceStage>(prefix, cleanup); },
            fused);
  return {};
}

Result<void> Decoder::add(const JsonNode& node, bool& fused) {
  struct Kind {
    std::string_view name;
    Result<void> (Decoder::*add)(const JsonNode&, bool&);
  };
  static constexpr std::array<Kind, 9> kinds = {{
      {"BPEDecoder", &Decoder::add_word_suffix},
      {"ByteFallback", &Decoder::add_byte_fallback},
      {"ByteLevel", &Decoder::add_byte_level},
      {"Fuse", &Decoder::add_fuse},
      {"Metaspace", &Decoder::add_metaspace},
      {"Replace", &Decoder::add_replace},
      {"Sequence", &Decoder::add_sequence},
      {"Strip", &Decoder::add_strip},
      {"WordPiece", &Decoder::add_word_piece},
  }};
  KERNELPATH_CHECK_OK(node.expect(json::Type::kObject));
  KERNELPATH_TRY(type, node.string("type"));
  std::vector<std::string> names;
  for (const Kind& kind : kinds) {
    if (kind.name == type) return (this->*kind.add)(node, fused);
    names.emplace_back(kind.name);
  }
  return fail(node.member("type")->error(
      ErrorCode::kUnavailable, "this decoder is not supported; known are " + join_words(names)));
}

Result<Decoder> Decoder::read(const JsonNode& node) {
  Decoder decoder;
  bool fused = false;
  KERNELPATH_CHECK_OK(decoder.add(node, fused));
  return decoder;
}

Decoder Decoder::joined_by_spaces() {
  Decoder decoder;
  decoder.makers_.emplace_back([] { return std::make_unique<JoinStage>(); });
  return decoder;
}

Decoder Decoder::sentence_piece(std::size_t leading_spaces) {
  Decoder decoder;
  decoder.makers_.emplace_back([] { return std::make_unique<ByteFallbackStage>(true); });
  decoder.makers_.emplace_back([leading_spaces] {
    return std::make_unique<StripStartStage>(std::string(kMetaspace), leading_spaces);
  });
  decoder.makers_.emplace_back(
      [] { return std::make_unique<ReplaceInPartsStage>(std::string(kMetaspace), " "); });
  return decoder;
}

Decoder::Stages Decoder::make_stages() const {
  Stages stages;
  stages.reserve(makers_.size());
  for (const StageMaker& maker : makers_) stages.push_back(maker());
  return stages;
}

}  // namespace kernelpath::tokenizer
