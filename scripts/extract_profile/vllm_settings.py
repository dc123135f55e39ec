"""What a user may set: engine arguments, their nested configurations, options, variables."""

import argparse
import dataclasses
import enum
import sys
import typing

# Front-end options that are no engine arguments still have to be known to read a command line.
NO_VALUE_ACTIONS = (argparse._StoreTrueAction, argparse._StoreFalseAction,
                    argparse.BooleanOptionalAction)


def plain(value):
    """A default as JSON; null where it has no plain value (a factory, an object)."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, (set, frozenset)) else items
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return None


def type_text(annotation) -> str:
    """An annotation without module names: "int | None", "Literal['auto', 'vllm']"."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    text = str(annotation).replace("typing.", "").replace("NoneType", "None")
    for module in ("collections.abc.", "pathlib.", "torch."):
        text = text.replace(module, "")
    while "<class '" in text:
        start = text.index("<class '")
        end = text.index("'>", start)
        text = text[:start] + text[start + 8:end].rpartition(".")[2] + text[end + 2:]
    return " ".join(text.split())


def choices(annotation) -> list | None:
    """The values of a Literal or an enum, wherever it stands in the annotation."""
    found: list = []
    for part in (annotation, *typing.get_args(annotation)):
        if typing.get_origin(part) is typing.Literal:
            found += list(typing.get_args(part))
        elif isinstance(part, type) and issubclass(part, enum.Enum):
            found += [member.name for member in part]
    return found or None


def field_row(field: dataclasses.Field, annotation) -> dict:
    default = field.default
    if default is dataclasses.MISSING:
        default = None
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
    # pydantic keeps the default of a checked field inside its own object.
    if type(default).__name__ == "FieldInfo":
        factory = default.default_factory
        default = factory() if factory else default.default
    return {"name": field.name, "type": type_text(annotation), "default": plain(default),
            "choices": choices(annotation)}


def annotations_of(cls: type) -> dict:
    """Field → annotation. One that names what only a type checker sees stays a text."""
    import vllm.config

    out = {}
    for field in dataclasses.fields(cls):
        annotation = field.type
        for owner in cls.__mro__ if isinstance(annotation, str) else ():
            names = {**vars(vllm.config), **vars(sys.modules[owner.__module__])}
            try:
                annotation = eval(annotation, names)  # noqa: S307: the engine's own annotation
                break
            except (NameError, TypeError, AttributeError):
                continue
        out[field.name] = annotation
    return out


def dataclass_rows(cls: type) -> list[dict]:
    hints = annotations_of(cls)
    return [field_row(f, hints[f.name]) for f in dataclasses.fields(cls) if f.init]


def config_class(annotation) -> type | None:
    """The configuration class in an annotation such as `AttentionConfig | None`."""
    for part in (annotation, *typing.get_args(annotation)):
        if isinstance(part, type) and dataclasses.is_dataclass(part):
            return part
    return None


def option_rows(parser: argparse.ArgumentParser) -> list[dict]:
    rows = []
    for action in parser._actions:
        if not action.option_strings:
            continue
        rows.append({
            "flags": list(action.option_strings),
            "sets": action.dest,
            "takes_value": action.nargs != 0 and not isinstance(action, NO_VALUE_ACTIONS),
            "many": action.nargs in ("+", "*"),
            "optional_value": action.nargs == "?",
            "choices": None if action.choices is None else [str(c) for c in action.choices],
        })
    return rows


def serve_parser() -> argparse.ArgumentParser:
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    try:
        from vllm.entrypoints.openai.cli_args import make_arg_parser
    except ImportError:
        from vllm.entrypoints.common.cli_args import make_arg_parser

    return make_arg_parser(FlexibleArgumentParser())


def nested_configs(arguments: type) -> dict[str, list[dict]]:
    """Argument → fields of the configuration that it holds."""
    hints = annotations_of(arguments)
    out = {}
    for field in dataclasses.fields(arguments):
        cls = config_class(hints[field.name])
        if cls is not None:
            out[field.name] = dataclass_rows(cls)
    # Held as a dictionary, read as this class.
    from vllm.config import SpeculativeConfig

    out["speculative_config"] = dataclass_rows(SpeculativeConfig)
    return out


def extract() -> dict:
    from vllm import envs
    from vllm.engine.arg_utils import EngineArgs

    return {
        "arguments": dataclass_rows(EngineArgs),
        "nested": nested_configs(EngineArgs),
        "serve_options": option_rows(serve_parser()),
        "variables": sorted(envs.environment_variables),
    }
