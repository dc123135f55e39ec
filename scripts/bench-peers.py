#!/usr/bin/env python3
"""Times peers of llm-bench that live in Python, on the gqa-decode shapes of a case file.

usage: bench-peers.py CASES.toml [-o FILE] [--shape NAME]... [--peer NAME]... [--launches N]

Peers, each measured where it is installed: torch (PyTorch's scaled_dot_product_attention over K and V
without pages), cudnn (paged attention through cudnn-frontend), flashinfer (its fa2 wrappers, with and
without tensor cores), xqa (through FlashInfer), flash-attention-3. Every peer is captured in a CUDA graph
of N launches (20) and compared with float32 sums of the first request: one that differs by more than a
tenth of the largest value has no time. A peer that is not installed is named once and is no error.
The JSON is what --peers-file of llm-bench reads.

Exit codes: 0 measured, 2 wrong use, 3 a case file that cannot be read, 4 no PyTorch or no CUDA device.
"""

import argparse
import importlib.util
import json
import math
import os
import statistics
import sys
import tomllib
from typing import Callable, NamedTuple

SCHEMA = "kernelpath/bench-peers"
SCHEMA_VERSION = "1.0.0"
SAMPLES = 9
WORKSPACE_BYTES = 512 << 20
MOST_ERROR = 0.1  # of the largest value: some peers have queries and weights in fp8


def read_shapes(path):
    """The gqa-decode sections of a case file: name -> its values, with those that hold for all."""
    with open(path, "rb") as file:
        document = tomllib.load(file)
    common = {key: value for key, value in document.items() if not isinstance(value, dict)}
    shapes = {}
    for name, section in document.items():
        if not isinstance(section, dict):
            continue
        values = {**common, **section}
        if values.get("case") == "gqa-decode":
            shapes[name] = values
    return shapes


def problem_of(shape):
    """What is not compared with peers; None if nothing."""
    for key in ("window", "chunk", "softcap", "sinks", "v_head_dim", "query_tokens"):
        if key in shape:
            return f"{key} is not compared"
    for key in ("heads", "head_dim", "batch_size", "context", "kv_cache_dtype"):
        if isinstance(shape.get(key), list):
            return f"several values of {key}: one a section"
    if shape.get("kv_cache_dtype", "bf16") not in ("bf16", "fp8"):
        return "KV caches in bf16 and fp8 only"
    return None


class Decode:
    """Queries and a paged cache [pages, 2, heads, page, head_dim] of one shape on the device."""

    def __init__(self, torch, shape):
        self.torch = torch
        heads = str(shape.get("heads", "32:8")).split(":")
        self.hq, self.hkv = int(heads[0]), int(heads[-1])
        self.d, self.page = shape.get("head_dim", 128), shape.get("page_size", 16)
        self.lens = shape.get("contexts") or [shape.get("context", 4096)] * shape.get("batch_size", 1)
        self.ragged = "contexts" in shape
        self.fp8 = shape.get("kv_cache_dtype", "bf16") == "fp8"
        self.scale = 1 / math.sqrt(self.d)
        pages = [-(-length // self.page) for length in self.lens]
        generator = torch.Generator().manual_seed(1)
        order = torch.randperm(sum(pages), generator=generator).to(torch.int32)
        self.indptr = torch.tensor([0, *torch.tensor(pages).cumsum(0).tolist()], dtype=torch.int32)
        self.last = torch.tensor([(n - 1) % self.page + 1 for n in self.lens], dtype=torch.int32)
        kv = torch.empty(sum(pages), 2, self.hkv, self.page, self.d, dtype=torch.bfloat16, device="cuda")
        kv.normal_()
        self.kv = kv.to(torch.float8_e4m3fn) if self.fp8 else kv
        self.q = torch.randn(len(self.lens), self.hq, self.d, dtype=torch.bfloat16, device="cuda")
        table = torch.zeros(len(self.lens), max(pages), dtype=torch.int32)
        for row, count in enumerate(pages):
            first = int(self.indptr[row])
            table[row, :count] = order[first : first + count]
        self.indices, self.table = order.cuda(), table.cuda()
        self.seq_lens = torch.tensor(self.lens, dtype=torch.int32, device="cuda")

    def reference(self):
        """The first request's output in float32: [hq, d]."""
        torch, length = self.torch, self.lens[0]
        count = -(-length // self.page)
        kv = self.kv[self.table[0, :count].long()].float()
        k, v = (kv[:, i].transpose(0, 1).reshape(self.hkv, -1, self.d)[:, :length] for i in (0, 1))
        q = self.q[0].float().view(self.hkv, self.hq // self.hkv, self.d)
        return (torch.softmax(q @ k.transpose(1, 2) * self.scale, -1) @ v).reshape(self.hq, self.d)


def torch_sdpa(case):
    torch = case.torch
    if case.ragged or case.fp8:
        raise NotImplementedError("batches of one length in bf16 only")
    batch, length = len(case.lens), case.lens[0]
    pages = case.kv[case.table.long().flatten()].view(batch, -1, 2, case.hkv, case.page, case.d)
    k, v = (
        pages[:, :, i].permute(0, 2, 1, 3, 4).reshape(batch, case.hkv, -1, case.d)[:, :, :length].contiguous()
        for i in (0, 1)
    )
    q = case.q.view(batch, case.hq, 1, case.d)
    attend = torch.nn.functional.scaled_dot_product_attention
    return lambda: attend(q, k, v, enable_gqa=case.hq != case.hkv).view(batch, case.hq, case.d)


def cudnn_paged(case):
    import cudnn

    torch = case.torch
    if case.fp8:
        raise NotImplementedError("bf16 only")
    batch, longest = len(case.lens), max(case.lens)
    k, v = case.kv[:, 0].contiguous(), case.kv[:, 1].contiguous()
    q = case.q.view(batch, case.hq, 1, case.d)
    out = torch.empty_like(q)
    table = case.table.view(batch, 1, -1, 1)
    seq_kv = case.seq_lens.view(batch, 1, 1, 1)
    seq_q = torch.ones_like(seq_kv)
    handle = cudnn.create_handle()
    graph = cudnn.pygraph(
        io_data_type=cudnn.data_type.BFLOAT16,
        intermediate_data_type=cudnn.data_type.FLOAT,
        compute_data_type=cudnn.data_type.FLOAT,
        handle=handle,
    )
    values = {"q": q, "k": k, "v": v, "k_table": table, "v_table": table,
              "seq_q": seq_q, "seq_kv": seq_kv}
    tensors = {name: graph.tensor_like(value) for name, value in values.items()}
    result, _ = graph.sdpa(
        name="decode", q=tensors["q"], k=tensors["k"], v=tensors["v"], generate_stats=False,
        attn_scale=case.scale, use_padding_mask=True, seq_len_q=tensors["seq_q"],
        seq_len_kv=tensors["seq_kv"],
        paged_attention_k_table=tensors["k_table"], paged_attention_v_table=tensors["v_table"],
        paged_attention_max_seq_len_kv=longest,
    )
    result.set_output(True).set_dim(list(out.shape)).set_stride(list(out.stride()))
    result.set_data_type(cudnn.data_type.BFLOAT16)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(graph.get_workspace_size(), dtype=torch.uint8, device="cuda")
    pack = {tensors[name]: value for name, value in values.items()} | {result: out}

    def run():
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute(pack, workspace, handle=handle)
        return out.view(batch, case.hq, case.d)

    return run


def flashinfer_fa2(case, tensor_cores):
    import flashinfer

    workspace = case.torch.zeros(WORKSPACE_BYTES, dtype=case.torch.uint8, device="cuda")
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        workspace, "HND", use_tensor_cores=tensor_cores, backend="fa2")
    wrapper.plan(case.indptr, case.indices, case.last, case.hq, case.hkv, case.d, case.page,
                 q_data_type=case.torch.bfloat16, kv_data_type=case.kv.dtype)
    return lambda: wrapper.run(case.q, case.kv)


def flashinfer_xqa(case):
    from flashinfer.decode import trtllm_batch_decode_with_kv_cache as decode

    workspace = case.torch.zeros(WORKSPACE_BYTES, dtype=case.torch.uint8, device="cuda")
    longest = max(case.lens)
    return lambda: decode(case.q, case.kv, workspace, case.table, case.seq_lens, longest,
                          bmm1_scale=case.scale, bmm2_scale=1.0, kv_layout="HND", backend="xqa")


def flash_attention_3(case):
    import flash_attn_interface

    k, v = (case.kv[:, i].transpose(1, 2).contiguous() for i in (0, 1))
    q = case.q.unsqueeze(1)
    if case.fp8:
        q = q.to(case.torch.float8_e4m3fn)

    def run():
        out = flash_attn_interface.flash_attn_with_kvcache(
            q, k, v, cache_seqlens=case.seq_lens, page_table=case.table, causal=True)
        return (out[0] if isinstance(out, tuple) else out).squeeze(1)

    return run


class Peer(NamedTuple):
    name: str  # in the table
    kind: str  # of --peer, as llm-bench --list peers has it
    module: str  # what must be installed
    make: Callable  # a case -> what launches once and returns [batch, hq, d]


PEERS = [
    Peer("torch_sdpa_contiguous", "torch", "torch", torch_sdpa),
    Peer("cudnn_paged", "cudnn", "cudnn", cudnn_paged),
    Peer("flashinfer_fa2_tc1_py", "flashinfer", "flashinfer", lambda case: flashinfer_fa2(case, True)),
    Peer("flashinfer_fa2_tc0_py", "flashinfer", "flashinfer", lambda case: flashinfer_fa2(case, False)),
    Peer("flashinfer_xqa", "xqa", "flashinfer", flashinfer_xqa),
    Peer("fa3_kvcache_paged", "flash-attention-3", "flash_attn_interface", flash_attention_3),
]


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # a module that is there without a spec
        return module in sys.modules


def measure(torch, run, launches):
    """Seconds of one launch: the median over replays of a graph of `launches`."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            run()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    graph.replay()
    torch.cuda.synchronize()
    samples = []
    for _ in range(SAMPLES):
        begin.record()
        graph.replay()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        samples.append(begin.elapsed_time(end) / 2 / launches * 1e-3)
    return statistics.median(samples)


def row_of(torch, name, peer, case, launches):
    """One row; whatever a library raises is its answer."""
    row = {"shape": name, "peer": peer.name, "paged": "contiguous" not in peer.name}
    try:
        run = peer.make(case)
        expected = case.reference()
        error = float((run()[0].float() - expected).abs().max() / expected.abs().max())
        row["max_error"] = error
        if not error <= MOST_ERROR:
            raise ValueError(f"its output differs by {error:.2g} of the largest value")
        row["median_s"] = measure(torch, run, launches)
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"[:300]
        torch.cuda.synchronize()
    return row


def versions():
    found = {}
    for name in ("torch", "cudnn", "flashinfer", "flash_attn_interface"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        found[name] = str(getattr(module, "__version__", "unknown"))
    return found


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("cases", metavar="CASES.toml")
    parser.add_argument("-o", "--output", metavar="FILE")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME")
    kinds = list(dict.fromkeys(peer.kind for peer in PEERS))
    parser.add_argument("--peer", action="append", default=[], choices=kinds)
    parser.add_argument("--launches", type=int, default=20, metavar="N")
    return parser, parser.parse_args(argv)


def say(text):
    print(f"bench-peers: {text}", file=sys.stderr, flush=True)


def problem_with(peer):
    return None if is_installed(peer.module) else f"{peer.module} is not installed"


def measure_shapes(torch, shapes, peers, launches):
    """A row for each shape and peer. What is missing is said once and stands in its rows."""
    missing = {peer.name: problem_with(peer) for peer in peers}
    for name, problem in missing.items():
        if problem:
            say(f"{name}: not measured, {problem}")
    rows = []
    for name, shape in shapes.items():
        problem = problem_of(shape)
        if problem:
            say(f"{name}: not measured, {problem}")
        case = None if problem else Decode(torch, shape)
        for peer in peers:
            reason = problem or missing[peer.name]
            if reason:
                rows.append({"shape": name, "peer": peer.name, "error": reason})
                continue
            rows.append(row_of(torch, name, peer, case, launches))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        del case
        torch.cuda.empty_cache()
    return rows


def write(document, path):
    text = json.dumps(document, indent=2) + "\n"
    if path is None:
        sys.stdout.write(text)
        return
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


def main(argv=None):
    parser, options = parse_arguments(argv)
    try:
        shapes = read_shapes(options.cases)
    except (OSError, tomllib.TOMLDecodeError) as error:
        say(f"{options.cases}: {error}")
        return 3
    unknown = sorted(set(options.shape) - set(shapes))
    if unknown:
        parser.error(f"{options.cases} has no gqa-decode section {unknown[0]}; it has {', '.join(shapes)}")
    if options.shape:
        shapes = {name: shape for name, shape in shapes.items() if name in options.shape}
    try:
        import torch
    except ImportError:
        say("PyTorch is not installed")
        return 4
    if not torch.cuda.is_available():
        say("there is no CUDA device")
        return 4
    peers = [peer for peer in PEERS if not options.peer or peer.kind in options.peer]
    rows = measure_shapes(torch, shapes, peers, options.launches)
    write({"schema": SCHEMA, "schema_version": SCHEMA_VERSION,
           "environment": {"device": torch.cuda.get_device_name(),
                           "launches_per_graph": options.launches, "versions": versions()},
           "rows": rows}, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
