#pragma once

#include "base/result.h"
#include "checkpoint/gguf_value.h"
#include "engines/llamacpp/guard.h"
#include "engines/llamacpp/hparams.h"
#include "engines/table_header.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::llamacpp {

// A name that general.architecture may have.
struct ArchitectureRow {
  std::string name;        // "llama"
  std::string constant;    // "LLM_ARCH_LLAMA"
  std::string class_name;  // "llama_model_llama"; empty: the name is known, but nothing loads it
  bool recurrent = false;  // a state instead of a cache
  bool hybrid = false;     // both
  bool diffusion = false;
  bool state_rollback = false;   // keeps snapshots of the state
  bool no_tensor_split = false;  // --split-mode tensor is refused
  bool no_memory = false;        // neither cache nor state
  bool multi_rope = false;       // several positions a token: the cache cannot be shifted
};

// What the converter makes of an entry of `architectures`.
struct ConverterRow {
  std::string architecture;  // "LlamaForCausalLM"
  std::string gguf;          // "llama"
  std::string converter;     // "LlamaModel"
  std::string module;        // "llama", of conversion/
};

enum class ReadForm : std::uint8_t {
  kScalar,
  kScalarOrArray,
  kArray,
  kList,
  kCount,
  kWindowPattern,
  kSet,
  kRefuse,
};

// One step of reading a class's metadata.
struct ReadRow {
  ReadForm form = ReadForm::kScalar;
  std::string key;  // "%s.block_count"; "%s" stands for the architecture
  checkpoint::GgufType type = checkpoint::GgufType::kUint32;
  std::string into;
  HparamField field;  // of `into`
  bool required = false;
  std::string length;        // kScalarOrArray: "n_layer", "n_layer_all" or a number
  std::int64_t period = 0;   // kWindowPattern
  bool dense_first = false;  // kWindowPattern
  double value = 0;          // kSet, of a number
  WindowType window_type = WindowType::kNone;  // kSet, of swa_type
  std::string message = {};                    // kRefuse
  std::vector<Guard> when;
};

struct ClassRow {
  std::string name;
  std::string file;
  std::string like;  // the class whose reads it inherits; else empty
  std::vector<ReadRow> rows;
};

// The tables of llama.cpp at one commit.
struct Profile {
  std::string version;
  std::vector<TableSource> sources;
  std::vector<ArchitectureRow> architectures;  // in the engine's order
  std::vector<std::string> cache_types;        // in the option's order
  std::vector<ConverterRow> converter;
  std::vector<ConverterRow> projector_converter;
  std::vector<std::string> listed_without_class;
  std::vector<ClassRow> classes;

  [[nodiscard]] const ArchitectureRow* find_architecture(std::string_view name) const;
  [[nodiscard]] const ConverterRow* find_converter(std::string_view architecture) const;
  [[nodiscard]] const ConverterRow* find_projector(std::string_view architecture) const;
  // The class, or the one whose reads it inherits; null if the table has neither.
  [[nodiscard]] const ClassRow* find_reads(std::string_view class_name) const;
  [[nodiscard]] bool is_cache_type(std::string_view name) const;
};

// The reads that all classes share.
inline constexpr std::string_view kBaseClass = "llama_model_base";

// Reads registry.json and hparams.json of a folder "llamacpp-…". Errors: kInputSchema, what reading
// JSON gives.
struct ProfileTexts {
  std::string registry;
  std::string hparams;
};
Result<Profile> parse_profile(ProfileTexts texts, const std::string& folder);

// The tables of a folder that scripts/extract-profile wrote. Errors: as parse_profile, and those of
// read_file.
Result<Profile> load_profile(const std::string& folder);

// The tables that the build embeds.
const Profile& built_in_profile();

}  // namespace kernelpath::engines::llamacpp
