#include "engines/deepinfer/rules.h"

#include "base/assert.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpath::engines::deepinfer {
namespace {

constexpr std::string_view kVersion = "0.1.0";
constexpr std::string_view kProject = "DeepInfer";

struct Row {
  std::string_view id;
  std::string_view summary;
  std::string_view why;
  std::string_view remedy;
  std::string_view file;
};

constexpr auto kRows = std::to_array<Row>({
    // Device and options.
    {"DI-DEVICE", "The engine runs on NVIDIA GPUs and on Ascend only.",
     "It looks for device files of these two; anything else counts as CUDA until a call fails.",
     "Choose a Blackwell data-centre GPU or an Ascend device.", "platform.py"},
    {"DI-PLATFORM", "The platform object stands where other engines choose an attention backend.",
     "Operators, collectives and scale words follow from the devices that are found.", "",
     "platform.py"},
    {"DI-UNKNOWN-ARGUMENT", "The engine has no such argument.",
     "Its interface is a Python class with a fixed list of keyword arguments: no attention "
     "backend, "
     "KV dtype, tensor or pipeline parallelism and no quantisation among them.",
     "Leave the option out for this engine.", "arg_utils.py"},
    {"DI-NO-OPTION", "The engine has nothing like this option.",
     "Backends, cache formats and parallelism are no arguments of it.", "Leave the option out.",
     "arg_utils.py"},
    {"DI-ARGUMENT-TOO-LARGE", "An argument is beyond any deployment.",
     "Sizes made of it would not fit 64 bits, or the machine.", "Give a smaller number.",
     "config.py"},
    {"DI-ARG-FINAL", "The final value of an argument that the engine works out itself.",
     "An unset argument has a rule instead of a default.", "", "config.py"},
    {"DI-MODEL-LEN-DEFAULT", "Without max_model_len the engine serves 4096 tokens.",
     "The model's own limit is never read.", "Set --max-model-len.", "config.py"},
    {"DI-ENV-VALUE", "An environment variable has a value that the engine cannot read.",
     "Variables are parsed by Python's int() and float() at their first use.",
     "Correct the variable.", "environ.py"},
    // Packages.
    {"DI-PACKAGE", "A package that the engine imports is not installed.",
     "No missing package leads to another implementation, and not all are declared.",
     "Install the package.", "__init__.py"},
    // config.json.
    {"DI-CONFIGS", "config.json is missing.", "The model argument must be a local folder.",
     "Give a folder with a config.json.", "config.py"},
    {"DI-ARCHITECTURES-NOT-ONE-STRING", "architectures must hold exactly one name.",
     "The dispatch key is that one name.", "Correct config.json.", "config.py"},
    {"DI-ARCHITECTURE-NOT-REGISTERED", "The engine has one model, and it is not this one.",
     "The registry is a literal map with one row; nothing can be registered from outside.",
     "Use another engine for this model.", "models/registry.py"},
    {"DI-MODEL-TYPE", "model_type must be deepseek_v41.", "The loader is written for this one.",
     "Correct config.json.", "config.py"},
    {"DI-MISSING-KEY", "config.json lacks a field that the loader asks for.",
     "Fields are indexed without defaults, also those that are not used.", "Add the field.",
     "config.py"},
    {"DI-FIELD-TYPE", "A field of config.json has a type or size that the loader stumbles over.",
     "Values are used as they stand.", "Correct the field.", "config.py"},
    {"DI-TEXT-FIELD-VALUE", "A field of text_config has another value than the only one taken.",
     "The model code has no other path.", "Use the released checkpoint.", "config.py"},
    {"DI-DTYPE", "dtype must be bfloat16, under this name.",
     "The model code has no other path, and torch_dtype is not read.",
     "State dtype: bfloat16 in config.json.", "config.py"},
    {"DI-QUANTIZATION-FIELD-VALUE",
     "The checkpoint is quantised in another way than the only one "
     "taken.",
     "Kernels exist for MXFP8 blocks of 32 by 32 with FP4 experts alone.",
     "Use the released checkpoint.", "config.py"},
    {"DI-LAYER-COUNT", "The number of layers is negative or beyond reason.",
     "No model has that many layers.", "Correct config.json.", "config.py"},
    // Layers and sharing.
    {"DI-NO-RATIO-1-LAYER", "No layer has compress ratio 1.",
     "The first of them is where the consumer half begins; it is looked up before anything is "
     "checked.",
     "Correct compress_ratios.", "config.py"},
    {"DI-COMPRESS-RATIOS-LENGTH", "compress_ratios must name every layer, draft layers too.",
     "The list is walked beside the layers.", "Correct compress_ratios.", "config.py"},
    {"DI-RATIO-NOT-0-1-2", "Only compress ratios 0, 1 and 2 are left.",
     "The others were removed from this version.", "Use a checkpoint of this version.",
     "model_metadata_utils.py"},
    {"DI-EMPTY-SOURCE-LIST", "A list of source layers is empty.",
     "The smallest source is taken without a check.", "Correct the list.", "config.py"},
    {"DI-CONSUMER-WITHOUT-SHARED-CFG", "A layer would share although it is not compressed.",
     "Only compressed layers have the configuration that is shared.", "Correct the source lists.",
     "cross_layer.py"},
    {"DI-SHARED-LAYER-CFG-DIFFERS", "A layer shares with a source of another compress ratio.",
     "Cache rows of two ratios do not line up.", "Correct the source lists.", "cross_layer.py"},
    {"DI-BOUNDARY-NOT-KV-SOURCE", "The first consumer layer must own its KV cache.",
     "Consumer layers read the cache of a layer that prefill may leave out.",
     "Correct kv_source_layer_ids.", "cross_layer.py"},
    {"DI-MAP-NOT-REFINING", "Layers that share an index do not share the cache it points into.",
     "Index lists refer to one cache.", "Correct the source lists.", "cross_layer.py"},
    {"DI-CANDIDATE-ID-OUT-OF-RANGE", "The candidate source is no layer of the model.",
     "The map is built from it.", "Correct candidate_source_layer_id.", "cross_layer.py"},
    {"DI-CANDIDATE-SOURCE-WITHOUT-CFG", "The candidate source is a draft layer.",
     "Draft layers have no indexer.", "Correct candidate_source_layer_id.", "cross_layer.py"},
    {"DI-CANDIDATE-SOURCE-NOT-INDEX-SOURCE", "The candidate source computes no index of its own.",
     "Candidates are a by-product of its indexer.", "Correct candidate_source_layer_id.",
     "cross_layer.py"},
    {"DI-CANDIDATE-SOURCE-NOT-SPARSE", "The candidate source is not sparse.",
     "Candidates are a by-product of its indexer.",
     "Correct candidate_source_layer_id or "
     "index_topk.",
     "cross_layer.py"},
    {"DI-CANDIDATE-TOPK-BLOCKS-MULTIPLE-OF-8",
     "candidate_topk_blocks must be a positive multiple "
     "of 8.",
     "The selection kernel writes eight at a time.", "Correct the field.", "cross_layer.py"},
    {"DI-CANDIDATE-BLOCK-SIZE-1-16", "candidate_block_size must be 1 to 16.",
     "A block's rows are one tile.", "Correct the field.", "cross_layer.py"},
    {"DI-CANDIDATE-RATIO-DIFFERS", "Layers after the candidate source have another ratio.",
     "Candidate blocks count tokens of one ratio.", "Correct candidate_source_layer_id.",
     "cross_layer.py"},
    {"DI-CANDIDATE-CAPACITY-BELOW-INDEX-TOPK", "The candidates hold fewer tokens than index_topk.",
     "The index is chosen among them.", "Raise candidate_topk_blocks.", "cross_layer.py"},
    {"DI-ENGRAM-NEEDS-COMPRESSED-TOKENIZER", "Engram layers need a compressed vocabulary.",
     "Their tables are indexed by it.", "State engram_compressed_vocab_size.",
     "model_metadata_utils.py"},
    // Sizes and parallelism.
    {"DI-LOAD-FORMAT", "load_format is auto or dummy.", "There are no other loaders.", "Use auto.",
     "config.py"},
    {"DI-BATCHED-TOKENS-BELOW-DECODING-TOKENS", "A step must hold a decode step of all sequences.",
     "Each sequence takes 1 + draft length tokens.",
     "Raise max_num_batched_tokens or lower max_num_seqs.", "config.py"},
    {"DI-BATCHED-TOKENS-BELOW-MODEL-LEN", "A whole prompt must fit a step.",
     "Without chunked prefill a prompt is one step.",
     "Raise max_num_batched_tokens, or set chunked_prefill.", "config.py"},
    {"DI-TOKENS-PER-BLOCK-NOT-128", "A cache block has 128 tokens.", "Kernels are built for it.",
     "Leave --page-size out, or give 128.", "arg_utils.py"},
    {"DI-GPU-MEMORY-ABOVE-1", "gpu_memory_utilization is above 1.", "It is a share of the device.",
     "Give at most 1.0.", "config.py"},
    {"DI-CP-ZERO-DIVISION", "A parallel size of 0 is divided by.", "Sizes are not checked first.",
     "Give at least 1.", "config.py"},
    {"DI-EP-NOT-POSITIVE", "The expert-parallel size must be at least 1.", "It divides ranks.",
     "Give at least 1.", "config.py"},
    {"DI-CP-X-DP-NOT-DIVISIBLE-BY-EP",
     "Context times data ranks must divide by the expert-parallel "
     "size.",
     "Expert groups are cut from these ranks.", "Adjust --cp, --dp or --ep.", "config.py"},
    {"DI-ENGRAM-SIZE-NOT-POSITIVE", "The Engram-parallel size must be at least 1.",
     "It divides ranks.", "Give at least 1, or leave it out.", "config.py"},
    {"DI-WORLD-NOT-DIVISIBLE-BY-CP-X-DP", "All ranks must divide into engines.",
     "Each engine has context times data ranks.", "Adjust the sizes.", "config.py"},
    {"DI-WORLD-NOT-DIVISIBLE-BY-ENGRAM", "All ranks must divide into Engram groups.",
     "Tables are divided among a group.", "Adjust the sizes.", "config.py"},
    {"DI-ENGINE-RANK-OUT-OF-RANGE", "engine_rank is no engine of the deployment.",
     "There are as many engines as ranks over the context-parallel size.", "Correct engine_rank.",
     "config.py"},
    {"DI-PREFILL-ATTEMPT-INTERVAL", "The scheduler's interval must be at least 1.",
     "It counts steps.", "Correct the variable.", "config.py"},
    {"DI-PREFILL-ANY-ATTEMPT-INTERVAL", "The scheduler's interval must be at least 1.",
     "It counts steps.", "Correct the variable.", "config.py"},
    {"DI-CONTEXT-PARALLEL-COMPLETION", "A COMPLETION engine has no context parallelism.",
     "Context parallelism divides prefill, which it never runs.", "Use --cp 1.", "engine.py"},
    {"DI-VISIBLE-DEVICES", "CUDA_VISIBLE_DEVICES must be set, integers with commas.",
     "It is read without a default, on Ascend too.", "Set the variable.", "engine.py"},
    {"DI-VISIBLE-DEVICES-DIFFER", "Two lists of visible devices differ.",
     "On Ascend both variables must name the same devices.", "Set one of them only.",
     "platform.py"},
    {"DI-SCHEDULER", "The scheduler refuses its limits.", "They are checked in its C++ half.",
     "See the reason.", "scheduler.cpp"},
    {"DI-EPLB", "An interval of expert rebalancing is out of range.",
     "Statistics are kept for a window of steps.", "Correct the variable.", "eplb/__init__.py"},
    // Graphs, kernels and parameter tree.
    {"DI-GRAPHS", "Sizes that decode graphs are captured for; prefill is never captured.",
     "A step takes the smallest size that holds its tokens.", "", "cuda_graph_runner.py"},
    {"DI-GRAPH-INTERVAL-ZERO", "The list of graph sizes has a step of 0.",
     "It is a range of Python.", "Give an interval and max_num_seqs of at least 1.",
     "cuda_graph_runner.py"},
    {"DI-GRAPH-SIZES-TOO-MANY", "More graph sizes than can be captured.",
     "There is one for each interval up to the largest step.",
     "Raise the interval or lower max_num_seqs.", "cuda_graph_runner.py"},
    {"DI-BATCH-INVARIANT-ON-ASCEND", "Batch-invariant kernels exist for CUDA only.",
     "An assertion of the worker.", "Leave DEEPINFER_BATCH_INVARIANT out.", "runtime_config.py"},
    {"DI-O-GROUPS-NOT-POSITIVE", "o_groups must be at least 1.", "Heads are divided into groups.",
     "Correct the field.", "mla_attn.py"},
    {"DI-HEADS-NOT-DIVISIBLE-BY-O-GROUPS", "Heads must divide into o_groups.",
     "Each group has one projection.", "Correct the field.", "mla_attn.py"},
    {"DI-INDEX-ROPE-DIM-NOT-64", "The indexer rotates 64 values.", "Its kernel is built for it.",
     "Correct qk_rope_head_dim.", "mla_attn.py"},
    {"DI-SCORING-FUNC-NOT-SQRTSOFTPLUS", "scoring_func must be sqrtsoftplus.",
     "The router has no other.", "Correct the field.", "moe.py"},
    {"DI-TOPK-METHOD-NOT-NOAUX-TC", "topk_method must be noaux_tc.", "The router has no other.",
     "Correct the field.", "moe.py"},
    {"DI-NORM-TOPK-PROB-FALSE", "norm_topk_prob must be true.", "The router has no other path.",
     "Correct the field.", "moe.py"},
    {"DI-ENGRAM-NEEDS-HC-MULT-ABOVE-1", "Engram layers need hc_mult above 1.",
     "They add a stream of the hyper-connections.", "Correct the field.", "engram_parameters.py"},
    {"DI-ENGRAM-NGRAM-BELOW-2", "engram_max_ngram_size must be at least 2.",
     "A single token is no n-gram.", "Correct the field.", "engram_metadata.py"},
    {"DI-MARKOV-RANK-NOT-POSITIVE", "dspark_markov_rank must be at least 1.",
     "The draft heads project through it.", "Correct the field.", "heads.py"},
    {"DI-NO-DRAFT-LAYER", "Tokens are drafted by a model without draft layers.",
     "The draft length is a variable (default 5) that does not look at the model.",
     "Set DEEPINFER_USE_NEXTN_DECODE=0.", "heads.py"},
    {"DI-DRAFT-TARGET-INPUT", "Drafting needs dspark_target_attn_input.",
     "The draft's attention reads the target layers' inputs.", "Set DEEPINFER_USE_NEXTN_DECODE=0.",
     "dflash_attn.py"},
    {"DI-CANDIDATE-INDEXER-HEADS-32-DIM-128",
     "An indexer among candidates has at most 32 heads of "
     "128.",
     "Its kernel is built for them.", "Correct the fields.", "index_attn.py"},
    {"DI-CANDIDATE-BLOCK-SIZE-8-OR-16", "An indexer among candidates takes blocks of 8 or 16.",
     "Its kernel is built for them.", "Correct candidate_block_size.", "index_attn.py"},
    {"DI-CANDIDATE-TOPK-BLOCKS-AT-MOST-4096",
     "An indexer among candidates takes at most 4096 "
     "blocks, a multiple of 4.",
     "Its kernel is built for them.", "Correct candidate_topk_blocks.", "index_attn.py"},
    {"DI-CANDIDATE-ROW-MULTIPLE-OF-1024",
     "A row of candidate scores must be a multiple of 1024 "
     "bytes.",
     "Rows are aligned.", "Correct candidate_topk_blocks.", "index_attn.py"},
    {"DI-INDEX-MEMORY-LIMIT-TOO-SMALL", "The limit for index scores holds fewer than eight rows.",
     "Eight rows are the least that is scored at a time.",
     "Raise DEEPINFER_INDEX_ATTN_MEMORY_LIMIT.", "index_attn.py"},
    {"DI-HEADS-ABOVE-128", "FlashMLA has kernels for 64 and 128 heads.",
     "Fewer heads are padded with zeros, more are refused at the first call.",
     "Use another engine for this model.", "attention_backend.py"},
    // Attention and cache.
    {"DI-ATTENTION-FUSED", "A layer runs FlashMLA's kernel with norm, RoPE and cast fused in.",
     "Sparse and window layers with 64 or 128 heads on CUDA; dense compressed layers in PROMPT "
     "engines too.",
     "", "attention_backend.py"},
    {"DI-ATTENTION-UNFUSED", "A layer runs FlashMLA's sparse kernel with separate norm and RoPE.",
     "Ascend, other head counts, or dense compressed layers outside of PROMPT engines.", "",
     "attention_backend.py"},
    {"DI-ATTENTION-PADDED", "Heads are padded with zeros.",
     "FlashMLA has kernels for 64 and 128 heads.", "", "attention_backend.py"},
    {"DI-KERNEL", "FlashMLA refuses the kernel's first call, after the weights are loaded.",
     "Python's rules never look at the GPU; the kernels are built for sm100 and sm103.",
     "Choose a Blackwell data-centre GPU (b200, gb200, b300, gb300).", "FlashMLA csrc/api"},
    {"DI-UNKNOWN-GPU", "A throughput constant is known for sm10x and Ascend only.",
     "It is read at the very end of start-up.",
     "Choose a Blackwell data-centre GPU (b200, gb200, b300, gb300).", "device.py"},
    {"DI-KV-DTYPE", "The cache formats follow from config.json, not from an option.",
     "Windows are MXFP8; the main cache is FP4 unless use_fp4_sparse_kv is false.", "",
     "cache_engine.py"},
    {"DI-KV-DIM-NOT-512", "head_dim must be 512.", "Cache rows and kernels are built for it.",
     "Use another engine for this model.", "cache_engine.py"},
    {"DI-KV-BLOCK", "Bytes of a block of 128 tokens over all layers.",
     "Only source layers own a part; the sum is rounded up to whole rows.", "", "cache_engine.py"},
    {"DI-KV-REPLICATED", "Every rank holds the whole cache.",
     "Attention is data parallel; context ranks hold the whole cache too.", "", "cache_engine.py"},
    {"DI-STATE", "Each sequence has a slot of window rings beside the blocks.",
     "The newest tokens of every layer are kept apart, in two copies.", "", "cache_engine.py"},
    {"DI-NO-CACHE-MEMORY", "No block of the cache fits the device.",
     "What is left after the weights and the state slots is divided into blocks.",
     "Lower max_num_seqs, or use a device with more memory.", "llm_engine.py"},
    {"DI-MODEL-LEN-ABOVE-CACHE", "A sequence may take at most 80 % of the cache.",
     "Start-up stops where the longest one would take more.",
     "Lower --max-model-len or max_num_seqs.", "llm_engine.py"},
    {"DI-WEIGHTS", "The weights of one rank.",
     "Counted from the checkpoint's files where they are there, else from the geometry.", "",
     "loading.py"},
    {"DI-WEIGHTS-UNKNOWN", "The weights cannot be counted from what the config states.",
     "No weight file or index is beside the config, and the geometry is not enough.",
     "Give the model's folder, with its index or its safetensors files.", "loading.py"},
    {"DI-WEIGHTS-OVER-MEMORY", "The weights of one rank do not fit the device.",
     "They are allocated before anything else.",
     "Use more expert-parallel ranks or a device with "
     "more memory.",
     "loading.py"},
    // Prefill truncation.
    {"DI-YOCO-BOUNDARY-OUT-OF-RANGE", "Truncation needs layers on both sides of the boundary.",
     "It leaves the consumer half out of prefill.",
     "Leave DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE out.", "model_metadata_utils.py"},
    {"DI-YOCO-KEEP-TOKENS-NOT-POSITIVE", "Truncation needs a number of tokens to keep.",
     "Its default is 0.", "Set DEEPINFER_YOCO_PREFILL_KEEP_TOKENS.", "model_metadata_utils.py"},
    {"DI-YOCO-KEEP-TOKENS-TOO-SMALL", "Truncation must keep the window and what may be taken back.",
     "Decode reads them.", "Raise DEEPINFER_YOCO_PREFILL_KEEP_TOKENS.", "model_runner.py"},
    {"DI-YOCO-WINDOW-NOT-POSITIVE", "Truncation needs a sliding window.", "It keeps its tokens.",
     "Leave DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE out.", "model_runner.py"},
    {"DI-DRAFT-TARGETS-STRADDLE-BOUNDARY",
     "Compaction needs the draft's target layers on one side.",
     "Tokens of the two sides differ in number.", "Use mode mask.", "deepseek.py"},
    {"DI-ENGRAM-IN-CONSUMER-HALF", "Compaction takes no Engram in consumer layers.",
     "It is not written yet.", "Use mode mask.", "deepseek.py"},
});

}  // namespace

std::span<const RuleInfo> rules() {
  static const std::vector<RuleInfo> kRules = [] {
    std::vector<RuleInfo> out;
    out.reserve(kRows.size());
    for (const Row& row : kRows) {
      out.push_back({row.id, row.summary, row.why, row.remedy, row.file, kVersion});
    }
    return out;
  }();
  return kRules;
}

std::string rule_id(const Fault& fault) {
  return "DI-" + to_upper(fault.rule.empty() ? fault.stage : fault.rule);
}

void append_step(StepDraft draft, std::vector<Step>& steps) {
  const auto* const row =
      std::ranges::find_if(kRows, [&](const Row& rule) { return rule.id == draft.rule; });
  KERNELPATH_ASSERT(row != kRows.end());
  const RuleInfo rule = {row->id, row->summary, row->why, row->remedy, row->file, kVersion};
  steps.push_back(step_of(std::move(draft), rule, kProject));
}

}  // namespace kernelpath::engines::deepinfer
