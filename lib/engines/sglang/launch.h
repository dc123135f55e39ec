#pragma once

#include "engines/sglang/arguments.h"
#include "engines/sglang/model_facts.h"
#include "engines/sglang/platform.h"
#include "engines/sglang/profile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpath::engines::sglang {

// Something that the engine logs or changes on its way; the only record of what happened.
struct Event {
  enum class Kind : std::uint8_t { kSet, kInfo, kWarning };
  struct Change {
    std::string field;
    json::Value before;
    json::Value after;
  };
  std::string rule;  // "SGL-ATTN-DEFAULT"
  Kind kind = Kind::kInfo;
  std::string text;             // of kInfo and kWarning
  std::vector<Change> changes;  // of kSet
};

// Why the engine does not start. `stage` is where it is met: "cli" (its command line), "resolve"
// (its arguments), "kv_dtype" and "build" (in the worker).
struct Refusal {
  std::string stage;
  std::string type;  // of the exception: "ValueError"
  std::string rule;
  std::string text;
};

enum class GraphPhase : std::uint8_t { kDecode, kPrefill };

// cuda_graph_config, as far as rules look at it.
struct GraphConfig {
  std::string decode = "full";  // "full", "breakable", "disabled"
  std::string prefill = "disabled";
  bool decode_locked = false;  // the user chose the backend
  bool prefill_locked = false;
  std::optional<std::int64_t> decode_max_bs;
  std::optional<std::int64_t> prefill_max_bs;

  friend bool operator==(const GraphConfig&, const GraphConfig&) = default;
};

// Where the model and its draft come from.
struct ModelSource {
  json::Value config = {};        // config.json; null: there is none
  json::Value quant_config = {};  // hf_quant_config.json beside it; null: there is none
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// One launch of the engine while its arguments are resolved. A step that refuses sets `refusal`,
// and no later step runs.
class Launch {
 public:
  struct Input {
    ModelSource model = {};
    ModelSource draft = {};
    Platform platform = {};
    std::optional<std::int64_t> gpu_memory_mib = {};
    Arguments::Given arguments = {};
    Variables variables = {};
    std::string model_path = "MODEL";
    std::string draft_path = "DRAFT";
    // True if a tensor of experts in the checkpoint is known to be FP8; false where nobody knows.
    bool fp8_experts_in_checkpoint = false;
  };

  Launch(const Profile& profile, Input input);

  [[nodiscard]] const Profile& profile() const { return *profile_; }
  [[nodiscard]] const Platform& platform() const { return input_.platform; }
  [[nodiscard]] const Input& input() const { return input_; }
  [[nodiscard]] const Arguments& arguments() const { return arguments_; }
  [[nodiscard]] const ModelFacts& model() const { return model_; }
  void set_model(ModelFacts facts) { model_ = std::move(facts); }

  // Reads of an argument's value at this moment.
  [[nodiscard]] std::string text(std::string_view name) const { return arguments_.text(name); }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const {
    return arguments_.integer(name);
  }
  [[nodiscard]] std::int64_t size(std::string_view name) const {  // tp_size and the like
    return arguments_.integer_or(name, 1);
  }
  [[nodiscard]] bool flag(std::string_view name) const { return arguments_.flag(name); }
  [[nodiscard]] bool unset(std::string_view name) const { return arguments_.unset(name); }
  [[nodiscard]] bool device_is(std::string_view device) const { return text("device") == device; }

  // An environment variable that is set to something else than false, "0" or nothing.
  [[nodiscard]] bool variable(std::string_view name) const;
  [[nodiscard]] const std::string* variable_text(std::string_view name) const;

  // What serves each phase: the phase's own option, else the base option.
  [[nodiscard]] std::string prefill_backend() const;
  [[nodiscard]] std::string decode_backend() const;
  [[nodiscard]] bool no_backend_set() const;  // neither base nor a phase's own

  [[nodiscard]] bool attention_dp() const { return size("attn_dp_size") > 1; }
  [[nodiscard]] bool mla() const { return model_.attention_arch == AttentionArch::kMla; }
  // Mamba states are kept in an extra buffer of the radix cache.
  [[nodiscard]] bool extra_buffer() const;

  void declare(std::string_view rule, Declaration fields);
  void declare(std::string_view rule, std::string_view name, json::Value value) {
    declare(rule, {{std::string(name), std::move(value)}});
  }
  // A default that the engine fills without a word.
  void fill(std::string_view rule, std::string_view name, json::Value value) {
    arguments_.declare(rule, name, std::move(value));
  }
  void info(std::string_view rule, std::string text);
  void warn(std::string_view rule, std::string text);

  void value_error(std::string_view rule, std::string text) {
    refuse("resolve", "ValueError", rule, std::move(text));
  }
  void assertion_error(std::string_view rule, std::string text) {
    refuse("resolve", "AssertionError", rule, std::move(text));
  }
  void refuse(std::string_view stage, std::string_view type, std::string_view rule,
              std::string text);
  [[nodiscard]] bool refused() const { return refusal_.has_value(); }
  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }

  [[nodiscard]] const GraphConfig& graph() const { return graph_; }
  [[nodiscard]] GraphConfig& mutable_graph() { return graph_; }
  // "breakable" on CUDA, else "disabled".
  [[nodiscard]] std::string default_prefill_graph() const;
  void set_graph(std::string_view rule, GraphPhase phase, std::string_view backend);
  void disable_graphs(std::string_view rule);
  // The event of a configuration that replaces `before`, where it differs.
  void record_graph(std::string_view rule, const json::Value& before);
  [[nodiscard]] json::Value graph_value() const;  // {"decode": …, "prefill": …}

  [[nodiscard]] bool quantization_opted_out() const { return quantization_opted_out_; }
  void opt_out_of_quantization() { quantization_opted_out_ = true; }

  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

 private:
  const Profile* profile_;
  Input input_;
  Arguments arguments_;
  ModelFacts model_;
  GraphConfig graph_;
  bool quantization_opted_out_ = false;
  std::vector<Event> events_;
  std::optional<Refusal> refusal_;
};

// "['fa3', 'triton']", as Python prints a list of names.
std::string python_list(std::span<const std::string> names);
// "'fa3'" or "None".
std::string python_repr(std::string_view text);
std::string python_none(std::optional<std::int64_t> value);  // "64" or "None"

}  // namespace kernelpath::engines::sglang
