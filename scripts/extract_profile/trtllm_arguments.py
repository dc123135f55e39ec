"""TensorRT-LLM's arguments: every field of TorchLlmArgs and of the configurations in it.

The source says what a field is. What it does not say, or what the rules of data/rules say better,
stands in trtllm_annotations.json beside this file, each entry with its reason.
"""

import ast
import math

from trtllm_source import Field, Module, SourceError, arithmetic

ROOT = "TorchLlmArgs"
SIMPLE = {
    "bool": {"type": "bool"},
    "int": {"type": "integer"},
    "StrictInt": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "Path": {"type": "string"},
    "NonNegativeInt": {"type": "integer", "min": 0},
    "PositiveInt": {"type": "integer", "above": 0},
    "NonNegativeFloat": {"type": "number", "min": 0},
    "PositiveFloat": {"type": "number", "above": 0},
}
LISTS = ("List", "list", "Set", "set", "Tuple", "tuple")
OBJECTS = ("Dict", "dict")
BOUNDS = {"ge": "min", "gt": "above", "le": "max", "lt": "below"}
ORDER = ("name", "type", "default", "choices", "any_case", "min", "above", "max", "below", "only_for",
         "open", "deprecated")


def plain_number(value: float) -> float:
    return int(value) if isinstance(value, float) and value == math.floor(value) else value


def merged(parts: list[dict]) -> dict:
    """What a value of any of these types may be."""
    parts = [p for i, p in enumerate(parts) if p not in parts[:i]]
    if len(parts) == 1:
        return parts[0]
    types = {part["type"] for part in parts}
    if types == {"integer", "number"}:
        return {"type": "number"}
    closed = all("choices" in part or part["type"] == "bool" for part in parts)
    if closed and len(types) > 1:
        choices: list = []
        for part in parts:
            choices += part.get("choices", [True, False])
        return {"type": "any", "choices": choices}
    return {"type": types.pop()} if len(types) == 1 else {"type": "any"}


class Types:
    """What the annotations of a module mean."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def variants(self, node: ast.expr) -> tuple[list[str], str]:
        """The classes of Annotated[Union[A, B], Field(discriminator="x")], and x."""
        if isinstance(node, ast.Name) and node.id in self.module.aliases:
            return self.variants(self.module.aliases[node.id])
        if not isinstance(node, ast.Subscript):
            return [], ""
        head = ast.unparse(node.value)
        if head == "Optional":
            return self.variants(node.slice)
        if head != "Annotated" or not isinstance(node.slice, ast.Tuple):
            return [], ""
        union, *marks = node.slice.elts
        for mark in marks:
            for keyword in getattr(mark, "keywords", []):
                if keyword.arg == "discriminator":
                    return [item.id for item in union.slice.elts], ast.literal_eval(keyword.value)
        return [], ""

    def model(self, node: ast.expr) -> str:
        """The class of a nested configuration; empty if it is none of this module's."""
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Optional":
            return self.model(node.slice)
        name = node.id if isinstance(node, ast.Name) else ""
        alias = self.module.aliases.get(name)
        if isinstance(alias, ast.Name):
            return self.model(alias)
        return name if self.module.is_model(name) else ""

    def of(self, node: ast.expr) -> dict:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.of(ast.parse(node.value, mode="eval").body)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.union([node.left, node.right])
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.Name):
            return self.name(node.id)
        return {"type": "any"}

    def name(self, name: str) -> dict:
        if name in SIMPLE:
            return dict(SIMPLE[name])
        if name in self.module.aliases:
            return self.of(self.module.aliases[name])
        if self.module.is_enum(name):
            values = list(self.module.enum(name).values())
            strings = all(isinstance(value, str) for value in values)
            return {"type": "string", "choices": values} if strings else {"type": "any"}
        if self.module.is_model(name):
            return {"type": "object"}
        # A class of another module: its members are not known here.
        return {"type": "object", "open": True} if name.endswith("Config") else {"type": "any"}

    def subscript(self, node: ast.Subscript) -> dict:
        head = ast.unparse(node.value).split(".")[-1]
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if head in ("Optional", "Union"):
            return self.union(inner)
        if head == "Annotated":
            out = self.of(inner[0])
            for mark in inner[1:]:
                out.update(bounds({k.arg: k.value for k in getattr(mark, "keywords", [])}))
            return out
        if head == "Literal":
            values = [ast.literal_eval(item) for item in inner]
            strings = all(isinstance(value, str) for value in values)
            return {"type": "string" if strings else "any", "choices": values}
        if head in LISTS:
            return {"type": "list"}
        if head in OBJECTS:
            return {"type": "object", "open": True}
        raise SourceError(f"line {node.lineno}: {ast.unparse(node)} is no type that is known")

    def union(self, nodes: list[ast.expr]) -> dict:
        nones = [n for n in nodes if not (isinstance(n, ast.Constant) and n.value is None)]
        return merged([self.of(node) for node in nones])


def bounds(keywords: dict[str, ast.expr]) -> dict:
    return {BOUNDS[key]: plain_number(arithmetic(value))
            for key, value in keywords.items() if key in BOUNDS}


class Reader:
    def __init__(self, module: Module, annotations: dict) -> None:
        self.module = module
        self.types = Types(module)
        self.annotations = annotations
        self.rows: dict[str, dict] = {}
        self.discriminators: dict[str, str] = {}

    def run(self) -> list[dict]:
        self.fields(ROOT, "", [])
        for name, row in self.annotations["added"].items():
            if name in self.rows:
                raise SourceError(f"'{name}' is declared now: it need not be added")
            self.rows[name] = {"name": name, **{k: v for k, v in row.items() if k != "because"}}
        for name in self.annotations["changed"]:
            self.change(name)
        return [{key: row[key] for key in ORDER if key in row} for row in self.rows.values()]

    def change(self, name: str) -> None:
        if name not in self.rows:
            raise SourceError(f"'{name}' is annotated, but the source does not declare it")
        row, change = self.rows[name], self.annotations["changed"][name]
        for key in change.get("without", []):
            if key not in row:
                raise SourceError(f"'{name}' has no '{key}' to leave out")
            del row[key]
        row.update({k: v for k, v in change.items() if k not in ("because", "without")})

    def fields(self, name: str, prefix: str, only_for: list[str]) -> None:
        converted = self.module.validated_before(name)
        for field in self.module.fields(name):
            for spelling in field.names():
                self.field(field, prefix + spelling, only_for, field.name in converted)

    def field(self, field: Field, path: str, only_for: list[str], converted: bool) -> None:
        variants, discriminator = self.types.variants(field.annotation)
        model = self.types.model(field.annotation)
        if variants:
            self.add(path, {"type": "object"}, only_for)
            self.members_of_variants(path, variants, discriminator)
            return
        row = self.types.of(field.annotation)
        row.update(bounds(field.keywords))
        default = self.default(field)
        if default is not None and row["type"] != "object":
            row["default"] = default
        if self.deprecated(field):
            row["deprecated"] = self.deprecated(field)
        # A converter may take other types than the field holds.
        if converted and row["type"] in ("integer", "number") and path not in self.annotations["changed"]:
            raise SourceError(f"'{path}' is converted before it is checked: annotate what it takes")
        self.add(path, row, only_for)
        if model:
            self.fields(model, path + ".", [])

    def members_of_variants(self, path: str, variants: list[str], discriminator: str) -> None:
        inferred = path in self.annotations["inferred_variants"]
        if not inferred:
            self.discriminators[path] = f"{path}.{discriminator}"
        self.add(f"{path}.{discriminator}", {"type": "string", "choices": []}, [])
        values = [self.variant_value(variant, discriminator) for variant in variants]
        self.rows[f"{path}.{discriminator}"]["choices"] = values
        owners: dict[str, list[str]] = {}
        for variant, value in zip(variants, values):
            for field in self.module.fields(variant):
                for spelling in field.names():
                    owners.setdefault(spelling, []).append(value)
        for variant in variants:
            converted = self.module.validated_before(variant)
            for field in self.module.fields(variant):
                for spelling in field.names():
                    if spelling == discriminator:
                        continue
                    everywhere = inferred or len(owners[spelling]) == len(values)
                    self.field(field, f"{path}.{spelling}", [] if everywhere else owners[spelling],
                               field.name in converted)

    def variant_value(self, variant: str, discriminator: str) -> str:
        for field in self.module.fields(variant):
            if field.name == discriminator:
                return self.types.of(field.annotation)["choices"][0]
        raise SourceError(f"{variant} has no {discriminator}")

    def default(self, field: Field) -> object:
        node = field.default
        if node is None or (isinstance(node, ast.Constant) and node.value in (None, ...)):
            return None
        if isinstance(node, ast.Attribute) and self.module.is_enum(ast.unparse(node.value)):
            value = self.module.enum(ast.unparse(node.value))[node.attr]
            return value if isinstance(value, str) else node.attr.lower()
        if isinstance(node, ast.Attribute):
            return node.attr
        return arithmetic(node)

    @staticmethod
    def deprecated(field: Field) -> str:
        note = field.keywords.get("deprecated")
        status = field.keywords.get("status")
        if note is not None and ast.literal_eval(note) is not True:
            text = ast.literal_eval(note).rstrip(".")
            return text[0].lower() + text[1:]
        deprecated = status is not None and ast.literal_eval(status) == "deprecated"
        return "no replacement" if deprecated or note is not None else ""

    def add(self, path: str, row: dict, only_for: list[str]) -> None:
        row = {"name": path, **row}
        if only_for:
            row["only_for"] = only_for
        known = self.rows.get(path)
        if known is None:
            self.rows[path] = row
            return
        # Two variants have it: what they agree on.
        if known["type"] != row["type"]:
            known["type"] = merged([{"type": known["type"]}, {"type": row["type"]}])["type"]
        for key in list(known):
            if key not in ("name", "type", "only_for") and known[key] != row.get(key):
                del known[key]


def arguments(text: str, annotations: dict) -> tuple[list[dict], dict[str, str]]:
    """The rows of the argument table and its discriminators."""
    reader = Reader(Module(text), annotations)
    return reader.run(), reader.discriminators
