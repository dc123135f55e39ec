#include "base/file.h"
#include "base/text.h"
#include "json/document.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/json_node.h"
#include "tokenizer/unicode.h"

#include <algorithm>
#include <utility>

namespace kernelpath::tokenizer {
namespace {

constexpr std::size_t kMaxTemplateBytes = std::size_t{4} << 20;
constexpr std::string_view kSuffix = ".jinja";

Result<ChatTemplate> read_template_file(const std::string& path, std::string name) {
  KERNELPATH_TRY(contents, read_file(path, kMaxTemplateBytes));
  const std::size_t invalid = find_invalid_utf8(contents.text);
  if (invalid != std::string_view::npos) {
    return fail({.code = ErrorCode::kInputEncoding,
                 .message = "the template is not UTF-8",
                 .file = path,
                 .where = "byte " + std::to_string(invalid)});
  }
  return ChatTemplate{
      .name = std::move(name), .text = std::move(contents.text), .file = path, .where = ""};
}

Result<std::vector<ChatTemplate>> read_template_files(const std::string& folder) {
  std::vector<ChatTemplate> templates;
  const std::string single = join_path(folder, "chat_template.jinja");
  KERNELPATH_TRY(single_kind, path_kind(single));
  if (single_kind != PathKind::kMissing) {
    KERNELPATH_TRY(read, read_template_file(single, "default"));
    templates.push_back(std::move(read));
  }
  const std::string more = join_path(folder, "additional_chat_templates");
  KERNELPATH_TRY(kind, path_kind(more));
  if (kind != PathKind::kFolder) return templates;
  KERNELPATH_TRY(names, list_folder(more));
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;
    KERNELPATH_TRY(read, read_template_file(join_path(more, name),
                                            name.substr(0, name.size() - kSuffix.size())));
    templates.push_back(std::move(read));
  }
  return templates;
}

Result<std::vector<ChatTemplate>> read_config(const std::string& path) {
  std::vector<ChatTemplate> templates;
  KERNELPATH_TRY(kind, path_kind(path));
  if (kind == PathKind::kMissing) return templates;
  KERNELPATH_TRY(contents, read_file(path, json::Limits{}.max_bytes));
  KERNELPATH_TRY(document, json::parse_object(std::move(contents.text), path));
  const JsonNode config(document.root, "", path);
  const auto node = config.find("chat_template");
  if (!node) return templates;
  if (node->value().is_string()) {
    templates.push_back({.name = "default",
                         .text = node->value().as_string(),
                         .file = path,
                         .where = node->pointer()});
    return templates;
  }
  KERNELPATH_CHECK_OK(node->expect(json::Type::kArray));
  for (std::size_t i = 0; i < node->value().items().size(); ++i) {
    const JsonNode item = node->item(i);
    KERNELPATH_CHECK_OK(item.expect(json::Type::kObject));
    KERNELPATH_TRY(name, item.string("name"));
    KERNELPATH_TRY(text, item.string("template"));
    templates.push_back({.name = std::move(name),
                         .text = std::move(text),
                         .file = path,
                         .where = item.pointer() + "/template"});
  }
  return templates;
}

std::vector<std::string> names_of(std::span<const ChatTemplate> templates) {
  std::vector<std::string> names;
  names.reserve(templates.size());
  for (const ChatTemplate& candidate : templates) names.push_back(candidate.name);
  return names;
}

}  // namespace

Result<std::vector<ChatTemplate>> load_chat_templates(const std::string& folder) {
  KERNELPATH_TRY(files, read_template_files(folder));
  if (!files.empty()) return files;
  return read_config(join_path(folder, "tokenizer_config.json"));
}

Result<const ChatTemplate*> choose_chat_template(std::span<const ChatTemplate> templates,
                                                 std::string_view name, bool has_tools,
                                                 const std::string& folder) {
  const auto find = [&](std::string_view wanted) -> const ChatTemplate* {
    const auto found = std::ranges::find(templates, wanted, &ChatTemplate::name);
    return found == templates.end() ? nullptr : &*found;
  };
  if (templates.empty()) {
    return fail({.code = ErrorCode::kConfigMissing,
                 .message = "the model has no chat template",
                 .file = folder,
                 .hint = "give the prompt as it is, or put the model's chat_template.jinja there"});
  }
  const std::vector<std::string> names = names_of(templates);
  if (!name.empty()) {
    if (const ChatTemplate* found = find(name)) return found;
    const std::vector<std::string_view> views(names.begin(), names.end());
    return fail(
        {.code = ErrorCode::kUsageUnknown,
         .message = "the model has no chat template of this name; it has " + join_words(names),
         .file = folder,
         .value = std::string(name),
         .near_matches = near_matches(name, views)});
  }
  const ChatTemplate* chosen = has_tools ? find("tool_use") : nullptr;
  if (chosen == nullptr) chosen = find("default");
  if (chosen != nullptr) return chosen;
  return fail({.code = ErrorCode::kConfigMissing,
               .message = "the model has several chat templates and none is called \"default\"",
               .file = folder,
               .hint = "name one of " + join_words(names, "or")});
}

}  // namespace kernelpath::tokenizer
