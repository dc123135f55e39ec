// Prints what the reader makes of config.json files, one JSON object a line, for
// scripts/compare-transformers: config_dump FILE…

#include "base/text.h"
#include "config/load.h"
#include "config/show.h"
#include "json/writer.h"

#include <cstdio>
#include <string>

namespace {

using namespace kernelpath;

template <class T>
void write_field(json::Writer& w, std::string_view name, const config::Field<T>& field) {
  w.key(name);
  if (field) {
    w.value(*field);
  } else {
    w.value(nullptr);
  }
  w.member(std::string(name) + " origin", config::origin_text(field.origin));
}

void write_layers(json::Writer& w, const config::ModelConfig& model) {
  w.key("layers").begin_array();
  for (const config::Layer& layer : model.layers) {
    w.begin_object()
        .member("kind", config::layer_kind_name(layer.kind))
        .member("heads", layer.num_attention_heads)
        .member("kv_heads", layer.num_key_value_heads)
        .member("head_dim", layer.head_dim)
        .member("v_head_dim", layer.v_head_dim)
        .member("window", layer.window.value_or(0))
        .member("rope", layer.rope)
        .member("moe", layer.moe)
        .member("state", layer.has_state)
        .end_object();
  }
  w.end_array();
}

std::string dump(const std::string& path, const config::ModelConfig& model) {
  json::Writer w;
  w.begin_object().member("file", path).member("text_pointer", model.text_pointer);
  write_field(w, "num_hidden_layers", model.num_hidden_layers);
  write_field(w, "hidden_size", model.hidden_size);
  write_field(w, "intermediate_size", model.intermediate_size);
  write_field(w, "num_attention_heads", model.num_attention_heads);
  write_field(w, "num_key_value_heads", model.num_key_value_heads);
  write_field(w, "head_dim", model.head_dim);
  write_field(w, "vocab_size", model.vocab_size);
  write_field(w, "max_position_embeddings", model.max_position_embeddings);
  write_field(w, "sliding_window", model.sliding_window);
  write_field(w, "rope_type", model.rope.type);
  write_field(w, "rope_theta", model.rope.theta);
  write_field(w, "rope_factor", model.rope.factor);
  write_field(w, "partial_rotary_factor", model.rope.partial_rotary_factor);
  write_field(w, "dtype", model.dtype);
  write_field(w, "tie_word_embeddings", model.tie_word_embeddings);
  w.member("summary", config::attention_summary(model));
  write_layers(w, model);
  w.key("shown").begin_array();
  for (const config::ShownValue& shown : config::show_values(model, "all")) {
    w.value(shown.group + " | " + shown.name + " | " + shown.value + " | " + shown.origin);
  }
  w.end_array().key("warnings").begin_array();
  for (const json::Warning& warning : model.warnings) {
    w.value(warning.code + " " + warning.where + ": " + warning.message);
  }
  w.end_array().end_object();
  return w.take(0);
}

}  // namespace

int main(int argc, char** argv) {
  int failures = 0;
  for (int index = 1; index < argc; ++index) {
    const auto model = kernelpath::config::load_model(argv[index]);
    if (model) {
      std::printf("%s\n", dump(argv[index], *model).c_str());
    } else {
      std::fprintf(stderr, "%s\n", model.error().text().c_str());
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}
