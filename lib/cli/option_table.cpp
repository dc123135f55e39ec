#include "cli/option_table.h"

#include "base/text.h"

#include <algorithm>
#include <array>

// The one table of options. Parsing, --help, completions, the config file, --print-config, the
// fields of --batch lines and the tests are all made from it.

namespace kernelpath::cli {
namespace {

using enum ValueKind;
using enum Scope;
using enum Group;
using enum OfPrograms;

constexpr std::string_view kNone;
constexpr std::int64_t kNoMaximum = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxPageSize = std::int64_t{1} << 20;  // no engine has pages near it

constexpr std::array kTable = {
    // clang-format off
    OptionRow{Option::kEngine, "engine", kNone, 0, kList, kRequest, kQuestion,
     "NAME[@VERSION],…", "@engines", "all", 0,
     "Engines to answer for. Without a version, the newest of this build; --list engines has all.", kNoMaximum, kJudges},
    OptionRow{Option::kDevice, "device", kNone, 0, kText, kRequest, kQuestion,
     "NAME", "@devices", "h100-sxm", 0,
     "Device that the question is about (--list devices); auto: the first CUDA device of this machine, "
     "else the CPU. Nothing is probed without auto. llm-run and llm-bench compute on it: auto, cpu "
     "or cuda:0."},
    OptionRow{Option::kSm, "sm", kNone, 0, kText, kRequest, kQuestion,
     "CAPABILITY", kNone, kNone, 0,
     "CUDA compute capability instead of --device: 90, 9.0, sm_90a.", kNoMaximum, kJudges},
    OptionRow{Option::kMemory, "memory", kNone, 0, kSize, kRequest, kQuestion,
     "SIZE", kNone, kNone, 0,
     "Memory of one device, in place of the table's: 80GiB (binary) or 80GB (decimal).", kNoMaximum, kJudges},
    OptionRow{Option::kLacks, "lacks", kNone, 0, kList, kRequest, kQuestion,
     "PACKAGE,…", "@packages", kNone, 0,
     "Packages that are not installed. Without it, all that the engine version declares are there.", kNoMaximum, kJudges},
    OptionRow{Option::kHas, "has", kNone, 0, kList, kRequest, kQuestion,
     "PACKAGE,…", "@packages", kNone, 0,
     "Packages that are installed although the engine version does not declare them.", kNoMaximum, kJudges},
    OptionRow{Option::kEnv, "env", kNone, 0, kRepeated, kRequest, kQuestion,
     "NAME=VALUE", kNone, kNone, 0,
     "Environment variable of the engine's process. The variables of this shell are not read.", kNoMaximum, kJudges},
    OptionRow{Option::kEnvFromProcess, "env-from-process", kNone, 0, kFlag, kProcess, kQuestion,
     kNone, kNone, kNone, 0,
     "Take the engine's variables from this process's environment; --env wins over them.", kNoMaximum, kJudges},
    OptionRow{Option::kSet, "set", kNone, 0, kRepeated, kRequest, kQuestion,
     "ENGINE.FIELD=VALUE", kNone, kNone, 0,
     "The engine's own argument, checked against its table (--list settings).", kNoMaximum, kModels},
    OptionRow{Option::kProfileDir, "profile-dir", kNone, 0, kText, kProcess, kQuestion,
     "DIR", kNone, kNone, 0,
     "Engine tables from DIR instead of those of this build (scripts/extract-profile writes them).", kNoMaximum, kJudges},
    OptionRow{Option::kCustomModuleDirs, "custom-module-dirs", kNone, 0, kList, kProcess, kQuestion,
     "DIR,…", kNone, kNone, 0,
     "Folders of external model providers (shared objects). They run inside this process.", kNoMaximum, kModels},
    OptionRow{Option::kStrict, "strict", kNone, 0, kFlag, kRequest, kQuestion,
     kNone, kNone, kNone, 0,
     "Refuse inputs that a careful reader would refuse: repeated keys, links out of the folder.", kNoMaximum, kModels},

    OptionRow{Option::kBackend, "attention-backend", "backend", 0, kText, kRequest, kDeployment,
     "NAME", "@backends", kNone, 0,
     "Attention backend to ask for, in any case. A name that the engine does not know is an error.", kNoMaximum, kModels},
    OptionRow{Option::kDtype, "dtype", kNone, 0, kText, kRequest, kDeployment,
     "NAME", "@dtypes", kNone, 0,
     "Type of the activations; else the model's.", kNoMaximum, kTypes},
    OptionRow{Option::kKv, "kv-cache-dtype", "kv", 0, kText, kRequest, kDeployment,
     "TYPE", "@kv-dtypes", kNone, 0,
     "Type of the KV cache; else what the checkpoint and the engine decide, or in llm-bench that of "
     "--dtype."},
    OptionRow{Option::kQuantization, "quantization", kNone, 0, kText, kRequest, kDeployment,
     "NAME", kNone, kNone, 0,
     "Weight quantisation in place of the checkpoint's.", kNoMaximum, kJudges},
    OptionRow{Option::kPageSize, "page-size", "block-size", 0, kInteger, kRequest, kDeployment,
     "TOKENS", kNone, kNone, 1,
     "Tokens in one block of the KV cache. llm-bench: values and ranges.", kMaxPageSize},
    OptionRow{Option::kMaxModelLen, "max-model-len", kNone, 0, kInteger, kRequest, kDeployment,
     "TOKENS", kNone, kNone, 1,
     "Longest sequence; else the model's context length.", kNoMaximum, kModels},
    OptionRow{Option::kBatchSize, "batch-size", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, kNone, 1,
     "Sequences that run at one time. llm-bench: values and ranges, 1..64*2 or 1..8+1."},
    OptionRow{Option::kTp, "tp", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, "1", 1, "Tensor-parallel size.", kNoMaximum, kModels},
    OptionRow{Option::kPp, "pp", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, "1", 1, "Pipeline-parallel size.", kNoMaximum, kJudges},
    OptionRow{Option::kDp, "dp", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, "1", 1, "Data-parallel size.", kNoMaximum, kJudges},
    OptionRow{Option::kEp, "ep", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, "1", 1, "Expert-parallel size.", kNoMaximum, kJudges},
    OptionRow{Option::kCp, "cp", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, "1", 1, "Context-parallel size (prefill).", kNoMaximum, kJudges},
    OptionRow{Option::kDcp, "dcp", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, "1", 1, "Decode-context-parallel size.", kNoMaximum, kModels},
    OptionRow{Option::kSpeculative, "speculative", kNone, 0, kText, kRequest, kDeployment,
     "KIND[:MODEL]", "eagle|eagle3|mtp|ngram|draft", kNone, 0,
     "Speculative decoding, and the draft model where there is one.", kNoMaximum, kModels},
    OptionRow{Option::kDraftTokens, "draft-tokens", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, kNone, 1, "Draft tokens of one step.", kNoMaximum, kModels},
    OptionRow{Option::kDraftTopk, "draft-topk", kNone, 0, kInteger, kRequest, kDeployment,
     "N", kNone, kNone, 1, "Branches of the draft tree.", kNoMaximum, kJudges},

    OptionRow{Option::kFallback, "fallback", kNone, 0, kChoice, kProcess, kDeployment,
     "error|warn", "error|warn", "error", 0,
     "Where the named backend cannot run a layer: error, or warn and take one that can.",
     kNoMaximum, kRunOnly},
    OptionRow{Option::kKernel, "kernel", kNone, 0, kChoice, kProcess, kDeployment,
     "reference|avx2|avx512|amx", "reference|avx2|avx512|amx", kNone, 0,
     "Kernels by instruction set; else the fastest that this processor has.", kNoMaximum, kComputes},
    OptionRow{Option::kThreads, "threads", kNone, 0, kInteger, kProcess, kDeployment,
     "N", kNone, kNone, 1,
     "Threads that compute; else one a processor.", 4096, kComputes},
    OptionRow{Option::kKvMemory, "kv-memory", kNone, 0, kSize, kProcess, kDeployment,
     "SIZE", kNone, kNone, 0,
     "Room of the KV cache: 4GiB; else what the requests can need at one time.", kNoMaximum,
     kRunOnly},

    OptionRow{Option::kCase, "case", kNone, 0, kList, kProcess, kMeasurement,
     "CASE,…", "@cases", kNone, 0,
     "What to measure (--list cases), as the arguments do.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kHeads, "heads", kNone, 0, kList, kProcess, kMeasurement,
     "Q:KV,…", kNone, kNone, 0, "Query heads and KV heads. Else 32:8.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kHeadDim, "head-dim", kNone, 0, kList, kProcess, kMeasurement,
     "N,…", kNone, kNone, 0, "Values of a row of Q, K and V. Else 128.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kContext, "context", kNone, 0, kList, kProcess, kMeasurement,
     "TOKENS,…", kNone, kNone, 0,
     "Tokens of each request, the new ones included: values and ranges, 1024..131072*4.",
     kNoMaximum, kBenchOnly},
    OptionRow{Option::kQueryTokens, "query-tokens", kNone, 0, kList, kProcess, kMeasurement,
     "N,…", kNone, kNone, 0, "New tokens of each request of gqa-decode. Else 1.", kNoMaximum,
     kBenchOnly},
    OptionRow{Option::kWeightDtype, "weight-dtype", kNone, 0, kList, kProcess, kMeasurement,
     "TYPE,…", "f32|bf16|f16|fp8|nvfp4|mxfp4|q8_0|q4_0|q5_0|q4_k|q5_k|q6_k", kNone, 0,
     "Stored format of the matrix. Else every one that the device has (gemv), bf16 (matrix-rate).",
     kNoMaximum, kBenchOnly},
    OptionRow{Option::kRows, "rows", kNone, 0, kList, kProcess, kMeasurement,
     "N,…", kNone, kNone, 0, "Outputs of the matrix. Else 4096.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kCols, "cols", kNone, 0, kList, kProcess, kMeasurement,
     "N,…", kNone, kNone, 0, "Inputs of the matrix. Else 4096.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kSize, "size", kNone, 0, kList, kProcess, kMeasurement,
     "SIZE,…", kNone, kNone, 0, "Bytes that read-ceiling and copy read: 512MiB.", kNoMaximum,
     kBenchOnly},
    OptionRow{Option::kPeer, "peer", kNone, 0, kList, kProcess, kMeasurement,
     "NAME,…", "@peers", "all", 0,
     "Other libraries to measure on the same data in the same minutes; all: those of this build; "
     "none (--list peers).", kNoMaximum, kBenchOnly},
    OptionRow{Option::kPeersFile, "peers-file", kNone, 0, kRepeated, kProcess, kMeasurement,
     "FILE", kNone, kNone, 0,
     "Times of peers that scripts/bench-peers.py has measured on the shapes of the same case file.",
     kNoMaximum, kBenchOnly},
    OptionRow{Option::kMinSamples, "min-samples", kNone, 0, kInteger, kProcess, kMeasurement,
     "N", kNone, "10", 1, "Samples of a shape at least.", 1000000, kBenchOnly},
    OptionRow{Option::kMaxNoise, "max-noise", kNone, 0, kPercent, kProcess, kMeasurement,
     "PERCENT", kNone, "0.5%", 0,
     "A shape is measured until the relative standard deviation of its samples is at most this, or "
     "no longer changes; a larger one is marked and not valid.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kMinTime, "min-time", kNone, 0, kSeconds, kProcess, kMeasurement,
     "TIME", kNone, "0.5s", 0, "Time of all samples of a shape together at least.", kNoMaximum,
     kBenchOnly},
    OptionRow{Option::kTimeout, "timeout", kNone, 0, kSeconds, kProcess, kMeasurement,
     "TIME", kNone, "15s", 0, "Ends a shape whose noise does not settle.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kCold, "cold", kNone, 0, kFlag, kProcess, kMeasurement,
     kNone, kNone, kNone, 0,
     "Every launch reads data that are out of the cache. Without --cold and --warm, shapes that fit "
     "the cache are measured both ways.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kWarm, "warm", kNone, 0, kFlag, kProcess, kMeasurement,
     kNone, kNone, kNone, 0, "Launches repeat on the same data.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kCheck, "check", kNone, 0, kFlag, kProcess, kMeasurement,
     kNone, kNone, "true", 0,
     "Compare with the float64 reference first; --check=false leaves it out.", kNoMaximum,
     kBenchOnly},
    OptionRow{Option::kProfile, "profile", kNone, 0, kFlag, kCommandLine, kMeasurement,
     kNone, kNone, kNone, 0,
     "One launch of each shape and nothing else, for a profiler around this program.", kNoMaximum,
     kBenchOnly},

    OptionRow{Option::kPrompt, "prompt", kNone, 'p', kText, kCommandLine, kGeneration,
     "TEXT|@FILE|-", kNone, kNone, 0,
     "The text to go on from; @FILE reads it from a file, - from standard input.", kNoMaximum,
     kRunOnly},
    OptionRow{Option::kPromptTokens, "prompt-tokens", kNone, 0, kList, kCommandLine, kGeneration,
     "ID,…", kNone, kNone, 0,
     "Token ids in place of a text; needs no tokenizer.", kNoMaximum, kRunOnly},
    OptionRow{Option::kPrompts, "prompts", kNone, 0, kText, kCommandLine, kGeneration,
     "FILE.jsonl", kNone, kNone, 0,
     "Many requests, one JSON object a line, run at the same time; - is standard input.",
     kNoMaximum, kRunOnly},
    OptionRow{Option::kChat, "chat", kNone, 0, kFlag, kProcess, kGeneration,
     kNone, kNone, kNone, 0,
     "The prompt is a user's message: the model's chat template goes around it.", kNoMaximum,
     kRunOnly},
    OptionRow{Option::kSystem, "system", kNone, 0, kText, kProcess, kGeneration,
     "TEXT", kNone, kNone, 0,
     "The system message before it; implies --chat.", kNoMaximum, kRunOnly},
    OptionRow{Option::kMaxTokens, "max-tokens", kNone, 'n', kInteger, kProcess, kGeneration,
     "N", kNone, "128", 1, "Tokens to generate at most.", kNoMaximum, kRunOnly},
    OptionRow{Option::kIgnoreEos, "ignore-eos", kNone, 0, kFlag, kProcess, kGeneration,
     kNone, kNone, kNone, 0, "Go on behind tokens that end a text.", kNoMaximum, kRunOnly},
    OptionRow{Option::kStop, "stop", kNone, 0, kRepeated, kProcess, kGeneration,
     "TEXT", kNone, kNone, 0,
     "End before this text; may be given several times.", kNoMaximum, kRunOnly},
    OptionRow{Option::kTemperature, "temperature", kNone, 0, kNumber, kProcess, kGeneration,
     "T", kNone, "0", 0, "0 is greedy: results repeat.", kNoMaximum, kRunOnly},
    OptionRow{Option::kTopK, "top-k", kNone, 0, kInteger, kProcess, kGeneration,
     "N", kNone, "0", 0, "Draw among the N likeliest tokens; 0: all.", kNoMaximum, kRunOnly},
    OptionRow{Option::kTopP, "top-p", kNone, 0, kNumber, kProcess, kGeneration,
     "P", kNone, "1", 0, "Draw among the fewest tokens that reach this probability.", kNoMaximum,
     kRunOnly},
    OptionRow{Option::kMinP, "min-p", kNone, 0, kNumber, kProcess, kGeneration,
     "P", kNone, "0", 0, "Draw among tokens with this share of the likeliest one's probability.",
     kNoMaximum, kRunOnly},
    OptionRow{Option::kRepetitionPenalty, "repetition-penalty", kNone, 0, kNumber, kProcess,
     kGeneration, "X", kNone, "1", 0,
     "Divides the logits of tokens seen in prompt or answer.", kNoMaximum, kRunOnly},
    OptionRow{Option::kPresencePenalty, "presence-penalty", kNone, 0, kNumber, kProcess,
     kGeneration, "X", kNone, "0", 0,
     "Subtracted from the logits of tokens in the answer.", kNoMaximum, kRunOnly},
    OptionRow{Option::kFrequencyPenalty, "frequency-penalty", kNone, 0, kNumber, kProcess,
     kGeneration, "X", kNone, "0", 0,
     "Subtracted for each time that a token stands in the answer.", kNoMaximum, kRunOnly},
    OptionRow{Option::kSeed, "seed", kNone, 0, kInteger, kProcess, kGeneration,
     "N", kNone, "0", 0, "Of drawing: the same seed draws the same.", kNoMaximum, kRunOnly},
    OptionRow{Option::kLogprobs, "logprobs", kNone, 0, kInteger, kProcess, kGeneration,
     "N", kNone, "0", 0,
     "Log-probabilities of the N likeliest tokens beside each token (json, jsonl).", 1000,
     kRunOnly},
    OptionRow{Option::kDumpLogits, "dump-logits", kNone, 0, kText, kCommandLine, kGeneration,
     "FILE", kNone, kNone, 0,
     "Write the logits of each generated token, float32, little-endian, [tokens, vocabulary]; for "
     "one request.", kNoMaximum, kRunOnly},
    OptionRow{Option::kExpect, "expect", kNone, 0, kText, kCommandLine, kGeneration,
     "golden.json", kNone, kNone, 0,
     "Run the prompts of this file and end with code 1 unless they give its tokens; steps whose "
     "best two logits are nearer than 0.001 end the comparison.", kNoMaximum, kRunOnly},
    OptionRow{Option::kDryRun, "dry-run", kNone, 0, kFlag, kCommandLine, kGeneration,
     kNone, kNone, kNone, 0,
     "Plan and memory; no weights are read.", kNoMaximum, kRunOnly},
    OptionRow{Option::kStats, "stats", kNone, 0, kFlag, kProcess, kGeneration,
     kNone, kNone, kNone, 0, "Speeds and reuse on standard error at the end.", kNoMaximum,
     kRunOnly},

    OptionRow{Option::kShow, "show", kNone, 0, kList, kRequest, kAnswer,
     "PART,…",
     "all|class|attention|backend|candidates|kv|memory|rope|quant|moe|state|draft|weights", kNone, 0,
     "Derived values with the field, file or default that each comes from; resolved options with "
     "who set them.", kNoMaximum, kInspectOnly},
    OptionRow{Option::kPhase, "phase", kNone, 0, kChoice, kRequest, kAnswer,
     "prefill|decode|both", "prefill|decode|both", "both", 0,
     "Phases whose inner kernels are shown.", kNoMaximum, kInspectOnly},
    OptionRow{Option::kLayers, "layers", kNone, 0, kFlag, kProcess, kAnswer,
     kNone, kNone, kNone, 0,
     "One row for each group of layers that resolve alike.", kNoMaximum, kInspectOnly},
    OptionRow{Option::kWhy, "why", kNone, 0, kFlag, kProcess, kAnswer,
     kNone, kNone, kNone, 0,
     "All steps, in the order in which one debugs a deployment.", kNoMaximum, kModels},
    OptionRow{Option::kWhyNot, "why-not", kNone, 0, kText, kRequest, kAnswer,
     "BACKEND", "@backends", kNone, 0,
     "What refuses BACKEND here, and the smallest changes that would admit it.", kNoMaximum, kInspectOnly},
    OptionRow{Option::kDiff, "diff", kNone, 0, kPair, kRequest, kAnswer,
     "ENGINE@A ENGINE@B", "@engines", kNone, 0,
     "What an upgrade changes: both versions answer, and what they decide differently is shown with "
     "the rules behind it; over several models also a summary.", kNoMaximum, kInspectOnly},
    OptionRow{Option::kRequire, "require", kNone, 0, kList, kProcess, kAnswer,
     "ENGINE=BACKEND", kNone, kNone, 0,
     "End with code 1 unless every model gets this backend.", kNoMaximum, kInspectOnly},
    OptionRow{Option::kSources, "sources", kNone, 0, kFlag, kProcess, kAnswer,
     kNone, kNone, kNone, 0,
     "The engine's file and its version behind each rule.", kNoMaximum, kModels},
    OptionRow{Option::kYaml, "yaml", kNone, 0, kRepeated, kRequest, kQuestion,
     "FILE", kNone, kNone, 0,
     "An options file of TensorRT-LLM (extra LLM API options). Several are merged, the last wins; "
     "options of this command line win over files.", kNoMaximum, kValidateOnly},
    OptionRow{Option::kCommand, "command", kNone, 0, kText, kRequest, kQuestion,
     "'PROGRAM …'", kNone, kNone, 0,
     "The engine's own command line ('trtllm-serve …'); its engine is the one that is asked. "
     "Options of this command line win over it.", kNoMaximum, kValidateOnly},
    OptionRow{Option::kFailOn, "fail-on", kNone, 0, kChoice, kProcess, kAnswer,
     "error|warn|never", "error|warn|never", "error", 0,
     "End with code 1 if there is a finding of this level or worse.", kNoMaximum, kValidateOnly},
    OptionRow{Option::kRule, "rule", kNone, 0, kList, kProcess, kAnswer,
     "ID,…", "@rules", kNone, 0,
     "Only these rules count (--list rules).", kNoMaximum, kValidateOnly},
    OptionRow{Option::kSkip, "skip", kNone, 0, kList, kProcess, kAnswer,
     "ID,…", "@rules", kNone, 0,
     "These rules do not count.", kNoMaximum, kValidateOnly},
    OptionRow{Option::kBaseline, "baseline", kNone, 0, kText, kProcess, kAnswer,
     "FILE", kNone, kNone, 0,
     "A report of an earlier run. llm-validate (JSON or SARIF): what it has found already is shown "
     "and does not count. llm-bench (JSON): end with code 1 where a shape became slower.", kNoMaximum, kCompares},
    OptionRow{Option::kMaxRegression, "max-regression", kNone, 0, kPercent, kProcess, kAnswer,
     "PERCENT", kNone, "3%", 0,
     "How much slower than --baseline a shape may be.", kNoMaximum, kBenchOnly},
    OptionRow{Option::kRoofline, "roofline", kNone, 0, kText, kProcess, kAnswer,
     "FILE.svg", kNone, kNone, 0,
     "Draw rates over arithmetic intensity, below the limits of this run (needs gnuplot).",
     kNoMaximum, kBenchOnly},
    OptionRow{Option::kSuggest, "suggest", kNone, 0, kFlag, kRequest, kAnswer,
     kNone, kNone, kNone, 0,
     "The smallest changes of options, then of the device, that remove each error; each was "
     "validated.", kNoMaximum, kValidateOnly},
    OptionRow{Option::kMatrix, "matrix", kNone, 0, kOptionalText, kCommandLine, kAnswer,
     "[=AXIS,…]", kNone, kNone, 0,
     "Feature against feature as the documentation of one engine has it; with AXIS, all values of "
     "these options judged: --matrix=backend,kv,page-size=32|64.", kNoMaximum, kValidateOnly},
    OptionRow{Option::kBatch, "batch", kNone, 0, kText, kCommandLine, kAnswer,
     "FILE", kNone, kNone, 0,
     "One JSON request a line from FILE or - (standard input), one answer a line. Other options "
     "are the defaults of each line.", kNoMaximum, kJudges},

    OptionRow{Option::kFormat, "format", kNone, 'f', kChoice, kProcess, kOutput,
     "NAME", "text|json|jsonl|md|html|sarif|junit|github|csv|svg", "text", 0,
     "Format of the answer: text, json, jsonl or md; llm-validate also has html, sarif, junit and "
     "github, llm-bench csv, svg and html."},
    OptionRow{Option::kJson, "json", kNone, 0, kFlag, kCommandLine, kOutput,
     kNone, kNone, kNone, 0, "The same as --format json."},
    OptionRow{Option::kOutput, "output", kNone, 'o', kRepeated, kCommandLine, kOutput,
     "[FORMAT:]FILE", kNone, kNone, 0,
     "Write to FILE instead of standard output. Several give several reports of one run."},
    OptionRow{Option::kColor, "color", kNone, 0, kChoice, kProcess, kOutput,
     "auto|always|never", "auto|always|never", "auto", 0,
     "Colours; auto: on a terminal, unless NO_COLOR is set or TERM is dumb."},
    OptionRow{Option::kNoProgress, "no-progress", kNone, 0, kFlag, kProcess, kOutput,
     kNone, kNone, kNone, 0,
     "No progress bar. There is one only for several requests, and where standard error is a "
     "terminal.", kNoMaximum, kRunOnly},
    OptionRow{Option::kWidth, "width", kNone, 0, kInteger, kProcess, kOutput,
     "N", kNone, kNone, 0,
     "Columns of the text output; 0: no limit. Else the terminal's, or no limit."},
    OptionRow{Option::kQuiet, "quiet", kNone, 'q', kFlag, kProcess, kOutput,
     kNone, kNone, kNone, 0, "Only errors on standard error."},
    OptionRow{Option::kVerbose, "verbose", kNone, 'v', kCount, kCommandLine, kOutput,
     kNone, kNone, kNone, 0, "More on standard error; twice for more still."},
    OptionRow{Option::kLogLevel, "log-level", kNone, 0, kChoice, kProcess, kOutput,
     "error|warn|info|debug", "error|warn|info|debug", "warn", 0,
     "What is written to standard error."},
    OptionRow{Option::kLogJson, "log-json", kNone, 0, kFlag, kProcess, kOutput,
     kNone, kNone, kNone, 0, "Log lines as JSON objects."},

    OptionRow{Option::kConfigFile, "config-file", kNone, 0, kText, kCommandLine, kProgram,
     "FILE", kNone, kNone, 0,
     "Options from FILE (TOML) instead of $XDG_CONFIG_HOME/kernelpath/config.toml."},
    OptionRow{Option::kPrintConfig, "print-config", kNone, 0, kFlag, kCommandLine, kProgram,
     kNone, kNone, kNone, 0, "Print the value of each option and where it comes from."},
    OptionRow{Option::kList, "list", kNone, 0, kText, kCommandLine, kProgram,
     "KIND", "@kinds", kNone, 0,
     "Print a table of this build; --list kinds names the tables."},
    OptionRow{Option::kExplain, "explain", kNone, 0, kText, kCommandLine, kProgram,
     "CODE", "@codes", kNone, 0, "Explain an error code or a rule id."},
    OptionRow{Option::kCompletions, "completions", kNone, 0, kChoice, kCommandLine, kProgram,
     "bash|zsh|fish", "bash|zsh|fish", kNone, 0, "Print a completion script for the shell."},
    OptionRow{Option::kHelp, "help", kNone, 'h', kOptionalText, kCommandLine, kProgram,
     "[=WORD]", kNone, kNone, 0,
     "-h is short; --help has all options; --help=WORD those that mention WORD."},
    OptionRow{Option::kVersion, "version", kNone, 0, kFlag, kCommandLine, kProgram,
     kNone, kNone, kNone, 0, "Print the version; with --verbose also the build and its tables."},
    // clang-format on
};

constexpr bool rows_match_enumerators() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].id) != i) return false;
  }
  return kTable.size() == static_cast<std::size_t>(Option::kVersion) + 1;
}
static_assert(rows_match_enumerators());

std::string with_dashes(std::string_view name) {
  std::string out(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

}  // namespace

std::string_view group_title(Group group) {
  switch (group) {
    case kQuestion:
      return "The question";
    case kDeployment:
      return "The deployment";
    case kMeasurement:
      return "What is measured";
    case kGeneration:
      return "What is generated";
    case kAnswer:
      return "The answer";
    case kOutput:
      return "Output";
    case kProgram:
      return "About the program";
  }
  return "";
}

std::span<const OptionRow> option_table() { return kTable; }

const OptionRow& option_row(Option option) { return kTable[static_cast<std::size_t>(option)]; }

bool computes_here(ProgramKind program) {
  return program == ProgramKind::kRun || program == ProgramKind::kBench;
}

bool is_option_of(ProgramKind program, const OptionRow& row) {
  return (static_cast<unsigned>(row.programs) >> static_cast<unsigned>(program) & 1U) != 0;
}

ValueKind value_kind(ProgramKind program, const OptionRow& row) {
  const bool is_axis = row.id == Option::kBatchSize || row.id == Option::kPageSize ||
                       row.id == Option::kDtype || row.id == Option::kKv;
  return program == ProgramKind::kBench && is_axis ? kList : row.kind;
}

std::string_view default_value(ProgramKind program, const OptionRow& row) {
  return computes_here(program) && row.id == Option::kDevice ? "auto" : row.default_value;
}

std::vector<const OptionRow*> options_of(ProgramKind program) {
  std::vector<const OptionRow*> out;
  for (const OptionRow& row : kTable) {
    if (is_option_of(program, row)) out.push_back(&row);
  }
  return out;
}

const OptionRow* find_option(std::string_view name) {
  const std::string wanted = with_dashes(name);
  for (const OptionRow& row : kTable) {
    if (wanted == row.name || (!row.alias.empty() && wanted == row.alias)) return &row;
    if (wanted.size() == 1 && wanted[0] == row.short_name) return &row;
  }
  return nullptr;
}

std::string option_signature(const OptionRow& row) {
  std::string out;
  if (row.short_name != 0) out += std::string("-") + row.short_name + ", ";
  out += "--" + std::string(row.name);
  if (!row.alias.empty()) out += ", --" + std::string(row.alias);
  if (row.kind == kOptionalText) return out + std::string(row.value_name);
  if (!row.value_name.empty()) out += " " + std::string(row.value_name);
  return out;
}

std::vector<std::string> option_choices(const OptionRow& row) {
  if (row.choices.substr(0, 1) == "@") return {};
  return split(row.choices, '|');
}

std::vector<std::string> near_options(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptionRow& row : kTable) {
    names.push_back(row.name);
    if (!row.alias.empty()) names.push_back(row.alias);
  }
  std::vector<std::string> near = near_matches(with_dashes(name), names);
  for (std::string& match : near) match.insert(0, "--");
  return near;
}

std::string environment_name(std::string_view option_name) {
  std::string out = "KERNELPATH_" + to_upper(option_name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

std::string field_name(std::string_view option_name) {
  std::string out(option_name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

}  // namespace kernelpath::cli
