#include "engines/vllm/rules_speculation.h"

#include <array>
#include <string_view>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kSpeculative = "vllm/config/speculative.py";
constexpr std::string_view kConfig = "vllm/config/vllm.py";
constexpr std::string_view kProposer = "vllm/v1/spec_decode/llm_base_proposer.py";
constexpr std::string_view kDraftProposer = "vllm/v1/spec_decode/draft_model.py";
constexpr std::string_view kSecondRunner = "vllm/v1/worker/gpu/spec_decode/eagle/utils.py";
constexpr std::string_view kDflash = "vllm/model_executor/models/qwen3_dflash.py";
constexpr std::string_view kHpc = "vllm/v1/attention/backends/hpc_attn.py";
constexpr std::string_view kModel = "vllm/config/model.py";

constexpr auto kRules = std::to_array<RuleInfo>({
    // --- method and tokens
    {"VLLM-SPEC-TOKENS", "The number of draft tokens was not given: one is assumed.",
     "The engine refuses to start without it, unless the draft's configuration has it.",
     "Give --draft-tokens.", kSpeculative, ""},
    {"VLLM-SPEC-TOKENS-MISSING", "The number of draft tokens is not given.",
     "Nothing but an MTP checkpoint or suffix decoding brings one.",
     "Set speculative_config.num_speculative_tokens, or give --draft-tokens.", kSpeculative, ""},
    {"VLLM-SPEC-MODEL-MISSING", "The method needs a draft, and none is named.",
     "Only layers for multi-token prediction are in the target's checkpoint.",
     "Set speculative_config.model, or give --speculative KIND:MODEL.", kSpeculative, ""},
    {"VLLM-SPEC-RENAMED", "The method's name is deprecated; it is mtp.",
     "The kind of layers is read from the checkpoint.", "Say mtp.", kSpeculative, ""},
    {"VLLM-SPEC-METHOD", "The draft is none of the method that was asked for.",
     "The method is compared with the draft's configuration and name.",
     "Choose the draft's own method, or another draft.", kSpeculative, ""},
    {"VLLM-SPEC-NGRAM-RANGE", "The shortest n-gram is longer than the longest.",
     "The range would be empty.", "Lower prompt_lookup_min.", kSpeculative, ""},
    {"VLLM-SPEC-SUFFIX-PACKAGE", "Suffix decoding needs Arctic Inference.",
     "Its trees are that package's.", "Install arctic-inference; --has arctic-inference here.",
     kSpeculative, ""},
    {"VLLM-SPEC-DIVISIBLE", "The draft tokens are no multiple of what the modules predict.",
     "All modules run in every round.", "Choose a multiple of n_predict.", kSpeculative, ""},
    {"VLLM-SPEC-MTP-REUSED", "The same layers run several times to draft more than one token.",
     "The checkpoint has fewer of them than tokens are drafted.", "Draft one token.", kSpeculative,
     ""},
    {"VLLM-SPEC-NO-LAYERS", "The checkpoint has no layers for multi-token prediction.",
     "Its configuration counts none.", "Use another method.", kSpeculative, ""},
    // --- the draft
    {"VLLM-SPEC-CLASS-FOUND", "The class that drafts tokens.",
     "The draft's architecture is rewritten by the method, then looked up like any other.", "",
     kSpeculative, ""},
    {"VLLM-SPEC-CLASS", "No class serves the draft.",
     "The registry lacks the draft's architecture as the method rewrites it.",
     "Choose another draft or method.", kSpeculative, ""},
    {"VLLM-SPEC-DRAFT-TP", "The draft's tensor-parallel size is neither 1 nor the target's.",
     "The draft runs in the target's processes.", "Leave draft_tensor_parallel_size out.",
     kSpeculative, ""},
    {"VLLM-SPEC-DRAFT-TP-UNREAD", "The draft's tensor-parallel size has no effect on its layers.",
     "They are built in the target's group of ranks.", "Leave draft_tensor_parallel_size out.",
     kSpeculative, ""},
    {"VLLM-SPEC-DRAFT-HEADS", "The draft's query heads do not divide over the ranks.",
     "Each rank gets as many heads.", "Choose --tp so that it divides the draft's heads too.",
     kModel, ""},
    {"VLLM-SPEC-PIPELINE", "The draft's class has no pipeline parallelism.",
     "Until 0.32 the draft is asked for the target's stages.", "Leave --pp out.", kModel, ""},
    {"VLLM-SPEC-VOCAB", "Draft and target have vocabularies of different size.",
     "A token of one may be none of the other.",
     "Choose a draft of the same vocabulary, or set use_heterogeneous_vocab.", kSpeculative, ""},
    {"VLLM-SPEC-VOCAB-METHOD", "use_heterogeneous_vocab is for draft models only.",
     "Other drafts share the target's embedding.", "Leave it out.", kSpeculative, ""},
    {"VLLM-SPEC-VOCAB-SAMPLING", "use_heterogeneous_vocab needs greedy drafts.",
     "Probabilities of two vocabularies cannot be compared.", "Leave draft_sample_method out.",
     kSpeculative, ""},
    {"VLLM-SPEC-LENGTH", "The draft's max_model_len is above what draft or target can take.",
     "It only shortens.", "Lower speculative_config.max_model_len.", kSpeculative, ""},
    {"VLLM-SPEC-LENGTH-LIMIT", "The draft's length shortens the target's.",
     "The second model runner drafts for every sequence.", "Choose a draft of the same length.",
     kConfig, ""},
    // --- backend
    {"VLLM-SPEC-BACKEND-DIFFERS", "The draft's layers run on another backend than the target's.",
     "They are selected by themselves, as the method and the model runner say.",
     "Set speculative_config.attention_backend to choose it.", kProposer, ""},
    {"VLLM-SPEC-BACKEND-UNREAD", "speculative_config.attention_backend is read by nothing.",
     "The second model runner builds such a draft with the target's configuration.",
     "Set --attention-backend, or VLLM_USE_V2_MODEL_RUNNER=0.", kSecondRunner, ""},
    {"VLLM-SPEC-DFLASH-MIXED", "A DFlash draft mixes sliding and full layers.",
     "The first model runner, and 0.25.1, draft with one set of metadata.",
     "Use the second model runner of 0.33 or later.", kDflash, ""},
    {"VLLM-SPEC-DFLASH-WINDOW", "A DFlash draft slides, and no window is stated.",
     "Neither dflash_config.swa_window_size nor sliding_window is there.",
     "Correct the draft's config.json.", kDflash, ""},
    {"VLLM-SPEC-GROUPS", "The draft's layers are in several KV cache groups.",
     "The first model runner drafts with one set of metadata.",
     "Use the second model runner, or another draft.", kProposer, ""},
    {"VLLM-BUILDER-HPC-TOKENS", "HPC_ATTN verifies three draft tokens at most.",
     "Its decode kernel is built for so many.", "Draft three tokens or fewer.", kHpc, ""},
    // --- model runner
    {"VLLM-SPEC-RUNNER", "Which model runner loads the draft.",
     "Each release has methods that only one of the two knows.", "", kConfig, ""},
    {"VLLM-SPEC-RUNNER-REFUSED", "The second model runner does not know the method.",
     "VLLM_USE_V2_MODEL_RUNNER asks for it.", "Leave the variable out.", kConfig, ""},
    {"VLLM-SPEC-UNPADDED", "The method needs padded draft batches.",
     "It adds places to a sequence's queries.", "Leave disable_padded_drafter_batch out.",
     kProposer, ""},
    {"VLLM-SPEC-UNPADDED-UNREAD", "disable_padded_drafter_batch has no effect.",
     "The second model runner pads in any case.", "Leave it out.", kConfig, ""},
    {"VLLM-SPEC-MROPE", "The method has no multimodal rotary positions.",
     "It moves positions of a text.", "Use a draft without M-RoPE.", kProposer, ""},
    {"VLLM-SPEC-DRAFT-MODEL-TP", "A draft model runs on as many ranks as the target.",
     "Their compiled code would overwrite each other's.", "Leave draft_tensor_parallel_size out.",
     kDraftProposer, ""},
    {"VLLM-SPEC-ASYNC", "Asynchronous scheduling does not go with this kind of drafts.",
     "The next step is scheduled before the tokens are known.", "Leave async_scheduling out.",
     kConfig, ""},
    {"VLLM-SPEC-SLOTS", "Drafting takes all places of a step.",
     "Each sequence needs some beside its own tokens.",
     "Raise max_num_batched_tokens, or lower the draft tokens or max_num_seqs.", kConfig, ""},
});

}  // namespace

std::span<const RuleInfo> speculation_rules() { return kRules; }

}  // namespace kernelpath::engines::vllm
