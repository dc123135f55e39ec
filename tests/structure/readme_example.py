"""The examples in the README are what the programs really print.

usage: readme_example.py BIN_FOLDER
"""

import pathlib
import re
import shlex
import subprocess
import sys

import checks

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROMPT = re.compile(r"\$ build/release/bin/(llm-[a-z]+) ")


def problem(block: str, programs: pathlib.Path) -> str | None:
    command, _, expected = block.partition("\n")
    prompt = PROMPT.match(command)
    if prompt is None:
        return f"no program of the build is run by: {command}"
    arguments = shlex.split(command[prompt.end() :])
    done = subprocess.run(
        [programs / prompt.group(1), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    # A finding is an example, too; an error is none.
    if done.returncode in (0, 1) and done.stdout == expected:
        return None
    return f"exit code {done.returncode} of {command}; the program prints\n{done.stdout}"


def main() -> int:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    opening = checks.opening_blocks(readme, "console")
    if len(opening) != 1 or not opening[0].startswith("$ build/release/bin/llm-inspect "):
        print("README.md opens without one example of llm-inspect")
        return 1
    blocks = re.findall(r"^```console\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    problems = [text for block in blocks if (text := problem(block, pathlib.Path(sys.argv[1])))]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
