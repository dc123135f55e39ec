#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace kernelpath::cli {
namespace {

TEST(UseColor, Auto_AsksTheStream) {
  EXPECT_TRUE(use_color("auto", {}, true));
  EXPECT_FALSE(use_color("auto", {}, false));
}

TEST(UseColor, NoColor_CountsUnlessEmpty) {
  EXPECT_FALSE(use_color("auto", {{{"NO_COLOR", "1"}}}, true));
  EXPECT_TRUE(use_color("auto", {{{"NO_COLOR", ""}}}, true));
  EXPECT_FALSE(use_color("auto", {{{"TERM", "dumb"}}}, true));
}

TEST(UseColor, ForceAndOption_Win) {
  EXPECT_TRUE(use_color("auto", {{{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}}, false));
  EXPECT_TRUE(use_color("always", {{{"NO_COLOR", "1"}}}, false));
  EXPECT_FALSE(use_color("never", {{{"CLICOLOR_FORCE", "1"}}}, true));
}

}  // namespace
}  // namespace kernelpath::cli
