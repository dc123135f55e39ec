"""SGLang's models: which architecture is which class, which lists and rules name it."""

import ast

from sglang_source import (
    Package,
    SourceError,
    assigned,
    function,
    literal,
    membership,
    string_constants,
    strings,
)

MODELS = "srt/models"
OVERRIDES = "srt/arg_groups/overrides.py"
MODEL_CONFIG = "srt/configs/model_config.py"
EMBEDDING = "srt/configs/embedding_model_spec.py"
QUANTIZATION = "srt/layers/quantization/__init__.py"
CHOICES = "srt/arg_groups/choices.py"
SPECULATIVE = "srt/arg_groups/speculative_hook.py"


def defining_module(package: Package, module: str, name: str) -> str:
    """Where the class really is: a module may hand on a class that it imported."""
    tree = package.module(module)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        for alias in node.names:
            if (alias.asname or alias.name) != name:
                continue
            base = module.rsplit("/", node.level)[0].split("/") if node.level else ["."]
            parts = (base if node.level else []) + node.module.removeprefix("sglang.").split(".")
            path = "/".join(parts)
            for candidate in (path + ".py", path + "/__init__.py"):
                if (package.root / candidate).is_file():
                    return defining_module(package, candidate, alias.name)
    for node in tree.body:  # class made by a call: X = make(...)
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in node.targets
        ):
            return module
    raise SourceError(f"{module}: no class {name}")


def entry_classes(package: Package, module: str) -> list[str]:
    for node in package.module(module).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id == "EntryClass" for t in targets):
            value = node.value
            names = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
            return [n.id for n in names]
    return []


def architectures(package: Package) -> list[dict]:
    rows = []
    for module in package.modules(MODELS):
        for name in entry_classes(package, module):
            where = defining_module(package, module, name)
            dotted = "sglang." + where.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            rows.append({"architecture": name, "module": dotted})
    return sorted(rows, key=lambda row: row["architecture"])


def override_rules(package: Package) -> dict[str, list[str]]:
    """Architecture → functions that declare values for it, in the order of registration."""
    init = package.module("srt/arg_groups/model_overrides/__init__.py")
    modules = [
        f"srt/arg_groups/model_overrides/{alias.name}.py"
        for node in init.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    found: dict[str, list[str]] = {}
    for module in [*modules, OVERRIDES]:
        for node in package.module(module).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for decorator in reversed(node.decorator_list):
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in (
                    "_register_for",
                    "register_model_override",
                ):
                    for name in string_constants(decorator):
                        found.setdefault(name, []).append(node.name)
    return found


def constant_overrides(package: Package) -> dict[str, dict]:
    tree = package.module("srt/arg_groups/model_override_base.py")
    return literal(assigned(tree, "MODEL_OVERRIDES"))


def draft_rewrites(package: Package) -> dict[str, str]:
    """Architecture of a draft → the class that it is loaded as; the first rule counts."""
    found: dict[str, str] = {}
    tree = package.module(MODEL_CONFIG)
    for node in function(tree, "_config_draft_model").body:
        if not isinstance(node, ast.If) or "architectures[0]" not in ast.unparse(node.test):
            continue
        targets = [
            s.value
            for s in ast.walk(node)
            if isinstance(s, ast.Assign)
            and ast.unparse(s.targets[0]) in ("self.hf_config.architectures[0]",
                                              "self.hf_config.architectures")
        ]
        names = [n for t in targets for n in string_constants(t)]
        if not names:
            continue
        sources = [n for n in string_constants(node.test) if n[0].isupper() and n != "DSPARK"]
        for used in ast.walk(node.test):
            if isinstance(used, ast.Name) and used.id.isupper():
                sources += strings(tree, used)
        for source in sources:
            found.setdefault(source, names[-1])
    return found


def groups(package: Package) -> dict[str, list[str]]:
    """Lists of names that rules ask for, under the name that the source gives them."""
    config = package.module(MODEL_CONFIG)
    overrides = package.module(OVERRIDES)
    embedding = package.module(EMBEDDING)
    choices = package.module(CHOICES)
    shapes = function(config, "_derive_model_shapes")
    mla = next(n for n in shapes.body if isinstance(n, ast.If)
               and "DeepseekV2ForCausalLM" in ast.unparse(n.test))
    attributes = {"kv_lora_rank"}
    local = lambda where, name: strings(config, assigned(function(config, where), name))
    return {
        "multimodal": strings(config, assigned(config, "multimodal_model_archs")),
        "multimodal_breakable_graph": strings(
            config, assigned(config, "multimodal_breakable_cuda_graph_supported_model_archs")),
        "multimodal_off_by_default": local("__init__", "mm_disabled_models"),
        "no_chunked_prefill": local("is_multimodal_chunked_prefill_supported", "unsupported"),
        "encoder_decoder": local("is_encoder_decoder_model", "models"),
        "not_generative": string_constants(function(config, "is_generation_model").body[0].test),
        "attention_sinks": strings(config, assigned(config, "SWA_SINK_ARCHS")),
        "hybrid_swa": local("is_hybrid_swa_model", "hybrid_swa_archs"),
        "pure_ssm": pure_ssm(config),
        "mla": [n for n in string_constants(mla.test) if n not in attributes],
        "deepseek_dsa": [n for n in string_constants(function(config, "is_deepseek_dsa"))
                         if n != "index_topk"],
        "deepseek_family": strings(overrides, assigned(overrides, "_DEEPSEEK_FAMILY_ARCHS")),
        "mamba_radix_cache": strings(overrides, assigned(overrides, "_MAMBA_RADIX_CACHE_ARCHS")),
        "mamba_extra_buffer": strings(overrides, assigned(overrides, "_MAMBA_EXTRA_BUFFER_ARCHS")),
        "allreduce_fusion": strings(
            overrides, assigned(overrides, "_FLASHINFER_ALLREDUCE_FUSION_ARCHS")),
        "a2a_spans_experts": strings(overrides, assigned(overrides, "_A2A_EP_SPANNING_BACKENDS")),
        "deterministic_deepseek": membership(
            function(overrides, "_deterministic_is_deepseek_model"), "hf_config.architectures[0]"),
        "embedding": strings(embedding, assigned(embedding, "_EMBEDDING_ARCHITECTURES")),
        "classification": strings(embedding, assigned(embedding, "_CLASSIFICATION_ARCHITECTURES")),
        "draft_is_target": membership(
            function(package.module(SPECULATIVE), "_handle_eagle_family"), "model_arch"),
        "language_model_only": strings(
            package.module("srt/server_args.py"),
            assigned(package.module("srt/server_args.py"), "LANGUAGE_MODEL_ONLY_ARCHITECTURES")),
        "deterministic_backends": strings(
            choices, assigned(choices, "DETERMINISTIC_ATTENTION_BACKEND_CHOICES")),
        "deterministic_radix_backends": strings(
            choices, assigned(choices, "RADIX_SUPPORTED_DETERMINISTIC_ATTENTION_BACKEND")),
        "draft_backends": strings(choices, assigned(choices, "DRAFT_ATTENTION_BACKEND_CHOICES")),
    }


def pure_ssm(config: ast.Module) -> list[str]:
    node = assigned(config, "PURE_SSM_ARCHITECTURES")  # ("Mamba2…",) + PURE_MAMBA1_ARCHITECTURES
    return strings(config, node.left) + strings(config, node.right)


def quantization(package: Package) -> dict:
    config = package.module(MODEL_CONFIG)
    verify = function(config, "_verify_quantization")
    methods = package.module(QUANTIZATION)
    return {
        "methods": strings(methods, assigned(methods, "BASE_QUANTIZATION_METHODS")),
        "rocm": strings(config, assigned(verify, "rocm_supported_quantization")),
        "optimized": strings(config, assigned(verify, "optimized_quantization_methods")),
        "compatible": literal(assigned(verify, "compatible_quantization_methods")),
        "requantization": strings(config, assigned(config, "REQUANTIZATION_METHODS")),
    }


def config_classes(package: Package) -> dict[str, dict]:
    """model_type → constant defaults of the engine's own configuration class, where a file is
    silent."""
    found: dict[str, dict] = {}
    for module in package.modules("srt/configs"):
        for node in package.module(module).body:
            if isinstance(node, ast.ClassDef):
                row = class_defaults(node)
                if row is not None:
                    found.setdefault(row[0], row[1])
    return dict(sorted(found.items()))


def class_defaults(node: ast.ClassDef) -> tuple[str, dict] | None:
    try:
        model_type = literal(assigned(ast.Module(node.body, []), "model_type"))
    except SourceError:
        return None
    init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"),
                None)
    if not isinstance(model_type, str) or init is None:
        return None
    arguments = init.args.args + init.args.kwonlyargs
    values = [None] * (len(init.args.args) - len(init.args.defaults))
    values += init.args.defaults + init.args.kw_defaults
    defaults = {}
    for argument, value in zip(arguments, values):
        constant = literal(value) if value is not None else None
        if isinstance(constant, (bool, int, float, str)) and argument.arg != "self":
            defaults[argument.arg] = constant
    return (model_type, defaults) if defaults else None
