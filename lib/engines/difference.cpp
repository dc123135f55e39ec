#include "engines/difference.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace kernelpath::engines {
namespace {

constexpr std::string_view kNothing = "-";

std::string or_nothing(const std::string& text) {
  return text.empty() ? std::string(kNothing) : text;
}

// Values by layer kind, in the order of the first resolution; several of a kind are joined.
using ByKind = std::vector<std::pair<std::string, std::string>>;

std::string kind_text(const LayerGroup& group) {
  return fmt::format("{}{} layers", group.draft ? "draft's " : "",
                     config::layer_kind_name(group.kind));
}

template <class Value>
ByKind collect(const Resolution& resolution, const Value& value_of) {
  ByKind out;
  for (const LayerGroup& group : resolution.layers) {
    const std::string value = value_of(group);
    if (value.empty()) continue;
    const std::string kind = kind_text(group);
    const auto known =
        std::find_if(out.begin(), out.end(), [&](const auto& pair) { return pair.first == kind; });
    if (known == out.end()) {
      out.emplace_back(kind, value);
      continue;
    }
    const std::vector<std::string> values = split(known->second, ';');
    const bool listed = std::any_of(values.begin(), values.end(),
                                    [&](const std::string& part) { return trim(part) == value; });
    if (!listed) known->second += "; " + value;
  }
  return out;
}

std::string value_in(const ByKind& values, const std::string& kind) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& pair) { return pair.first == kind; });
  return found == values.end() ? std::string() : found->second;
}

using StepKey = std::tuple<std::string, std::string, std::string>;  // rule, candidate, reason

std::set<StepKey> keys_of(const Resolution& resolution) {
  std::set<StepKey> out;
  for (const Step& step : resolution.steps) out.emplace(step.rule, step.candidate, step.reason);
  return out;
}

class Comparison {
 public:
  Comparison(const Resolution& from, const Resolution& to)
      : from_(from), to_(to), from_keys_(keys_of(from)), to_keys_(keys_of(to)) {}

  std::vector<Difference> run() {
    compare_errors();
    // A model without a class is an error's difference already.
    if (!from_.model_class.empty() && !to_.model_class.empty()) {
      add("model class", "", from_.model_class, to_.model_class, {});
    }
    compare_layers("backend", [](const LayerGroup& group) { return group.backend; });
    compare_layers("kernel", [](const LayerGroup& group) {
      return group.prefill.kernel == group.decode.kernel
                 ? group.decode.kernel
                 : fmt::format("{} / {}", group.prefill.kernel, group.decode.kernel);
    });
    compare_layers("page size", [](const LayerGroup& group) {
      return group.kv.page_size ? fmt::to_string(*group.kv.page_size) : std::string();
    });
    compare_layers("KV dtype", [](const LayerGroup& group) { return group.kv.dtype; });
    compare_layers("KV shape", [](const LayerGroup& group) { return group.kv.shape; });
    compare_layers("KV layout", [](const LayerGroup& group) { return group.kv.layout; });
    compare_bytes();
    compare_layers("CUDA graphs", [](const LayerGroup& group) { return group.cuda_graph; });
    compare_options();
    return std::move(out_);
  }

 private:
  void add(std::string_view aspect, const std::string& where, const std::string& from,
           const std::string& to, std::vector<std::string> about) {
    if (from == to) return;
    about.push_back(from);
    about.push_back(to);
    std::vector<std::string> rules = rules_about(about);
    if (aspect == "backend") backend_rules_[where] = rules;
    // What follows from another backend is that choice's.
    const auto chosen = backend_rules_.find(where);
    if (rules.empty() && chosen != backend_rules_.end()) rules = chosen->second;
    out_.push_back(
        {std::string(aspect), where, or_nothing(from), or_nothing(to), std::move(rules)});
  }

  static std::string error_text(const Resolution& resolution) {
    if (!resolution.error) return {};
    return fmt::format("{} [{}]", resolution.error->type, resolution.error->code);
  }

  void compare_errors() {
    std::vector<std::string> about;
    for (const Resolution* side : {&from_, &to_}) {
      if (side->error) about.push_back(side->error->code);
    }
    add("error", "", error_text(from_), error_text(to_), std::move(about));
  }

  template <class Value>
  void compare_layers(std::string_view aspect, const Value& value_of) {
    // After an error layers may be missing: that is the error's difference already.
    if (from_.layers.empty() || to_.layers.empty()) return;
    const bool whole = !from_.error && !to_.error;
    const ByKind from = collect(from_, value_of);
    const ByKind to = collect(to_, value_of);
    for (const auto& [kind, value] : from) {
      const std::string other = value_in(to, kind);
      if (whole || !other.empty()) add(aspect, kind, value, other, {kind});
    }
    for (const auto& [kind, value] : to) {
      if (whole && value_in(from, kind).empty()) add(aspect, kind, "", value, {kind});
    }
  }

  void compare_bytes() {
    const auto text = [](const std::optional<std::int64_t>& bytes) {
      return bytes ? fmt::to_string(*bytes) : std::string();
    };
    if (!from_.memory.kv_bytes_per_token || !to_.memory.kv_bytes_per_token) return;
    add("KV bytes", "a token", text(from_.memory.kv_bytes_per_token),
        text(to_.memory.kv_bytes_per_token), {});
  }

  void compare_options() {
    for (const Resolution::Option& option : from_.options) {
      const auto other =
          std::find_if(to_.options.begin(), to_.options.end(),
                       [&](const Resolution::Option& row) { return row.name == option.name; });
      // The cache's layout is compared with the layers.
      const bool compared = other == to_.options.end() || option.name == "kv_layout";
      if (compared || other->value == option.value) continue;
      add("option", option.name, option.value, other->value, {option.name});
    }
  }

  // Ids of rules that only one of the two applied, about one of the names; each once, in the order
  // of the steps.
  [[nodiscard]] std::vector<std::string> rules_about(const std::vector<std::string>& names) const {
    std::vector<std::string> out;
    const auto collect_from = [&](const Resolution& resolution, const std::set<StepKey>& other) {
      for (const Step& step : resolution.steps) {
        const bool taken_by_both = other.contains({step.rule, step.candidate, step.reason});
        if (taken_by_both || !is_about(step, names)) continue;
        if (std::find(out.begin(), out.end(), step.rule) == out.end()) out.push_back(step.rule);
      }
    };
    collect_from(from_, to_keys_);
    collect_from(to_, from_keys_);
    return out;
  }

  static bool is_about(const Step& step, const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      if (name.empty()) return false;
      return step.candidate == name || step.rule.ends_with(name);
    });
  }

  const Resolution& from_;
  const Resolution& to_;
  std::set<StepKey> from_keys_;
  std::set<StepKey> to_keys_;
  std::map<std::string, std::vector<std::string>> backend_rules_;  // by kind of layers
  std::vector<Difference> out_;
};

}  // namespace

const std::vector<std::string_view>& difference_aspects() {
  static const std::vector<std::string_view> kAspects = {
      "error",    "model class", "backend",  "kernel",      "page size", "KV dtype",
      "KV shape", "KV layout",   "KV bytes", "CUDA graphs", "option"};
  return kAspects;
}

std::vector<Difference> compare(const Resolution& from, const Resolution& to) {
  return Comparison(from, to).run();
}

}  // namespace kernelpath::engines
