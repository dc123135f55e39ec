"""The KV cache of a backend: axes of a layer's tensor, and their order in memory.

Sizes are found by asking with numbers that no other axis has and by asking twice where a size
depends on the head size. An axis is a name, a number, {"num_kv_heads_times": n}, or
{"head_size_times": [numerator, denominator], "plus": n}, where "of": "num_kv_heads" says that every
KV head takes as much; a backend whose last axis is none of these answers {"rule": …}.
"""

import contextlib
import types
from fractions import Fraction

from vllm_purity import rule_name

NUM_BLOCKS = 1009
BLOCK_SIZE = 4096
NUM_KV_HEADS = 7
HEAD_SIZES = (160, 288, 72)  # 72: where packed slots are rounded up
WHOLE_GROUP_HEAD_SIZES = (160, 288, 352)  # for formats that refuse a head that is no whole groups
MLA_HEAD_SIZES = (576, 1088, 704)
HEAD_SIZE_V = 137  # of values, where a class keeps it itself


def head_sizes_of(cls: type) -> tuple:
    """Three head sizes to ask with: those that the class serves, if it lists as many."""
    if cls.is_mla():
        return MLA_HEAD_SIZES
    listed = cls.get_supported_head_sizes()
    return tuple(listed[:3]) if len(listed) > 2 else HEAD_SIZES


def describe_axis(values: tuple, head_sizes: tuple):
    """One axis from its sizes at three head sizes; None where no line goes through them."""
    if values == tuple(size + HEAD_SIZE_V for size in head_sizes):
        return "head_sizes"
    if len(set(values)) == 1:
        names = {NUM_BLOCKS: "num_blocks", BLOCK_SIZE: "block_size", NUM_KV_HEADS: "num_kv_heads"}
        if values[0] not in names and values[0] % NUM_KV_HEADS == 0:
            return {"num_kv_heads_times": values[0] // NUM_KV_HEADS}
        return names.get(values[0], values[0])
    slope = Fraction(values[1] - values[0], head_sizes[1] - head_sizes[0])
    plus = values[0] - slope * head_sizes[0]
    if values[2] != slope * head_sizes[2] + plus or plus.denominator != 1:
        return None
    if slope == 1 and plus == 0:
        return "head_size"
    if slope.numerator % NUM_KV_HEADS == 0 and plus % NUM_KV_HEADS == 0:
        per_head = slope / NUM_KV_HEADS
        return {"head_size_times": [per_head.numerator, per_head.denominator],
                "plus": int(plus) // NUM_KV_HEADS, "of": "num_kv_heads"}
    return {"head_size_times": [slope.numerator, slope.denominator], "plus": int(plus)}


def describe_shape(shape_at, head_sizes: tuple):
    """`shape_at(head_size)` gives a tuple of numbers; None where an axis has no description."""
    shapes = [shape_at(head_size) for head_size in head_sizes]
    axes = [describe_axis(values, head_sizes) for values in zip(*shapes)]
    return None if None in axes else axes


def grouped(shapes: list[tuple[str, object]]) -> list[dict]:
    """Data types with the same shape, together and in order."""
    out: list[dict] = []
    for name, shape in shapes:
        for row in out:
            if row["shape"] == shape:
                row["kv_dtypes"].append(name)
                break
        else:
            out.append({"kv_dtypes": [name], "shape": shape})
    return out


# --- until 0.26: each backend gives its own shape and order -------------------------------------


def own_shapes(cls: type, kv_dtypes: list[str]) -> list[dict]:
    heads = 1 if cls.is_mla() else NUM_KV_HEADS
    if hasattr(cls, "set_head_size_v"):
        cls.set_head_size_v(HEAD_SIZE_V)

    def shape_of(name: str):
        def shape_at(head_size: int):
            return cls.get_kv_cache_shape(NUM_BLOCKS, BLOCK_SIZE, heads, head_size, name)

        found = describe_shape(shape_at, head_sizes_of(cls))
        return found or {"rule": rule_name(cls, "get_kv_cache_shape")}

    return grouped([(name, shape_of(name)) for name in kv_dtypes])


def own_stride_order(cls: type) -> dict | None:
    """Layout → order of the axes in memory, without and with a layer axis in front."""
    from vllm.v1.attention.backends import utils

    def order(layout: str, with_layers: bool):
        utils.set_kv_cache_layout(layout)
        utils.get_kv_cache_layout.cache_clear()
        try:
            return list(cls.get_kv_cache_stride_order(include_num_layers_dimension=with_layers))
        except NotImplementedError:
            return None

    orders = {layout: {"plain": order(layout, False), "with_layers": order(layout, True)}
              for layout in ("NHD", "HND")}
    utils.set_kv_cache_layout(None)
    utils.get_kv_cache_layout.cache_clear()
    return orders if orders["NHD"]["plain"] is not None else None


# --- later: one packing for all, which a backend may adjust -------------------------------------


def mla_spec(name: str, head_size: int, torch):
    """The specification that an MLA layer gives, with nothing of a model but the head size."""
    from vllm.model_executor.layers.attention.mla_attention import MLAAttention

    layer = types.SimpleNamespace(
        kv_cache_dtype=name, head_size=head_size, sliding_window=None, topk_buffer_width=None,
        indexer=None, non_causal_multi_token_decode=False,
    )
    config = types.SimpleNamespace(
        model_config=types.SimpleNamespace(dtype=torch.bfloat16),
        cache_config=types.SimpleNamespace(block_size=BLOCK_SIZE),
    )
    return MLAAttention.get_kv_cache_spec(layer, config)


def plain_spec(name: str, head_size: int, torch):
    from vllm.utils.torch_utils import kv_cache_dtype_str_to_dtype
    from vllm.v1.kv_cache_interface import FullAttentionSpec, get_kv_quant_mode

    model = types.SimpleNamespace(dtype=torch.bfloat16)
    return FullAttentionSpec(
        block_size=BLOCK_SIZE, num_kv_heads=NUM_KV_HEADS, head_size=head_size,
        dtype=kv_cache_dtype_str_to_dtype(name, model), kv_quant_mode=get_kv_quant_mode(name),
    )


def packed_shapes(cls: type, kv_dtypes: list[str], torch) -> list[dict]:
    """Blocks, head slots, tokens, content of one slot in elements of the stored type."""
    make_spec = mla_spec if cls.is_mla() else plain_spec

    def shape_of(name: str):
        def shape_at(head_size: int):
            spec = cls.customize_spec(make_spec(name, head_size, torch))
            content, rest = divmod(spec.state_content_size_bytes, spec.dtype.itemsize)
            if rest != 0:
                raise SystemExit(f"{cls.__name__}: {name}: a slot is no whole number of elements")
            return NUM_BLOCKS, spec.num_heads, spec.num_states, content

        for head_sizes in (head_sizes_of(cls), WHOLE_GROUP_HEAD_SIZES):
            # RuntimeError: the backend wants to know more of the model than its head size.
            with contextlib.suppress(RuntimeError, ValueError):
                found = describe_shape(shape_at, head_sizes)
                if found is not None:
                    return found
                break
        return {"rule": rule_name(cls, "customize_spec")}

    return grouped([(name, shape_of(name)) for name in kv_dtypes])


def layout_orders() -> dict:
    """Layout → order of [layers, blocks, heads, tokens, content] in memory, in the enum's order;
    and the order of preference where no backend has one."""
    from vllm.v1.attention.backends.utils import _DEFAULT_LAYOUT_PREFERENCE
    from vllm.v1.kv_cache_layout import KVCacheLayout

    return {
        "layouts": [{"name": layout.name, "stride_order": list(layout.stride_order)}
                    for layout in KVCacheLayout],
        "layout_preference": [layout.name for layout in _DEFAULT_LAYOUT_PREFERENCE],
    }
