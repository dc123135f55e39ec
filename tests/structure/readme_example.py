"""The example in the README's opening is what the program really prints.

usage: readme_example.py PROGRAM
"""

import pathlib
import shlex
import subprocess
import sys

import checks

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROMPT = "$ build/release/bin/llm-inspect "


def main() -> int:
    blocks = checks.opening_blocks((ROOT / "README.md").read_text(encoding="utf-8"), "console")
    if len(blocks) != 1 or not blocks[0].startswith(PROMPT):
        print("README.md opens without one example of llm-inspect")
        return 1
    command, _, expected = blocks[0].partition("\n")
    arguments = shlex.split(command.removeprefix(PROMPT))
    done = subprocess.run(
        [sys.argv[1], *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0 or done.stdout != expected:
        print(f"exit code {done.returncode}; the program prints\n{done.stdout}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
