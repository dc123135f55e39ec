// Random histories of a registry, compared with a model that keeps no state but the history.
#include "registry/function_loader.h"
#include "registry/registry.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace kernelpath::registry {
namespace {

// Modules 0–2 are built in (each has an index row for one architecture), 3–5 are external. Module m
// registers its class for the architectures whose bits are set in its mask.
constexpr int kModules = 6;
constexpr int kArchitectures = 3;

bool built_in(int module) { return module < 3; }
std::string module_name(int module) {
  return (built_in(module) ? "zoo." : "acme.") + std::string("m") + std::to_string(module);
}
std::string arch_name(int architecture) { return "Arch" + std::to_string(architecture); }

struct Step {
  enum class Op { kImport, kLookUp, kDeclare } op;
  int argument;                 // module or architecture
  std::map<int, int> declared;  // architecture → module
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << static_cast<int>(step.op) << ":" << step.argument << "/" << step.declared.size();
}

// What the rules of the registry say, computed anew from everything that happened.
class NaiveModel {
 public:
  explicit NaiveModel(std::vector<int> masks) : masks_(std::move(masks)) {}

  void import(int module) {
    if (std::find(order_.begin(), order_.end(), module) != order_.end()) return;
    order_.push_back(module);
    applied_.push_back(module);
  }

  void declare(const std::map<int, int>& declared) {
    if (declared == declared_) return;
    declared_ = declared;
    applied_.clear();
    for (const int module : order_) {
      if (built_in(module)) applied_.push_back(module);
    }
    std::set<int> external;
    for (const auto& row : declared) {
      const bool loaded = std::find(order_.begin(), order_.end(), row.second) != order_.end();
      if (loaded && external.insert(row.second).second) applied_.push_back(row.second);
    }
    replayed_ = applied_.size();
  }

  std::string look_up(int architecture) {
    if (owner(architecture).empty()) {
      const auto declared = declared_.find(architecture);
      import(declared == declared_.end() ? architecture : declared->second);
    }
    return owner(architecture);
  }

  // The module that holds the slot: the last external of the history, else the first built-in.
  [[nodiscard]] std::string owner(int architecture) const {
    std::string holder;
    for (std::size_t i = 0; i < applied_.size(); ++i) {
      const int module = applied_[i];
      const bool registers = (masks_[static_cast<std::size_t>(module)] >> architecture & 1) != 0;
      const auto declared = declared_.find(architecture);
      const bool skipped =
          i < replayed_ && declared != declared_.end() && declared->second != module;
      if (!registers || skipped) continue;
      if (holder.empty() || !built_in(module)) holder = module_name(module);
    }
    return holder;
  }

 private:
  std::vector<int> masks_;
  std::vector<int> order_;    // of loading
  std::vector<int> applied_;  // what filled the slots since the last declaration
  std::size_t replayed_ = 0;  // how many of them came out of the log
  std::map<int, int> declared_;
};

std::vector<int> any_masks() {
  std::vector<int> masks;
  for (int module = 0; module < kModules; ++module) {
    masks.push_back(*rc::gen::inRange(0, 1 << kArchitectures));
  }
  return masks;
}

std::vector<Step> any_steps() {
  std::vector<Step> steps(*rc::gen::inRange<std::size_t>(0, 20));
  for (Step& step : steps) {
    step.op = static_cast<Step::Op>(*rc::gen::inRange(0, 3));
    step.argument = *rc::gen::inRange(0, step.op == Step::Op::kImport ? kModules : kArchitectures);
    if (step.op != Step::Op::kDeclare) continue;
    for (int architecture = 0; architecture < kArchitectures; ++architecture) {
      if (*rc::gen::arbitrary<bool>()) {
        step.declared[architecture] = *rc::gen::inRange(3, kModules);
      }
    }
  }
  return steps;
}

struct Subject {
  explicit Subject(const std::vector<int>& masks) {
    index.package = "zoo";
    for (int a = 0; a < kArchitectures; ++a) {
      index.architectures.add(arch_name(a), "m" + std::to_string(a));
    }
    for (int module = 0; module < kModules; ++module) {
      const int mask = masks[static_cast<std::size_t>(module)];
      loader.add(module_name(module), [mask](Registrar& to) -> std::optional<Failure> {
        for (int a = 0; a < kArchitectures; ++a) {
          if ((mask >> a & 1) != 0) to.model_class(arch_name(a), "Class");
        }
        return std::nullopt;
      });
    }
  }

  void declare(const std::map<int, int>& declared) {
    Declaration rows;
    for (const auto& [architecture, module] : declared) {
      rows.emplace_back(arch_name(architecture), module_name(module));
    }
    registry.declare(std::move(rows));
  }

  std::string look_up(int architecture) {
    const Found found = registry.model_class(arch_name(architecture));
    return found.provider ? found.provider->module : "";
  }

  StaticIndex index;
  FunctionLoader loader;
  Registry registry{index, loader};
};

RC_GTEST_PROP(RegistryProperty, AnyHistory_AgreesWithTheNaiveModel, ()) {
  const std::vector<int> masks = any_masks();
  Subject subject(masks);
  NaiveModel model(masks);
  for (const Step& step : any_steps()) {
    RC_LOG() << step << "\n";
    switch (step.op) {
      case Step::Op::kImport:
        RC_ASSERT(!subject.registry.import(module_name(step.argument)).has_value());
        model.import(step.argument);
        break;
      case Step::Op::kLookUp:
        RC_ASSERT(subject.look_up(step.argument) == model.look_up(step.argument));
        break;
      case Step::Op::kDeclare:
        subject.declare(step.declared);
        model.declare(step.declared);
        break;
    }
  }
  for (int architecture = 0; architecture < kArchitectures; ++architecture) {
    RC_ASSERT(subject.look_up(architecture) == model.look_up(architecture));
  }
}

RC_GTEST_PROP(RegistryProperty, AnyLoadOrder_TheLastExternalWins, ()) {
  const std::vector<int> masks = any_masks();
  std::vector<int> order(kModules);
  for (int module = 0; module < kModules; ++module) {
    order[static_cast<std::size_t>(module)] = module;
  }
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  Subject subject(masks);
  for (const int module : order) {
    RC_ASSERT(!subject.registry.import(module_name(module)).has_value());
  }
  for (int architecture = 0; architecture < kArchitectures; ++architecture) {
    std::string first_built_in;
    std::string last_external;
    for (const int module : order) {
      if ((masks[static_cast<std::size_t>(module)] >> architecture & 1) == 0) continue;
      if (!built_in(module)) last_external = module_name(module);
      if (built_in(module) && first_built_in.empty()) first_built_in = module_name(module);
    }
    RC_ASSERT(subject.look_up(architecture) ==
              (last_external.empty() ? first_built_in : last_external));
  }
}

RC_GTEST_PROP(RegistryProperty, EveryRegistration_IsLoggedOnce, ()) {
  const std::vector<int> masks = any_masks();
  Subject subject(masks);
  std::set<int> loaded;
  for (const Step& step : any_steps()) {
    if (step.op == Step::Op::kDeclare) subject.declare(step.declared);
    if (step.op != Step::Op::kImport) continue;
    RC_ASSERT(!subject.registry.import(module_name(step.argument)).has_value());
    loaded.insert(step.argument);
  }
  std::size_t expected = 0;
  for (const int module : loaded) {
    for (int a = 0; a < kArchitectures; ++a) {
      expected += static_cast<std::size_t>(masks[static_cast<std::size_t>(module)] >> a & 1);
    }
  }
  std::size_t logged = 0;
  for (const ModuleLog& log : subject.registry.log()) logged += log.entries.size();
  RC_ASSERT(logged == expected);
}

}  // namespace
}  // namespace kernelpath::registry
