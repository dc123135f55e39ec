"""Attention backends: what each class says of itself."""

import enum

import vllm_imports
import vllm_layer_classes
import vllm_shapes
from vllm_environment import host_allocations
from vllm_purity import find_method, is_data, rule_name

ATTENTION_TYPES = ["decoder", "encoder", "encoder_only", "encoder_decoder"]
DTYPES = ["float16", "bfloat16", "float32"]
LARGEST_HEAD_SIZE = 2048
LARGEST_BLOCK_SIZE = 4096
CAPABILITIES = [(major, minor) for major in range(5, 14) for minor in range(10)]

# Yes-or-no questions without arguments. The engine version that lacks one never asks it.
FLAGS = [
    "is_mla", "is_sparse", "is_ssm", "supports_sink", "supports_mm_prefix", "supports_alibi_sqrt",
    "supports_per_head_quant_scales", "supports_sliding_window", "supports_rswa",
    "supports_non_causal", "supports_batch_invariance", "supports_kv_connector", "supports_pcp",
    "supports_dcp", "supports_non_causal_dcp", "supports_device_cpu_query_lens_mismatch",
]


def rule(cls: type, method: str) -> dict:
    return {"rule": rule_name(cls, method)}


# --- answers as values --------------------------------------------------------------------------


def ranges(accepted: list[bool]) -> list[list]:
    """Runs of accepted capabilities as [first, last]; null where the run ends the grid."""
    out = []
    for index, ok in enumerate(accepted):
        if not ok:
            continue
        if index == 0 or not accepted[index - 1]:
            out.append([index, index])
        out[-1][1] = index

    def text(index: int, edge: int) -> str | None:
        return None if index == edge else "{}.{}".format(*CAPABILITIES[index])

    last = len(CAPABILITIES) - 1
    return [[text(first, 0), text(end, last)] for first, end in out]


def capability_ranges(cls: type, make_capability):
    if not is_data(cls, "supports_compute_capability"):
        return rule(cls, "supports_compute_capability")
    return ranges([bool(cls.supports_compute_capability(make_capability(*c)))
                   for c in CAPABILITIES])


def head_sizes(cls: type):
    """A list, {"min": n}, or null for any."""
    if not is_data(cls, "supports_head_size"):
        return rule(cls, "supports_head_size")
    accepted = [n for n in range(1, LARGEST_HEAD_SIZE + 1) if cls.supports_head_size(n)]
    if len(accepted) == LARGEST_HEAD_SIZE:
        return None if cls.supports_head_size(0) else {"min": 1}
    if accepted == list(range(accepted[0], LARGEST_HEAD_SIZE + 1)):
        return {"min": accepted[0]}
    if accepted[-1] == LARGEST_HEAD_SIZE:
        raise SystemExit(f"{cls.__name__}: head sizes that no table describes")
    return accepted


def block_sizes(cls: type):
    if not is_data(cls, "get_supported_kernel_block_sizes"):
        return rule(cls, "get_supported_kernel_block_sizes")
    return [{"multiple_of": s.base} if hasattr(s, "base") else s
            for s in cls.get_supported_kernel_block_sizes()]


def block_size_test(cls: type, sizes) -> str | dict:
    """"multiple": a multiple of one of the sizes will do (the engine's default). "exact": it must
    be one of them."""
    if find_method(cls, "supports_block_size")[0].__name__ == "AttentionBackend":
        return "multiple"
    if not is_data(cls, "supports_block_size"):
        return rule(cls, "supports_block_size")
    bases = [s["multiple_of"] if isinstance(s, dict) else s for s in sizes]
    numbers = range(1, LARGEST_BLOCK_SIZE + 1)
    accepted = {n for n in numbers if cls.supports_block_size(n)}
    if accepted == {n for n in numbers if any(n % base == 0 for base in bases)}:
        return "multiple"
    if accepted == set(bases):
        return "exact"
    raise SystemExit(f"{cls.__name__}: block sizes that no table describes")


def preferred_block_size(cls: type):
    """null: the default if it is supported, else the smallest size. {"always": n}; {"otherwise":
    n} where the default is not supported."""
    if find_method(cls, "get_preferred_block_size")[0].__name__ == "AttentionBackend":
        return None
    if not is_data(cls, "get_preferred_block_size"):
        return rule(cls, "get_preferred_block_size")
    asked = [16, 32, 48, 64, 128, 256]
    answers = [cls.get_preferred_block_size(n) for n in asked]
    smallest = min(getattr(s, "base", s) for s in cls.get_supported_kernel_block_sizes())
    if answers == [n if cls.supports_block_size(n) else smallest for n in asked]:
        return None
    if len(set(answers)) == 1:
        return {"always": answers[0]}
    other = {a for n, a in zip(asked, answers) if not cls.supports_block_size(n)}
    if len(other) == 1 and answers == [
        n if cls.supports_block_size(n) else min(other) for n in asked
    ]:
        return {"otherwise": min(other)}
    raise SystemExit(f"{cls.__name__}: preferred block sizes that no table describes")


def kv_dtypes(cls: type, names: list[str]):
    if not is_data(cls, "supports_kv_cache_dtype"):
        return rule(cls, "supports_kv_cache_dtype")
    return [n for n in names if cls.supports_kv_cache_dtype(n)]


def dtypes(cls: type, torch):
    if not is_data(cls, "supports_dtype"):
        return rule(cls, "supports_dtype")
    return [n for n in DTYPES if cls.supports_dtype(getattr(torch, n))]


def attention_types(cls: type):
    if not is_data(cls, "supports_attn_type"):
        return rule(cls, "supports_attn_type")
    return [t for t in ATTENTION_TYPES if cls.supports_attn_type(t)]


def flag(cls: type, name: str):
    """A boolean, a rule, or null where this version of the engine has no such question."""
    if not hasattr(cls, name):
        return None
    owner, function = find_method(cls, name)
    # The base class asks the implementation class, whose attribute is a constant.
    asks_implementation = (owner.__name__ == "AttentionBackend" and
                           name in ("supports_pcp", "supports_dcp", "supports_non_causal_dcp"))
    if asks_implementation or is_data(cls, name):
        return bool(getattr(cls, name)())
    return rule(cls, name)


def layouts(cls: type):
    """0.25: the one layout that the backend requires, as a list of one. Later: the layouts that it
    takes, best first. null: any."""
    for name in ("get_required_kv_cache_layout", "supported_kv_cache_layouts"):
        if not hasattr(cls, name):
            continue
        if not is_data(cls, name):
            return rule(cls, name)
        answer = getattr(cls, name)()
        if answer is None:
            return None
        return [answer] if isinstance(answer, str) else [layout.name for layout in answer]
    raise SystemExit(f"{cls.__name__}: no question about layouts")


def combination(cls: type):
    """null where the backend has no rule over several inputs."""
    owner, _ = find_method(cls, "supports_combination")
    return None if owner.__name__ == "AttentionBackend" else rule(cls, "supports_combination")


def validation(cls: type):
    owner, _ = find_method(cls, "validate_configuration")
    return None if owner.__name__ == "AttentionBackend" else rule(cls, "validate_configuration")


# --- builders and implementations ---------------------------------------------------------------


def builder(cls: type) -> dict | None:
    try:
        found = cls.get_builder_cls()
    except NotImplementedError:
        return None
    getter, _ = find_method(found, "get_cudagraph_support")
    level = getattr(found, "_cudagraph_support", None)
    query_lengths = getattr(found, "query_len_support", None)
    rule_text = None
    if getter is not None and getter.__name__ != "AttentionMetadataBuilder":
        rule_text = f"{getter.__name__}.get_cudagraph_support"
    return {
        "class": found.__name__,
        "cudagraph_support": getattr(level, "name", None),
        "cudagraph_rule": rule_text,
        "reorder_batch_threshold": getattr(found, "reorder_batch_threshold", None),
        "query_len_support": getattr(query_lengths, "name", None),
    }


def implementation(cls: type) -> dict | None:
    try:
        found = cls.get_impl_cls()
    except NotImplementedError:
        return None
    names = ["can_return_lse_for_decode", "lse_base_on_e", "supports_pcp", "supports_dcp",
             "supports_mtp_with_cp_non_trivial_interleave_size", "supports_quant_query_input"]
    # A property is decided by the instance; the class alone has no answer.
    values = {n: getattr(found, n, None) for n in names}
    return {"class": found.__name__,
            **{n: v if isinstance(v, bool) else None for n, v in values.items()}}


# --- rows ---------------------------------------------------------------------------------------


def class_path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def kv_shapes(cls: type, names: list[str], torch) -> list[dict]:
    """The shape for every data type that the class lists or may accept by a rule."""
    listed = kv_dtypes(cls, names)
    asked = listed if isinstance(listed, list) else [
        n for n in names if n in cls.supported_kv_cache_dtypes or n in ("fp8", "fp8_e4m3")
    ]
    if hasattr(cls, "get_kv_cache_shape") and not hasattr(cls, "customize_spec"):
        return vllm_shapes.own_shapes(cls, asked)
    return vllm_shapes.packed_shapes(cls, asked, torch)


def packing(cls: type) -> dict | None:
    """How the backend changes the layout of a page; null where it leaves the general one, and in
    versions where each backend gives a shape of its own."""
    owner, _ = find_method(cls, "customize_spec")
    return None if owner in (None, vllm_base()) else rule(cls, "customize_spec")


def vllm_base() -> type:
    from vllm.v1.attention.backend import AttentionBackend

    return AttentionBackend


def stride_order(cls: type) -> dict | None:
    if hasattr(cls, "get_kv_cache_stride_order"):
        return vllm_shapes.own_stride_order(cls)
    return None


def class_row(cls: type, kv_dtype_names: list[str], torch, make_capability) -> dict:
    sizes = block_sizes(cls)
    composite = None
    if hasattr(cls, "general_backend_cls"):
        composite = {
            "general": class_path(cls.general_backend_cls),
            "causal": class_path(cls.causal_backend_cls),
        }
    return {
        "path": class_path(cls),
        "reported_name": cls.get_name(),
        "bases": [base.__name__ for base in cls.__bases__],
        "composite": composite,
        "needs_at_import": sorted(vllm_imports.needs(cls.__module__)),
        "dtypes": dtypes(cls, torch),
        "head_sizes": head_sizes(cls),
        "head_sizes_listed": list(cls.get_supported_head_sizes()),
        "kv_dtypes": kv_dtypes(cls, kv_dtype_names),
        "kv_dtypes_listed": list(cls.supported_kv_cache_dtypes),
        "block_sizes": sizes,
        "block_size_test": block_size_test(cls, sizes),
        "preferred_block_size": preferred_block_size(cls),
        "capabilities": capability_ranges(cls, make_capability),
        "attention_types": attention_types(cls),
        **{name: flag(cls, name) for name in FLAGS},
        "combination": combination(cls),
        "validation": validation(cls),
        "layouts": layouts(cls),
        "kv_shapes": kv_shapes(cls, kv_dtype_names, torch),
        "packing": packing(cls),
        "stride_order": stride_order(cls),
        "forward_includes_kv_cache_update": bool(cls.forward_includes_kv_cache_update),
        "builder": builder(cls),
        "implementation": implementation(cls),
    }


def layer_class_row(cls: type) -> dict:
    """A class that the selector never sees: no more than what a cache and graphs ask of it."""
    sizes = block_sizes(cls)
    return {
        "path": class_path(cls),
        "reported_name": cls.get_name(),
        "is_ssm": flag(cls, "is_ssm"),
        "block_sizes": sizes,
        "block_size_test": block_size_test(cls, sizes),
        "preferred_block_size": preferred_block_size(cls),
        "layouts": layouts(cls),
        "packing": packing(cls),
        "stride_order": stride_order(cls),
        "builder": builder(cls),
    }


def member_row(kind: str, member: enum.Enum) -> tuple[dict, type | None]:
    """An enum member, and its class where it can be imported."""
    row = {"name": member.name, "kind": kind, "path": member.value or None, "class": None,
           "import_error": None}
    if not member.value:
        return row, None
    try:
        with host_allocations():
            cls = member.get_class()
    except ImportError as error:
        row["import_error"] = {"type": type(error).__name__, "text": str(error)}
        return row, None
    row["class"] = class_path(cls)
    return row, cls


def extract(environment) -> dict:
    import torch
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.v1.attention.backends import registry

    names = kv_dtype_names()
    members, classes, state_classes = [], {}, []

    def add(cls: type) -> None:
        if class_path(cls) in classes:
            return
        classes[class_path(cls)] = class_row(cls, names, torch, environment.make_capability)
        if hasattr(cls, "general_backend_cls"):
            add(cls.general_backend_cls)
            add(cls.causal_backend_cls)

    with set_current_vllm_config(VllmConfig()):
        for kind, members_of in (("attention", registry.AttentionBackendEnum),
                                 ("mamba", registry.MambaAttentionBackendEnum)):
            for member in members_of:
                row, cls = member_row(kind, member)
                members.append(row)
                if cls is None:
                    continue
                if kind == "attention":
                    add(cls)
                else:
                    state_classes.append(cls)
        layer_classes = [layer_class_row(cls) for cls in
                         vllm_layer_classes.find(state_classes, set(classes))]
    table = {"kv_dtypes": kv_dtype_rows(names), "members": members,
             "classes": list(classes.values()), "layer_classes": layer_classes}
    if hasattr(next(iter(registry.AttentionBackendEnum)).get_class(), "customize_spec"):
        table.update(vllm_shapes.layout_orders())
    return table


def kv_dtype_names() -> list[str]:
    from typing import get_args

    from vllm.config.cache import CacheDType

    return list(get_args(CacheDType))


def kv_dtype_rows(names: list[str]) -> list[dict]:
    """The values of --kv-cache-dtype: what they are stored as; null follows the model."""
    from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE
    from vllm.v1.kv_cache_interface import get_kv_quant_mode

    try:
        from vllm.v1.kv_cache_interface import is_quantized_kv_cache
    except ImportError:
        from vllm.utils.torch_utils import is_quantized_kv_cache

    rows = []
    for name in names:
        stored = STR_DTYPE_TO_TORCH_DTYPE.get(name)
        rows.append({
            "name": name,
            "quantized": bool(is_quantized_kv_cache(name)),
            "quant_mode": get_kv_quant_mode(name).name,
            "stored_as": None if stored is None else str(stored).removeprefix("torch."),
            "bytes": None if stored is None else stored.itemsize,
        })
    return rows
