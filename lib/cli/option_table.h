#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::cli {

// Every option of every program, in the order of --help. The table of option_table() has one row
// for each, at the index of its enumerator.
enum class Option : std::uint8_t {
  // the question
  kEngine,
  kDevice,
  kSm,
  kMemory,
  kLacks,
  kHas,
  kEnv,
  kEnvFromProcess,
  kSet,
  kProfileDir,
  kCustomModuleDirs,
  kStrict,
  // the deployment
  kBackend,
  kDtype,
  kKv,
  kQuantization,
  kPageSize,
  kMaxModelLen,
  kBatchSize,
  kTp,
  kPp,
  kDp,
  kEp,
  kCp,
  kDcp,
  kSpeculative,
  kDraftTokens,
  kDraftTopk,
  kFallback,
  kKernel,
  kThreads,
  kKvMemory,
  // what is measured
  kCase,
  kHeads,
  kHeadDim,
  kContext,
  kQueryTokens,
  kWeightDtype,
  kRows,
  kCols,
  kSize,
  kPeer,
  kPeersFile,
  kMinSamples,
  kMaxNoise,
  kMinTime,
  kTimeout,
  kCold,
  kWarm,
  kCheck,
  kProfile,
  // what is generated
  kPrompt,
  kPromptTokens,
  kPrompts,
  kChat,
  kSystem,
  kMaxTokens,
  kIgnoreEos,
  kStop,
  kTemperature,
  kTopK,
  kTopP,
  kMinP,
  kRepetitionPenalty,
  kPresencePenalty,
  kFrequencyPenalty,
  kSeed,
  kLogprobs,
  kDumpLogits,
  kExpect,
  kDryRun,
  kStats,
  // the answer
  kShow,
  kPhase,
  kLayers,
  kWhy,
  kWhyNot,
  kDiff,
  kRequire,
  kSources,
  kYaml,
  kCommand,
  kFailOn,
  kRule,
  kSkip,
  kBaseline,
  kMaxRegression,
  kRoofline,
  kSuggest,
  kMatrix,
  kBatch,
  // output
  kFormat,
  kJson,
  kOutput,
  kColor,
  kNoProgress,
  kWidth,
  kQuiet,
  kVerbose,
  kLogLevel,
  kLogJson,
  // about the program
  kConfigFile,
  kPrintConfig,
  kList,
  kExplain,
  kCompletions,
  kHelp,
  kVersion,
};

enum class ValueKind : std::uint8_t {
  kFlag,          // no value; from the environment and the config file true or false
  kCount,         // no value; every repetition counts
  kOptionalText,  // --help or --help=WORD: a value only after "="
  kText,
  kChoice,    // one of `choices`
  kInteger,   // whole, at least `minimum`
  kNumber,    // finite, with or without a fraction
  kSize,      // bytes: parse_bytes
  kList,      // comma or repetition
  kRepeated,  // repetition only: the value may hold commas
  kPair,      // two values: two words, or one with a comma
  kPercent,   // "3%" or "0.03", stored as a fraction
  kSeconds,   // "0.5s", "20ms" or "0.5", stored as seconds
};

enum class Group : std::uint8_t {
  kQuestion,
  kDeployment,
  kMeasurement,
  kGeneration,
  kAnswer,
  kOutput,
  kProgram
};
std::string_view group_title(Group group);

// Where an option may be set besides the command line.
enum class Scope : std::uint8_t {
  kCommandLine,  // nowhere else: it asks for something else than the normal answer
  kProcess,      // environment and config file
  kRequest,      // these and the fields of a --batch line: it belongs to one question
};

// The programs of this build.
enum class ProgramKind : std::uint8_t { kInspect, kValidate, kRun, kBench };

// Which of them have an option: a bit for each, at the place of its enumerator.
enum class OfPrograms : std::uint8_t {
  kInspectOnly = 1,
  kValidateOnly = 2,
  kJudges = 3,  // llm-inspect and llm-validate: what speaks of other engines and machines
  kRunOnly = 4,
  kModels = 7,  // those that take a model
  kBenchOnly = 8,
  kCompares = 10,  // llm-validate and llm-bench: with an earlier report
  kTypes = 11,     // all but llm-run, whose activations have one type
  kComputes = 12,  // llm-run and llm-bench: on this machine
  kAll = 15
};

struct OptionRow {
  Option id;
  std::string_view name;   // long name without dashes; config-file key; with "_" the batch field
  std::string_view alias;  // second long name, as good as the first; empty if there is none
  char short_name;         // 0 if there is none
  ValueKind kind;
  Scope scope;
  Group group;
  std::string_view value_name;     // "NAME[@VERSION],…"; empty for flags
  std::string_view choices;        // of kChoice: "text|json"; else words that completions offer,
                                   // "@devices" for those of a --list table
  std::string_view default_value;  // as a user would write it; empty: unset
  std::int64_t minimum;            // of kInteger
  std::string_view help;           // one or two sentences
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();  // of kInteger
  OfPrograms programs = OfPrograms::kAll;
};

// What differs between the programs.
struct Program {
  ProgramKind kind;
  std::string_view name;                       // "llm-inspect"
  std::string_view summary;                    // one sentence
  std::string_view usage;                      // "[options] MODEL…"
  std::span<const std::string_view> examples;  // two, for -h
  std::string_view formats;                    // of --format: "text|json"
};

std::span<const OptionRow> option_table();
const OptionRow& option_row(Option option);

// Whether it computes on the machine that it runs on, and does not only ask about one.
bool computes_here(ProgramKind program);
bool is_option_of(ProgramKind program, const OptionRow& row);
// Options that hold one value elsewhere hold lists of values and ranges in llm-bench.
ValueKind value_kind(ProgramKind program, const OptionRow& row);
// As a user would write it; empty: unset. llm-run and llm-bench ask for the machine that they run
// on.
std::string_view default_value(ProgramKind program, const OptionRow& row);
// The rows of one program, in the order of the table.
std::vector<const OptionRow*> options_of(ProgramKind program);

// The row that a long name or alias (with or without dashes, "_" read as "-") or one letter names,
// or null.
const OptionRow* find_option(std::string_view name);

// "--kv-cache-dtype, --kv TYPE", "-f, --format text|json".
std::string option_signature(const OptionRow& row);

// The words of `choices`; none for a "@" table.
std::vector<std::string> option_choices(const OptionRow& row);

// Names of all options near `name` ("--devcie" → "--device"), nearest first.
std::vector<std::string> near_options(std::string_view name);

// KERNELPATH_KV_CACHE_DTYPE.
std::string environment_name(std::string_view option_name);
// kv_cache_dtype: the field of a --batch line.
std::string field_name(std::string_view option_name);

}  // namespace kernelpath::cli
