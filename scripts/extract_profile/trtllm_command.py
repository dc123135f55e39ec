"""The options of trtllm-serve.

An engine that has one keeps a reference of its command line under test: the flags, types and
defaults of every option (tests/unittest/api_stability/references/trtllm_serve_cli.yaml). An older
one has only the click decorators of tensorrt_llm/commands/serve.py, read here by their syntax.
"""

import ast
import re

from trtllm_source import Module, SourceError

TYPES = {"int": "integer", "float": "number", "str": "string", "Path": "string", "bool": "flag"}
SUBCOMMAND = "serve"


def choices(text: str) -> list[str] | None:
    found = re.fullmatch(r"Choice\((\[.*\])\)", text)
    return ast.literal_eval(found.group(1)) if found else None


def from_reference(reference: dict) -> tuple[list[dict], list[str]]:
    """The options of `trtllm-serve serve`, and the other subcommands."""
    commands = reference["commands"]
    out = []
    for name, option in commands[SUBCOMMAND]["options"].items():
        named = choices(option["type"])
        row = {"parameter": name, "flags": option["flags"],
               "type": "string" if named else TYPES[option["type"]]}
        if option["is_flag"]:
            row["type"] = "flag"
        if named:
            row["choices"] = named
        if option["status"] == "deprecated":
            row["deprecated"] = "no replacement"
        out.append(row)
    return out, [name for name in commands if name != SUBCOMMAND]


def click_commands(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    out = {}
    for node in tree.body:
        for mark in getattr(node, "decorator_list", []):
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "click.command":
                out[ast.literal_eval(mark.args[0]) if mark.args else node.name] = node
    return out


def click_option(mark: ast.Call) -> dict:
    flags = [text for arg in mark.args for text in ast.literal_eval(arg).split("/")
             if text.startswith("-")]
    keywords = {k.arg: k.value for k in mark.keywords}
    named = [ast.literal_eval(arg) for arg in mark.args if not ast.literal_eval(arg).startswith("-")]
    longest = next(flag for flag in flags if flag.startswith("--"))
    row = {"parameter": named[0] if named else longest[2:].replace("-", "_"), "flags": flags,
           "type": "string"}
    kind = keywords.get("type")
    if "is_flag" in keywords or any("/" in ast.literal_eval(arg) for arg in mark.args):
        row["type"] = "flag"
    elif isinstance(kind, ast.Name):
        row["type"] = TYPES[kind.id]
    elif isinstance(kind, ast.Call) and kind.args and isinstance(kind.args[0], ast.List):
        # Choices that are computed (the keys of a table) stay open.
        row["choices"] = ast.literal_eval(kind.args[0])
    return row


def from_source(text: str) -> tuple[list[dict], list[str]]:
    commands = click_commands(ast.parse(text))
    if SUBCOMMAND not in commands:
        raise SourceError(f"there is no click command '{SUBCOMMAND}'")
    out = [click_option(mark) for mark in commands[SUBCOMMAND].decorator_list
           if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "click.option"]
    return out, [name for name in commands if name != SUBCOMMAND]


def nested_fields(arguments_text: str) -> dict[str, str]:
    """Options that state a member of kv_cache_config: the dictionary that the engine merges by."""
    for node in ast.walk(Module(arguments_text).tree):
        named = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "cli_to_kv_cache_field"
        if named:
            return {k: f"kv_cache_config.{v}" for k, v in ast.literal_eval(node.value).items()}
    return {}


def command(options: tuple[list[dict], list[str]], arguments_text: str, known: set[str],
            annotations: dict) -> dict:
    """The table's `options` and `other_subcommands`; `known` are the names of the arguments."""
    nested = {**nested_fields(arguments_text), **annotations["nested"]}
    rows = []
    for option in sorted(options[0], key=lambda row: row["parameter"]):
        parameter = option.pop("parameter")
        # The name of the parameter first, its aliases after it.
        own = [flag for flag in option["flags"] if flag.lstrip("-").replace("-", "_") == parameter]
        row = {"flags": own + [flag for flag in option.pop("flags") if flag not in own], **option}
        negative = [flag for flag in row["flags"] if flag.startswith("--no-")]
        if negative and row["type"] == "flag":
            row["negative_flags"] = negative
        target = nested.get(parameter, parameter)
        if target in known:
            row["sets"] = target
        row.update({k: v for k, v in annotations["options"].get(parameter, {}).items()
                    if k != "because"})
        rows.append(row)
    unknown = set(annotations["options"]) - {row["flags"][0].lstrip("-").replace("-", "_")
                                             for row in rows}
    if unknown:
        raise SourceError(f"options are annotated that the source does not have: {sorted(unknown)}")
    return {"subcommands": [SUBCOMMAND], "other_subcommands": options[1], "options": rows}
