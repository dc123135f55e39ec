#include "json/document.h"

#include "base/text.h"
#include "json/fault.h"
#include "json/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace kernelpath::json {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string place(std::string_view text, std::size_t offset) {
  const Position at = position_in(text, offset);
  return fmt::format("{}:{}", at.line, at.column);
}

// UTF-16 and UTF-32 by their byte-order mark, or by the zero bytes beside the first character,
// which is ASCII in all JSON.
std::optional<std::string_view> wide_encoding(std::string_view text) {
  const auto starts = [&](std::string_view bytes) { return text.starts_with(bytes); };
  using namespace std::string_view_literals;
  if (starts("\xff\xfe\0\0"sv) || starts("\0\0\xfe\xff"sv)) return "UTF-32";
  if (starts("\xff\xfe"sv) || starts("\xfe\xff"sv)) return "UTF-16";
  if (text.size() < 2) return std::nullopt;
  const bool low_first = text[0] != '\0';
  if (low_first && text.substr(1, 3) == "\0\0\0"sv) return "UTF-32";
  if (!low_first && text.substr(0, 3) == "\0\0\0"sv) return "UTF-32";
  return low_first == (text[1] != '\0') ? std::nullopt : std::optional("UTF-16"sv);
}

// Files that are often saved under a .json name by mistake.
std::optional<Error> wrong_kind(std::string_view text, const std::string& file) {
  std::string_view start = trim(text.substr(0, 512));
  const std::string lower = to_lower(start.substr(0, 64));
  if (lower.starts_with("version https://git-lfs")) {
    return Error{.code = ErrorCode::kInputKind,
                 .message = "a Git LFS pointer, not the file it stands for",
                 .file = file,
                 .hint = "run `git lfs pull` in the model's folder, or download the file itself"};
  }
  if (lower.starts_with("<!doctype") || lower.starts_with("<html") || lower.starts_with("<head") ||
      lower.starts_with("<?xml")) {
    return Error{.code = ErrorCode::kInputKind,
                 .message = "looks like an HTML page, not JSON",
                 .file = file,
                 .hint = "download the raw file instead of the web page that shows it"};
  }
  return std::nullopt;
}

std::optional<Error> unreadable(std::string_view text, const std::string& file,
                                const Limits& limits) {
  const std::size_t largest = std::min<std::size_t>(
      limits.max_bytes, std::numeric_limits<std::uint32_t>::max() / 2);  // offsets have 32 bits
  if (text.size() > largest) {
    return Error{.code = ErrorCode::kInputLimit,
                 .message = fmt::format("{} bytes of JSON, the limit is {}", text.size(), largest),
                 .file = file};
  }
  if (text.empty()) {
    return Error{.code = ErrorCode::kInputJson, .message = "empty file", .file = file};
  }
  if (const auto encoding = wide_encoding(text)) {
    return Error{.code = ErrorCode::kInputEncoding,
                 .message = fmt::format("{}, expected UTF-8", *encoding),
                 .file = file,
                 .hint = "convert it: iconv -t UTF-8"};
  }
  return wrong_kind(text, file);
}

Error fault_error(std::string_view text, const std::string& file, const Fault& fault) {
  return Error{.code = fault.code,
               .message = fault.message,
               .file = file,
               .where = place(text, fault.offset)};
}

}  // namespace

Position position_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<std::uint32_t>(lines + 1),
          static_cast<std::uint32_t>(before.size() - line_start + 1)};
}

Position Document::position(std::uint32_t offset) const { return position_in(text, offset); }

Result<Document> parse(std::string text, std::string file, const Limits& limits) {
  if (auto error = unreadable(text, file, limits)) return fail(std::move(*error));
  Document document{.file = std::move(file), .text = std::move(text), .root = {}, .warnings = {}};
  std::size_t skipped = 0;
  if (document.text.starts_with(kByteOrderMark)) {
    skipped = kByteOrderMark.size();
    document.text.erase(0, skipped);
    document.warnings.push_back({"JSON-BOM", "1:1",
                                 "the file starts with a UTF-8 byte-order mark, which the Python "
                                 "engines refuse; skipped"});
  }
  if (document.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return fail(
        Error{.code = ErrorCode::kInputJson, .message = "no JSON value", .file = document.file});
  }
  // Smaller files cannot hold too many values. Of a larger one simdjson's index and our tree would
  // take many times its size, so it is judged before anything is allocated.
  if (document.text.size() / 2 > limits.max_members) {
    if (const auto fault = find_fault(document.text, limits, skipped)) {
      return fail(fault_error(document.text, document.file, *fault));
    }
  }
  if (read_tree(document.text, limits, document.root, document.warnings)) return document;
  if (const auto fault = find_fault(document.text, limits, skipped)) {
    return fail(fault_error(document.text, document.file, *fault));
  }
  return fail(Error{.code = ErrorCode::kInternal,
                    .message = "the JSON parser refused a document without a fault",
                    .file = document.file});
}

Result<Document> parse_object(std::string text, std::string file, const Limits& limits) {
  auto document = parse(std::move(text), std::move(file), limits);
  if (!document || document->root.is_object()) return document;
  return fail(Error{.code = ErrorCode::kInputJson,
                    .message = fmt::format("top level must be an object, found {}",
                                           type_name(document->root.type())),
                    .file = document->file,
                    .where = place(document->text, document->root.offset())});
}

const Value* resolve_pointer(const Value& root, std::string_view pointer) {
  const Value* value = &root;
  while (!pointer.empty()) {
    if (pointer.front() != '/') return nullptr;
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string_view token = pointer.substr(1, end - 1);
    pointer.remove_prefix(end);
    std::string key;
    for (std::size_t i = 0; i < token.size(); ++i) {
      const bool escaped = token[i] == '~' && i + 1 < token.size();
      key += !escaped ? token[i] : token[++i] == '1' ? '/' : '~';
    }
    if (value->is_array()) {
      std::size_t index = 0;
      const char* const last = key.data() + key.size();
      const auto [stop, error] = std::from_chars(key.data(), last, index);
      const bool is_index = error == std::errc{} && stop == last && (key == "0" || key[0] != '0');
      if (!is_index || index >= value->items().size()) return nullptr;
      value = &value->items()[index];
    } else {
      value = value->find(key);
    }
    if (value == nullptr) return nullptr;
  }
  return value;
}

std::string pointer_token(std::string_view key) {
  std::string out;
  out.reserve(key.size());
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace kernelpath::json
