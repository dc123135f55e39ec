#include "tokenizer/unicode.h"

#include "base/assert.h"
#include "base/utf8.h"

#include <algorithm>
#include <utf8proc.h>
#include <vector>

namespace kernelpath::tokenizer {
namespace {

utf8proc_category_t category(std::uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

constexpr bool is_between(std::uint32_t c, std::uint32_t first, std::uint32_t last) {
  return c >= first && c <= last;
}

// Symbols that Unicode counts as alphabetic (Other_Alphabetic outside marks and numbers).
bool is_circled_letter(std::uint32_t c) {
  return is_between(c, 0x24b6, 0x24e9) || is_between(c, 0x1f130, 0x1f149) ||
         is_between(c, 0x1f150, 0x1f169) || is_between(c, 0x1f170, 0x1f189);
}

utf8proc_option_t options_of(NormalForm form) {
  unsigned options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

std::vector<utf8proc_int32_t> decompose(std::string_view text, utf8proc_option_t options) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size() + 32);
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    KERNELPATH_ASSERT(c.length != 0);
    at += c.length;
    // No character decomposes into more than 18.
    const std::size_t size = out.size();
    out.resize(size + 32);
    int last_boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value),
                                               out.data() + size, 32, options, &last_boundary);
    KERNELPATH_ASSERT(count >= 0 && count <= 32);
    out.resize(size + static_cast<std::size_t>(count));
  }
  return out;
}

// Canonical order: marks that follow one another by their class. utf8proc_map() does the same with
// a bubble sort, which a text of many marks makes quadratic.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  for (auto run = text.begin(); run != text.end();) {
    if (combining_class(*run) == 0) {
      ++run;
      continue;
    }
    const auto end = std::find_if(run, text.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(run, end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    run = end;
  }
}

}  // namespace

bool is_white_space(std::uint32_t c) {
  return is_between(c, 0x09, 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         is_between(c, 0x2000, 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

bool is_numeric(std::uint32_t c) {
  if (c < 0x80) return is_between(c, '0', '9');
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(std::uint32_t c) {
  if (c < 0x80) {
    return is_between(c, 0x21, 0x2f) || is_between(c, 0x3a, 0x40) || is_between(c, 0x5b, 0x60) ||
           is_between(c, 0x7b, 0x7e);
  }
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(std::uint32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_word(std::uint32_t c) {
  const auto kind = category(c);
  const bool is_letter = kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
  return is_letter || is_mark(c) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d || is_circled_letter(c);
}

std::string normalize(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  const utf8proc_option_t options = options_of(form);
  std::vector<utf8proc_int32_t> code_points = decompose(text, options);
  order_marks(code_points);
  const auto count = utf8proc_normalize_utf32(
      code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()), options);
  KERNELPATH_ASSERT(count >= 0);
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    append_utf8(out, static_cast<std::uint32_t>(code_points[i]));
  }
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    KERNELPATH_ASSERT(c.length != 0);
    at += c.length;
    if (c.value == 0x130) {
      out += "i\xcc\x87";  // İ is the only character with two in lower case
    } else {
      append_utf8(out, static_cast<std::uint32_t>(
                           utf8proc_tolower(static_cast<utf8proc_int32_t>(c.value))));
    }
  }
  return out;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const CodePoint c = decode_utf8(text.substr(at));
    if (c.length == 0) return at;
    at += c.length;
  }
  return std::string_view::npos;
}

namespace {

struct SequenceStart {
  std::size_t length = 1;  // of the longest start of a valid sequence, at least 1
  bool may_continue = false;
};

// Measures a sequence that is not valid as a whole.
SequenceStart broken_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0xc2 || first > 0xf4) return {};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, true};
    if (byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, false};
}

}  // namespace

std::string repair_utf8(std::string_view text, Repair repair, std::string* rest) {
  std::string out;
  out.reserve(text.size());
  if (rest != nullptr) rest->clear();
  while (!text.empty()) {
    const std::size_t valid = std::min(find_invalid_utf8(text), text.size());
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    const SequenceStart start = broken_sequence(text);
    if (start.may_continue && rest != nullptr) {
      *rest = text;
      break;
    }
    append_utf8(out, kReplacementCharacter);
    text.remove_prefix(repair == Repair::kEachByte ? 1 : start.length);
  }
  return out;
}

}  // namespace kernelpath::tokenizer
