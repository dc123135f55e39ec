#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpath::memory {

// One entry of a list of modules that stay unquantised, as checkpoints write it:
//   model.layers.0.mlp.gate   a module, and all below it
//   lm_head, gate             a part of the dotted path
//   *.shared_expert.*         with wildcards
//   re:.*mlp\.(gate|up)_proj  a regular expression, anchored at the start
class ModulePattern {
 public:
  // Nothing where a regular expression uses more than characters, '.', classes, '*', '+', '?', one
  // level of groups with alternatives, and '$'.
  static std::optional<ModulePattern> compile(std::string_view text);

  // `path` is a module's dotted path ("model.layers.0.mlp.gate").
  [[nodiscard]] bool matches(std::string_view path) const;

 private:
  struct Atom {
    enum class Kind : std::uint8_t { kLiteral, kAny, kClass } kind = Kind::kLiteral;
    char literal = 0;
    std::string set = {};  // members of a class
    bool negated = false;
    bool optional = false;  // may be absent
    bool repeated = false;  // may come again
    [[nodiscard]] bool accepts(char c) const;
  };
  struct Alternative {
    std::vector<Atom> atoms = {};
    bool anchored_end = false;
    [[nodiscard]] bool matches(std::string_view text) const;
  };

  static std::optional<Atom> read_class(std::string_view text, std::size_t& at);
  static std::optional<Atom> read_atom(std::string_view text, std::size_t& at);
  bool add_regex(std::string_view text);
  void add_wildcards(std::string_view text);
  [[nodiscard]] bool matches_exactly(std::string_view path) const;

  std::string prefix_;  // of "self_attn*", by far the commonest wildcard
  bool is_prefix_ = false;
  std::string words_;  // a path or a part of one; empty for the other kinds
  std::vector<Alternative> alternatives_;
  bool covers_below_ = false;  // what is below a module that matches is meant as well
};

}  // namespace kernelpath::memory
