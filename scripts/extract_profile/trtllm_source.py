"""Reading TensorRT-LLM's argument classes by their syntax: nothing of the engine is imported or run."""

import ast
import dataclasses


class SourceError(Exception):
    """The source does not have the shape that the extraction knows."""


@dataclasses.dataclass
class Field:
    """One field of a pydantic class."""

    name: str
    annotation: ast.expr
    keywords: dict[str, ast.expr]
    default: ast.expr | None

    def names(self) -> list[str]:
        """The names under which it can be stated: its own, and its aliases."""
        out = [self.name]
        alias = self.keywords.get("validation_alias") or self.keywords.get("alias")
        for node in ast.walk(alias) if alias is not None else []:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                out.append(node.value)
        return list(dict.fromkeys(out))


def call_name(node: ast.expr) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def arithmetic(node: ast.expr) -> object:
    """A literal, or arithmetic over literals (1024**3, 2**31 - 1)."""
    allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.List, ast.Load)
    if not all(isinstance(part, allowed) for part in ast.walk(node)):
        raise SourceError(f"line {node.lineno}: {ast.unparse(node)} is no literal")
    return eval(compile(ast.Expression(node), "literal", "eval"), {"__builtins__": {}})


class Module:
    """The classes, enumerations and type aliases of one module."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.classes: dict[str, ast.ClassDef] = {}
        self.aliases: dict[str, ast.expr] = {}
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.aliases[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                self.aliases[node.target.id] = node.value

    def bases(self, name: str) -> list[str]:
        return [ast.unparse(base) for base in self.classes[name].bases]

    def is_enum(self, name: str) -> bool:
        return name in self.classes and any(base.split(".")[-1] in ("Enum", "StrEnum")
                                            for base in self.bases(name))

    def enum(self, name: str) -> dict[str, object]:
        """Member → value."""
        out = {}
        for node in self.classes[name].body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                out[node.targets[0].id] = arithmetic(node.value)
        return out

    def is_model(self, name: str) -> bool:
        """A class whose fields are arguments."""
        return name in self.classes and not self.is_enum(name)

    def validated_before(self, name: str) -> set[str]:
        """Fields whose value a validator converts before its type is looked at."""
        out: set[str] = set()
        for base in self.bases(name):
            if self.is_model(base):
                out |= self.validated_before(base)
        for node in self.classes[name].body:
            for mark in getattr(node, "decorator_list", []):
                if call_name(mark) != "field_validator":
                    continue
                modes = [k.value for k in mark.keywords if k.arg == "mode"]
                if modes and ast.literal_eval(modes[0]) in ("before", "plain"):
                    out |= {ast.literal_eval(argument) for argument in mark.args}
        return out

    def fields(self, name: str) -> list[Field]:
        """Those of the bases first; a field that is declared again keeps its place, as in pydantic."""
        out: dict[str, Field] = {}
        for base in self.bases(name):
            if self.is_model(base):
                out.update((field.name, field) for field in self.fields(base))
        for node in self.classes[name].body:
            field = self._field(node)
            if field is not None:
                out[field.name] = field
        return list(out.values())

    @staticmethod
    def _field(node: ast.stmt) -> Field | None:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            return None
        name = node.target.id
        private = name.startswith("_") or ast.unparse(node.annotation).startswith("ClassVar")
        if private or call_name(node.value) == "PrivateAttr":
            return None
        if call_name(node.value) not in ("Field", "PydanticField"):
            return Field(name, node.annotation, {}, node.value)
        keywords = {k.arg: k.value for k in node.value.keywords if k.arg}
        default = node.value.args[0] if node.value.args else keywords.get("default")
        return Field(name, node.annotation, keywords, default)
