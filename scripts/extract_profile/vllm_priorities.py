"""The order in which the engine tries backends, asked of its own functions.

The order depends on a few yes-or-no facts. Which of them matter on which device is found by asking
for every combination; where a fact is a threshold, the threshold is found by counting up.
"""

import inspect
import itertools

MAJORS = range(7, 14)


def threshold(orders: list) -> int | None:
    """The last index before the order changes; None where it never does."""
    changes = [i for i in range(1, len(orders)) if orders[i] != orders[i - 1]]
    if len(changes) > 1:
        raise SystemExit(f"an order changes more than once: {changes}")
    return changes[0] - 1 if changes else None


def relevant(facts: list[str], fixed: dict[str, bool], ask) -> list[str]:
    """The facts that change the answer for some value of the others, given the fixed ones."""
    out = []
    free = [f for f in facts if f not in fixed]
    for fact in free:
        others = [f for f in free if f != fact]
        for values in itertools.product([False, True], repeat=len(others)):
            known = {**fixed, **dict(zip(others, values))}
            if ask(**known, **{fact: False}) != ask(**known, **{fact: True}):
                out.append(fact)
                break
    return out


def rows(facts: list[str], ask, fixed: dict[str, bool] | None = None) -> list[dict]:
    """A row for every combination of the facts that matter; exactly one row fits a machine."""
    fixed = fixed or {}
    matter = relevant(facts, fixed, ask)
    if not matter:
        return [{"when": fixed, "order": ask(**{f: fixed.get(f, False) for f in facts})}]
    return [row for value in (False, True)
            for row in rows(facts, ask, {**fixed, matter[0]: value})]


def merged(by_major: dict[int, list[dict]]) -> list[dict]:
    """The same rows for several device generations become one entry."""
    out: list[dict] = []
    for major, found in by_major.items():
        for entry in out:
            if entry["rows"] == found:
                entry["majors"].append(major)
                break
        else:
            out.append({"majors": [major], "rows": found})
    return out


# --- CUDA ---------------------------------------------------------------------------------------


def cuda_asker(environment, priorities, mla: bool, major: int):
    """A function from facts to an order, with the arguments that this engine version knows."""
    known = inspect.signature(priorities.__wrapped__).parameters

    def ask(few_heads=False, quantized_kv=False, non_causal=False, head_size_512=False,
            mm_prefix=False, num_heads=None, kv_cache_dtype=None, head_size=None):
        arguments = {
            "use_mla": mla,
            "device_capability": environment.make_capability(major, 0),
            "num_heads": num_heads or (1 if few_heads else None),
            "kv_cache_dtype": kv_cache_dtype or ("fp8" if quantized_kv else "auto"),
            "use_non_causal": non_causal,
            "head_size": head_size or (512 if head_size_512 else 576),
            "use_mm_prefix": mm_prefix,
        }
        return [member.name for member in
                priorities(**{k: v for k, v in arguments.items() if k in known})]

    return ask


def check_facts(ask, kv_dtypes: list[dict]) -> int | None:
    """Fails if a fact is not what its name says; returns the largest number of "few" heads."""
    for row in kv_dtypes:
        if ask(kv_cache_dtype=row["name"]) != ask(quantized_kv=row["quantized"]):
            raise SystemExit(f"{row['name']}: the order does not follow from quantized_kv")
    sizes = {n for n in range(1, 1024) if ask(head_size=n) != ask()}
    if sizes - {512}:
        raise SystemExit(f"the order depends on head sizes {sorted(sizes)}")
    few = threshold([ask(num_heads=n) for n in range(1, 513)])
    return None if few is None else few + 1


def cuda(environment, kv_dtypes: list[dict]) -> dict:
    from vllm.platforms import cuda as platform

    facts = ["quantized_kv", "few_heads", "non_causal", "head_size_512", "mm_prefix"]
    few_heads = set()
    table = {}
    for name, mla in (("plain", False), ("mla", True)):
        by_major = {}
        for major in MAJORS:
            ask = cuda_asker(environment, platform._get_backend_priorities, mla, major)
            few_heads.add(check_facts(ask, kv_dtypes))
            by_major[major] = rows(facts, ask)
        table[name] = merged(by_major)
    few_heads.discard(None)
    if len(few_heads) != 1:
        raise SystemExit(f"several thresholds for few heads: {few_heads}")
    return {"few_heads_at_most": few_heads.pop(), **table}


def vision(environment) -> list[dict]:
    """The backends of vision encoders, by device generation."""
    from vllm.platforms import current_platform

    by_major = {}
    for major in MAJORS:
        environment.set_capability(major, 0)
        order = [m.name for m in current_platform.get_supported_vit_attn_backends()]
        by_major[major] = [{"when": {}, "order": order}]
    environment.set_capability(9, 0)
    return merged(by_major)


# --- ROCm ---------------------------------------------------------------------------------------


def rocm() -> list[dict]:
    """AMD's order; the facts beginning with aiter are what AITER answers about itself."""
    import vllm._aiter_ops as aiter
    from vllm.platforms import rocm as platform

    ops = aiter.rocm_aiter_ops
    facts = ["use_sparse", "use_mla", "kv_connector", "aiter_mla", "aiter_mha", "aiter_found"]
    if hasattr(ops, "is_rdna_aiter_enabled"):
        facts.append("aiter_rdna")

    def ask(use_sparse, use_mla, kv_connector, aiter_mla, aiter_mha, aiter_found, aiter_rdna=False):
        ops.is_mla_enabled = lambda: aiter_mla
        ops.is_mha_enabled = lambda: aiter_mha
        ops.is_rdna_aiter_enabled = lambda: aiter_rdna
        aiter.is_aiter_found_and_supported = lambda: aiter_found
        return [m.name for m in
                platform._get_backend_priorities(use_mla, use_sparse, kv_connector)]

    return rows(facts, ask)


# --- MLA prefill --------------------------------------------------------------------------------


def mla_prefill_order(environment, major: int, dims: tuple[int, int, int]) -> list[str]:
    """The order of MLA prefill backends: each class notes that it was asked and refuses."""
    from vllm.v1.attention.backends.mla.prefill import selector
    from vllm.v1.attention.backends.mla.prefill.base import MLADimensions
    from vllm.v1.attention.backends.mla.prefill.registry import MLAPrefillBackendEnum

    import torch

    environment.set_capability(major, 0)
    capability = environment.device_capability
    config = selector.MLAPrefillSelectorConfig(
        dtype=torch.bfloat16,
        mla_dimensions=MLADimensions(qk_nope_head_dim=dims[0], qk_rope_head_dim=dims[1],
                                     v_head_dim=dims[2]),
    )
    asked: list[str] = []

    def note(member):
        asked.append(member.name)
        raise ImportError

    original = MLAPrefillBackendEnum.get_class
    MLAPrefillBackendEnum.get_class = note
    try:
        choose = inspect.unwrap(selector._auto_select_mla_prefill_backend)
        arguments = [capability, config] if len(inspect.signature(choose).parameters) == 2 else [
            config]
        choose(*arguments)
    except ValueError:
        pass
    finally:
        MLAPrefillBackendEnum.get_class = original
        environment.set_capability(9, 0)
    return asked


def mla_prefill_orders(environment, known_dims: list[list[int]]) -> list[dict]:
    """By device generation; `dims` names the dimensions that change the order."""
    plain = (1, 1, 1)
    by_major = {}
    for major in MAJORS:
        usual = mla_prefill_order(environment, major, plain)
        found = [{"dims": list(dims), "order": mla_prefill_order(environment, major, tuple(dims))}
                 for dims in known_dims]
        by_major[major] = [row for row in found if row["order"] != usual]
        by_major[major].append({"dims": None, "order": usual})
    return merged(by_major)


def mla_prefill(environment) -> dict:
    import torch
    from vllm.v1.attention.backends.mla.prefill.registry import MLAPrefillBackendEnum

    from vllm_backends import class_path, ranges, CAPABILITIES, DTYPES
    from vllm_purity import is_data, rule_name

    members = []
    known_dims = []
    for member in MLAPrefillBackendEnum:
        row = {"name": member.name, "path": member.value or None}
        members.append(row)
        if not member.value:
            continue
        cls = member.get_class()
        dims = prefill_dims(cls)
        known_dims += [d for d in dims or [] if d not in known_dims]
        row.update({
            "class": class_path(cls),
            "reported_name": cls.get_name(),
            "dtypes": [d for d in DTYPES if cls.supports_dtype(getattr(torch, d))],
            "capabilities": {"rule": rule_name(cls, "supports_compute_capability")}
            if not is_data(cls, "supports_compute_capability") else
            ranges([bool(cls.supports_compute_capability(environment.make_capability(*c)))
                    for c in CAPABILITIES]),
            "available": True if is_data(cls, "is_available") else
            {"rule": rule_name(cls, "is_available")},
            "dims": dims,
            "dims_listed": bool(cls.supported_mla_dimensions),
            "validation": None if rule_name(cls, "validate_configuration").startswith(
                "MLAPrefillBackend.") else {"rule": rule_name(cls, "validate_configuration")},
        })
    return {"members": members, "orders": mla_prefill_orders(environment, known_dims)}


def prefill_dims(cls: type) -> list[list[int]] | None:
    """The (nope, rope, v) dimensions that a prefill backend takes; None for any."""
    from vllm.v1.attention.backends.mla.prefill.base import MLADimensions

    if not hasattr(cls, "supports_mla_dimensions"):
        listed = cls.supported_mla_dimensions
        return [[d.qk_nope_head_dim, d.qk_rope_head_dim, d.v_head_dim] for d in listed] or None
    sizes = range(0, 513, 32)

    def takes(nope: int, rope: int, v: int) -> bool:
        return cls.supports_mla_dimensions(
            MLADimensions(qk_nope_head_dim=nope, qk_rope_head_dim=rope, v_head_dim=v))

    if takes(1, 1, 1):
        return None
    return [[n, r, v] for n in sizes for r in (0, 32, 64, 96, 128) for v in sizes if takes(n, r, v)]
