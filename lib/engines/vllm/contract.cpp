#include "engines/vllm/contract.h"

#include "base/text.h"
#include "engines/vllm/cudagraph.h"
#include "engines/vllm/kv_spec.h"
#include "engines/vllm/rules_select.h"
#include "engines/vllm/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpath::engines::vllm {
namespace {

using hardware::Platform;

constexpr std::int64_t kPlainKvHeads = 8;
constexpr std::int64_t kPlainHead = 128;

// A device generation that questions are asked on.
struct Generation {
  std::string name;  // "9.0", "gfx942"
  Machine machine;
};

std::vector<Generation> cuda_generations() {
  std::vector<Generation> out;
  for (const hardware::Capability capability : hardware::known_capabilities()) {
    out.push_back(
        {fmt::format("{}.{}", capability.major, capability.minor), {.capability = capability}});
  }
  return out;
}

std::vector<Generation> amd_generations() {
  Packages packages;
  packages.aiter = true;
  const auto amd = [&](hardware::Capability capability, int cdna, int rdna) {
    return Machine{.platform = Platform::kRocm,
                   .capability = capability,
                   .packages = packages,
                   .cdna = cdna,
                   .rdna = rdna,
                   .aiter_enabled = true};
  };
  return {{"gfx90a", amd({9, 0}, 2, 0)},
          {"gfx942", amd({9, 4}, 3, 0)},
          {"gfx950", amd({9, 5}, 4, 0)},
          {"gfx1100", amd({11, 0}, 0, 3)},
          {"gfx1201", amd({12, 0}, 0, 4)}};
}

// Members name the platform that they are for; all others run on NVIDIA GPUs.
Platform platform_of(std::string_view member) {
  if (member.starts_with("ROCM_")) return Platform::kRocm;
  if (member.starts_with("CPU_") || member.starts_with("AMX_")) return Platform::kCpu;
  return Platform::kCuda;
}

std::vector<Generation> generations_of(std::string_view member) {
  switch (platform_of(member)) {
    case Platform::kRocm:
      return amd_generations();
    case Platform::kCpu:
      return {{"cpu", {.platform = Platform::kCpu}}};
    default:
      return cuda_generations();
  }
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

// One backend, and the generations that it runs on.
class Examined {
 public:
  Examined(const Profile& profile, const BackendMember& member)
      : profile_(profile), backend_(*member.backend) {
    for (Generation& generation : generations_of(member.name)) {
      const bool runs = takes_capability(context_of(generation), backend_);
      if (runs) generations_.push_back(std::move(generation));
    }
  }

  [[nodiscard]] std::string generation_names() const {
    std::vector<std::string> names;
    for (const Generation& generation : generations_) names.push_back(generation.name);
    return or_dash(join(names, " "));
  }

  // The answer of every generation: once where they agree, else by generation.
  [[nodiscard]] std::string by_generation(
      const std::function<std::string(const SelectorContext&)>& answer) const {
    std::vector<std::pair<std::string, std::string>> groups;  // answer → generations
    for (const Generation& generation : generations_) {
      const std::string text = or_dash(answer(context_of(generation)));
      const auto known = std::find_if(groups.begin(), groups.end(),
                                      [&](const auto& group) { return group.first == text; });
      if (known == groups.end()) {
        groups.emplace_back(text, generation.name);
      } else {
        known->second += " " + generation.name;
      }
    }
    if (groups.empty()) return "-";
    if (groups.size() == 1) return groups.front().first;
    std::vector<std::string> parts;
    parts.reserve(groups.size());
    for (const auto& [text, names] : groups) parts.push_back(fmt::format("{}: {}", names, text));
    return join(parts, "; ");
  }

  [[nodiscard]] std::string flag(Question question) const {
    return by_generation([&](const SelectorContext& context) {
      return std::string(asks(context, backend_, question) ? "yes" : "no");
    });
  }

  [[nodiscard]] const BackendClass& backend() const { return backend_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }

 private:
  [[nodiscard]] SelectorContext context_of(const Generation& generation) const {
    // Rules that look at the model see a plain one: 32 query heads of 128 over 8 KV heads.
    static const SelectorSettings kPlain = {
        .model =
            ModelFacts{.num_heads = 32, .num_kv_heads = kPlainKvHeads, .head_size = kPlainHead}};
    return {.profile = profile_, .machine = generation.machine, .settings = kPlain};
  }

  const Profile& profile_;
  const BackendClass& backend_;
  std::vector<Generation> generations_;
};

// Sizes that models use, to show what a rule without a list accepts.
constexpr std::array<std::int64_t, 14> kHeadSizes = {32,  64,  72,  80,  96,  112, 128,
                                                     160, 192, 256, 320, 512, 576, 1024};

std::string head_sizes_text(const Examined& examined) {
  const BackendClass& backend = examined.backend();
  if (backend.head_sizes.rule == nullptr) {
    const HeadSizes& sizes = backend.head_sizes.value;
    if (sizes.min) return fmt::format(">= {}", *sizes.min);
    if (!sizes.listed) return "any";
    std::vector<std::string> parts;
    for (const std::int64_t size : *sizes.listed) parts.push_back(fmt::to_string(size));
    return join(parts, " ");
  }
  return examined.by_generation([&](const SelectorContext& context) {
    std::vector<std::string> parts;
    for (const std::int64_t size : kHeadSizes) {
      if (takes_head_size(context, backend, size)) parts.push_back(fmt::to_string(size));
    }
    return join(parts, " ");
  });
}

std::string dtypes_text(const Examined& examined) {
  return examined.by_generation([&](const SelectorContext& context) {
    std::vector<std::string> parts;
    for (const std::string_view dtype : {"float16", "bfloat16", "float32"}) {
      if (takes_dtype(context, examined.backend(), dtype)) parts.emplace_back(dtype);
    }
    return join(parts, " ");
  });
}

std::string kv_dtypes_text(const Examined& examined) {
  return examined.by_generation([&](const SelectorContext& context) {
    std::vector<std::string> parts;
    for (const KvDtype& row : context.profile.kv_dtypes) {
      if (takes_kv_dtype(context, examined.backend(), row.name)) parts.push_back(row.name);
    }
    return join(parts, " ");
  });
}

std::string block_sizes_text(const Examined& examined) {
  return examined.by_generation([&](const SelectorContext& context) {
    std::vector<std::string> parts;
    for (const BlockSize& size : kernel_block_sizes(context, examined.backend())) {
      parts.push_back(fmt::format("{}{}", size.multiple ? "x" : "", size.size));
    }
    return join(parts, " ");
  });
}

std::string layouts_text(const Examined& examined) {
  return examined.by_generation([&](const SelectorContext& context) {
    const auto layouts = layouts_of(context, examined.backend());
    return layouts ? join(*layouts, " ") : std::string("any");
  });
}

std::string axes_text(const std::vector<std::string>& axes) {
  return axes.empty() ? "by rule" : "[" + join(axes, ", ") + "]";
}

// The axes in the order in which they lie in memory.
std::vector<std::string> in_memory(const std::vector<std::string>& axes, const StrideOrder& order) {
  std::vector<std::string> out;
  for (const std::int64_t axis : order.order) {
    const auto index = static_cast<std::size_t>(axis);
    if (index < axes.size()) out.push_back(axes[index]);
  }
  return out;
}

std::string shapes_text(const BackendClass& backend) {
  std::vector<std::string> parts;
  for (const KvShape& shape : backend.kv_shapes) {
    parts.push_back(fmt::format("{}: {}", join(shape.kv_dtypes, " "), axes_text(shape.axes)));
  }
  return or_dash(join(parts, "; "));
}

// How the plain cache lies in memory under a layout. Since 0.33 the layouts order
// [layers, blocks, heads, tokens, content] for all backends alike.
std::string memory_text(const Examined& examined) {
  const BackendClass& backend = examined.backend();
  if (backend.kv_shapes.empty() || backend.kv_shapes.front().axes.empty()) return "-";
  std::vector<std::string> axes = backend.kv_shapes.front().axes;
  std::vector<std::string> parts;
  for (const StrideOrder& order : backend.stride_orders) {
    parts.push_back(fmt::format("{}: {}", order.layout, axes_text(in_memory(axes, order))));
  }
  if (!parts.empty()) return join(parts, "; ");
  axes.insert(axes.begin(), "num_layers");
  for (const StrideOrder& order : examined.profile().layout_orders) {
    parts.push_back(fmt::format("{}: {}", order.layout, axes_text(in_memory(axes, order))));
  }
  return or_dash(join(parts, "; "));
}

std::string kind_text(const Examined& examined) {
  const bool mla = examined.backend().flag(Question::kMla).value;
  const bool sparse = examined.backend().flag(Question::kSparse).value;
  return fmt::format("{}{}", sparse ? "sparse " : "", mla ? "MLA" : "attention");
}

using Columns = std::vector<std::pair<std::string, std::string>>;

void add_graphs(const Examined& examined, Columns& columns) {
  const auto& builder = examined.backend().builder;
  const std::string level = examined.by_generation([&](const SelectorContext& context) {
    const KvSpec plain = {.block_size = 16,
                          .num_kv_heads = kPlainKvHeads,
                          .head_size = kPlainHead,
                          .head_size_v = kPlainHead,
                          .storage_dtype = "bfloat16",
                          .quant_mode = "NONE"};
    const GraphLevel found =
        graph_level(context, examined.backend(), {.specs = std::span(&plain, 1)});
    return std::string(graph_level_name(found));
  });
  columns.emplace_back("cuda graphs", builder ? level : std::string("-"));
  columns.emplace_back("cuda graphs depend on",
                       builder ? or_dash(builder->cudagraph_rule) : std::string("-"));
  columns.emplace_back("decode up to query length",
                       builder && builder->reorder_batch_threshold
                           ? fmt::to_string(*builder->reorder_batch_threshold)
                           : "-");
}

void add_lse(const Examined& examined, Columns& columns) {
  const auto yes_no = [](const std::optional<bool>& value) {
    return std::string(!value ? "decided by the instance" : *value ? "yes" : "no");
  };
  const auto& implementation = examined.backend().implementation;
  if (!implementation) return;
  columns.emplace_back("implementation", implementation->class_name);
  columns.emplace_back("LSE at decode", yes_no(implementation->can_return_lse_for_decode));
  const auto& on_e = implementation->lse_base_on_e;
  const bool has_lse = implementation->can_return_lse_for_decode.value_or(true);
  columns.emplace_back("LSE base", !has_lse ? "-"
                                   : !on_e  ? "decided by the instance"
                                   : *on_e  ? "e"
                                            : "2");
}

void add_features(const Examined& examined, Columns& columns) {
  constexpr std::array<std::pair<Question, std::string_view>, 7> kPlain = {
      std::pair{Question::kSink, "sinks"},
      std::pair{Question::kMmPrefix, "image prefix"},
      std::pair{Question::kAlibiSqrt, "alibi sqrt"},
      std::pair{Question::kPerHeadScales, "per-head scales"},
      std::pair{Question::kNonCausal, "non-causal"},
      std::pair{Question::kBatchInvariance, "batch invariance"},
      std::pair{Question::kKvConnector, "KV connector"}};
  constexpr std::array<std::pair<Question, std::string_view>, 4> kLater = {
      std::pair{Question::kSlidingWindow, "sliding window"}, std::pair{Question::kRswa, "R-SWA"},
      std::pair{Question::kPcp, "PCP"}, std::pair{Question::kDcp, "DCP"}};
  for (const auto& [question, name] : kPlain) {
    columns.emplace_back(name, examined.flag(question));
  }
  if (!examined.profile().at_least(0, 33)) return;
  for (const auto& [question, name] : kLater) {
    columns.emplace_back(name, examined.flag(question));
  }
}

TableRow contract_row(const Profile& profile, const BackendMember& member) {
  const Examined examined(profile, member);
  const BackendClass& backend = examined.backend();
  Columns columns = {
      {"class", backend.class_name},
      {"kind", kind_text(examined)},
      {"platform", std::string(hardware::platform_name(platform_of(member.name)))},
      {"devices", examined.generation_names()},
      {"attention types", or_dash(join(backend.attention_types, " "))},
      {"dtypes", dtypes_text(examined)},
      {"head sizes", head_sizes_text(examined)},
      {"KV dtypes", kv_dtypes_text(examined)},
      {"block sizes", block_sizes_text(examined)},
      {"KV shape", shapes_text(backend)},
      {"KV in memory", memory_text(examined)},
      {"layouts taken", layouts_text(examined)},
  };
  add_graphs(examined, columns);
  add_lse(examined, columns);
  add_features(examined, columns);
  columns.emplace_back("needs", or_dash(join(backend.needs_at_import, " ")));
  columns.emplace_back("file", file_of_class(backend.path));
  return {member.name, std::move(columns)};
}

std::string_view fact_name(Fact fact) {
  constexpr std::array<std::string_view, 12> kNames = {
      "quantized KV cache", "few query heads", "non-causal",  "head size 512",
      "image prefix",       "sparse",          "MLA",         "KV connector",
      "AITER for MLA",      "AITER for MHA",   "AITER found", "AITER on RDNA 4"};
  return kNames.at(static_cast<std::size_t>(fact));
}

std::string facts_text(const PriorityRow& row) {
  std::vector<std::string> parts;
  for (const auto& [fact, holds] : row.when) {
    parts.push_back(fmt::format("{}{}", holds ? "" : "not ", fact_name(fact)));
  }
  return parts.empty() ? "always" : join(parts, ", ");
}

void append_priorities(std::string_view kind, const std::vector<PriorityEntry>& entries,
                       std::vector<TableRow>& out) {
  for (const PriorityEntry& entry : entries) {
    std::vector<std::string> majors;
    for (const std::int64_t major : entry.majors) majors.push_back(fmt::to_string(major));
    for (const PriorityRow& row : entry.rows) {
      out.push_back({fmt::format("{} {}", kind, join(majors, " ")),
                     {{"holds for", facts_text(row)}, {"order", join(row.order, " ")}}});
    }
  }
}

}  // namespace

std::vector<TableRow> contract_rows(const ReleaseTables& tables) {
  std::vector<TableRow> out;
  for (const BackendMember& member : tables.profile.members) {
    if (member.mamba) continue;
    if (member.backend != nullptr) {
      out.push_back(contract_row(tables.profile, member));
      continue;
    }
    const std::string why = member.import_error_text.empty()
                                ? "a placeholder: a plugin has to register a class for it"
                                : member.import_error_text;
    out.push_back({member.name, {{"class", "-"}, {"kind", why}}});
  }
  return out;
}

std::vector<TableRow> priority_rows(const ReleaseTables& tables) {
  const Priorities& priorities = tables.profile.priorities;
  std::vector<TableRow> out;
  append_priorities("attention, capability", priorities.plain, out);
  append_priorities("MLA, capability", priorities.mla, out);
  append_priorities("vision encoder, capability", priorities.vision, out);
  for (const PriorityRow& row : priorities.rocm) {
    out.push_back({"AMD GPUs", {{"holds for", facts_text(row)}, {"order", join(row.order, " ")}}});
  }
  return out;
}

}  // namespace kernelpath::engines::vllm
