"""What bench-cpu times: each function runs one program once and returns the samples of its case.

A sample is a number of tokens a second, or for `load` seconds. `huge` is the largest share of the
process's memory that lay in huge pages while it ran.
"""

import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import threading
import time

# What a case does: tokens of the prompt, generated tokens, requests at the same time.
CASES = {
    "decode128": (128, 64, 1),
    "decode4096": (4096, 16, 1),
    "prompt512": (512, 1, 1),
    "batch16": (128, 32, 16),
    "load": (1, 1, 1),
}
# Requests that a process runs one after the other. The first prompt warms it up and does not count;
# decoding comes after a prompt, and always counts.
REQUESTS = {"decode128": 2, "decode4096": 2, "prompt512": 4}
TRANSFORMERS = pathlib.Path(__file__).resolve().parent / "transformers_speed.py"


class Failed(Exception):
    """A program that did not do its work; the message says which and why."""


def share_of_huge_pages(pid: int) -> float | None:
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    kib = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    # Pages of files (a mapped model too) are 4 KiB ones.
    return kib.get("AnonHugePages", 0) / kib["Rss"] if kib.get("Rss") else None


class Pages(threading.Thread):
    """Looks from time to time at the pages of a process that runs."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self.share = 0.0

    def run(self) -> None:
        while not self._ended.wait(0.5):
            self.share = max(self.share, share_of_huge_pages(self._pid) or 0.0)

    def end(self) -> float:
        self._ended.set()
        self.join()
        return self.share


def run(command: list, environment: dict | None = None) -> tuple[str, float]:
    """Standard output, and the share of huge pages."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, **(environment or {}))) as process:
        pages = Pages(process.pid)
        pages.start()
        out, err = process.communicate()
        share = pages.end()
    if process.returncode != 0:
        lines = err.strip().splitlines() or ["(nothing on standard error)"]
        raise Failed(f"{command[0]} ended with code {process.returncode}: {lines[-1]}")
    return out, share


def prompt(length: int, seed: int, vocabulary: int) -> list[int]:
    return random.Random(f"bench-cpu {seed}").choices(range(3, vocabulary), k=length)


def llm_run(program: pathlib.Path, model: pathlib.Path, case: str, options: dict) -> dict:
    """options: threads, kv, vocabulary, seed."""
    length, generated, batch = CASES[case]
    command = [program, model, "--kv", options["kv"], "--threads", options["threads"],
               "--ignore-eos", "--batch-size", batch]
    if case == "load":
        return load_time(command + ["--prompt-tokens", "5", "-n", 1, "--format", "jsonl"])
    count = batch if batch > 1 else REQUESTS[case]
    # One token more: the first one comes with the prompt.
    lines = [{"prompt_ids": prompt(length, options["seed"] + i, options["vocabulary"]),
              "max_tokens": generated + (case != "prompt512")} for i in range(count)]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
        file.flush()
        out, huge = run(command + ["--prompts", file.name, "--format", "json"])
    document = json.loads(out)
    return {"samples": samples_of(document, case), "huge": huge,
            "kernels": document["environment"]["kernels"]}


def samples_of(document: dict, case: str) -> list[float]:
    """Requests start together, and run one after the other unless they are a batch."""
    length, generated, batch = CASES[case]
    if batch > 1:
        timing = document["timing"]
        return [timing["decode_tokens"] / timing["decode_s"]]
    times = [result["timing"] for result in document["results"]]
    if case == "prompt512":
        return [length / (time["first_token_s"] - before["total_s"])
                for before, time in zip(times, times[1:])]
    return [generated / (time["total_s"] - time["first_token_s"]) for time in times]


def load_time(command: list) -> dict:
    """From the start of the process to its first token."""
    start = time.perf_counter()
    seconds = None
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout:
            if seconds is None and json.loads(line)["event"] == "token":
                seconds = time.perf_counter() - start
    if process.returncode != 0 or seconds is None:
        raise Failed(f"{command[0]} ended with code {process.returncode}")
    return {"samples": [seconds]}


def llama_bench(program: str, model: pathlib.Path, case: str, options: dict) -> dict | None:
    """llama.cpp's own benchmark, weights read into huge pages. options: threads, flags."""
    length, generated, batch = CASES[case]
    if batch > 1 or case == "load":
        return None
    test = ["-p", 0, "-n", generated, "-d", length]
    if case == "prompt512":
        test = ["-p", length, "-n", 0]
    command = [program, "-m", model, "-t", options["threads"], "-fa", "on", "-ctk", "f16",
               "-ctv", "f16", "-r", 2, "-o", "json", *test, *options["flags"]]
    out, huge = run(command, {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"})
    row = json.loads(out)[0]
    return {"samples": row["samples_ts"], "huge": huge, "commit": row["build_commit"]}


def transformers(python: str, model: pathlib.Path, case: str, options: dict) -> dict | None:
    """options: threads."""
    length, generated, batch = CASES[case]
    if batch > 1 or case not in ("decode128", "prompt512"):
        return None
    out, huge = run([python, TRANSFORMERS, model, options["threads"], length, generated])
    return {**json.loads(out), "huge": huge}


def transformers_version(python: str) -> str | None:
    code = ("from importlib.metadata import version as v;"
            "print(v('transformers'), 'torch', v('torch'))")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def read_ceiling(program: pathlib.Path, size: int, threads: int) -> float:
    """GB/s of the fastest way to read so much memory: the least median of its passes."""
    document = json.loads(run([program, size, threads, 3])[0])
    best = min(statistics.median(pattern["seconds"]) for pattern in document["patterns"])
    return size / best / 1e9
