"""SGLang's server arguments: the annotated fields of arg_groups/fields and what add_cli_args adds."""

import ast

from sglang_source import Package, SourceError, assigned, function, literal, strings

FIELDS = "srt/arg_groups/fields"
CHOICES = "srt/arg_groups/choices.py"
SERVER_ARGS = "srt/server_args.py"


def namespaces(package: Package) -> list[tuple[str, ast.ClassDef]]:
    """Classes in the order in which ServerArgs collects its fields."""
    order = [n.id for n in assigned(package.module(SERVER_ARGS), "_INPUT_NAMESPACES").elts]
    classes = {}
    for name in package.modules(FIELDS):
        for node in package.module(name).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] = (name, node)
    missing = [name for name in order if name not in classes]
    if missing:
        raise SourceError(f"no class of fields: {missing}")
    return [classes[name] for name in order]


class Reader:
    """One field; `tree` is its module, for constants that it names."""

    def __init__(self, package: Package, tree: ast.Module) -> None:
        self.package = package
        self.tree = tree

    def choices(self, node: ast.expr | None) -> list[str] | None:
        if node is None:
            return None
        if isinstance(node, ast.Name):
            for tree in (self.tree, self.package.module(CHOICES)):
                try:
                    return strings(tree, assigned(tree, node.id))
                except SourceError:
                    continue
            return None
        try:
            return strings(self.tree, node)
        except SourceError:
            values = literal(node)
            return [str(v) for v in values] if isinstance(values, list) else None

    def metadata(self, annotation: ast.expr) -> tuple[ast.expr, dict[str, ast.expr], bool]:
        """The type, the keywords of Arg(...), and whether the field is an option at all."""
        if not (isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "A"):
            return annotation, {}, False
        inner, *rest = annotation.slice.elts
        for item in rest:
            if isinstance(item, ast.Call) and ast.unparse(item.func) == "Arg":
                return inner, {k.arg: k.value for k in item.keywords}, True
            if isinstance(item, (ast.Constant, ast.JoinedStr, ast.BinOp)):
                return inner, {}, True
        return inner, {}, False


def type_name(node: ast.expr) -> str:
    return ast.unparse(node).replace("typing.", "")


def literal_choices(text: str) -> list[str] | None:
    start = text.find("Literal[")
    if start < 0:
        return None
    values = ast.literal_eval(text[start + len("Literal[") : text.index("]", start)] + ",")
    return [str(v) for v in values]


def field_default(node: ast.expr | None):
    if node is None:
        return None
    if isinstance(node, ast.Attribute):  # Backend.DISABLED
        return node.attr.lower()
    return literal(node)


def field_row(reader: Reader, node: ast.AnnAssign) -> dict:
    inner, meta, option = reader.metadata(node.annotation)
    name = node.target.id
    kind = type_name(inner)
    no_cli = literal(meta["no_cli"]) if "no_cli" in meta else not option
    flags = []
    if not no_cli:
        own = literal(meta["cli_name"]) if "cli_name" in meta else "--" + name.replace("_", "-")
        flags = [own, *(literal(meta["aliases"]) if "aliases" in meta else [])]
    action = ast.unparse(meta["action"]) if "action" in meta else None
    takes_value = not (kind in ("bool", "Optional[bool]") or (action is not None and "store" in action.lower()))
    if action is not None and "BooleanOptional" in action:
        takes_value = False
        flags += ["--no-" + flag.removeprefix("--") for flag in list(flags)]
    nargs = literal(meta["nargs"]) if "nargs" in meta else None
    return {
        "name": name,
        "type": kind,
        "default": field_default(node.value),
        "fallback": literal(meta["fallback"]) if "fallback" in meta else None,
        "choices": reader.choices(meta.get("choices")) or literal_choices(kind),
        "flags": flags,
        "takes_value": takes_value,
        "many": nargs in ("+", "*") or kind.lower().startswith(("list", "optional[list")),
    }


def argument_fields(package: Package) -> list[dict]:
    rows = []
    for name, node in namespaces(package):
        reader = Reader(package, package.module(name))
        for item in node.body:
            if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
                continue
            if "Derived(" in ast.unparse(item.annotation):  # computed, not given
                continue
            rows.append(field_row(reader, item))
    return rows


def explicit_options(package: Package) -> dict[str, dict]:
    """Options that ServerArgs.add_cli_args adds by hand, by field."""
    found = {}
    for node in ast.walk(function(package.module(SERVER_ARGS), "add_cli_args")):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "parser.add_argument":
            continue
        keywords = {k.arg: k.value for k in node.keywords}
        flags = [a.value for a in node.args if isinstance(a, ast.Constant)]
        dest = literal(keywords["dest"]) if "dest" in keywords else None
        action = ast.unparse(keywords["action"]) if "action" in keywords else ""
        field = dest or flags[0].removeprefix("--").replace("-", "_")
        row = found.setdefault(field, {"flags": [], "takes_value": "Store" not in action
                                       and "store" not in action})
        row["flags"] += flags
    return found


def arguments(package: Package) -> list[dict]:
    rows = argument_fields(package)
    extra = explicit_options(package)
    sampling = strings(package.module(CHOICES),
                       assigned(package.module(CHOICES), "BUILT_IN_SAMPLING_BACKENDS"))
    for row in rows:
        added = extra.pop(row["name"], None)
        if added is not None:
            row["flags"] = list(dict.fromkeys(row["flags"] + added["flags"]))
            row["takes_value"] = added["takes_value"]
        if row["name"] == "sampling_backend":
            row["choices"] = sorted(sampling)
    for name, added in extra.items():  # --config
        rows.append({"name": name, "type": "Optional[str]", "default": None, "fallback": None,
                     "choices": None, **added, "many": False})
    return rows
