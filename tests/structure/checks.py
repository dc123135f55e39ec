"""The rules of the project's shape. Each check takes the repository's root and returns a list of
problems, one sentence each, empty where all is well."""

import os
import pathlib
import re

# Folder of lib/ → folders that it may include besides base; what those may include is included.
# docs/architecture.md has the same as a picture.
DIRECTION = {
    "base": [],
    "fmt": [],
    "json": ["base"],
    "tokenizer": ["json"],
    "checkpoint": ["json"],
    "config": ["json", "checkpoint"],
    "hardware": ["json"],
    "registry": ["config", "hardware"],
    "attention": ["config", "hardware"],
    "kv": ["attention"],
    "kernels": ["kv"],
    "comm": [],
    "model": ["checkpoint", "registry", "kernels", "comm"],
    "memory": ["registry", "attention"],
    "engines": ["memory"],
    "features": ["engines"],
    "report": ["features"],
    "runtime": ["model", "tokenizer", "engines"],
    "bench": ["kernels"],
    "cli": ["report", "runtime", "bench"],
}

SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
SIZE_SUFFIXES = SOURCE_SUFFIXES | {".py", ".sh", ".cmake"}
SIZE_FOLDERS = ("apps", "cmake", "lib", "scripts", "tests")
LINES = 500
KERNEL_LINES = 700
MAIN_LINES = 200
REASON = re.compile(r"Over \d+ lines: \S+")
SKIPPED = {".git", "build", "__pycache__"}


def walk(root: pathlib.Path, *below: str):
    """All files of the folders `below`, sorted, without build output and recorded data."""
    for folder in below:
        for path, folders, names in os.walk(root / folder):
            folders[:] = sorted(set(folders) - SKIPPED)
            if pathlib.Path(path) == root / "tests":
                folders[:] = [name for name in folders if name != "data"]
            yield from (pathlib.Path(path) / name for name in sorted(names))


def closure(direction: dict[str, list[str]]) -> dict[str, set[str]]:
    allowed: dict[str, set[str]] = {}
    for folder, direct in direction.items():
        allowed[folder] = {folder, "base"}.union(*(allowed[name] for name in direct))
    return allowed


def quoted_includes(path: pathlib.Path) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match:
            found.append((number, match.group(1)))
    return found


def include_problems(root: pathlib.Path) -> list[str]:
    """Includes of lib/ name their folder, exist, and point one way only."""
    allowed = closure(DIRECTION)
    problems = []
    for path in walk(root, "lib"):
        if path.suffix not in SOURCE_SUFFIXES:
            continue
        name = path.relative_to(root)
        folder = name.parts[1]
        if folder not in allowed:
            problems.append(f"{name}: lib/{folder} is not in the table of include directions")
            continue
        for number, include in quoted_includes(path):
            target = include.split("/")[0]
            if not (root / "lib" / include).is_file():
                problems.append(f"{name}:{number}: there is no lib/{include}")
            elif target not in allowed[folder]:
                problems.append(f"{name}:{number}: {folder} may not include {target}")
    return problems


def cycle_problems(root: pathlib.Path) -> list[str]:
    """No header of lib/ includes itself through others."""
    includes = {
        str(path.relative_to(root / "lib")): [include for _, include in quoted_includes(path)]
        for path in walk(root, "lib")
        if path.suffix == ".h"
    }
    problems = []
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            problems.append(" -> ".join(trail[trail.index(name) :] + [name]))
        elif name not in done:
            for include in includes.get(name, []):
                visit(include, trail + [name])
            done.add(name)

    for name in includes:
        visit(name, [])
    return problems


def size_problems(root: pathlib.Path) -> list[str]:
    """Long files say at their top why they are long: a line "Over 500 lines: …"."""
    problems = []
    for path in walk(root, *SIZE_FOLDERS):
        if path.suffix not in SIZE_SUFFIXES:
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        limit = LINES
        if path.name == "main.cpp":
            limit = MAIN_LINES
        elif "kernels" in path.parts:
            limit = KERNEL_LINES
        if len(lines) > limit and not any(REASON.search(line) for line in lines[:10]):
            name = path.relative_to(root)
            problems.append(f"{name}: {len(lines)} lines, {limit} are allowed without a reason")
    return problems


def test_name_problems(root: pathlib.Path) -> list[str]:
    """A test's name says the condition and the result. Tests with parameters have the condition in
    the name of their fixture or of the parameter."""
    problems = []
    for path in walk(root, "tests"):
        if path.suffix != ".cpp":
            continue
        text = path.read_text(encoding="utf-8")
        for subject, name in re.findall(r"^TEST(?:_F)?\(\s*(\w+),\s*(\w+)\)", text, re.MULTILINE):
            if not re.fullmatch(r"[A-Z0-9]\w*_[A-Z0-9]\w*", name):
                where = path.relative_to(root)
                problems.append(f"{where}: {subject}.{name} is not named Condition_Result")
    return problems


def architecture_problems(root: pathlib.Path) -> list[str]:
    """docs/architecture.md has a row for every folder of lib/."""
    text = (root / "docs/architecture.md").read_text(encoding="utf-8")
    folders = sorted(path.name for path in (root / "lib").iterdir() if path.is_dir())
    return [
        f"docs/architecture.md has no row for lib/{name}"
        for name in folders
        if not re.search(rf"^\| `lib/{name}[`/]", text, re.MULTILINE)
    ]


def anchors_of(path: pathlib.Path) -> set[str]:
    """Heading anchors as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") for text in headings}


def link_problem(document: pathlib.Path, target: str) -> str | None:
    path, _, anchor = target.partition("#")
    file = (document.parent / path).resolve() if path else document
    if not file.exists():
        return f"no such file: {target}"
    if anchor and file.suffix == ".md" and anchor not in anchors_of(file):
        return f"no such heading: {target}"
    return None


def link_problems(root: pathlib.Path) -> list[str]:
    """Relative links of Markdown documents lead somewhere."""
    problems = []
    for path in walk(root, "."):
        if path.suffix != ".md":
            continue
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            problem = link_problem(path, target)
            if problem:
                problems.append(f"{path.relative_to(root)}: {problem}")
    return problems


def opening_blocks(readme: str, language: str) -> list[str]:
    """Code blocks of one language before the first second-level heading."""
    opening = re.split(r"^## ", readme, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```", opening, re.MULTILINE | re.DOTALL)


def readme_problems(root: pathlib.Path) -> list[str]:
    """The README opens with exactly two commands, and they can be started."""
    blocks = opening_blocks((root / "README.md").read_text(encoding="utf-8"), "sh")
    commands = [line for block in blocks for line in block.splitlines() if line.strip()]
    scripts = [re.split(r"\s+#", line)[0].strip() for line in commands]
    if scripts != ["scripts/quickstart", "scripts/test"]:
        return [f"README.md opens with the commands {scripts}, not with quickstart and test"]
    return [f"{name} is not executable" for name in scripts if not os.access(root / name, os.X_OK)]
