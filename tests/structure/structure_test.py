"""Tests of the project's shape: each check on the repository, and on a tree that breaks its rule."""

import lzma
import os
import pathlib
import re
import shutil
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


class ArchitectureTest(StructureTest):
    def test_repository_describes_its_folders(self):
        self.assert_clean(checks.architecture_problems)

    def test_folder_without_a_row_is_named(self):
        self.write("lib/base/error.h", "")
        self.write("lib/engines/vllm/engine.h", "")
        self.write("lib/kv/layout.h", "")
        self.write("docs/architecture.md", "| `lib/base` | errors |\n| `lib/engines/<engine>` | |\n")
        self.assertEqual(
            checks.architecture_problems(self.root),
            ["docs/architecture.md has no row for lib/kv"],
        )


class TestNamesTest(StructureTest):
    def test_repository_names_condition_and_result(self):
        self.assert_clean(checks.test_name_problems)

    def test_name_without_result_is_named(self):
        self.write(
            "tests/unit/base/a_test.cpp",
            "TEST(ParseBytes, Works) {}\nTEST_F(ParseBytes, BareLetter_IsRefused) {}\n"
            "TEST_P(BadBytes, IsRefused) {}\n",
        )
        self.assertEqual(
            checks.test_name_problems(self.root),
            ["tests/unit/base/a_test.cpp: ParseBytes.Works is not named Condition_Result"],
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

    def test_update_test_data_copies_packs_removes_and_rests(self):
        script = self.root / "scripts" / "update-test-data"
        script.parent.mkdir()
        shutil.copy(ROOT / "scripts" / "update-test-data", script)
        self.write("reference/configs/a/config.json", "{}")
        self.write("reference/configs/b/config.json", "{}")
        self.write("reference/golden/trtllm/x.jsonl", '{"id": 1}\n')
        self.write("reference/golden/trtllm/y.json", '{"y": 1}\n')
        copied = re.findall(r'^    \("([^"]+)", "', script.read_text(encoding="utf-8"), re.MULTILINE)
        others = [folder for folder in copied if folder not in ("configs", "golden/trtllm")]
        for folder in others:
            self.write(f"reference/{folder}/other.jsonl", "{}\n")

        def update() -> dict[str, bytes]:
            subprocess.run(
                [script, self.root / "reference"], check=True, stdout=subprocess.DEVNULL
            )
            data = self.root / "tests" / "data"
            files = (path for path in data.rglob("*")
                     if path.is_file() and path.name != "other.jsonl.xz")
            return {str(path.relative_to(data)): path.read_bytes() for path in files}

        recorded = ["golden/trtllm/x.jsonl.xz", "golden/trtllm/y.json.xz"]
        first = update()
        self.assertEqual(
            sorted(first),
            ["configs/a/config.json", "configs/b/config.json", *recorded],
        )
        self.assertEqual(lzma.decompress(first["golden/trtllm/x.jsonl.xz"]), b'{"id": 1}\n')
        self.assertEqual(update(), first)
        (self.root / "reference/configs/b/config.json").unlink()
        self.assertEqual(sorted(update()), ["configs/a/config.json", *recorded])


class ScriptsTest(StructureTest):
    """The scripts that a newcomer starts."""

    def run_script(self, name: str, *arguments: str, **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            [ROOT / "scripts" / name, *arguments], capture_output=True, text=True, **options
        )

    def test_help_goes_to_standard_output(self):
        for name in ("quickstart", "test", "lint"):
            done = self.run_script(name, "--help")
            self.assertEqual(done.returncode, 0, name)
            self.assertTrue(done.stdout.startswith(f"usage: scripts/{name}"), name)

    def test_unknown_option_is_wrong_use(self):
        for name in ("quickstart", "test", "lint"):
            done = self.run_script(name, "--nothing")
            self.assertEqual((done.returncode, done.stdout), (2, ""), name)

    def test_no_install_names_what_is_missing(self):
        for tool in ("bash", "cut", "dirname", "env", "sed", "tr"):
            (self.root / tool).symlink_to(shutil.which(tool))
        for name in ("quickstart", "test"):
            environment = {**os.environ, "PATH": str(self.root)}
            done = self.run_script(name, "--no-install", env=environment)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("required and not installed", done.stderr)
            self.assertIn("libsimdjson-dev", done.stderr)


if __name__ == "__main__":
    unittest.main()
