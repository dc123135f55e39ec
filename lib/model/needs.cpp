#include "model/needs.h"

#include "base/checked.h"
#include "base/float_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

namespace kernelpath::model {
namespace {

using checkpoint::StoredTensor;
using kernels::ScaleFormat;
using kernels::WeightFormat;
using kernels::WeightMatrix;

std::vector<std::string_view> float_types() { return {"F32", "BF16", "F16", "f32", "bf16", "f16"}; }

WeightFormat float_format(std::string_view type) {
  if (type == "F32" || type == "f32") return WeightFormat::kF32;
  return type == "BF16" || type == "bf16" ? WeightFormat::kBf16 : WeightFormat::kF16;
}

// [rows, cols] of values of `size` bytes at `from` become [cols, rows] at `to`.
void transpose(const std::byte* from, std::size_t rows, std::size_t cols, std::size_t size,
               std::byte* to) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t col = 0; col < cols; ++col) {
      std::memcpy(to + (col * rows + row) * size, from + (row * cols + col) * size, size);
    }
  }
}

ScaleFormat float_scale_format(std::string_view type) {
  if (type == "F32") return ScaleFormat::kF32;
  return type == "BF16" ? ScaleFormat::kBf16 : ScaleFormat::kF16;
}

float float_at(WeightFormat format, const std::byte* data, std::int64_t index) {
  if (format == WeightFormat::kF32) {
    float value = 0.0F;
    std::memcpy(&value, data + index * 4, sizeof(value));
    return value;
  }
  std::uint16_t code = 0;
  std::memcpy(&code, data + index * 2, sizeof(code));
  return format == WeightFormat::kBf16 ? bf16_to_f32(code) : f16_to_f32(code);
}

std::int64_t stored_bytes(const StoredTensor& tensor) { return tensor.bytes; }

WeightFormat row_format(std::string_view type) {
  return kernels::find_ggml_block_format(type).value_or(float_format(type));
}

// Columns and values' bytes of a block of q8_0 or q4_0, which begins with an f16 scale.
constexpr std::int64_t kGgmlBlock = 32;
std::int64_t block_value_bytes(WeightFormat format) {
  return format == WeightFormat::kQ8_0 ? kGgmlBlock : kGgmlBlock / 2;
}

// A matrix whose rows, and behind all of them its scales, begin at `place`.
void bind_rows(WeightMatrix& w, const StoredTensor& tensor, std::byte* place) {
  w.format = row_format(tensor.type);
  w.data = place;
  w.row_bytes = weight_row_bytes(w.format, w.cols);
  if (!kernels::find_ggml_block_format(tensor.type) || has_inner_scales(w.format)) return;
  w.scale_format = ScaleFormat::kF16;
  w.scales = place + w.rows * w.row_bytes;
  w.scale_row_bytes = w.cols / kGgmlBlock * 2;
  w.block_cols = kGgmlBlock;
}

void split_blocks(const StoredTensor& tensor, std::span<const std::byte> stored, std::byte* place) {
  const auto values = static_cast<std::size_t>(block_value_bytes(row_format(tensor.type)));
  const std::size_t blocks = stored.size() / (values + 2);
  std::byte* const scales = place + blocks * values;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::byte* const from = stored.data() + block * (values + 2);
    std::memcpy(scales + 2 * block, from, 2);
    std::memcpy(place + block * values, from + 2, values);
  }
}

// Collects the needs of one model.
class NeedList {
 public:
  void vector(std::vector<std::string> names, std::vector<std::int64_t> shape, const float** target,
              const std::optional<Split>& kept) {
    Need need{.names = std::move(names), .shape = std::move(shape), .types = float_types()};
    need.kept = kept;
    need.resident_bytes = [](const StoredTensor& t) {
      return t.bytes / (float_format(t.type) == WeightFormat::kF32 ? 1 : 2) *
             (float_format(t.type) == WeightFormat::kF32 ? 1 : 4);
    };
    need.bind = [target](const StoredTensor&, std::byte* place) {
      *target = reinterpret_cast<const float*>(place);
    };
    need.convert = [](const StoredTensor& t, std::span<const std::byte> stored, std::byte* place) {
      const WeightFormat format = float_format(t.type);
      auto* const out = reinterpret_cast<float*>(place);
      const std::int64_t count = t.bytes / (format == WeightFormat::kF32 ? 4 : 2);
      for (std::int64_t i = 0; i < count; ++i) out[i] = float_at(format, stored.data(), i);
    };
    needs_.push_back(std::move(need));
  }

  void linear(Linear& linear, bool temporary) {
    const std::size_t first = needs_.size();
    weights(linear);
    if (linear.has_bias) {
      vector(names_of(linear, "bias"), {linear.stored_out()}, &linear.bias, rows_of(linear, 1, 0));
    }
    for (std::size_t i = first; i < needs_.size(); ++i) needs_[i].temporary = temporary;
  }

  void stacked(StackedLinear& stacked) {
    if (stacked.scheme.kind == SchemeKind::kMxfp4) {
      mxfp4_experts(stacked);
    } else {
      float_experts(stacked);
    }
    if (stacked.has_bias) {
      vector({stacked.module + "_bias"}, {stacked.experts, stacked.stored_out()}, &stacked.bias,
             rows_of(stacked, 1, 1));
    }
  }

  [[nodiscard]] std::vector<Need> take() { return std::move(needs_); }

 private:
  // How a projection's split shows in a tensor that has, in its dimension `at`, one index for
  // `unit` rows or columns of it.
  template <class Projection>
  static std::optional<Split> rows_of(const Projection& projection, std::int64_t unit,
                                      std::size_t at) {
    if (!projection.splits(0)) return std::nullopt;
    return projection.split.in_units(unit, at);
  }
  template <class Projection>
  static std::optional<Split> columns_of(const Projection& projection, std::int64_t unit,
                                         std::size_t at) {
    if (!projection.splits(1)) return std::nullopt;
    return projection.split.in_units(unit, at);
  }
  // Of a matrix [rows, columns] where a row stands for `row_unit` of them and so on.
  static std::optional<Split> matrix_part(const Linear& linear, std::int64_t row_unit,
                                          std::int64_t column_unit) {
    const std::optional<Split> rows = rows_of(linear, row_unit, 0);
    return rows ? rows : columns_of(linear, column_unit, 1);
  }

  static std::vector<std::string> names_of(const Linear& linear, std::string_view part) {
    std::vector<std::string> out = {fmt::format("{}.{}", linear.module, part)};
    if (!linear.alias.empty()) out.push_back(fmt::format("{}.{}", linear.alias, part));
    return out;
  }

  // A tensor that is kept as it is stored.
  void as_stored(std::vector<std::string> names, std::vector<std::int64_t> shape,
                 std::vector<std::string_view> types,
                 std::function<void(const StoredTensor&, std::byte*)> bind,
                 std::optional<Split> kept) {
    Need need{.names = std::move(names), .shape = std::move(shape), .types = std::move(types)};
    need.kept = std::move(kept);
    need.resident_bytes = stored_bytes;
    need.bind = std::move(bind);
    needs_.push_back(std::move(need));
  }

  // A single float that becomes part of the matrix itself.
  void number(std::vector<std::string> names, std::vector<std::int64_t> shape,
              std::function<void(float)> use) {
    Need need{.names = std::move(names), .shape = std::move(shape), .types = float_types()};
    need.resident_bytes = [](const StoredTensor&) { return std::int64_t{0}; };
    need.bind = [](const StoredTensor&, std::byte*) {};
    need.convert = [use = std::move(use)](const StoredTensor& t, std::span<const std::byte> stored,
                                          std::byte*) {
      use(float_at(float_format(t.type), stored.data(), 0));
    };
    needs_.push_back(std::move(need));
  }

  void weights(Linear& linear) {
    WeightMatrix& w = linear.w;
    w.rows = linear.out;
    w.cols = linear.in;
    switch (linear.scheme.kind) {
      case SchemeKind::kPlain:
      case SchemeKind::kMxfp4:
        return plain(linear);
      case SchemeKind::kFp8Block:
        return fp8_block(linear);
      case SchemeKind::kFp8Channel:
      case SchemeKind::kFp8Tensor:
        return fp8_rows(linear);
      case SchemeKind::kNvfp4:
      case SchemeKind::kNvfp4Scale2:
        return nvfp4(linear);
    }
  }

  // Also the block formats of GGUF files. Scales that stand between the values are taken out where
  // the kernels have them apart.
  void plain(Linear& linear) {
    Need need{.names = names_of(linear, "weight"),
              .shape = {linear.stored_out(), linear.stored_in()},
              .types = float_types(),
              .direct_types = float_types(),
              .kept = matrix_part(linear, 1, 1)};
    for (const WeightFormat format : kernels::ggml_block_formats()) {
      need.types.push_back(weight_format_name(format));
      if (has_inner_scales(format)) need.direct_types.push_back(weight_format_name(format));
    }
    need.resident_bytes = stored_bytes;
    need.bind = [&linear](const StoredTensor& t, std::byte* place) {
      bind_rows(linear.w, t, place);
    };
    need.convert = split_blocks;
    needs_.push_back(std::move(need));
  }

  void fp8_values(Linear& linear) {
    as_stored(
        names_of(linear, "weight"), {linear.stored_out(), linear.stored_in()}, {"F8_E4M3"},
        [&linear](const StoredTensor&, std::byte* place) {
          linear.w.format = WeightFormat::kFp8E4m3;
          linear.w.data = place;
          linear.w.row_bytes = linear.in;
        },
        matrix_part(linear, 1, 1));
  }

  void fp8_block(Linear& linear) {
    fp8_values(linear);
    const Scheme& scheme = linear.scheme;
    as_stored(
        names_of(linear, "weight_scale_inv"),
        {ceil_div(linear.stored_out(), scheme.block_rows),
         ceil_div(linear.stored_in(), scheme.block_cols)},
        {"F32", "BF16"},
        [&linear](const StoredTensor& t, std::byte* place) {
          const std::int64_t columns = ceil_div(linear.in, linear.scheme.block_cols);
          linear.w.scale_format = float_scale_format(t.type);
          linear.w.scales = place;
          linear.w.scale_row_bytes = columns * scale_bytes(linear.w.scale_format);
          linear.w.block_rows = linear.scheme.block_rows;
          linear.w.block_cols = linear.scheme.block_cols;
        },
        matrix_part(linear, scheme.block_rows, scheme.block_cols));
  }

  void fp8_rows(Linear& linear) {
    fp8_values(linear);
    linear.w.block_cols = linear.in;
    if (linear.scheme.kind == SchemeKind::kFp8Tensor) {
      return number(names_of(linear, "weight_scale"), {},
                    [&linear](float scale) { linear.w.scale = scale; });
    }
    as_stored(
        names_of(linear, "weight_scale"), {linear.stored_out(), 1}, {"F32", "BF16", "F16"},
        [&linear](const StoredTensor& t, std::byte* place) {
          linear.w.scale_format = float_scale_format(t.type);
          linear.w.scales = place;
          linear.w.scale_row_bytes = scale_bytes(linear.w.scale_format);
        },
        rows_of(linear, 1, 0));
  }

  void nvfp4(Linear& linear) {
    constexpr std::int64_t kBlock = 16;
    const bool modelopt = linear.scheme.kind == SchemeKind::kNvfp4Scale2;
    as_stored(
        names_of(linear, modelopt ? "weight" : "weight_packed"),
        {linear.stored_out(), linear.stored_in() / 2}, {"U8"},
        [&linear](const StoredTensor&, std::byte* place) {
          linear.w.format = WeightFormat::kE2m1;
          linear.w.data = place;
          linear.w.row_bytes = linear.in / 2;
        },
        matrix_part(linear, 1, 2));
    as_stored(
        names_of(linear, "weight_scale"), {linear.stored_out(), linear.stored_in() / kBlock},
        {"F8_E4M3"},
        [&linear](const StoredTensor&, std::byte* place) {
          linear.w.scale_format = ScaleFormat::kE4m3;
          linear.w.scales = place;
          linear.w.scale_row_bytes = linear.in / kBlock;
          linear.w.block_cols = kBlock;
        },
        matrix_part(linear, 1, kBlock));
    number(names_of(linear, modelopt ? "weight_scale_2" : "weight_global_scale"),
           modelopt ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{1},
           [&linear, modelopt](float scale) { linear.w.scale = modelopt ? scale : 1.0F / scale; });
  }

  // [experts, in, out] in the file; rows of outputs in memory.
  void float_experts(StackedLinear& stacked) {
    Need need{.names = {stacked.module},
              .shape = {stacked.experts, stacked.stored_in(), stacked.stored_out()},
              .types = float_types()};
    need.kept = rows_of(stacked, 1, 2);
    if (!need.kept) need.kept = columns_of(stacked, 1, 1);
    need.resident_bytes = stored_bytes;
    need.bind = [&stacked](const StoredTensor& t, std::byte* place) {
      const WeightFormat format = float_format(t.type);
      WeightMatrix w{.format = format, .rows = stacked.out, .cols = stacked.in};
      w.row_bytes = weight_row_bytes(format, stacked.in);
      stacked.w.clear();
      for (std::int64_t e = 0; e < stacked.experts; ++e) {
        w.data = place + e * stacked.out * w.row_bytes;
        stacked.w.push_back(w);
      }
    };
    need.convert = [&stacked](const StoredTensor& t, std::span<const std::byte> stored,
                              std::byte* place) {
      const std::size_t size = float_format(t.type) == WeightFormat::kF32 ? 4 : 2;
      const auto in = static_cast<std::size_t>(stacked.in);
      const auto out = static_cast<std::size_t>(stacked.out);
      for (std::size_t e = 0; e < static_cast<std::size_t>(stacked.experts); ++e) {
        const std::size_t expert = e * in * out * size;
        transpose(stored.data() + expert, in, out, size, place + expert);
      }
    };
    needs_.push_back(std::move(need));
  }

  void mxfp4_experts(StackedLinear& stacked) {
    constexpr std::int64_t kBlock = 32;
    const std::int64_t blocks = stacked.in / kBlock;
    const std::int64_t stored = stacked.stored_in() / kBlock;
    std::optional<Split> kept = rows_of(stacked, 1, 1);
    if (!kept) kept = columns_of(stacked, kBlock, 2);
    as_stored(
        {stacked.module + "_blocks"}, {stacked.experts, stacked.stored_out(), stored, kBlock / 2},
        {"U8"},
        [&stacked](const StoredTensor&, std::byte* place) {
          stacked.w.resize(static_cast<std::size_t>(stacked.experts));
          for (WeightMatrix& w : stacked.w) {
            w.format = WeightFormat::kE2m1;
            w.rows = stacked.out;
            w.cols = stacked.in;
            w.row_bytes = stacked.in / 2;
            w.data = place + (&w - stacked.w.data()) * stacked.out * w.row_bytes;
          }
        },
        kept);
    as_stored(
        {stacked.module + "_scales"}, {stacked.experts, stacked.stored_out(), stored}, {"U8"},
        [&stacked, blocks](const StoredTensor&, std::byte* place) {
          stacked.w.resize(static_cast<std::size_t>(stacked.experts));
          for (WeightMatrix& w : stacked.w) {
            w.scale_format = ScaleFormat::kE8m0;
            w.scale_row_bytes = blocks;
            w.block_cols = kBlock;
            w.scales = place + (&w - stacked.w.data()) * stacked.out * blocks;
          }
        },
        kept);
  }

  std::vector<Need> needs_;
};

}  // namespace

std::vector<Need> list_needs(Parameters& parameters) {
  NeedList list;
  std::vector<const Linear*> split;
  for (const Layer& layer : parameters.layers) split.push_back(&layer.latent.kv_b);
  for_each_linear(parameters, [&](Linear& linear) {
    const bool temporary = std::ranges::find(split, &linear) != split.end();
    list.linear(linear, temporary);
  });
  for_each_stacked(parameters, [&](StackedLinear& stacked) { list.stacked(stacked); });
  for_each_vector(parameters, [&](Vector& vector) {
    std::vector<std::string> names = {vector.name};
    if (!vector.alias.empty()) names.push_back(vector.alias);
    std::vector<std::int64_t> shape = vector.shape;
    std::optional<Split> kept;
    if (vector.split.exists()) {
      shape[vector.split.dim] = vector.split.whole;
      kept = vector.split;
    }
    list.vector(std::move(names), std::move(shape), &vector.data, kept);
  });
  return list.take();
}

bool may_stay_unread(std::string_view tensor, std::int64_t num_layers) {
  constexpr std::array<std::string_view, 10> kSuffixes = {".rotary_emb.inv_freq",
                                                          ".input_scale",
                                                          ".input_global_scale",
                                                          ".output_scale",
                                                          ".k_scale",
                                                          ".v_scale",
                                                          ".q_scale",
                                                          ".kv_scale",
                                                          ".attn.bias",
                                                          "rope_freqs.weight"};
  for (const std::string_view suffix : kSuffixes) {
    if (tensor.ends_with(suffix)) return true;
  }
  constexpr std::string_view kLayers = "model.layers.";
  if (!tensor.starts_with(kLayers)) return false;
  const std::string_view rest = tensor.substr(kLayers.size());
  std::int64_t number = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return parsed.ec == std::errc() && number >= num_layers;
}

}  // namespace kernelpath::model
