#include "engines/llamacpp/load_model.h"

#include "engines/llamacpp/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kernelpath::engines::llamacpp {
namespace {

using checkpoint::GgufType;

constexpr std::string_view kArchitectureKey = "general.architecture";
constexpr std::string_view kProjectorOnly = "clip";

std::int64_t array_length(const Hparams& hparams, std::string_view length) {
  if (length == "n_layer_all") return hparams.n_layer_all;
  if (length == "n_layer") return hparams.n_layer();
  std::int64_t out = 0;
  std::from_chars(length.data(), length.data() + length.size(), out);
  return out;
}

ReadResult read_value(const Reader& reader, const ReadRow& row) {
  const std::string key = reader.full_key(row.key);
  switch (row.form) {
    case ReadForm::kScalarOrArray:
      return read_scalar_or_array(reader.metadata, key, row.type, row.required,
                                  array_length(reader.hparams, row.length));
    case ReadForm::kArray:
      return read_array(reader.metadata, key, row.type, row.required, kMaxLayers);
    case ReadForm::kList:
      return read_list(reader.metadata, key, row.type, row.required);
    case ReadForm::kCount:
      return read_count(reader.metadata, key, row.required);
    default:
      return read_scalar(reader.metadata, key, row.type, row.required);
  }
}

void store_list(const std::vector<std::int64_t>& values, bool whole, PerLayer& into) {
  if (whole) {
    into = values;
    return;
  }
  std::ranges::copy_n(values.begin(),
                      static_cast<std::ptrdiff_t>(std::min(values.size(), into.size())),
                      into.begin());
}

void store(const ReadRow& row, const ReadResult& read, Hparams& hparams) {
  const HparamField& field = row.field;
  if (field.list != nullptr) {
    store_list(read.integers, row.form == ReadForm::kList, hparams.*field.list);
  } else if (field.integer != nullptr && !read.integers.empty()) {
    hparams.*field.integer = read.integers.front();
  } else if (field.real != nullptr && !read.reals.empty()) {
    hparams.*field.real = read.reals.front();
  }
}

void set_constant(const ReadRow& row, Hparams& hparams) {
  if (row.field.integer != nullptr) {
    hparams.*row.field.integer = static_cast<std::int64_t>(row.value);
  } else if (row.field.real != nullptr) {
    hparams.*row.field.real = row.value;
  } else {
    hparams.swa_type = row.window_type;
  }
}

void read_pattern(Reader& reader, const ReadRow& row) {
  std::int64_t period = row.period;
  if (!row.key.empty()) {
    const std::string key = reader.full_key(row.key);
    const ReadResult flags = read_array(reader.metadata, key, GgufType::kUint32, false, kMaxLayers);
    if (!flags.error.empty()) return reader.fail_with(flags.error);
    if (flags.found) return store_list(flags.integers, false, reader.hparams.is_swa_impl);
    const ReadResult number = read_scalar(reader.metadata, key, GgufType::kUint32, false);
    if (!number.error.empty()) return reader.fail_with(number.error);
    if (number.found) period = number.integers.front();
  }
  reader.hparams.set_swa_pattern(period, row.dense_first);
}

void read_base(Reader& reader, const ClassRow& base) {
  for (const ReadRow& row : base.rows) {
    before_base_row(reader, row);
    read_row(reader, row);
    if (!reader.failed()) after_base_row(reader, row);
    if (reader.failed()) return;
  }
}

void read_class(Reader& reader, const ClassRow& reads) {
  for (const ReadRow& row : reads.rows) {
    read_row(reader, row);
    if (reader.failed()) return;
  }
  apply_class_rules(reader, reads.name);
}

std::string architecture_name(const Metadata& metadata, LoadedModel& out) {
  const std::string key(kArchitectureKey);
  const ReadResult read = read_scalar(metadata, key, GgufType::kString, false);
  out.error = read.error;
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : found->second.text;
}

}  // namespace

bool TensorNames::has(std::string_view name) const {
  return std::ranges::find(names, name) != names.end();
}

std::string Reader::full_key(std::string_view key) const {
  constexpr std::string_view kPlace = "%s";
  if (!key.starts_with(kPlace)) return std::string(key);
  return architecture.name + std::string(key.substr(kPlace.size()));
}

bool Reader::has_found(std::string_view key) const {
  return std::ranges::find(found, key) != found.end();
}

void Reader::fail_with(std::string message) {
  if (!failed()) error = std::move(message);
}

void Reader::require(bool condition, std::string_view expression) {
  if (condition || failed()) return;
  error = fmt::format("GGML_ASSERT({}) failed", expression);
  aborts = true;
}

void read_row(Reader& reader, const ReadRow& row) {
  const GuardState state{.hparams = reader.hparams,
                         .found = reader.found,
                         .architecture = reader.architecture.constant};
  const bool reached =
      std::ranges::all_of(row.when, [&](const Guard& guard) { return holds(guard, state); });
  if (!reached) return;
  if (row.form == ReadForm::kRefuse) return reader.fail_with(row.message);
  if (row.form == ReadForm::kSet) return set_constant(row, reader.hparams);
  if (row.form == ReadForm::kWindowPattern) return read_pattern(reader, row);
  const ReadResult read = read_value(reader, row);
  if (!read.error.empty()) return reader.fail_with(read.error);
  if (!read.found) return;
  reader.found.push_back(row.key);
  store(row, read, reader.hparams);
}

LoadedModel load_model(const Profile& profile, const Metadata& metadata,
                       const TensorNames& tensors) {
  LoadedModel out;
  const std::string name = architecture_name(metadata, out);
  if (!out.error.empty()) return out;
  out.architecture = profile.find_architecture(name);
  if (out.architecture == nullptr) {
    out.error = fmt::format("unknown model architecture: '{}'", name);
    return out;
  }
  if (out.architecture->class_name.empty()) {
    out.error = fmt::format("unsupported model architecture: '{}'", name);
    return out;
  }
  if (name == kProjectorOnly) {
    out.error = "CLIP cannot be used as main model, use it with --mmproj instead";
    return out;
  }
  out.reads = profile.find_reads(out.architecture->class_name);
  Reader reader{.metadata = metadata,
                .tensors = tensors,
                .architecture = *out.architecture,
                .hparams = out.hparams};
  read_base(reader, *profile.find_reads(kBaseClass));
  if (!reader.failed()) read_class(reader, *out.reads);
  out.in_hparams = reader.failed();
  if (!reader.failed()) check_tensor_rules(reader, out.reads->name);
  out.aborts = reader.aborts;
  const bool thrown = out.in_hparams && !out.aborts;
  out.error = thrown ? "error loading model hyperparameters: " + reader.error : reader.error;
  return out;
}

}  // namespace kernelpath::engines::llamacpp
