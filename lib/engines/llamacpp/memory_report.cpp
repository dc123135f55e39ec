#include "engines/llamacpp/memory_report.h"

#include "base/text.h"
#include "base/units.h"
#include "engines/llamacpp/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpath::engines::llamacpp {
namespace {

class Reporter {
 public:
  Reporter(const SpreadQuestion& spread, const DeviceMemory& devices, Resolution& out)
      : spread_(spread), devices_(devices), fullest_(devices.fullest()), out_(out) {}

  void run() {
    weights();
    caches();
    spread_note();
    check_device();
  }

 private:
  [[nodiscard]] bool on_host() const { return fullest_.device == kHost; }

  void weights() {
    if (devices_.weights_unknown) {
      append_step({.rule = "LCPP-WEIGHTS-UNKNOWN",
                   .stage = Stage::kMemory,
                   .severity = Severity::kWarn,
                   .reason = *devices_.weights_unknown},
                  out_.steps);
      return;
    }
    Memory& memory = out_.memory;
    memory.weight_bytes = fullest_.weight_bytes;
    memory.weight_source = devices_.weight_source;
    if (spread_.request.model.gguf == nullptr) {
      memory.notes.emplace_back(
          "weights: as converted, unquantised; a quantised GGUF file states its own size");
    }
    const DeviceShare& host = devices_.shares.front();
    if (!on_host() && host.weight_bytes > 0) {
      memory.notes.push_back(fmt::format(
          "weights in host memory: {} ({})", format_bytes(host.weight_bytes),
          host.layers.empty() ? "the input layer, and what options keep there"
                              : "the input layer and layers " + ranges_text(host.layers)));
    }
    append_step({.rule = "LCPP-WEIGHTS",
                 .stage = Stage::kMemory,
                 .candidate = format_bytes(*memory.weight_bytes),
                 .reason = fmt::format("of {}, from {}", device_name(fullest_.device),
                                       memory.weight_source)},
                out_.steps);
  }

  [[nodiscard]] std::string device_name(std::int64_t device) const {
    if (device == kHost) return "the host";
    const bool rocm = spread_.request.device.platform == hardware::Platform::kRocm;
    return fmt::format("{}{}", rocm ? "ROCm" : "CUDA", device);
  }

  void caches() {
    const MemoryPlan& plan = spread_.question.memory;
    const ContextSizes& sizes = spread_.question.plan.sizes;
    const std::int64_t sequences = std::max<std::int64_t>(1, spread_.question.params.n_seq_max);
    Memory& memory = out_.memory;
    memory.sequence_tokens = sizes.n_ctx_seq;
    if (!plan.caches.empty()) {
      memory.kv_bytes_per_token = fullest_.kv_bytes_per_token;
      memory.kv_pool_bytes = fullest_.kv_bytes;
      memory.kv_pool_tokens = sizes.n_ctx;
      memory.kv_bytes_per_sequence = fullest_.kv_bytes / sequences;
      cell_note(plan, sizes);
    }
    if (plan.state) memory.state_bytes_per_sequence = fullest_.state_bytes / sequences;
    if (plan.compressor_bytes > 0) {
      memory.notes.push_back(
          fmt::format("compressor states: {}", format_bytes(plan.compressor_bytes)));
    }
    if (!spread_.request.deployment.batch_size) return;
    memory.batch_sequences = sequences;
    if (!plan.caches.empty()) memory.kv_bytes_per_batch = fullest_.kv_bytes;
  }

  void cell_note(const MemoryPlan& plan, const ContextSizes& sizes) {
    const bool windowed = std::ranges::any_of(plan.caches, [&](const Cache& cache) {
      return cache.cells != sizes.n_ctx_seq && !cache.layers.empty();
    });
    if (!windowed) return;
    out_.memory.notes.emplace_back(
        "a cell of every cache; those of sliding or compressed layers have fewer cells than the "
        "context has tokens");
  }

  // What each GPU holds, where there are several or some layers stay on the host.
  void spread_note() {
    const bool partial = !devices_.shares.front().layers.empty() && !on_host();
    if (devices_.shares.size() <= 2 && !partial) return;
    for (const DeviceShare& share : devices_.shares) {
      if (share.device == kHost && share.layers.empty() && share.kv_bytes == 0) continue;
      std::string what = share.layers.empty() ? "no layers" : "layers " + ranges_text(share.layers);
      if (share.output) what += " and the output layer";
      std::string text =
          fmt::format("{}: {}, weights {}, caches {}", device_name(share.device), what,
                      format_bytes(share.weight_bytes), format_bytes(share.kv_bytes));
      if (share.state_bytes > 0)
        text += fmt::format(", states {}", format_bytes(share.state_bytes));
      append_step({.rule = "LCPP-SPREAD",
                   .stage = Stage::kMemory,
                   .candidate = device_name(share.device),
                   .reason = text.substr(text.find(": ") + 2)},
                  out_.steps);
      out_.memory.notes.push_back(std::move(text));
    }
  }

  void check_device() {
    const std::optional<std::int64_t> device = spread_.request.device.usable_bytes();
    if (!device || !out_.memory.weight_bytes) return;
    const std::int64_t needed = fullest_.total();
    if (needed <= *device) return;
    const Arguments& arguments = spread_.arguments;
    const bool fits = !on_host() && (arguments.fits_context || arguments.fits_layers);
    const std::string numbers =
        fmt::format("{} are needed, {} are usable", format_bytes(needed), format_bytes(*device));
    if (!fits) {
      append_step({.rule = "LCPP-OVER-MEMORY",
                   .stage = Stage::kMemory,
                   .severity = Severity::kWarn,
                   .candidate = spread_.request.device.id,
                   .reason = numbers},
                  out_.steps);
      return;
    }
    const std::string shrinks = !arguments.fits_layers    ? "the context is shortened"
                                : !arguments.fits_context ? "layers stay on the CPU"
                                                          : "the context is shortened, then layers "
                                                            "stay on the CPU";
    append_step({.rule = "LCPP-FIT",
                 .stage = Stage::kMemory,
                 .severity = Severity::kWarn,
                 .candidate = spread_.request.device.id,
                 .reason = fmt::format("{}: {}", numbers, shrinks)},
                out_.steps);
    out_.memory.notes.push_back(
        fmt::format("more than the device holds: {} until the model fits (--fit)", shrinks));
  }

  const SpreadQuestion& spread_;
  const DeviceMemory& devices_;
  const DeviceShare& fullest_;
  Resolution& out_;
};

}  // namespace

std::string ranges_text(const std::vector<std::int64_t>& layers) {
  std::string out;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    if (!out.empty()) out += ", ";
    out += last == i ? fmt::format("{}", layers[i]) : fmt::format("{}-{}", layers[i], layers[last]);
    i = last + 1;
  }
  return out;
}

void report_memory(const SpreadQuestion& spread, const DeviceMemory& devices, Resolution& out) {
  Reporter(spread, devices, out).run();
}

}  // namespace kernelpath::engines::llamacpp
