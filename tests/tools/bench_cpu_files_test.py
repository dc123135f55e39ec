#!/usr/bin/env python3
"""The files that scripts/bench-cpu writes hold one model: llm-run says the same tokens from each.

usage: bench_cpu_files_test.py SCRIPTS LLM_RUN
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "bench_cpu"))

import model_files  # noqa: E402

SHAPE = model_files.Shape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16, ffn=96,
                          vocabulary=160, context=128)


def tokens(program: str, model: pathlib.Path) -> str:
    command = [program, str(model), "--prompt-tokens", "5,100,31,7,77,9", "-n", "24", "--ignore-eos"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{model.name}: code {done.returncode}: {done.stderr}")
    return done.stdout.strip()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        files = model_files.ModelFiles(pathlib.Path(folder), SHAPE)
        files.make()
        paths = [files.checkpoint("f32"), files.checkpoint("bf16")]
        paths += [files.gguf(kind) for kind in model_files.FORMATS]
        answers = {path.name: tokens(sys.argv[2], path) for path in paths}
    wanted = answers["f32"]
    if len(set(wanted.split())) < 3:
        print(f"a model that says {wanted} tells nothing")
        return 1
    for name, answer in answers.items():
        if answer != wanted:
            print(f"{name}: {answer}\n   f32: {wanted}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
