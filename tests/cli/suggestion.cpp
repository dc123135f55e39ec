#include "suggestion.h"

#include "base/text.h"

#include <string_view>

namespace kernelpath::testing {
namespace {

// An option with its value; "--set trtllm.FIELD=VALUE" goes by its field. Models have no name.
struct OptionPair {
  std::string name;
  std::string value;
};

constexpr std::string_view kSetPrefix = "trtllm.";

std::vector<OptionPair> pairs_of(const std::vector<std::string>& arguments) {
  std::vector<OptionPair> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--")) {
      out.push_back({.name = "", .value = arguments[i]});
      continue;
    }
    const std::string& name = arguments[i];
    const std::string& value = arguments.at(++i);
    if (name != "--set") {
      out.push_back({.name = name, .value = value});
      continue;
    }
    const std::size_t equals = value.find('=');
    out.push_back({.name = value.substr(kSetPrefix.size(), equals - kSetPrefix.size()),
                   .value = value.substr(equals + 1)});
  }
  return out;
}

std::vector<std::string> arguments_of(const std::vector<OptionPair>& pairs) {
  std::vector<std::string> out;
  for (const OptionPair& pair : pairs) {
    if (pair.name.empty()) {
      out.push_back(pair.value);
    } else if (pair.name.starts_with("--")) {
      out.insert(out.end(), {pair.name, pair.value});
    } else {
      out.insert(out.end(), {"--set", std::string(kSetPrefix) + pair.name + "=" + pair.value});
    }
  }
  return out;
}

// The member goes with its object.
bool is_or_within(const std::string& name, const std::string& object) {
  return name == object || name.starts_with(object + ".");
}

void change(std::vector<OptionPair>& pairs, const std::string& text) {
  constexpr std::string_view kLeaveOut = "leave out ";
  const bool leave_out = text.starts_with(kLeaveOut);
  const std::string rest = leave_out ? text.substr(kLeaveOut.size()) : text;
  const std::size_t end = rest.find_first_of(leave_out ? "" : ": ");
  const std::string name = rest.substr(0, end);
  std::erase_if(pairs, [&name](const OptionPair& p) {
    return !p.name.empty() && is_or_within(p.name, name);
  });
  if (leave_out) return;
  const std::size_t value = rest.find(' ');
  pairs.push_back({.name = name, .value = rest.substr(value + 1)});
}

}  // namespace

std::vector<std::string> with_suggestion(const std::vector<std::string>& arguments,
                                         const std::string& suggestion) {
  std::vector<OptionPair> pairs = pairs_of(arguments);
  const std::string changes = suggestion.substr(0, suggestion.find(" (fewer"));
  for (const std::string& part : split(changes, ',')) change(pairs, std::string(trim(part)));
  return arguments_of(pairs);
}

}  // namespace kernelpath::testing
