"""The engine's arguments with plain types, bounds and choices, nested configurations included."""

import dataclasses
import enum
import types
import typing

from vllm_settings import annotations_of, config_class, plain

# Plain kinds of a table, by the Python types that a value may have.
KINDS = {bool: "bool", int: "integer", float: "number", str: "string",
         list: "list", tuple: "list", set: "list", frozenset: "list", dict: "object"}
BOUNDS = {"ge": "min", "gt": "above", "le": "max", "lt": "below"}
# Where an engine argument's bounds are declared: it is copied into one of these.
OWNERS = ("ModelConfig", "CacheConfig", "ParallelConfig", "SchedulerConfig", "LoadConfig",
          "LoRAConfig", "MultiModalConfig", "ObservabilityConfig", "VllmConfig")
# Held as a dictionary, read as this class.
READ_AS = {"speculative_config": "SpeculativeConfig"}
# Set by the engine itself; what a user writes there is not his to write.
INTERNAL = {"target_model_config", "target_parallel_config", "draft_model_config",
            "draft_parallel_config"}
# Words that a field takes besides the members of its enum: its validator reads them as "none".
ENUM_WORDS = {"AttentionBackendEnum": ["auto"]}


def members(annotation) -> list:
    """The alternatives of an annotation; Annotated and nested unions are unfolded."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return [m for part in typing.get_args(annotation) for m in members(part)]
    if origin is typing.Annotated:
        return members(typing.get_args(annotation)[0])
    return [annotation]


def is_numbered(cls: type) -> bool:
    """An enum of numbers is read by name and by number: any value may stand for a member."""
    return not isinstance(next(iter(cls)).value, str)


def kinds(annotation) -> set[str]:
    out = set()
    for part in members(annotation):
        origin = typing.get_origin(part) or part
        if origin is typing.Literal:
            out |= {KINDS.get(type(value), "any") for value in typing.get_args(part)} - {"any"}
        elif origin in KINDS:
            out.add(KINDS[origin])
        elif isinstance(origin, type) and issubclass(origin, enum.Enum):
            out |= {"any"} if is_numbered(origin) else {"string"}
        elif isinstance(origin, type) and (dataclasses.is_dataclass(origin)
                                           or issubclass(origin, dict)):
            out.add("object")
        elif part is not type(None):
            out.add("any")
    return out


def kind_of(annotation) -> str:
    found = kinds(annotation)
    if found == {"integer", "number"}:
        return "number"
    return found.pop() if len(found) == 1 else "any"


def choices_of(annotation) -> dict:
    """The closed list of values, if there is one."""
    parts = [p for p in members(annotation) if p is not type(None)]
    if any(p is str for p in parts):
        return {}
    out: list = []
    any_case = False
    for part in parts:
        if typing.get_origin(part) is typing.Literal:
            out += list(typing.get_args(part))
        elif isinstance(part, type) and issubclass(part, enum.Enum):
            if is_numbered(part):
                return {}
            out += [member.name for member in part] + ENUM_WORDS.get(part.__name__, [])
            any_case = True
        else:
            return {}
    out = [value for value in out if value is not None]
    return {"choices": out, **({"any_case": True} if any_case else {})} if out else {}


def bounds_of(cls: type, name: str) -> dict:
    info = getattr(cls, "__pydantic_fields__", {}).get(name)
    out = {}
    for rule in getattr(info, "metadata", ()):
        for attribute, key in BOUNDS.items():
            value = getattr(rule, attribute, None)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                out[key] = value
    return out


def owner_bounds(name: str) -> dict:
    import vllm.config

    for owner in OWNERS:
        cls = getattr(vllm.config, owner, None)
        if cls is not None and name in getattr(cls, "__pydantic_fields__", {}):
            return bounds_of(cls, name)
    return {}


def default_of(field: dataclasses.Field):
    value = field.default
    if value is dataclasses.MISSING:
        factory = field.default_factory
        value = None if factory is dataclasses.MISSING else factory()
    if type(value).__name__ == "FieldInfo":
        value = value.default_factory() if value.default_factory else value.default
    return plain(value)


def nested_class(name: str, annotation) -> type | None:
    import vllm.config

    if name in READ_AS:
        return getattr(vllm.config, READ_AS[name])
    found = config_class(annotation)
    # A list or a dictionary of configurations is not one.
    direct = any(part is found for part in members(annotation))
    return found if direct else None


def rows_of(cls: type, prefix: str, seen: tuple) -> list[dict]:
    out = []
    hints = annotations_of(cls)
    for field in dataclasses.fields(cls):
        if not field.init or field.name in INTERNAL or field.name.startswith("_"):
            continue
        annotation = hints[field.name]
        name = prefix + field.name
        # An annotation that only a type checker can read says nothing.
        row = {"name": name, "type": "any" if isinstance(annotation, str) else kind_of(annotation)}
        default = default_of(field)
        if default is not None and not isinstance(default, dict):
            row["default"] = default
        if not isinstance(annotation, str):
            row |= choices_of(annotation)
        row |= bounds_of(cls, field.name) or ({} if prefix else owner_bounds(field.name))
        inner = None if isinstance(annotation, str) else nested_class(field.name, annotation)
        if inner is not None and inner not in seen:
            row["type"] = "object" if row["type"] in ("object", "any") else row["type"]
            out.append(row)
            out += rows_of(inner, name + ".", (*seen, inner))
            continue
        if row["type"] == "object":
            row["open"] = True
        out.append(row)
    return out


def extract() -> list[dict]:
    from vllm.engine.arg_utils import AsyncEngineArgs

    return rows_of(AsyncEngineArgs, "", (AsyncEngineArgs,))
