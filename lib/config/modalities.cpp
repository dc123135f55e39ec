// Towers beside the language model: which there are, and the numbers that memory asks for.

#include "config/derive.h"
#include "config/integer_members.h"

#include <algorithm>
#include <array>

namespace kernelpath::config {
namespace {

constexpr std::array<std::string_view, 9> kVision = {
    "vision_config",   "visual",        "vision_tower",
    "mm_vision_tower", "img_processor", "vision_encoder",
    "vit_config",      "vision_model",  "embd_layer/image_embd_layer"};
constexpr std::array<std::string_view, 7> kAudio = {
    "audio_config",  "audio_processor", "audio_encoder", "num_mel_bins",
    "speech_config", "whisper_config",  "audio_tower"};

// In the file itself, or in the thinker of an any-to-any model.
const json::Value* find_tower(const Derivation& d, std::string_view name) {
  if (const Found found = d.read.find_outer({name})) return found.value;
  const json::Value* thinker = d.read.outer->find_non_null("thinker_config");
  return thinker != nullptr ? thinker->find_non_null(name) : nullptr;
}

}  // namespace

void find_modalities(Derivation& d) {
  const auto is_there = [&](std::string_view name) { return find_tower(d, name) != nullptr; };
  d.out.has_vision = std::any_of(kVision.begin(), kVision.end(), is_there);
  d.out.has_audio = std::any_of(kAudio.begin(), kAudio.end(), is_there);
  d.out.text_integers = integer_members(*d.read.text);
  d.out.text_strings = string_members(*d.read.text);
  if (const json::Value* vision = find_tower(d, "vision_config")) {
    d.out.vision_integers = integer_members(*vision);
  }
}

}  // namespace kernelpath::config
