"""Tests of scripts/lint: what its own checks find, and what clang-tidy is asked again."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Notes the file that it was asked about, and finds fault with those that say "bad".
TIDY = """#!/usr/bin/env bash
[ "$1" != --version ] || { echo version 14 && exit; }
file=${@: -1}
echo "$(basename "$file")" >>"$(dirname "$0")/asked"
! grep -q bad "$file" || { echo "$file:1:1: error: bad" && exit 1; }
"""


class LintTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name in ("scripts/lint", "scripts/lib/run_tidy.py"):
            self.write(name, (ROOT / name).read_text(encoding="utf-8"))
            shutil.copymode(ROOT / name, self.root / name)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def lint(self, *arguments: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": f"{self.root / 'tools'}:{os.environ['PATH']}"}
        return subprocess.run(
            [self.root / "scripts" / "lint", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )


class FilesTest(LintTest):
    def test_final_newline(self):
        self.write("good", "text\n")
        self.write("none", "text")
        self.write("two", "text\n\n")
        (self.root / "binary").write_bytes(b"a\0b")
        self.assertEqual(self.lint("final-newline", "good", "binary").returncode, 0)
        for name in ("none", "two"):
            done = self.lint("final-newline", "good", name)
            self.assertEqual(done.returncode, 1, name)
            self.assertIn(name, done.stdout)

    def test_large_files(self):
        self.write("small", "text\n")
        self.write("large", "x" * ((1 << 20) + 1))
        self.assertEqual(self.lint("large-files", "small").returncode, 0)
        done = self.lint("large-files", "small", "large")
        self.assertEqual(done.returncode, 1)
        self.assertIn("large: 1048577 bytes", done.stdout)


class TidyTest(LintTest):
    def setUp(self):
        super().setUp()
        self.write("tools/clang-tidy", TIDY)
        (self.root / "tools/clang-tidy").chmod(0o755)
        self.write(".clang-tidy", "Checks: '*'\n")
        self.write("lib/base/a.h", "int a();\n")
        self.write("lib/base/b.h", '#include "base/a.h"\n')
        self.write("lib/base/a.cpp", '#include "base/b.h"\n')
        self.write("lib/base/c.cpp", "int c();\n")
        self.write_commands("-O3")

    def write_commands(self, flags: str) -> None:
        files = [str(self.root / "lib" / "base" / name) for name in ("a.cpp", "c.cpp")]
        rows = [{"file": file, "command": f"c++ {flags} {file}"} for file in files]
        self.write("build/release/compile_commands.json", json.dumps(rows))

    def asked(self, expected_status: int = 0) -> list[str]:
        """The files that clang-tidy was asked about by one run over all."""
        note = self.root / "tools" / "asked"
        note.unlink(missing_ok=True)
        done = self.lint("tidy", "lib/base/a.cpp", "lib/base/c.cpp")
        self.assertEqual(done.returncode, expected_status, done.stdout + done.stderr)
        return sorted(note.read_text(encoding="utf-8").split()) if note.exists() else []

    def test_clean_files_are_asked_about_once(self):
        self.assertEqual(self.asked(), ["a.cpp", "c.cpp"])
        self.assertEqual(self.asked(), [])

    def test_a_change_of_what_a_file_reaches_asks_again(self):
        self.asked()
        self.write("lib/base/a.h", "long a();\n")
        self.assertEqual(self.asked(), ["a.cpp"])
        self.write("lib/base/c.cpp", "long c();\n")
        self.assertEqual(self.asked(), ["c.cpp"])

    def test_a_change_of_the_rules_or_of_the_command_asks_again(self):
        self.asked()
        self.write(".clang-tidy", "Checks: 'misc-*'\n")
        self.assertEqual(self.asked(), ["a.cpp", "c.cpp"])
        self.write_commands("-O2")
        self.assertEqual(self.asked(), ["a.cpp", "c.cpp"])

    def test_findings_fail_until_they_are_gone(self):
        self.write("lib/base/c.cpp", "bad\n")
        self.assertEqual(self.asked(expected_status=1), ["a.cpp", "c.cpp"])
        self.assertEqual(self.asked(expected_status=1), ["c.cpp"])
        done = self.lint("tidy", "lib/base/c.cpp")
        self.assertIn("lib/base/c.cpp:1:1: error: bad", done.stdout)
        self.assertIn("1 of 1 files failed: lib/base/c.cpp", done.stdout)
        self.write("lib/base/c.cpp", "good\n")
        self.assertEqual(self.asked(), ["c.cpp"])


if __name__ == "__main__":
    unittest.main()
