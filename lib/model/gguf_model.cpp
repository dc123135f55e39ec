#include "model/gguf_model.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace kernelpath::model {

std::string name_of_gguf_tensor(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWhole{
      {{"token_embd.", "model.embed_tokens."},
       {"output_norm.", "model.norm."},
       {"output.", "lm_head."}}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kBlock{
      {{"attn_norm.", "input_layernorm."},
       {"ffn_norm.", "post_attention_layernorm."},
       {"attn_q.", "self_attn.q_proj."},
       {"attn_k.", "self_attn.k_proj."},
       {"attn_v.", "self_attn.v_proj."},
       {"attn_output.", "self_attn.o_proj."},
       {"attn_q_norm.", "self_attn.q_norm."},
       {"attn_k_norm.", "self_attn.k_norm."},
       {"ffn_gate.", "mlp.gate_proj."},
       {"ffn_up.", "mlp.up_proj."},
       {"ffn_down.", "mlp.down_proj."}}};
  for (const auto& [from, to] : kWhole) {
    if (name.starts_with(from)) return std::string(to) + name.substr(from.size());
  }
  constexpr std::string_view kPrefix = "blk.";
  const std::size_t dot = name.find('.', kPrefix.size());
  if (!name.starts_with(kPrefix) || dot == std::string::npos) return name;
  const std::string number = name.substr(kPrefix.size(), dot - kPrefix.size());
  const std::string rest = name.substr(dot + 1);
  for (const auto& [from, to] : kBlock) {
    if (rest.starts_with(from)) {
      return fmt::format("model.layers.{}.{}{}", number, to, rest.substr(from.size()));
    }
  }
  return name;
}

}  // namespace kernelpath::model
