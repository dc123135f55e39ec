"""Tests of the project's shape: each check on the repository, and on a tree that breaks its rule."""

import pathlib
import subprocess
import tempfile
import unittest

import checks

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class StructureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def assert_clean(self, check) -> None:
        problems = check(ROOT)
        self.assertEqual(problems, [], "\n" + "\n".join(problems))


class IncludesTest(StructureTest):
    def test_repository_points_one_way(self):
        self.assert_clean(checks.include_problems)

    def test_wrong_direction_is_named(self):
        self.write("lib/json/value.h", '#include "config/load.h"\n')
        self.write("lib/config/load.h", '#include "json/value.h"\n#include "base/error.h"\n')
        self.write("lib/base/error.h", "")
        self.assertEqual(
            checks.include_problems(self.root),
            ["lib/json/value.h:1: json may not include config"],
        )

    def test_unknown_folder_and_missing_header_are_named(self):
        self.write("lib/other/a.h", "")
        self.write("lib/base/b.h", '#include "c.h"\n')
        self.assertEqual(
            checks.include_problems(self.root),
            [
                "lib/base/b.h:1: there is no lib/c.h",
                "lib/other/a.h: lib/other is not in the table of include directions",
            ],
        )

    def test_repository_has_no_cycle(self):
        self.assert_clean(checks.cycle_problems)

    def test_cycle_is_named(self):
        self.write("lib/base/a.h", '#include "base/b.h"\n')
        self.write("lib/base/b.h", '#include "base/a.h"\n')
        self.assertEqual(
            checks.cycle_problems(self.root), ["base/a.h -> base/b.h -> base/a.h"]
        )


class SizesTest(StructureTest):
    def test_repository_keeps_files_small(self):
        self.assert_clean(checks.size_problems)

    def test_long_file_needs_a_reason(self):
        self.write("lib/base/a.cpp", "\n" * 501)
        self.write("lib/base/b.cpp", "// Over 500 lines: one table.\n" + "\n" * 500)
        self.write("apps/x/main.cpp", "\n" * 201)
        self.assertEqual(
            checks.size_problems(self.root),
            [
                "apps/x/main.cpp: 201 lines, 200 are allowed without a reason",
                "lib/base/a.cpp: 501 lines, 500 are allowed without a reason",
            ],
        )


class DocumentsTest(StructureTest):
    def test_links_lead_somewhere(self):
        self.assert_clean(checks.link_problems)

    def test_broken_links_are_named(self):
        self.write("a.md", "# One head\n[b](b.md) [c](c.md#x) [d](#one-head) [e](https://e.org)\n")
        self.write("c.md", "# Y\n")
        self.assertEqual(
            checks.link_problems(self.root),
            ["a.md: no such file: b.md", "a.md: no such heading: c.md#x"],
        )

    def test_readme_opens_with_two_commands(self):
        self.assert_clean(checks.readme_problems)

    def test_third_command_is_refused(self):
        self.write("README.md", "# t\n```sh\nscripts/quickstart\nscripts/test\nmake\n```\n## n\n")
        self.assertEqual(len(checks.readme_problems(self.root)), 1)


class TablesTest(StructureTest):
    """The engine tables in the repository are what the script writes, to the byte."""

    def test_trtllm_tables_are_up_to_date(self):
        script = ROOT / "scripts" / "extract-profile"
        subprocess.run(
            [script, "trtllm", "--output", self.root], check=True, stdout=subprocess.DEVNULL
        )
        written = {p.relative_to(self.root): p.read_bytes() for p in self.root.rglob("*.json")}
        self.assertTrue(written)
        for name, content in written.items():
            self.assertEqual((ROOT / "data" / "engines" / name).read_bytes(), content, name)


if __name__ == "__main__":
    unittest.main()
