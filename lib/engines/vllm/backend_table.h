#pragma once

#include "hardware/device.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::engines::vllm {

struct BackendClass;
struct KvSpec;
struct SelectorConfig;
struct SelectorContext;
struct Verdict;

// A block of tokens that a kernel reads: exactly `size`, or any multiple of it.
struct BlockSize {
  std::int64_t size = 1;
  bool multiple = false;
  friend bool operator==(const BlockSize&, const BlockSize&) = default;
};

// Head sizes: any, from a least one on, or a list.
struct HeadSizes {
  std::optional<std::int64_t> min = {};
  std::optional<std::vector<std::int64_t>> listed = {};
  [[nodiscard]] bool accepts(std::int64_t head_size) const;
};

// Inclusive; an open end has no bound.
struct CapabilityRange {
  std::optional<hardware::Capability> first = {};
  std::optional<hardware::Capability> last = {};
  [[nodiscard]] bool contains(hardware::Capability capability) const;
};

// What a backend class says of itself: a value that the table holds, or a rule that looks at the
// machine or at the configuration and is code (rules.cpp).
template <class Value, class Rule>
struct Answer {
  Value value = {};
  Rule rule = nullptr;
};

using FlagRule = bool (*)(const SelectorContext&, const BackendClass&);
using HeadSizeRule = bool (*)(const SelectorContext&, const BackendClass&, std::int64_t);
using NameRule = bool (*)(const SelectorContext&, const BackendClass&, std::string_view);
using BlockSizeRule = bool (*)(const SelectorContext&, const BackendClass&, std::int64_t);
using BlockSizesRule = std::vector<BlockSize> (*)(const SelectorContext&, const BackendClass&);
using LayoutsRule = std::optional<std::vector<std::string>> (*)(const SelectorContext&,
                                                                const BackendClass&);
// Adds at most one reason.
using CombinationRule = void (*)(const SelectorContext&, const BackendClass&, const SelectorConfig&,
                                 Verdict&);
using PreferredBlockSizeRule = std::int64_t (*)(const SelectorContext&, const BackendClass&,
                                                std::int64_t);
// Changes what the layer asked for to what the backend's kernels read (since 0.33).
using PackingRule = void (*)(const SelectorContext&, const BackendClass&, KvSpec&);

using Flag = Answer<bool, FlagRule>;
using Names = Answer<std::vector<std::string>, NameRule>;

// Questions without arguments, in the order of kFlagNames in backend_table_reader.cpp.
enum class Question : std::uint8_t {
  kMla,
  kSparse,
  kSsm,
  kSink,
  kMmPrefix,
  kAlibiSqrt,
  kPerHeadScales,
  kSlidingWindow,
  kRswa,
  kNonCausal,
  kBatchInvariance,
  kKvConnector,
  kPcp,
  kDcp,
  kNonCausalDcp,
  kQueryLengthsMismatch,
};
inline constexpr std::size_t kQuestions = 16;

struct BuilderInfo {
  std::string class_name;
  std::string cudagraph_support;  // "ALWAYS", "UNIFORM_BATCH", …
  std::string cudagraph_rule;     // the level depends on more: a rule's name; else empty
  std::optional<std::int64_t> reorder_batch_threshold = {};
  std::string query_len_support;
};

// Nothing: the instance decides.
struct ImplementationInfo {
  std::string class_name;
  std::optional<bool> can_return_lse_for_decode = {};
  std::optional<bool> lse_base_on_e = {};
  std::optional<bool> supports_pcp = {};
  std::optional<bool> supports_dcp = {};
  std::optional<bool> supports_interleave_with_speculation = {};
};

// The tensor that keeps the cache of one layer, for some types of cache. `axes` in words:
// "num_blocks", "2", "num_kv_heads", "3/2 * head_size + 4"; empty where a rule has to be asked.
// Until 0.32 each backend has its own; later the axes are blocks, head slots, tokens, content.
struct KvShape {
  std::vector<std::string> kv_dtypes;
  std::vector<std::string> axes;
};

// The order of these axes in memory under one layout ("NHD", "HND"): position → axis.
struct StrideOrder {
  std::string layout;
  std::vector<std::int64_t> order;
};

// A class of attention backends. Several enum members may name one.
struct BackendClass {
  std::string path;           // "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"
  std::string class_name;     // its last part
  std::string reported_name;  // get_name(): may differ from the enum member's
  // Children of a composite: image-mask batches, causal batches.
  const BackendClass* general = nullptr;
  const BackendClass* causal = nullptr;

  // Packages that its module imports; without them it cannot be asked anything.
  std::vector<std::string> needs_at_import;

  Names dtypes;
  Answer<HeadSizes, HeadSizeRule> head_sizes;
  std::vector<std::int64_t> head_sizes_listed;
  Names kv_dtypes;
  std::vector<std::string> kv_dtypes_listed;
  Answer<std::vector<BlockSize>, BlockSizesRule> block_sizes;
  bool block_size_exact = false;  // a given block size must be a size of the list, not a multiple
  BlockSizeRule block_size_rule = nullptr;
  std::optional<std::int64_t> preferred_always = {};
  std::optional<std::int64_t> preferred_otherwise = {};
  PreferredBlockSizeRule preferred_rule = nullptr;
  Answer<std::vector<CapabilityRange>, FlagRule> capabilities;
  std::vector<std::string> attention_types;
  std::array<Flag, kQuestions> flags;
  CombinationRule combination = nullptr;
  CombinationRule validation = nullptr;  // after everything else
  // The layouts that it takes, best first; nothing: any.
  Answer<std::optional<std::vector<std::string>>, LayoutsRule> layouts;
  std::optional<BuilderInfo> builder = {};
  std::optional<ImplementationInfo> implementation = {};
  std::vector<KvShape> kv_shapes = {};
  std::vector<StrideOrder> stride_orders = {};  // empty: the profile's layouts say it
  PackingRule packing = nullptr;
  std::vector<std::string> padded_layouts =
      {};  // layouts under which its kernels take padded pages

  [[nodiscard]] const Flag& flag(Question question) const {
    return flags[static_cast<std::size_t>(question)];
  }
};

// A member of the engine's enum of backends.
struct BackendMember {
  std::string name;
  bool mamba = false;
  std::string path;  // empty: it must be registered before use
  const BackendClass* backend =
      nullptr;  // null: not registered, a mamba backend, or not importable
  std::string import_error_type = {};
  std::string import_error_text = {};
};

struct KvDtype {
  std::string name;
  bool quantized = false;
  std::string quant_mode;  // "NONE", "FP8_PER_TENSOR", …
  std::string stored_as;   // empty: the model's dtype
  std::int64_t bytes = 0;  // of one element; 0 where stored_as is empty
};

}  // namespace kernelpath::engines::vllm
