"""SGLang's command line and its arguments, as llm-validate reads and judges them."""

import ast

from sglang_arguments import Reader, literal_choices, namespaces, type_name
from sglang_source import Package, SourceError, assigned, function, literal, strings

SERVER_ARGS = "srt/server_args.py"
CHOICES = "srt/arg_groups/choices.py"
CLI = "cli/main.py"

# Converters of values, by name: what the option's row says of them.
CONVERTERS = {
    "json.loads": {"type": "json"},
    "json_list_type": {"type": "json"},
    "parse_cuda_graph_config_arg": {"type": "json"},
    "parse_cuda_graph_backend_arg": {"type": "string"},
    "human_readable_int": {"type": "integer", "iec_suffixes": True},
    "nullable_str": {"type": "string", "nullable": True},
}
PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "flag"}
KINDS = {"str": "string", "int": "integer", "float": "number", "bool": "bool"}
# An options file can hold neither: its reader knows flags that store true, and single values.
NOT_IN_FILE = ("BooleanOptionalAction", "LoRAPathAction", "DeprecatedStoreTrueAction")


def inner_type(node: ast.expr) -> ast.expr:
    """Optional[X] is X."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Optional"):
        return node.slice
    return node


def element_type(node: ast.expr) -> str | None:
    """int of List[int]; None where the type is no list."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("List", "list"):
        return ast.unparse(node.slice)
    return None


def literal_kind(node: ast.expr) -> str | None:
    """What the values of Literal[…] are; None is one of them at times."""
    if not type_name(node).startswith("Literal["):
        return None
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = [literal(item) for item in items]
    return "int" if all(isinstance(v, int) for v in values) else "str"


def value_form(node: ast.expr, meta: dict[str, ast.expr]) -> dict:
    """Type and form of an option's value, as add_cli_args_from_dataclass derives them."""
    action = ast.unparse(meta["action"]) if "action" in meta else ""
    if "LoRAPathAction" in action:
        return {"type": "string", "multiple": True}
    if action:
        return {"type": "flag"}
    converter = ast.unparse(meta["type_parser"]) if "type_parser" in meta else ""
    if converter and converter not in CONVERTERS:
        raise SourceError(f"unknown converter {converter}")
    kind = literal_kind(node)
    if kind is not None:
        return dict(CONVERTERS.get(converter, {"type": PLAIN[kind]}))
    element = element_type(node)
    if element is not None and not converter:
        return {"type": PLAIN.get(element, "string"), "multiple": True}
    if ast.unparse(node) == "bool":
        return {"type": "flag"}
    form = dict(CONVERTERS.get(converter, {"type": PLAIN.get(ast.unparse(node), "string")}))
    nargs = literal(meta["nargs"]) if "nargs" in meta else None
    if nargs in ("+", "*"):
        form["multiple"] = True
    if nargs == "?":
        form["optional_value"] = True
    return form


def field_option(reader: Reader, node: ast.AnnAssign) -> dict | None:
    """The option of one annotated field; None where it is no option."""
    annotation, meta, option = reader.metadata(node.annotation)
    if not option or ("no_cli" in meta and literal(meta["no_cli"])):
        return None
    name = node.target.id
    own = literal(meta["cli_name"]) if "cli_name" in meta else "--" + name.replace("_", "-")
    flags = [own, *(literal(meta["aliases"]) if "aliases" in meta else [])]
    inner = inner_type(annotation)
    row = {"flags": flags, **value_form(inner, meta), "sets": name}
    action = ast.unparse(meta["action"]) if "action" in meta else ""
    if "BooleanOptional" in action:
        row["negative_flags"] = ["--no-" + flag.removeprefix("--") for flag in flags]
        row["flags"] = [*flags, *row["negative_flags"]]
    if any(known in action for known in NOT_IN_FILE):
        row["not_in_file"] = True
    choices = reader.choices(meta.get("choices")) or literal_choices(type_name(inner))
    if choices and row["type"] != "flag":
        row["choices"] = [c for c in choices if c != "None"]
    return row


def explicit_row(package: Package, node: ast.Call) -> dict:
    """An option that add_cli_args adds by hand."""
    keywords = {k.arg: k.value for k in node.keywords}
    flags = [a.value for a in node.args if isinstance(a, ast.Constant)]
    action = ast.unparse(keywords["action"]) if "action" in keywords else ""
    dest = literal(keywords["dest"]) if "dest" in keywords else None
    valued = not action or ("nargs" in keywords and literal(keywords["nargs"]) is None)
    row = {"flags": flags, "type": "string" if valued else "flag",
           "sets": dest or flags[0].removeprefix("--").replace("-", "_")}
    if "const_value" in keywords and valued:  # the word itself says nothing but yes
        del row["sets"]
    if "new_flag" in keywords:
        row["deprecated"] = "use " + literal(keywords["new_flag"])
    if any(known in action for known in NOT_IN_FILE):
        row["not_in_file"] = True
    if flags == ["--config"]:
        return {"flags": flags, "type": "string", "options_file": True}
    if flags == ["--sampling-backend"]:
        tree = package.module(CHOICES)
        row["choices"] = sorted(strings(tree, assigned(tree, "BUILT_IN_SAMPLING_BACKENDS")))
    elif "choices" in keywords and literal(keywords["choices"]):
        row["choices"] = literal(keywords["choices"])
    return row


def options(package: Package) -> list[dict]:
    rows = [{"flags": ["-h", "--help"], "type": "flag", "not_in_file": True}]
    for name, node in namespaces(package):
        reader = Reader(package, package.module(name))
        for item in node.body:
            is_field = isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            if not is_field or "Derived(" in ast.unparse(item.annotation):
                continue
            row = field_option(reader, item)
            if row is not None:
                rows.append(row)
    for node in ast.walk(function(package.module(SERVER_ARGS), "add_cli_args")):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "parser.add_argument":
            rows.append(explicit_row(package, node))
    # `sglang serve` takes it away before the server's own parser.
    rows.append({"flags": ["--model-type"], "type": "string", "not_in_file": True})
    return rows


def other_subcommands(package: Package) -> list[str]:
    """The names of subparsers.add_parser(…) but for "serve"."""
    found = []
    for node in ast.walk(package.module(CLI)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "subparsers.add_parser":
            found.append(literal(node.args[0]))
    return sorted(name for name in found if name != "serve")


def command(package: Package) -> dict:
    return {
        "program": "sglang",
        "module": "sglang.launch_server",
        "subcommands": ["serve"],
        "other_subcommands": other_subcommands(package),
        "subcommand_required": True,
        "abbreviations": True,
        "first_word": "--model-path",
        "file_of_options": {"negates": False, "spells_bools": True},
        "options": options(package),
    }


def argument_kind(text: str, node: ast.expr) -> str:
    if text in KINDS:
        return KINDS[text]
    kind = literal_kind(node)
    if kind is not None:
        return KINDS[kind]
    if element_type(node) is not None:
        return "list"
    return "object" if text.startswith(("Dict[", "dict[", "CudaGraphConfig")) else "any"


def arguments(package: Package, settings: list[dict]) -> list[dict]:
    """Every argument with its plain type; others are refused."""
    rows = []
    known = {row["name"]: row for row in settings}
    for name, row in known.items():
        if name.startswith("_") or name in ("config", "help"):
            continue
        node = inner_type(ast.parse(row["type"], mode="eval").body)
        kind = argument_kind(ast.unparse(node), node)
        out = {"name": name, "type": kind}
        if row["default"] is not None and not isinstance(row["default"], dict):
            out["default"] = row["default"]
        if row["choices"] and kind in ("string", "integer"):
            names = [c for c in row["choices"] if c != "None"]
            out["choices"] = [int(c) for c in names] if kind == "integer" else names
        if kind == "object":
            out["open"] = True
        rows.append(out)
    return rows
