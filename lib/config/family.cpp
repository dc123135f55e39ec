#include "config/family.h"

#include "base/assert.h"
#include "base/text.h"
#include "json/document.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace kernelpath::config {
namespace {

using Strings = std::vector<std::string_view>;

std::string_view string_member(const json::Value& object, std::string_view name) {
  const json::Value* value = object.find_non_null(name);
  return value != nullptr && value->is_string() ? std::string_view(value->as_string())
                                                : std::string_view();
}

Strings strings_member(const json::Value& object, std::string_view name) {
  Strings strings;
  const json::Value* list = object.find_non_null(name);
  if (list == nullptr) return strings;
  for (const json::Value& item : list->items()) strings.emplace_back(item.as_string());
  return strings;
}

// What stands between `before` and the next `after` of a line.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
  const std::size_t start = line.find(before);
  if (start == std::string_view::npos) return {};
  const std::string_view rest = line.substr(start + before.size());
  return rest.substr(0, rest.find(after));
}

// "DeepseekV3ForCausalLM" is named after "deepseek_v3".
bool named_after(std::string_view model_class, std::string_view model_type) {
  std::string letters;
  for (const char c : model_type) {
    if (c != '_' && c != '-') letters += c;
  }
  return to_lower(model_class).starts_with(letters + "for") ||
         to_lower(model_class) == letters + "model";
}

// The table is text with one row a line, so that a program which asks for one model parses one row
// and not all of them.
class Table {
 public:
  static Table& instance() {
    static Table table;
    return table;
  }

  const Family* find(std::string_view model_type) {
    const auto row = rows_.find(model_type);
    if (row == rows_.end()) return nullptr;
    const std::scoped_lock lock(mutex_);
    std::unique_ptr<Family>& family = families_[row->first];
    if (!family) {
      auto document = json::parse(std::string(row->second), "family defaults");
      KERNELPATH_ASSERT(document.has_value());
      family = std::make_unique<Family>(std::move(document->root));
    }
    return family.get();
  }

  [[nodiscard]] Strings of_class(std::string_view model_class) const {
    Strings found;
    const auto [first, last] = std::equal_range(
        classes_.begin(), classes_.end(), std::pair(model_class, std::string_view()),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto entry = first; entry != last; ++entry) found.push_back(entry->second);
    // Some families reuse another's class; the one that the class is named after comes first.
    std::stable_partition(found.begin(), found.end(), [&](std::string_view model_type) {
      return named_after(model_class, model_type);
    });
    return found;
  }

  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  Table() {
    const auto files = embedded_defaults();
    KERNELPATH_ASSERT(!files.empty());
    std::string_view text = files.front().content;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      add(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    std::sort(classes_.begin(), classes_.end());
  }

  void add(std::string_view line) {
    const std::string_view model_type = between(line, R"({"model_type":")", "\"");
    if (model_type.empty()) {
      source_ = std::string(between(line, R"("project":")", "\"")) + " " +
                std::string(between(line, R"("version":")", "\""));
      return;
    }
    rows_.emplace(model_type, line);
    std::string_view classes = between(line, R"("classes":[)", "]");
    while (!classes.empty()) {
      const std::string_view name = between(classes, "\"", "\"");
      classes_.emplace_back(name, model_type);
      classes.remove_prefix(std::min(classes.size(), name.size() + 3));  // quotes and comma
    }
  }

  std::map<std::string_view, std::string_view, std::less<>> rows_;
  std::vector<std::pair<std::string_view, std::string_view>> classes_;
  std::string source_;
  std::mutex mutex_;
  std::map<std::string_view, std::unique_ptr<Family>> families_;
};

}  // namespace

Family::Family(json::Value row)
    : row_(std::move(row)),
      model_type_(string_member(row_, "model_type")),
      defaults_(row_.find("defaults")),
      first_(strings_member(row_, "first")),
      pattern_(strings_member(row_, "pattern")),
      fixed_(strings_member(row_, "fixed")),
      last_(string_member(row_, "last")),
      nope_(string_member(row_, "nope")),
      generating_class_(string_member(row_, "causal_lm")),
      encoder_(row_.find("encoder") != nullptr) {
  if (const json::Value* text = row_.find("text")) {
    text_field_ = string_member(*text, "field");
    text_model_type_ = string_member(*text, "model_type");
  }
}

const json::Value* Family::default_of(std::string_view field) const {
  return defaults_ == nullptr ? nullptr : defaults_->find(field);
}

bool Family::has_field(std::string_view field) const {
  if (default_of(field) != nullptr) return true;
  const json::Value* unset = row_.find("unset");
  if (unset == nullptr) return false;
  const auto names = unset->items();
  return std::any_of(names.begin(), names.end(),
                     [&](const json::Value& name) { return name.as_string() == field; });
}

std::string_view Family::alias(std::string_view standard) const {
  const json::Value* aliases = row_.find("aliases");
  return aliases == nullptr ? std::string_view() : string_member(*aliases, standard);
}

const json::Value* Family::rope() const { return row_.find_non_null("rope"); }

std::string_view Family::layer_name(std::size_t index, std::size_t count) const {
  if (!fixed_.empty()) return index < fixed_.size() ? fixed_[index] : std::string_view();
  if (index + 1 == count && !last_.empty()) return last_;
  if (index < first_.size()) return first_[index];
  return pattern_.empty() ? std::string_view()
                          : pattern_[(index - first_.size()) % pattern_.size()];
}

bool Family::full_layers_without_rope(bool window) const {
  return nope_ == "full" || (nope_ == "full-if-window" && window);
}

const Family* find_family(std::string_view model_type) {
  return Table::instance().find(model_type);
}

std::vector<std::string_view> model_types_of_class(std::string_view model_class) {
  return Table::instance().of_class(model_class);
}

std::string defaults_source() { return Table::instance().source(); }

}  // namespace kernelpath::config
