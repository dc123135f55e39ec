"""Speed of transformers on a checkpoint, run by the interpreter that has it.

usage: transformers_speed.py MODEL THREADS PROMPT GENERATED

Prints {"samples": [tokens a second]}: of the prompt where GENERATED is 1, else of decoding.
"""

import json
import random
import sys
import time

import torch
import transformers


def main() -> None:
    model_path, threads, length, generated = sys.argv[1], *map(int, sys.argv[2:])
    torch.set_num_threads(threads)
    config = transformers.AutoConfig.from_pretrained(model_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        model_path, dtype=getattr(config, "dtype", None) or config.torch_dtype)
    model.eval()
    prompt = torch.tensor([random.Random(1).choices(range(3, config.vocab_size), k=length)])
    samples = []
    with torch.inference_mode():
        for attempt in range(3):
            start = time.perf_counter()
            out = model(prompt, use_cache=True, logits_to_keep=1)
            prompt_s = time.perf_counter() - start
            token = out.logits[:, -1:].argmax(-1)
            start = time.perf_counter()
            for _ in range(generated if generated > 1 else 0):
                out = model(token, past_key_values=out.past_key_values, use_cache=True)
                token = out.logits[:, -1:].argmax(-1)
            decode_s = time.perf_counter() - start
            if attempt > 0:
                samples.append(length / prompt_s if generated == 1 else generated / decode_s)
    print(json.dumps({"samples": samples}))


if __name__ == "__main__":
    main()
