"""Runs inside the interpreter that has vLLM installed; writes what it finds as JSON to a file.

usage: PYTHON scripts/extract_profile/vllm_probe.py OUTPUT
"""

import json
import pathlib
import sys

import vllm_arguments
import vllm_backends
import vllm_command
import vllm_priorities
import vllm_registry
import vllm_settings
from vllm_environment import Environment


def probe() -> dict:
    environment = Environment()
    import vllm

    backends = vllm_backends.extract(environment)
    arguments = vllm_arguments.extract()
    return {
        "version": vllm.__version__,
        "backends": backends,
        "priorities": {
            "cuda": vllm_priorities.cuda(environment, backends["kv_dtypes"]),
            "rocm": vllm_priorities.rocm(),
            "vision": vllm_priorities.vision(environment),
        },
        "mla_prefill": vllm_priorities.mla_prefill(environment),
        "settings": vllm_settings.extract(),
        "arguments": arguments,
        "command": vllm_command.extract(arguments),
        # Last: importing every model module changes what later imports see.
        "registry": vllm_registry.extract(),
    }


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(json.dumps(probe()), encoding="utf-8")
