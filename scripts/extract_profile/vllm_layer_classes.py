"""Attention backends that no user can name: model code gives them to its own layers (caches of
indexers, compressors and states)."""

import importlib

# Modules that define such classes; a version that lacks one is older or younger than it.
MODULES = [
    "vllm.v1.attention.backends.linear_attn",
    "vllm.v1.attention.backends.short_conv_attn",
    "vllm.v1.attention.backends.mla.indexer",
    "vllm.v1.attention.backends.mla.sparse_indexer",
    "vllm.v1.attention.backends.mla.sparse_swa",
    "vllm.models.deepseek_v4.compressor",
    "vllm.models.deepseek_v4.nvidia.flashmla",
    "vllm.models.deepseek_v4.nvidia.flashinfer_sparse",
    "vllm.models.deepseek_v41.compressor",
    "vllm.models.deepseek_v41.nvidia.flashmla",
    "vllm.models.deepseek_v41.nvidia.flashinfer_sparse",
    "vllm.models.minimax_m3.common.indexer",
    "vllm.models.minimax_m3.nvidia.indexer_msa",
    "vllm.models.kimi_k3.nvidia.kda_metadata",
    "vllm.models.qwen4_exp.common.qsa_cache",
]


def of_module(module) -> list[type]:
    from vllm.v1.attention.backend import AttentionBackend

    return [value for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, AttentionBackend)
            and value.__module__ == module.__name__]


def find(mamba_classes: list[type], known: set[str]) -> list[type]:
    """The classes behind the enum of state layers, then those of MODULES, without `known`."""
    found = {f"{cls.__module__}.{cls.__qualname__}": cls for cls in mamba_classes}
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        for cls in of_module(module):
            found.setdefault(f"{cls.__module__}.{cls.__qualname__}", cls)
    return [cls for path, cls in found.items() if path not in known]
