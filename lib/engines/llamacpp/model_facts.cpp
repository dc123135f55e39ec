#include "engines/llamacpp/model_facts.h"

#include "checkpoint/gguf.h"
#include "engines/llamacpp/convert.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

using Facts = std::vector<Resolution::Fact>;

json::Value sizes(const std::set<std::int64_t>& values) {
  std::vector<json::Value> items;
  items.reserve(values.size());
  for (const std::int64_t value : values) items.push_back(json::Value::integer(value));
  return json::Value::array(std::move(items));
}

const Cache* find_cache(const MemoryPlan& memory, std::string_view role) {
  const auto found = std::ranges::find(memory.caches, role, &Cache::role);
  return found == memory.caches.end() ? nullptr : &*found;
}

bool same_cells(const MemoryPlan& memory, std::string_view a, std::string_view b) {
  const Cache* const first = find_cache(memory, a);
  const Cache* const second = find_cache(memory, b);
  return first == nullptr || second == nullptr || first->cells == second->cells;
}

// Whether positions in the cache can be moved (get_can_shift of src/llama-kv-cache*.cpp and
// src/llama-memory-*.cpp).
bool can_shift(const LoadedModel& model, const MemoryPlan& memory) {
  const ArchitectureRow& architecture = *model.architecture;
  const bool plain = architecture.constant != "LLM_ARCH_STEP35" && !architecture.multi_rope;
  switch (memory.kind) {
    case MemoryKind::kNone:
    case MemoryKind::kDeepseek4:
      return false;
    case MemoryKind::kRecurrent:
      return true;
    case MemoryKind::kWindow:
      return plain && same_cells(memory, "full", "swa");
    case MemoryKind::kHybridWindow:
      return plain && same_cells(memory, "attn_full", "attn_swa");
    case MemoryKind::kSparseWindow:
      return plain && same_cells(memory, "main", "swa");
    default:
      return plain;
  }
}

class FactWriter {
 public:
  explicit FactWriter(const ModelFactsInput& input) : input_(input) {}

  Facts run() {
    if (input_.refusal != nullptr) refusal(*input_.refusal);
    const LoadedModel* const model = input_.model;
    if (model != nullptr && model->architecture != nullptr) {
      put("architecture", json::Value::string(model->architecture->name));
      if (model->error.empty() && model->reads != nullptr) of_model(*model);
      if (input_.memory != nullptr) of_plan(*model, *input_.memory);
    }
    if (input_.devices != nullptr) of_devices(*input_.devices);
    return std::move(out_);
  }

 private:
  void put(std::string_view name, json::Value value) {
    out_.push_back({"gguf." + std::string(name), std::move(value)});
  }
  void put(std::string_view name, std::int64_t value) { put(name, json::Value::integer(value)); }
  void put(std::string_view name, bool value) { put(name, json::Value::boolean(value)); }

  void refusal(const EngineError& error) {
    put("refusal", json::Value::string(error.code));
    put("refusal_text", json::Value::string(error.message));
    std::vector<json::Value> near;
    near.reserve(error.near_matches.size());
    for (const std::string& name : error.near_matches) near.push_back(json::Value::string(name));
    put("near_architectures", json::Value::array(std::move(near)));
  }

  void of_model(const LoadedModel& model) {
    const Hparams& hparams = model.hparams;
    std::set<std::int64_t> keys;
    std::set<std::int64_t> values;
    for (std::int64_t layer = 0; layer < hparams.n_layer(); ++layer) {
      keys.insert(hparams.n_embd_head_k(layer));
      values.insert(hparams.n_embd_head_v(layer));
    }
    put("k_head_sizes", sizes(keys));
    put("v_head_sizes", sizes(values));
    put("layers", hparams.n_layer());
    put("nextn_layers", hparams.router_layer >= 0 ? 0 : hparams.n_layer_nextn);
    put("context_length", hparams.n_ctx_train);
    put("one_cache_type", hparams.is_mla() || model.architecture->constant == "LLM_ARCH_DEEPSEEK4");
    put("has_window", hparams.n_swa > 0);
    put("has_state", model.architecture->recurrent || model.architecture->hybrid);
    put("state_rollback", model.architecture->state_rollback);
    put("tensor_split", !model.architecture->no_tensor_split);
    put("causal", hparams.causal_attn != 0);
  }

  void of_plan(const LoadedModel& model, const MemoryPlan& memory) {
    put("memory", json::Value::string(std::string(memory_kind_name(memory.kind))));
    put("can_shift", can_shift(model, memory));
    put("context_cells", input_.context->sizes.n_ctx);
    put("sequence_cells", input_.context->sizes.n_ctx_seq);
    const bool padded = std::ranges::any_of(memory.caches, [&](const Cache& cache) {
      return std::ranges::any_of(cache.layers, [&](std::int64_t layer) {
        return cache.v_transposed &&
               model.hparams.n_embd_v_gqa(layer) != model.hparams.n_embd_v_gqa_max();
      });
    });
    put("v_padded", padded);
    if (!input_.unserved.empty()) put("unserved", json::Value::string(input_.unserved));
  }

  void of_devices(const DeviceMemory& devices) {
    if (devices.weights_unknown) return;
    const DeviceShare& fullest = devices.fullest();
    put("device_bytes", fullest.total());
    const Arguments& arguments = *input_.arguments;
    const bool shrinks =
        fullest.device != kHost && (arguments.fits_context || arguments.fits_layers);
    put("fits_context", fullest.device != kHost && arguments.fits_context);
    put("fits_layers", fullest.device != kHost && arguments.fits_layers);
    if (!shrinks) return;
    // The engine shrinks what is open until the device holds it: the sizes asked for refuse
    // nothing.
    for (const char* name : {"memory.weight_bytes", "memory.kv_bytes_per_token"}) {
      out_.push_back({name, json::Value::null()});
    }
  }

  const ModelFactsInput& input_;
  Facts out_;
};

}  // namespace

Facts model_facts(const ModelFactsInput& input) { return FactWriter(input).run(); }

LoadedModel load_config(const Profile& profile, const config::ModelConfig& config) {
  if (config.gguf == nullptr) {
    Conversion conversion = convert_config(profile, config);
    if (!conversion.error.empty()) return {};
    return load_model(profile, conversion.metadata);
  }
  Metadata metadata;
  TensorNames tensors{.known = true};
  for (const checkpoint::GgufPair& pair : config.gguf->pairs)
    metadata.emplace(pair.key, pair.value);
  for (const checkpoint::GgufTensor& tensor : config.gguf->tensors) {
    tensors.names.push_back(tensor.name);
  }
  return load_model(profile, metadata, tensors);
}

Facts facts_of_model(const Profile& profile, const config::ModelConfig& config) {
  const LoadedModel model = load_config(profile, config);
  return model_facts({.model = &model});
}

}  // namespace kernelpath::engines::llamacpp
