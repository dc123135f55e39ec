"""Runs clang-tidy on C++ sources. A file that was clean is checked again only when the file, a header
that it reaches, its compile command, .clang-tidy or clang-tidy itself has changed.

usage: run_tidy.py FILE…

The compile commands are those of the preset "release", which is configured where one is missing.
What was clean is remembered in build/release/tidy. As many files are checked at a time as there are
processors for this process: `taskset -c 0 scripts/lint tidy` checks one by one.

Exit codes: 0 clean, 1 something found.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "release"
TIDY = [
    "clang-tidy",
    f"-p={BUILD}",
    "--quiet",
    f"--header-filter=^{re.escape(str(ROOT))}/(lib|apps)/",
    "--extra-arg=-Wno-unknown-warning-option",  # the compile commands have g++'s own flags
]
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FINDING = re.compile(r"^(?=\S+:\d+:\d+: (?:warning|error): )", re.MULTILINE)


def read_commands() -> dict[pathlib.Path, str]:
    database = BUILD / "compile_commands.json"
    if not database.is_file():
        return {}
    rows = json.loads(database.read_text(encoding="utf-8"))
    return {pathlib.Path(row["file"]): row["command"] for row in rows}


def compile_commands(files: list[pathlib.Path]) -> dict[pathlib.Path, str]:
    """The compile command of each file that the build has."""
    commands = read_commands()
    if all(file in commands for file in files):
        return commands
    subprocess.run(
        ["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    return read_commands()


def reached(file: pathlib.Path) -> list[pathlib.Path]:
    """The file and every header of this project that it reaches, sorted."""
    found: set[pathlib.Path] = set()
    waiting = [file]
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        found.add(current)
        for name in INCLUDE.findall(current.read_bytes()):
            places = (folder / name.decode() for folder in (ROOT / "lib", current.parent))
            waiting.extend(place for place in places if place.is_file())
    return sorted(found)


def key_of(file: pathlib.Path, command: str, version: str) -> str:
    """Changes with everything that the verdict on a file depends on."""
    parts = [version.encode(), command.encode(), (ROOT / ".clang-tidy").read_bytes()]
    for path in reached(file):
        parts += [str(path).encode(), path.read_bytes()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def check(file: pathlib.Path, command: str, version: str) -> str:
    """What clang-tidy says about the file; empty where it is clean."""
    remembered = BUILD / "tidy" / file.relative_to(ROOT).with_suffix(".clean")
    key = key_of(file, command, version)
    if remembered.is_file() and remembered.read_text(encoding="utf-8") == key:
        return ""
    done = subprocess.run([*TIDY, str(file)], capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stdout.strip():
        return done.stdout or done.stderr or f"clang-tidy ended with status {done.returncode}\n"
    remembered.parent.mkdir(parents=True, exist_ok=True)
    remembered.write_text(key, encoding="utf-8")
    return ""


def main() -> int:
    files = [(ROOT / name).resolve() for name in sys.argv[1:]]
    commands = compile_commands(files)
    version = subprocess.run(
        ["clang-tidy", "--version"], capture_output=True, text=True, check=True
    ).stdout
    failed: list[str] = []
    printed: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        checks = {
            pool.submit(check, file, commands[file], version): str(file.relative_to(ROOT))
            for file in files
            if file in commands
        }
        for done in concurrent.futures.as_completed(checks):
            if not done.result():
                continue
            failed.append(checks[done])
            # A header's finding comes with each source that reaches it; once is enough.
            findings = [part for part in FINDING.split(done.result()) if part not in printed]
            printed.update(findings)
            print("".join(findings), end="", flush=True)
    for file in files:
        if file not in commands:
            print(f"tidy: {file.relative_to(ROOT)}: not part of this build, not checked")
    if failed:
        print(f"tidy: {len(failed)} of {len(checks)} files failed: {' '.join(sorted(failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
