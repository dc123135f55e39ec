"""The options of the server's command line, asked of the engine's own parser."""

import argparse
import pathlib
import tempfile

from vllm_settings import NO_VALUE_ACTIONS, serve_parser

JSON_PROBE = '{"a": 1}'


def reads(convert, text: str):
    """What an option makes of a word; an exception where it refuses it."""
    try:
        return convert(text)
    except Exception as error:  # noqa: BLE001: argparse turns each of them into a refusal
        return error


def value_kind(action: argparse.Action) -> str:
    """The kind of value that the option's own converter gives."""
    convert = action.type
    if convert is None or convert is str:
        return "string"
    if "parse_dataclass" in repr(convert) or "parse_dataclass" in closure_names(convert):
        return "json"
    if isinstance(reads(convert, JSON_PROBE), dict):
        return "string_or_json" if isinstance(reads(convert, "word"), str) else "json"
    if isinstance(reads(convert, "7"), int) and isinstance(reads(convert, "1.5"), Exception):
        return "integer"
    if isinstance(reads(convert, "1.5"), float):
        return "number"
    return "string"


def closure_names(function) -> str:
    """Converters are wrapped in others; the names of what they close over."""
    names, todo = [], [function]
    while todo:
        item = todo.pop()
        names.append(getattr(item, "__qualname__", ""))
        todo += [c.cell_contents for c in getattr(item, "__closure__", None) or ()
                 if callable(c.cell_contents)]
    return " ".join(names)


def flags_of(parser, action: argparse.Action) -> list[str]:
    """All spellings; some are registered without being listed in the help."""
    hidden = [f for f, a in parser._option_string_actions.items() if a is action]
    return [*action.option_strings, *(f for f in hidden if f not in action.option_strings)]


def negative_flags(parser, action: argparse.Action) -> list[str]:
    flags = flags_of(parser, action)
    if hasattr(action, "negative_option_strings"):
        return [f for f in flags if f in action.negative_option_strings]
    if isinstance(action, argparse.BooleanOptionalAction):
        return [f for f in flags if f.startswith("--no-")]
    return flags if isinstance(action, argparse._StoreFalseAction) else []


def deprecation(parser, action: argparse.Action) -> str:
    marked = getattr(action, "deprecated", False) or action in getattr(parser, "_deprecated", ())
    text = " ".join((action.help or "").split())
    return "yes" if marked or text.startswith("[DEPRECATED]") else ""


def option_row(parser, action: argparse.Action, arguments: set[str]) -> dict:
    flag = action.nargs == 0 or isinstance(action, NO_VALUE_ACTIONS)
    row: dict = {"flags": flags_of(parser, action), "type": "flag" if flag else value_kind(action)}
    if action.dest in arguments:
        row["sets"] = action.dest
    if negatives := negative_flags(parser, action):
        row["negative_flags"] = negatives
    if not flag:
        if isinstance(reads(action.type or str, "1k"), int):
            row["suffixes"] = True
        if action.type is not None and reads(action.type, "auto") == -1:
            row["auto"] = -1
        if action.type is not None and reads(action.type, "None") is None:
            row["nullable"] = True
        if action.choices is not None:
            row["choices"] = [str(choice) for choice in action.choices if choice is not None]
    if action.nargs in ("+", "*"):
        row["multiple"] = True
    if action.nargs == "?":
        row["optional_value"] = True
    if action.dest == "config":
        row["options_file"] = True
    if deprecation(parser, action):
        row["deprecated"] = "goes away in a later version"
    return row


def negates_in_files(parser) -> bool:
    """Whether `name: false` in a --config file becomes --no-name, or is dropped."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "options.yaml"
        path.write_text("enforce-eager: false\n", encoding="utf-8")
        load = getattr(parser, "load_config_file", None) or parser._load_config_file
        return load(str(path)) == ["--no-enforce-eager"]


def subcommands() -> list[str]:
    """The other sub-commands of `vllm`; they start no server of their own."""
    import importlib
    import pkgutil

    import vllm.entrypoints.cli as package
    from vllm.entrypoints.cli.types import CLISubcommand

    found = {"bench"}
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg or module.name in ("main", "types"):
            continue
        classes = vars(importlib.import_module(f"{package.__name__}.{module.name}")).values()
        found |= {cls.name for cls in classes if isinstance(cls, type)
                  and issubclass(cls, CLISubcommand) and hasattr(cls, "name")}
    return sorted(found - {"serve"})


def extract(arguments: list[dict]) -> dict:
    names = {row["name"] for row in arguments}
    parser = serve_parser()
    actions = [a for a in parser._actions if a.option_strings]
    return {
        "program": "vllm",
        "module": "vllm.entrypoints.openai.api_server",
        "subcommands": ["serve"],
        "other_subcommands": subcommands(),
        "subcommand_required": True,
        "abbreviations": parser.allow_abbrev,
        # What FlexibleArgumentParser adds to argparse.
        "underscores": True,
        "dotted": True,
        "levels": {"-O": "--optimization-level"},
        "file_of_options": {"negates": negates_in_files(parser)},
        "options": [option_row(parser, action, names) for action in actions],
    }
