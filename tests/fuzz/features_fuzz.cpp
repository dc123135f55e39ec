// Readers of what users give to llm-validate: options files, command lines, conditions of rule
// files.
#include "features/command_line.h"
#include "features/context.h"
#include "features/expression.h"
#include "features/rule_table.h"
#include "features/stated_arguments.h"
#include "features/yaml.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using kernelpath::features::Arena;
using kernelpath::features::Context;
using kernelpath::features::find_rule_table;
using kernelpath::features::parse_expression;
using kernelpath::features::parse_yaml;
using kernelpath::features::read_command;
using kernelpath::features::StatedArguments;
using kernelpath::features::YamlDocument;

namespace {

void judge_file(const YamlDocument& document) {
  StatedArguments stated;
  stated.add_file(document);
  Context context(*find_rule_table("trtllm"));
  context.state(stated.tree());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      if (const auto document = parse_yaml(text, "options.yaml")) judge_file(*document);
      break;
    case 1:
      (void)read_command("trtllm-serve " + text);
      break;
    default: {
      Arena arena;
      (void)parse_expression(text, find_rule_table("trtllm")->schema, arena);
    }
  }
  return 0;
}
