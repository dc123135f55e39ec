"""The converter's tables: which Hugging Face architecture becomes which GGUF architecture."""

import ast
import pathlib


def parse(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def assigned(tree: ast.Module, name: str) -> ast.expr:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.value
    raise SystemExit(f"llama.cpp: {name} is not assigned")


def arch_names(constants: ast.Module) -> dict:
    table = assigned(constants, "MODEL_ARCH_NAMES")
    return {key.attr: ast.literal_eval(value) for key, value in zip(table.keys, table.values)}


class Converter:
    """Classes of conversion/*.py with what they register and derive from."""

    def __init__(self, root: pathlib.Path):
        self.names = arch_names(parse(root / "gguf-py/gguf/constants.py"))
        self.classes = {}
        self.registered = {}
        for path in sorted((root / "conversion").glob("*.py")):
            for node in parse(path).body:
                if isinstance(node, ast.ClassDef):
                    self._add(path.stem, node)
        package = parse(root / "conversion/__init__.py")
        self.text_map = ast.literal_eval(assigned(package, "TEXT_MODEL_MAP"))
        self.mmproj_map = ast.literal_eval(assigned(package, "MMPROJ_MODEL_MAP"))

    def _add(self, module: str, node: ast.ClassDef) -> None:
        self.classes[node.name] = node
        for decorator in node.decorator_list:
            called = isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute)
            if called and decorator.func.attr == "register":
                for argument in decorator.args:
                    self.registered.setdefault((module, ast.literal_eval(argument)), []).append(
                        node.name)

    def arch(self, class_name: str) -> str:
        """model_arch of a class or of the first base that sets it; empty if none does."""
        node = self.classes.get(class_name)
        if node is None:
            return ""
        for statement in node.body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Name) and target.id == "model_arch":
                return statement.value.attr
        for base in node.bases:
            found = self.arch(getattr(base, "id", getattr(base, "attr", "")))
            if found:
                return found
        return ""

    def rows(self, modules: dict, mmproj: bool) -> list:
        """One row an architecture that the converter really has a class for, in its table's order."""
        out = []
        for name, module in modules.items():
            for class_name in self.registered.get((module, name), []):
                arch = self.arch(class_name)
                if (arch == "MMPROJ") == mmproj:
                    out.append({"architecture": name, "gguf": self.names[arch],
                                "converter": class_name, "module": module})
        return out

    def unregistered(self) -> list:
        """Names that the table lists but no class of its module registers for text."""
        found = {row["architecture"] for row in self.rows(self.text_map, mmproj=False)}
        return [name for name in self.text_map if name not in found]
