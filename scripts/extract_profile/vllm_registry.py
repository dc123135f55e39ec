"""Model classes: the static table, what inspection of each class says, names that went away."""

import importlib
import importlib.abc
import importlib.machinery
import inspect
import pathlib
import re
import sys
import types

import vllm_model_layers

CATEGORIES = {
    "_TEXT_GENERATION_MODELS": "text_generation",
    "_EMBEDDING_MODELS": "embedding",
    "_LATE_INTERACTION_MODELS": "late_interaction",
    "_REWARD_MODELS": "reward",
    "_TOKEN_CLASSIFICATION_MODELS": "token_classification",
    "_SEQUENCE_CLASSIFICATION_MODELS": "sequence_classification",
    "_MULTIMODAL_MODELS": "multimodal",
    "_SPECULATIVE_DECODING_MODELS": "speculative",
    "_TRANSFORMERS_SUPPORTED_MODELS": "transformers_supported",
    "_TRANSFORMERS_BACKEND_MODELS": "transformers_backend",
}


def categories(registry) -> dict[str, list[str]]:
    """Architecture → categories, in the engine's order of tables. A table that the engine has and
    this script does not know is an error: its models would lack a category."""
    out: dict[str, list[str]] = {}
    for table, category in CATEGORIES.items():
        for architecture in getattr(registry, table, {}):
            out.setdefault(architecture, []).append(category)
    missing = set(registry._VLLM_MODELS) - set(out)
    if missing:
        raise SystemExit(f"architectures of an unknown table: {sorted(missing)}")
    return out


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that are not installed: every attribute of one is an empty module class. A model
    class that needs them can then be inspected, though never run."""

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.packages:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module) -> None:
        module.__path__ = []
        module.__getattr__ = stand_in_class


def stand_in_class(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    import torch.nn

    return type(name, (torch.nn.Module,), {})


def missing_name(error: ImportError) -> str:
    """What an import failed for: a module, or a name that its module no longer has."""
    if isinstance(error, ModuleNotFoundError):
        return error.name
    found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
    if found is None:
        raise error
    return f"{found[2]}.{found[1]}"


def first_missing(module: str) -> str | None:
    """The first thing that this installation lacks to import a module."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        return missing_name(error)
    return None


def import_with_stand_ins(module: str, stand_ins: StandIns):
    for _ in range(8):
        try:
            return importlib.import_module(module)
        except ImportError as error:
            name = missing_name(error)
            if isinstance(error, ModuleNotFoundError):
                stand_ins.packages.add(name.partition(".")[0])
            else:
                owner, _, attribute = name.rpartition(".")
                setattr(sys.modules[owner], attribute, stand_in_class(attribute))
    raise SystemExit(f"{module}: cannot be imported even with stand-ins")


def inspect_class(registry, module: str, name: str, missing: str | None,
                  stand_ins: StandIns) -> dict:
    """What the engine's own inspection finds. `missing`: what this installation lacks to import
    the module, which the engine would report as "failed to be inspected"."""
    cls = getattr(import_with_stand_ins(module, stand_ins), name)
    info = registry._ModelInfo.from_model_cls(cls)
    out: dict = {} if missing is None else {"missing": missing}
    if cls.__name__ != name:
        out["defined_as"] = cls.__name__
    for field, value in vars(info).items():
        if field != "architecture":
            out[field] = list(value) if isinstance(value, tuple) else value
    return out


def without_defaults(found: list[dict]) -> dict:
    """The commonest value of every inspected field, and removes it from the rows."""
    defaults = {}
    fields = {field for info in found for field in info} - {"missing", "defined_as"}
    for field in sorted(fields):
        values = [info[field] for info in found if field in info]
        commonest = max(values, key=lambda v: (values.count(v), str(v)))
        defaults[field] = commonest
        for info in found:
            if field in info and info[field] == commonest:
                del info[field]
    return defaults


def transformers_classes() -> dict:
    """Architectures of the installed Transformers: those that its modelling code can serve here,
    and those that it knows without being able to."""
    import transformers
    from transformers.models.auto import modeling_auto
    from vllm.model_executor.models.registry import _ModelRegistry

    # Later versions also take a class whose attention function can be replaced.
    takes_settable = "_can_set_attn_implementation" in inspect.getsource(
        _ModelRegistry._try_resolve_transformers
    )

    def can_serve(cls: type) -> bool:
        return bool(cls.is_backend_compatible() or
                    (takes_settable and cls._can_set_attn_implementation()))

    names = set()
    for table_name, table in vars(modeling_auto).items():
        if table_name.endswith("_MAPPING_NAMES"):
            for value in table.values():
                names.update(value if isinstance(value, tuple) else (value,))
    compatible, incompatible = [], []
    for name in sorted(n for n in names if n is not None):
        try:
            cls = getattr(transformers, name, None)
            if cls is not None:
                (compatible if can_serve(cls) else incompatible).append(name)
        except Exception:  # noqa: BLE001: a class whose own dependency is missing is not usable
            continue
    return {"version": transformers.__version__, "backend_compatible": compatible,
            "incompatible": incompatible}


def extract() -> dict:
    from vllm.config import model as model_config
    from vllm.model_executor.models import config as hooks
    from vllm.model_executor.models import registry

    kinds = categories(registry)
    # What is missing is found first: a stand-in would hide it from later modules.
    modules = {entry[0]: registry._resolve_module_name(entry[0])
               for entry in registry._VLLM_MODELS.values()}
    missing = {module: first_missing(module) for module in modules.values()}
    stand_ins = StandIns()
    sys.meta_path.append(stand_ins)
    sources = vllm_model_layers.Sources(pathlib.Path(importlib.import_module("vllm").__path__[0]))
    rows, found = [], []
    for architecture, entry in registry._VLLM_MODELS.items():
        module = modules[entry[0]]
        info = inspect_class(registry, module, entry[1], missing[module], stand_ins)
        found.append(info)
        rows.append({"architecture": architecture, "module": module, "class": entry[1],
                     "categories": kinds[architecture], "info": info,
                     **vllm_model_layers.layers_of(sources, module, entry[1])})
    sys.meta_path.remove(stand_ins)
    return {
        "info_defaults": without_defaults(found),
        "architectures": rows,
        "previously_supported": dict(registry._PREVIOUSLY_SUPPORTED_MODELS),
        "out_of_tree": dict(registry._OOT_SUPPORTED_MODELS),
        "suffixes": [{"suffix": suffix, "runner": defaults[0], "convert": defaults[1]}
                     for suffix, defaults in model_config.iter_architecture_defaults()],
        "hooks": {name: hook.__name__ for name, hook in hooks.MODELS_CONFIG_MAP.items()},
        "transformers": transformers_classes(),
    }
