// Any bytes: parse() gives a document or an error with a place, the two readers agree, and what is
// written reads back as an equal tree.
#include "base/assert.h"
#include "json/document.h"
#include "json/fault.h"
#include "json/writer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace {

using kernelpath::ErrorCode;
using kernelpath::json::Document;
using kernelpath::json::Value;

// JSON has no spelling for these: the writer makes them null.
bool is_finite(const Value& value) {
  switch (value.type()) {
    case kernelpath::json::Type::kDouble:
      return std::isfinite(value.as_double());
    case kernelpath::json::Type::kArray:
      return std::all_of(value.items().begin(), value.items().end(), is_finite);
    case kernelpath::json::Type::kObject:
      return std::all_of(value.members().begin(), value.members().end(),
                         [](const auto& member) { return is_finite(member.value); });
    default:
      return true;
  }
}

void check_document(const Document& document) {
  KERNELPATH_ASSERT(!kernelpath::json::find_fault(document.text, {}));
  KERNELPATH_ASSERT(document.root.offset() < document.text.size());
  KERNELPATH_ASSERT(document.root.brief(40).size() <= 40);
  KERNELPATH_ASSERT(document.warnings.size() <= 101);
  if (!is_finite(document.root)) return;
  for (const int indent : {0, 2}) {
    const auto again = kernelpath::json::parse(to_text(document.root, indent), "again");
    KERNELPATH_ASSERT(again && again->root == document.root);
    KERNELPATH_ASSERT(again->warnings.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = kernelpath::json::parse(text, "fuzz");
  if (document) {
    check_document(*document);
  } else {
    KERNELPATH_ASSERT(document.error().code != ErrorCode::kInternal);
    KERNELPATH_ASSERT(!document.error().message.empty());
    KERNELPATH_ASSERT(!document.error().text().empty());
  }
  return 0;
}
