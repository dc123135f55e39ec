"""What attention and state layers a model class builds, as far as its source tells.

Reads the source of the package's model classes without running it: a class, what it inherits from,
and every class that it names, in its own module and in the other model modules that it imports.
"""

import ast
import functools
import pathlib

MODEL_PACKAGES = ("vllm.model_executor.models", "vllm.models")

# Layers that register themselves with the engine, by the name of their class.
LAYERS = {
    "Attention",
    "ChunkedLocalAttention",
    "CrossAttention",
    "EncoderOnlyAttention",
    "MLAAttention",
    "MultiHeadLatentAttentionWrapper",
    "PrefixLMAttention",
    "RSWAAttention",
    "StaticSinkAttention",
    "DeepseekV32IndexerCache",
    "MambaMixer",
    "MambaMixer2",
    "ShortConv",
    "GatedDeltaNetAttention",
    "KimiGatedDeltaNetAttention",
    "OlmoHybridGatedDeltaNetAttention",
    "QwenGatedDeltaNetAttention",
    "BailingMoELinearAttention",
    "MiniMaxText01LinearAttention",
}
# Base classes of layers that a model module defines for itself.
LAYER_BASES = {"MambaBase", "AttentionLayerBase", "GatedDeltaNetAttention", "LinearAttention"}
# Arguments of those that decide on more than weights.
ARGUMENTS = {
    "per_layer_sliding_window", "sinks", "attn_type", "alibi_slopes", "logits_soft_cap",
    "kv_sharing_target_layer_name", "head_size_v", "attn_backend", "use_alibi_sqrt",
    "use_sparse", "chunk_lookback", "sink_len", "mm_prefix_clamp_sliding_window",
}
# Calls by which a model builds another one that the registry knows.
DELEGATES = {"init_vllm_registered_model", "maybe_prefix_model"}


def statements(module: ast.Module):
    """The statements of a module, and those that run where a type checker is shown others."""
    for node in module.body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from node.orelse
        else:
            yield node


class Module:
    """One source file: its classes, functions and tables, and where its other names come from."""

    def __init__(self, root: pathlib.Path, name: str) -> None:
        self.name = name
        path = root.joinpath(*name.split(".")[1:])
        self.is_package = path.is_dir()
        file = path / "__init__.py" if self.is_package else path.with_suffix(".py")
        tree = ast.parse(file.read_text(encoding="utf-8"))
        self.definitions: dict[str, ast.AST] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self._add_import(node)
        for node in statements(tree):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.definitions[node.targets[0].id] = node  # a table of layer classes

    def _add_import(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            parts = self.name.split(".")
            keep = len(parts) - node.level + (1 if self.is_package else 0)
            module = ".".join(parts[:keep] + ([module] if module else []))
        for alias in node.names:
            self.imports.setdefault(alias.asname or alias.name, (module, alias.name))


class Sources:
    def __init__(self, package: pathlib.Path) -> None:
        self.package = package

    @functools.cache
    def module(self, name: str) -> Module | None:
        if not name.startswith(MODEL_PACKAGES):
            return None
        try:
            return Module(self.package, name)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def find(self, module: Module, name: str):
        """The definition behind a name, and the module that holds it."""
        for _ in range(6):
            if name in module.definitions:
                return module, module.definitions[name]
            if name not in module.imports:
                return None
            source, name = module.imports[name]
            found = self.module(source)
            if found is None:
                return None
            module = found
        return None


def called_name(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def layer_aliases(node: ast.AST) -> dict[str, set[str]]:
    """Variables that hold one layer class or another: attn_cls = A if ... else B."""
    aliases: dict[str, set[str]] = {}
    for child in ast.walk(node):
        if not isinstance(child, ast.Assign) or isinstance(child.value, ast.Call):
            continue
        named = {n.id for n in ast.walk(child.value) if isinstance(n, ast.Name)} & LAYERS
        for target in child.targets:
            if named and isinstance(target, (ast.Name, ast.Attribute)):
                key = target.id if isinstance(target, ast.Name) else target.attr
                aliases.setdefault(key, set()).update(named)
    return aliases


class Walk:
    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.seen: set[tuple[str, str]] = set()
        self.layers: set[str] = set()
        self.delegates = False

    def definition(self, module: Module, node: ast.AST) -> None:
        key = (module.name, getattr(node, "name", None) or node.targets[0].id)
        if key in self.seen:
            return
        self.seen.add(key)
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if bases & LAYER_BASES:
                self.layers.add(node.name)
        aliases = layer_aliases(node)
        for child in ast.walk(node):
            if isinstance(child, ast.Call):
                name = called_name(child)
                for layer in sorted(aliases.get(name, {name})):
                    self.call(child, layer)
            if isinstance(child, ast.Name):
                found = self.sources.find(module, child.id)
                if found is not None:
                    self.definition(*found)

    def call(self, node: ast.Call, name: str) -> None:
        if name in DELEGATES:
            self.delegates = True
        for argument in node.keywords:  # attn_cls=EncoderOnlyAttention
            if isinstance(argument.value, ast.Name) and argument.value.id in LAYERS:
                self.layers.add(argument.value.id)
        if name in LAYERS:
            given = sorted(k.arg for k in node.keywords if k.arg in ARGUMENTS)
            self.layers.add(f"{name}({', '.join(given)})" if given else name)


def layers_of(sources: Sources, module_name: str, class_name: str) -> dict:
    """`builds`: the layers that the class's own code names. `delegates`: it also builds a model
    that the registry finds by another architecture."""
    module = sources.module(module_name)
    found = module and sources.find(module, class_name)
    if not found:
        return {"builds": []}
    walk = Walk(sources)
    walk.definition(*found)
    out: dict = {"builds": sorted(walk.layers)}
    if walk.delegates:
        out["delegates"] = True
    return out
