#include "engines/llamacpp/profile.h"

#include "base/assert.h"
#include "base/file.h"
#include "engines/tables.h"

#include <algorithm>
#include <utility>

namespace kernelpath::engines::llamacpp {
namespace {

constexpr std::string_view kFolder = "llamacpp-0c1e5709";
constexpr std::size_t kMaxTableBytes = std::size_t{4} << 20;

std::string embedded_text(std::string_view table) {
  const std::string path = std::string(kFolder) + "/" + std::string(table) + ".json";
  const auto files = embedded_tables();
  const auto found = std::ranges::find(files, std::string_view(path), &EmbeddedFile::path);
  KERNELPATH_ASSERT(found != files.end());
  return std::string(found->content);
}

template <class Rows, class Member>
const typename Rows::value_type* find_row(const Rows& rows, std::string_view name, Member member) {
  const auto found = std::ranges::find(rows, name, member);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const ArchitectureRow* Profile::find_architecture(std::string_view name) const {
  return find_row(architectures, name, &ArchitectureRow::name);
}

const ConverterRow* Profile::find_converter(std::string_view architecture) const {
  return find_row(converter, architecture, &ConverterRow::architecture);
}

const ConverterRow* Profile::find_projector(std::string_view architecture) const {
  return find_row(projector_converter, architecture, &ConverterRow::architecture);
}

const ClassRow* Profile::find_reads(std::string_view class_name) const {
  const ClassRow* row = find_row(classes, class_name, &ClassRow::name);
  if (row == nullptr || row->like.empty()) return row;
  return find_row(classes, row->like, &ClassRow::name);
}

bool Profile::is_cache_type(std::string_view name) const {
  return std::ranges::find(cache_types, name) != cache_types.end();
}

Result<Profile> load_profile(const std::string& folder) {
  KERNELPATH_TRY(registry, read_file(join_path(folder, "registry.json"), kMaxTableBytes));
  KERNELPATH_TRY(hparams, read_file(join_path(folder, "hparams.json"), kMaxTableBytes));
  return parse_profile({.registry = std::move(registry.text), .hparams = std::move(hparams.text)},
                       folder);
}

const Profile& built_in_profile() {
  static const Profile kProfile = [] {
    auto parsed =
        parse_profile({.registry = embedded_text("registry"), .hparams = embedded_text("hparams")},
                      std::string(kFolder));
    KERNELPATH_ASSERT(parsed.has_value());
    return std::move(*parsed);
  }();
  return kProfile;
}

}  // namespace kernelpath::engines::llamacpp
