"""A process in which an installed vLLM takes this machine for one with an NVIDIA GPU.

Nothing here computes: the engine's modules are imported so that their tables and their questions
about a device can be read. Used only inside the interpreter that has vLLM installed.
"""

import contextlib
import ctypes
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types

DRIVER = "libcuda.so.1"
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE: what a driver without a device answers


def package_folder(name: str) -> pathlib.Path:
    """Where a package is installed; importing vLLM before the driver is there would fail."""
    for entry in sys.path:
        folder = pathlib.Path(entry) / name
        if (folder / "__init__.py").is_file():
            return folder
    raise SystemExit(f"{sys.executable} has no package {name}")


def driver_symbols(package: pathlib.Path) -> list[str]:
    """The driver functions that the compiled parts of a package are linked against."""
    found: set[str] = set()
    for library in sorted(package.rglob("*.so")):
        names = subprocess.run(
            ["nm", "-D", "--undefined-only", str(library)],
            capture_output=True, text=True, check=True,
        ).stdout
        found.update(re.findall(r" U (cu[A-Z]\w*)", names))
    return sorted(found)


def load_driver(package: pathlib.Path) -> None:
    """Loads the CUDA driver, or where there is none, a stand-in that answers "no device"."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(DRIVER, mode=ctypes.RTLD_GLOBAL)
        return
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "driver.c"
        library = pathlib.Path(folder) / DRIVER
        source.write_text(
            "".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n"
                    for name in driver_symbols(package)),
            encoding="utf-8",
        )
        subprocess.run(
            ["cc", "-shared", "-fPIC", f"-Wl,-soname,{DRIVER}", "-o", str(library), str(source)],
            check=True,
        )
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


@contextlib.contextmanager
def host_allocations():
    """Modules that reserve device memory when they are imported get host memory instead."""
    import torch

    def on_host(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if "cuda" in str(kwargs.get("device", "")):
                kwargs["device"] = "cpu"
            return function(*args, **kwargs)

        return wrapper

    names = ("empty", "zeros", "ones", "tensor", "full")
    originals = {name: getattr(torch, name) for name in names}
    try:
        for name, function in originals.items():
            setattr(torch, name, on_host(function))
        yield
    finally:
        for name, function in originals.items():
            setattr(torch, name, function)


class Environment:
    """The mocked machine. `capability` may be changed at any time."""

    def __init__(self) -> None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
        os.environ["VLLM_NO_USAGE_STATS"] = "1"
        # A release installs FlashInfer's kernels with the package or fetches them; both count as
        # present.
        os.environ["VLLM_HAS_FLASHINFER_CUBIN"] = "1"
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        load_driver(package_folder("vllm"))
        import torch

        properties = types.SimpleNamespace(
            gcnArchName="gfx000", multi_processor_count=1, total_memory=1 << 37, name="none"
        )
        torch.cuda.get_device_properties = lambda *_, **__: properties
        import vllm.platforms as platforms
        from vllm.platforms import cuda
        from vllm.platforms.interface import DeviceCapability

        environment = self

        class MockedCuda(cuda.CudaPlatformBase):
            @classmethod
            def get_device_capability(cls, device_id: int = 0):
                return environment.device_capability

            @classmethod
            def get_device_name(cls, device_id: int = 0) -> str:
                return "mocked"

            @classmethod
            def get_device_total_memory(cls, device_id: int = 0) -> int:
                return 1 << 37

            @classmethod
            def device_count(cls) -> int:
                return 1

            @classmethod
            def is_fully_connected(cls, device_ids) -> bool:
                return True

        self._capability_type = DeviceCapability
        self.device_capability = DeviceCapability(9, 0)
        platforms._current_platform = MockedCuda()

    def make_capability(self, major: int, minor: int):
        return self._capability_type(major, minor)

    def set_capability(self, major: int, minor: int) -> None:
        self.device_capability = self.make_capability(major, minor)


def clear_caches() -> None:
    """Forgets what the engine's functions remember about the machine."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("vllm"):
            continue
        for value in list(vars(module).values()):
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()
