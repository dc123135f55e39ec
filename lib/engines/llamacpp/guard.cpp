#include "engines/llamacpp/guard.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kFoundCall = "found(";
constexpr std::string_view kLayers = "n_layer()";
constexpr std::string_view kHeads = "n_head()";

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

bool is_integer_name(std::string_view name) {
  return name == kLayers || name == kHeads || find_hparam(name).integer != nullptr;
}

// "NAME > N" or "NAME == N".
std::optional<Guard::Term> parse_comparison(std::string_view text, std::string_view sign,
                                            Guard::Kind kind) {
  const std::size_t at = text.find(sign);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view name = trim(text.substr(0, at));
  const auto value = parse_integer(trim(text.substr(at + sign.size())));
  if (!value || !is_integer_name(name)) return std::nullopt;
  return Guard::Term{.kind = kind, .name = std::string(name), .value = *value};
}

std::optional<Guard::Term> parse_term(std::string_view text) {
  constexpr std::string_view kArch = "arch == ";
  Guard::Term term;
  if (text.starts_with('!')) {
    auto inner = parse_term(trim(text.substr(1)));
    if (inner) inner->negated = !inner->negated;
    return inner;
  }
  if (text.starts_with(kFoundCall) && text.ends_with(')')) {
    term.name = text.substr(kFoundCall.size(), text.size() - kFoundCall.size() - 1);
    return term;
  }
  if (text.starts_with(kArch)) {
    term.kind = Guard::Kind::kArchitecture;
    term.name = text.substr(kArch.size());
    return term;
  }
  if (text == "is_lite") {
    term.kind = Guard::Kind::kLite;
    return term;
  }
  if (text == "type == LLM_TYPE_13B") {
    term.kind = Guard::Kind::kType13B;
    return term;
  }
  if (auto above = parse_comparison(text, " > ", Guard::Kind::kAbove)) return above;
  return parse_comparison(text, " == ", Guard::Kind::kEqual);
}

std::int64_t integer_value(const Hparams& hparams, std::string_view name) {
  if (name == kLayers) return hparams.n_layer();
  if (name == kHeads) return hparams.n_head();
  return hparams.*find_hparam(name).integer;
}

// Source: src/models/deepseek2.cpp.
bool is_lite(const Hparams& hparams) {
  constexpr std::int64_t kLlama3Vocabulary = 128256;
  const std::int64_t layers = hparams.n_layer();
  return layers == 26 || layers == 27 || (layers == 48 && hparams.n_vocab == kLlama3Vocabulary);
}

// Source: src/models/baichuan.cpp, the switch over layers.
bool is_13b(const Hparams& hparams) { return hparams.n_layer() == 40; }

bool term_holds(const Guard::Term& term, const GuardState& state) {
  switch (term.kind) {
    case Guard::Kind::kFound:
      return std::ranges::find(state.found, term.name) != state.found.end();
    case Guard::Kind::kAbove:
      return integer_value(state.hparams, term.name) > term.value;
    case Guard::Kind::kEqual:
      return integer_value(state.hparams, term.name) == term.value;
    case Guard::Kind::kArchitecture:
      return state.architecture == term.name;
    case Guard::Kind::kLite:
      return is_lite(state.hparams);
    case Guard::Kind::kType13B:
      return is_13b(state.hparams);
  }
  return false;
}

}  // namespace

Result<Guard> parse_guard(std::string_view text) {
  constexpr std::string_view kAnd = " && ";
  Guard guard;
  std::string_view rest = trim(text);
  if (rest.starts_with("!(") && rest.ends_with(')')) {
    guard.negated = true;
    rest = rest.substr(2, rest.size() - 3);
  }
  while (!rest.empty()) {
    const std::size_t at = rest.find(kAnd);
    const auto term = parse_term(trim(rest.substr(0, at)));
    if (!term) {
      return fail(Error{.code = ErrorCode::kInputSchema,
                        .message = "this build cannot evaluate the condition",
                        .value = shorten(text, 80)});
    }
    guard.terms.push_back(*term);
    rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + kAnd.size());
  }
  return guard;
}

bool holds(const Guard& guard, const GuardState& state) {
  const bool all = std::ranges::all_of(guard.terms, [&](const Guard::Term& term) {
    return term_holds(term, state) != term.negated;
  });
  return all != guard.negated;
}

}  // namespace kernelpath::engines::llamacpp
