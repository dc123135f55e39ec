// Every fact that a rule reads can be stated by some input of the program.
#include "cli/arguments.h"
#include "cli/settings.h"
#include "cli/validate.h"
#include "cli/validate_judge.h"
#include "features/argument_table.h"
#include "features/rule_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace kernelpath::cli {
namespace {

using features::FieldInfo;
using features::FieldKind;
using features::RuleTable;
using Names = std::set<std::string>;

void add_fields(Names& out, const features::Expression& expression, const RuleTable& table) {
  for (const std::uint32_t field : expression.fields()) out.insert(table.schema.field(field).name);
}

Names fields_read(const RuleTable& table) {
  Names out;
  for (const features::Rule& rule : table.rules) {
    add_fields(out, rule.when, table);
    for (const features::Effect& effect : rule.effects) {
      if (effect.when) add_fields(out, *effect.when, table);
      if (effect.value) add_fields(out, *effect.value, table);
    }
  }
  return out;
}

// Fields that a rule of the table computes, or that its argument table's faults are put in.
Names fields_made(const RuleTable& table) {
  Names out;
  for (const features::Rule& rule : table.rules) {
    for (const features::Effect& effect : rule.effects) {
      if (effect.assigns) out.insert(table.schema.field(*effect.assigns).name);
    }
  }
  for (const FieldInfo& field : table.schema.fields()) {
    if (field.name.starts_with("arguments.")) out.insert(field.name);
  }
  return out;
}

// Options that state every variable and lack every package that the table's fields know.
std::vector<std::string> environment_options(const RuleTable& table) {
  constexpr std::string_view kAvailable = "available.";
  std::vector<std::string> out;
  for (const FieldInfo& field : table.schema.fields()) {
    if (!field.variable.empty()) out.insert(out.end(), {"--env", field.variable + "=1"});
    if (!field.name.starts_with(kAvailable)) continue;
    std::string package = field.name.substr(kAvailable.size());
    std::replace(package.begin(), package.end(), '_', '-');
    out.insert(out.end(), {"--lacks", package});
  }
  return out;
}

void add_stated(Names& out, const features::Context& context) {
  const auto& fields = context.table().schema.fields();
  for (std::uint32_t i = 0; i < fields.size(); ++i) {
    if (context.is_stated(i)) out.insert(fields[i].name);
  }
}

// The fields of the engine's table and of the shared one that these options state.
void add_stated(Names& own, Names& shared, const std::vector<std::string>& options,
                const LoadedModel* model) {
  const Result<Arguments> arguments = parse_arguments(options);
  ASSERT_TRUE(arguments) << arguments.error().text();
  const Result<Settings> settings = make_settings(*arguments, {}, validate_program());
  ASSERT_TRUE(settings) << settings.error().text();
  const Result<ValidateQuestion> question = make_validate_question(*settings, {}, {});
  ASSERT_TRUE(question) << question.error().text();
  const Judge judge(*question, model);
  const Result<EngineCombination> combination =
      engine_combination(*question, question->base.engines.front());
  ASSERT_TRUE(combination) << combination.error().text();
  const JudgedEngine judged = judge(*combination);
  add_stated(own, features::context_of(judged.combination));
  add_stated(shared, features::shared_context_of(judged.combination));
}

std::string with_version(const RuleTable& table) {
  return table.version.empty() ? table.engine : table.engine + "@" + table.version;
}

// What questions about all the models of the test data state.
struct Stated {
  Names own = {};
  Names shared = {};
};

Stated stated_by_all_models(const RuleTable& table) {
  const std::filesystem::path configs = KERNELPATH_TEST_CONFIGS;
  std::vector<std::string> options = {"--engine", with_version(table), "--device", "h200"};
  const std::vector<std::string> environment = environment_options(table);
  Stated out;
  std::vector<std::string> all = options;
  all.insert(all.end(), environment.begin(), environment.end());
  add_stated(out.own, out.shared, all, nullptr);
  std::vector<std::string> with_draft = options;
  with_draft.insert(
      with_draft.end(),
      {"--batch-size", "2", "--max-model-len", "4096", "--dp", "2", "--speculative",
       "draft:" + (configs / "SpecForge__qwen3-8b-dspark").string(), "--draft-tokens", "2"});
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    if (!entry.is_directory()) continue;
    const Result<config::ModelConfig> model = config::load_model(entry.path().string(), {});
    if (!model) continue;
    const LoadedModel loaded{.config = *model};
    add_stated(out.own, out.shared, with_draft, &loaded);
  }
  return out;
}

std::vector<const RuleTable*> engine_tables() {
  std::vector<const RuleTable*> out;
  for (const std::string_view engine : features::engines_with_rules()) {
    if (engine == "all") continue;
    for (const RuleTable* table : features::rule_tables(engine)) out.push_back(table);
  }
  return out;
}

// Of an object whose members the table does not name: lora_config.lora_dir.
bool is_in_open_object(const features::ArgumentTable& known, const std::string& name) {
  const features::ArgumentInfo* const object = known.find(name.substr(0, name.rfind('.')));
  return object != nullptr && object->open;
}

// An argument needs a row of the engine's argument table, under its name or an alias, or is what a
// common option says ("_cache_type" is --kv).
bool is_argument(const RuleTable& table, const FieldInfo& field) {
  if (field.kind != FieldKind::kArgument) return false;
  if (field.name.starts_with('_') && !field.option.empty()) return true;
  const auto* const known = features::find_argument_table(table.engine, table.version);
  if (known == nullptr || known->find(field.name) != nullptr) return true;
  if (is_in_open_object(*known, field.name)) return true;
  return std::any_of(field.aliases.begin(), field.aliases.end(),
                     [known](const std::string& alias) { return known->find(alias) != nullptr; });
}

TEST(FactsOfRules, OfEveryEngine_AreStatedBySomeInput) {
  for (const RuleTable* table : engine_tables()) {
    const Names stated = stated_by_all_models(*table).own;
    const Names made = fields_made(*table);
    for (const std::string& name : fields_read(*table)) {
      const FieldInfo& field = table->schema.field(*table->schema.find(name));
      const bool reachable = is_argument(*table, field) || stated.contains(name) ||
                             made.contains(name) || !field.only_batch.empty();
      EXPECT_TRUE(reachable) << with_version(*table) << ": rules read " << name
                             << ", and no option, file or model states it; if only a question of "
                                "--batch does, say so in its only_batch";
    }
  }
}

TEST(FactsOfRules, OfAllEngines_AreStatedBySomeInput) {
  const RuleTable& shared = *features::find_rule_table("all");
  Names stated;
  for (const RuleTable* table : engine_tables()) stated.merge(stated_by_all_models(*table).shared);
  for (const std::string& name : fields_read(shared)) {
    const FieldInfo& field = shared.schema.field(*shared.schema.find(name));
    EXPECT_TRUE(stated.contains(name) || !field.only_batch.empty()) << name;
  }
}

TEST(FactsOfRules, MarkedForBatch_AreNotStatedOtherwise) {
  for (const RuleTable* table : engine_tables()) {
    const Names stated = stated_by_all_models(*table).own;
    for (const FieldInfo& field : table->schema.fields()) {
      EXPECT_FALSE(!field.only_batch.empty() && stated.contains(field.name)) << field.name;
    }
  }
}

}  // namespace
}  // namespace kernelpath::cli
