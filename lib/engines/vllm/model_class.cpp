#include "engines/vllm/model_class.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::vllm {
namespace {

constexpr std::string_view kNone = "none";

// A class with where it was found.
struct Found {
  std::string architecture;  // the name that the engine goes on with
  std::string key;           // the name under which the class is registered
  std::string class_name;
  std::string module;
  std::string missing = {};
  ModelInfo info = {};
  bool transformers = false;
};

// The engine's look-ups, all with the same question.
class Lookup {
 public:
  Lookup(const ModelRegistry& registry, const ModelClassQuestion& question)
      : registry_(registry), question_(question) {}

  [[nodiscard]] bool knows(std::string_view architecture) const {
    return plugin(architecture) != nullptr || registry_.find(architecture) != nullptr;
  }

  // The first architecture that loads; nothing where none does. `runner` and `convert` are empty
  // while they are being resolved.
  [[nodiscard]] std::optional<Found> inspect(std::string_view runner,
                                             std::string_view convert) const {
    const auto& architectures = question_.architectures;
    if (architectures.empty()) return std::nullopt;
    if (question_.model_impl == "terratorch") return registered("Terratorch", "Terratorch");
    if (question_.model_impl == "transformers") {
      if (auto wrapped = transformers_class()) return wrapped;
    }
    const bool none_known = std::none_of(architectures.begin(), architectures.end(),
                                         [&](const std::string& name) { return knows(name); });
    const bool may_wrap = none_known && question_.model_impl == "auto";
    if (may_wrap && (convert.empty() || convert == kNone)) {
      if (auto wrapped = transformers_class()) return wrapped;
    }
    for (const std::string& architecture : architectures) {
      if (auto found = registered(normalise(architecture, runner, convert), architecture)) {
        return found;
      }
    }
    if (may_wrap) return transformers_class();
    return std::nullopt;
  }

  // The first row whose suffix ends the name and that fits what is known already.
  [[nodiscard]] const SuffixRow* suffix_of(std::string_view architecture, std::string_view runner,
                                           std::string_view convert) const {
    const auto found = std::find_if(
        registry_.suffixes.begin(), registry_.suffixes.end(), [&](const SuffixRow& row) {
          return (runner.empty() || runner == row.runner) &&
                 (convert.empty() || convert == row.convert) && architecture.ends_with(row.suffix);
        });
    return found == registry_.suffixes.end() ? nullptr : &*found;
  }

  // Name of the class of the Transformers backend that would wrap the first architecture.
  [[nodiscard]] std::string wrapper_name() const {
    std::string name = "Transformers";
    if (question_.nested_text_config) name += "MultiModal";
    if (question_.num_experts > 0) name += "MoE";
    const SuffixRow* suffix = suffix_of(question_.architectures.front(), "", "");
    std::string_view runner = suffix == nullptr ? std::string_view() : suffix->runner;
    if (question_.runner != "auto") runner = question_.runner;
    const bool pools = runner == "pooling" && suffix != nullptr && suffix->convert != kNone;
    if (!pools) return name + "ForCausalLM";
    return name + (suffix->convert == "embed" ? "EmbeddingModel" : "ForSequenceClassification");
  }

 private:
  [[nodiscard]] const RegisteredModel* plugin(std::string_view architecture) const {
    const auto& models = question_.registered;
    const auto found = std::find_if(
        models.rbegin(), models.rend(),
        [&](const RegisteredModel& model) { return model.architecture == architecture; });
    return found == models.rend() ? nullptr : &*found;
  }

  [[nodiscard]] std::optional<Found> registered(std::string_view key,
                                                std::string_view architecture) const {
    if (const RegisteredModel* model = plugin(key)) {
      return Found{.architecture = std::string(architecture),
                   .key = std::string(key),
                   .class_name = model->class_name,
                   .module = model->module,
                   .info = model->info};
    }
    const ArchitectureRow* row = registry_.find(key);
    if (row == nullptr) return std::nullopt;
    return Found{.architecture = std::string(architecture),
                 .key = row->architecture,
                 .class_name = row->class_name,
                 .module = row->module,
                 .missing = row->missing,
                 .info = row->info};
  }

  [[nodiscard]] std::string normalise(const std::string& architecture, std::string_view runner,
                                      std::string_view convert) const {
    if (knows(architecture)) return architecture;
    const SuffixRow* match = suffix_of(architecture, runner, convert);
    if (match == nullptr) return architecture;
    for (const SuffixRow& row : registry_.suffixes) {
      std::string base = replaced(architecture, match->suffix, row.suffix);
      if (knows(base)) return base;
    }
    return architecture;
  }

  // Every occurrence, as Python's str.replace does it.
  [[nodiscard]] static std::string replaced(std::string text, std::string_view from,
                                            std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
    return text;
  }

  [[nodiscard]] std::optional<Found> transformers_class() const {
    const std::string& first = question_.architectures.front();
    const ArchitectureRow* row = registry_.find(first);
    const bool is_wrapper =
        row != nullptr && std::find(row->categories.begin(), row->categories.end(),
                                    "transformers_backend") != row->categories.end();
    if (!is_wrapper) {
      const auto known = registry_.transformers.find(first);
      if (known == registry_.transformers.end() || !known->second) return std::nullopt;
    }
    const std::string name = is_wrapper ? first : wrapper_name();
    std::optional<Found> found = registered(name, name);
    if (found) found->transformers = true;
    return found;
  }

  const ModelRegistry& registry_;
  const ModelClassQuestion& question_;
};

std::string resolve_runner(const Lookup& lookup, const ModelClassQuestion& question) {
  if (question.runner != "auto") return question.runner;
  if (question.convert != "auto" && question.convert != kNone) return "pooling";
  if (question.has_pooling_config) return "pooling";
  for (const std::string& architecture : question.architectures) {
    if (lookup.knows(architecture)) {
      const auto found = lookup.inspect("", "");
      if (found && found->info.is_pooling) return "pooling";
      if (found && found->info.is_text_generation) return "generate";
    }
    const SuffixRow* suffix = lookup.suffix_of(architecture, "", "");
    if (suffix != nullptr) return suffix->runner;
  }
  return "generate";
}

std::string resolve_convert(const Lookup& lookup, const ModelClassQuestion& question,
                            const std::string& runner) {
  if (question.convert != "auto") return question.convert;
  for (const std::string& architecture : question.architectures) {
    if (lookup.knows(architecture)) {
      const auto found = lookup.inspect(runner, "");
      const bool serves = found && ((runner == "generate" && found->info.is_text_generation) ||
                                    (runner == "pooling" && found->info.is_pooling));
      if (serves) return std::string(kNone);
    }
    const SuffixRow* suffix = lookup.suffix_of(architecture, runner, "");
    if (suffix != nullptr) return suffix->convert;
  }
  return runner == "pooling" ? "embed" : std::string(kNone);
}

const std::string* value_of(const std::vector<std::pair<std::string, std::string>>& pairs,
                            std::string_view key) {
  const auto found =
      std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == key; });
  return found == pairs.end() ? nullptr : &found->second;
}

std::vector<std::string> close_names(const ModelRegistry& registry, std::string_view name) {
  std::vector<std::string_view> known;
  for (const ArchitectureRow& row : registry.architectures) known.push_back(row.architecture);
  return near_matches(name, known);
}

EngineError refusal(std::string code, std::string message) {
  return {.type = "ValidationError",
          .code = std::move(code),
          .message = std::move(message),
          .near_matches = {}};
}

// Why no class was found, in the engine's order of questions.
EngineError unsupported(const ModelRegistry& registry, const ModelClassQuestion& question) {
  for (const std::string& name : question.architectures) {
    if (const std::string* version = value_of(registry.previously_supported, name)) {
      return refusal("REMOVED-ARCH",
                     fmt::format("Model architecture {} was supported in vLLM until v{}, and is "
                                 "not supported anymore.",
                                 name, *version));
    }
    if (const std::string* plugin = value_of(registry.out_of_tree, name)) {
      return refusal("OUT-OF-TREE-ARCH",
                     fmt::format("Model architecture {} is not supported in-tree anymore. Its "
                                 "plugin is at {}.",
                                 name, *plugin));
    }
  }
  EngineError error = refusal(
      "UNKNOWN-ARCH", question.architectures.empty()
                          ? std::string("No model architectures are specified")
                          : fmt::format("Model architectures ['{}'] are not supported for now.",
                                        join(question.architectures, "', '")));
  if (!question.architectures.empty()) {
    error.near_matches = close_names(registry, question.architectures.front());
  }
  return error;
}

// What model_impl=transformers refuses; nothing where it does not.
std::optional<EngineError> transformers_refusal(const ModelRegistry& registry,
                                                const ModelClassQuestion& question) {
  if (question.model_impl != "transformers" || question.architectures.empty()) {
    return std::nullopt;
  }
  const std::string& first = question.architectures.front();
  const auto known = registry.transformers.find(first);
  if (known == registry.transformers.end()) {
    return refusal("TRANSFORMERS-NO-CLASS",
                   fmt::format("Cannot find model module. '{}' is not a registered model in the "
                               "Transformers library.",
                               first));
  }
  return refusal(
      "TRANSFORMERS-INCOMPATIBLE",
      fmt::format("The Transformers implementation of '{}' is not compatible with vLLM.", first));
}

}  // namespace

ModelClass resolve_model_class(const ModelRegistry& registry, const ModelClassQuestion& question) {
  const Lookup lookup(registry, question);
  ModelClass out;
  out.runner = resolve_runner(lookup, question);
  out.convert = resolve_convert(lookup, question, out.runner);
  const std::optional<Found> found = lookup.inspect(out.runner, out.convert);
  if (!found || (question.model_impl == "transformers" && !found->transformers)) {
    out.error = transformers_refusal(registry, question);
    if (!out.error) out.error = unsupported(registry, question);
    return out;
  }
  out.architecture = found->architecture;
  out.class_name = found->class_name;
  out.module = found->module;
  out.transformers_backend = found->transformers;
  out.info = found->info;
  out.missing = found->missing;
  if (found->key != found->architecture) out.normalised_from = found->architecture;
  return out;
}

}  // namespace kernelpath::engines::vllm
