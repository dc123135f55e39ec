"""Reads SGLang's source as data: assignments, decorators and literals, by `ast`.

Nothing of the package is executed, so neither a GPU nor its dependencies are needed. A name that a
caller asks for and the source does not have is an error, never an empty table.
"""

import ast
import functools
import pathlib


class SourceError(Exception):
    """The package does not look as the extraction expects it."""


class Package:
    """The folder that holds `sglang/`: an installed site-packages or an unpacked wheel."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.root = folder / "sglang"
        if not (self.root / "srt").is_dir():
            raise SourceError(f"{folder} holds no sglang/srt")
        self.folder = folder

    @functools.cached_property
    def version(self) -> str:
        found = sorted(self.folder.glob("sglang-*.dist-info"))
        if len(found) != 1:
            raise SourceError(f"{self.folder} holds {len(found)} sglang-*.dist-info, expected one")
        return found[0].name.removeprefix("sglang-").removesuffix(".dist-info")

    @functools.lru_cache(maxsize=None)
    def module(self, name: str) -> ast.Module:
        """`srt/models/llama.py` below the package."""
        return ast.parse((self.root / name).read_text(encoding="utf-8"))

    def modules(self, folder: str) -> list[str]:
        return sorted(f"{folder}/{p.name}" for p in (self.root / folder).glob("*.py"))


def assigned(tree: ast.AST, name: str) -> ast.expr:
    """The value of the first assignment to `name` anywhere in `tree`."""
    for node in ast.walk(tree):
        targets = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return node.value
    raise SourceError(f"no assignment to {name}")


def function(tree: ast.AST, name: str) -> ast.FunctionDef:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise SourceError(f"no function {name}")


def strings(tree: ast.AST, node: ast.expr) -> list[str]:
    """A list, tuple, set or frozenset of strings, with `*NAME` replaced by that constant."""
    if isinstance(node, ast.Call) and node.args:  # frozenset({...}), set(NAME)
        return strings(tree, node.args[0])
    if isinstance(node, ast.Name):
        return strings(tree, assigned(tree, node.id))
    if isinstance(node, ast.Dict):
        return [k.value for k in node.keys if isinstance(k, ast.Constant)]
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        raise SourceError(f"line {getattr(node, 'lineno', 0)} is no list of names")
    found = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            found += strings(tree, item.value)
        elif isinstance(item, ast.Constant) and isinstance(item.value, str):
            found.append(item.value)
        else:
            raise SourceError(f"line {item.lineno} is no name")
    return found


def string_constants(node: ast.AST) -> list[str]:
    """Every string below `node`, each once, in order of appearance."""
    found = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    return list(dict.fromkeys(s for s in found if isinstance(s, str)))


def membership(tree: ast.AST, subject: str) -> list[str]:
    """The names of the first `SUBJECT in [...]` in `tree` whose list has more than three names."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In):
            continue
        if ast.unparse(node.left) != subject:
            continue
        names = string_constants(node.comparators[0])
        if len(names) > 3:
            return names
    raise SourceError(f"no '{subject} in [...]'")


def literal(node: ast.expr):
    """A constant as JSON has it; None where it is an expression of the engine's own."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    if isinstance(value, (set, tuple)):
        return list(value)
    return value
