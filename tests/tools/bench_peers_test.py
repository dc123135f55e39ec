#!/usr/bin/env python3
"""scripts/bench-peers.py with modules that only say how they were called: no GPU, no PyTorch.

usage: bench_peers_test.py SCRIPT [LLM_BENCH]
"""

import importlib.machinery
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

SCRIPT = pathlib.Path(sys.argv[1])
LLM_BENCH = sys.argv[2] if len(sys.argv) > 2 else None

CASES = """
[plain]
case = "gqa-decode"
heads = "4:2"
head_dim = 64
batch_size = 3
context = 40
[narrow]
case = "gqa-decode"
heads = "4:2"
head_dim = 64
context = 24
window = 8
[matrix]
case = "gemv"
rows = 8
"""


def load_script():
    loader = importlib.machinery.SourceFileLoader("bench_peers", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_peers", loader))
    loader.exec_module(module)
    return module


class Tensor:
    """What is done to a tensor, as text: kv[:,0].transpose(1,2)."""

    def __init__(self, text, dtype="bf16"):
        self.text, self.dtype = text, dtype

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        return Tensor(f"{self.text}[{','.join(':' if part == slice(None) else str(part) for part in parts)}]")

    def __getattr__(self, name):
        return lambda *values: Tensor(f"{self.text}.{name}({','.join(map(str, values))})")


def fake_torch(cuda=True):
    torch = types.ModuleType("torch")
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    torch.__version__ = "0.fake"
    torch.uint8, torch.bfloat16, torch.float8_e4m3fn = "uint8", "bf16", "e4m3"
    torch.zeros = lambda count, dtype, device: Tensor(f"zeros({dtype},{device})")
    torch.cuda = types.SimpleNamespace(is_available=lambda: cuda, get_device_name=lambda: "Fake GPU",
                                       empty_cache=lambda: None, synchronize=lambda: None)
    return torch


def fake_module(name, **members):
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(module).update(members)
    return module


def fake_case(fp8=False):
    return types.SimpleNamespace(torch=fake_torch(), lens=[40, 7], scale=0.125, fp8=fp8, kv=Tensor("kv"),
                                 q=Tensor("q"), table=Tensor("table"), seq_lens=Tensor("seq_lens"))


class Calls(unittest.TestCase):
    def setUp(self):
        self.script = load_script()

    def test_xqa_gets_the_paged_cache_as_it_lies(self):
        calls = []
        decode = fake_module("flashinfer.decode",
                             trtllm_batch_decode_with_kv_cache=lambda *a, **k: calls.append((a, k)))
        package = fake_module("flashinfer", decode=decode, __path__=[])
        with mock.patch.dict(sys.modules, {"flashinfer": package, "flashinfer.decode": decode}):
            self.script.flashinfer_xqa(fake_case())()
        (values, named), = calls
        texts = [value.text if isinstance(value, Tensor) else value for value in values]
        self.assertEqual(texts, ["q", "kv", "zeros(uint8,cuda)", "table", "seq_lens", 40])
        self.assertEqual(named, {"bmm1_scale": 0.125, "bmm2_scale": 1.0, "kv_layout": "HND", "backend": "xqa"})

    def flash_attention_call(self, fp8, answer):
        calls = []

        def attend(*values, **named):
            calls.append((values, named))
            return answer

        module = fake_module("flash_attn_interface", flash_attn_with_kvcache=attend)
        with mock.patch.dict(sys.modules, {"flash_attn_interface": module}):
            out = self.script.flash_attention_3(fake_case(fp8))()
        (values, named), = calls
        return [value.text for value in values], named, out

    def test_flash_attention_3_gets_tokens_before_heads(self):
        values, named, out = self.flash_attention_call(False, Tensor("o"))
        self.assertEqual(values, ["q.unsqueeze(1)", "kv[:,0].transpose(1,2).contiguous()",
                                  "kv[:,1].transpose(1,2).contiguous()"])
        self.assertEqual((named["cache_seqlens"].text, named["page_table"].text, named["causal"]),
                         ("seq_lens", "table", True))
        self.assertEqual(out.text, "o.squeeze(1)")

    def test_flash_attention_3_in_fp8_has_fp8_queries_and_may_return_more(self):
        values, _, out = self.flash_attention_call(True, (Tensor("o"), Tensor("lse")))
        self.assertEqual(values[0], "q.unsqueeze(1).to(e4m3)")
        self.assertEqual(out.text, "o.squeeze(1)")


class Value(float):
    """A number that answers as a tensor of one."""

    def __getattr__(self, name):
        return lambda: Value(abs(self)) if name == "abs" else self

    def __sub__(self, other):
        return Value(float(self) - float(other))


class Run(unittest.TestCase):
    """main() with a device, cases and times that are made up."""

    def run_main(self, *arguments, torch=fake_torch(), modules=(), answer=1.0):
        script = load_script()
        made = types.SimpleNamespace(reference=lambda: Value(1.0))
        peers = [peer._replace(make=lambda case: lambda: [Value(answer)]) for peer in script.PEERS]
        out, err = io.StringIO(), io.StringIO()
        fakes = {"torch": torch, **{name: fake_module(name) for name in modules}}
        absent = {name: None for name in ("cudnn", "flashinfer", "flash_attn_interface") if name not in modules}
        with tempfile.TemporaryDirectory() as folder:
            cases = pathlib.Path(folder) / "cases.toml"
            cases.write_text(CASES)
            with mock.patch.dict(sys.modules, {**fakes, **absent}), redirect_stdout(out), redirect_stderr(err), \
                    mock.patch.object(script, "Decode", lambda torch, shape: made), \
                    mock.patch.object(script, "PEERS", peers), \
                    mock.patch.object(script, "measure", lambda torch, run, launches: 2e-6 * launches):
                code = script.main([str(cases), *arguments])
        return code, out.getvalue(), err.getvalue()

    def test_missing_peers_are_named_once_and_are_no_error(self):
        code, out, err = self.run_main(modules=["flash_attn_interface"])
        self.assertEqual(code, 0)
        self.assertEqual(err.count("flashinfer_xqa: not measured, flashinfer is not installed"), 1)
        rows = {(row["shape"], row["peer"]): row for row in json.loads(out)["rows"]}
        self.assertAlmostEqual(rows["plain", "fa3_kvcache_paged"]["median_s"], 4e-5)
        self.assertEqual(rows["plain", "flashinfer_xqa"]["error"], "flashinfer is not installed")
        self.assertEqual(rows["narrow", "fa3_kvcache_paged"]["error"], "window is not compared")
        self.assertFalse(rows["plain", "torch_sdpa_contiguous"]["paged"])
        self.assertNotIn("matrix", {shape for shape, _ in rows})

    def test_only_the_peers_that_were_asked_for(self):
        _, out, _ = self.run_main("--peer", "xqa", "--shape", "plain", modules=["flashinfer"])
        self.assertEqual([row["peer"] for row in json.loads(out)["rows"]], ["flashinfer_xqa"])

    def test_another_answer_has_no_time(self):
        for answer in (1.2, float("nan")):
            _, out, _ = self.run_main("--peer", "torch", "--shape", "plain", answer=answer)
            row, = json.loads(out)["rows"]
            self.assertIn("differs", row["error"])
            self.assertNotIn("median_s", row)

    def test_without_a_device_it_says_so(self):
        code, out, err = self.run_main(torch=fake_torch(cuda=False))
        self.assertEqual((code, out), (4, ""))
        self.assertIn("no CUDA device", err)

    def test_unknown_shapes_are_refused(self):
        with self.assertRaises(SystemExit) as stopped:
            self.run_main("--shape", "nothing")
        self.assertEqual(stopped.exception.code, 2)

    @unittest.skipIf(LLM_BENCH is None, "no llm-bench")
    def test_llm_bench_reads_what_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            peers = pathlib.Path(folder) / "peers.json"
            cases = pathlib.Path(folder) / "cases.toml"
            cases.write_text(CASES.split("[narrow]")[0])
            self.run_main("-o", str(peers), modules=["flash_attn_interface"])
            command = [LLM_BENCH, str(cases), "--peers-file", str(peers), "--device", "cpu", "--threads", "1",
                       "--min-samples", "2", "--min-time", "0s", "--max-noise", "100000%", "--warm"]
            done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fa3_kvcache_paged", done.stdout)
        self.assertIn("40.0 us", done.stdout)
        self.assertIn("peer flashinfer_xqa: flashinfer is not installed", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
