"""The checkpoint that bench-cpu times: a Llama of 0.34 billion random parameters.

Every weight is q / 4096 with a whole q of -127 to 127. Such a number is exact in float32, in bfloat16
and in q8_0 (with the scale 1/4096 in every block), so that all files hold the same model and must give
the same tokens.
"""

import dataclasses
import json
import pathlib
import random
import struct
from collections.abc import Iterator

FORMATS = ("f32", "bf16", "q8_0")
SEED = "kernelpath bench-cpu 1"
Q8_BLOCK = 32
GGUF_ALIGNMENT = 32
# Type numbers of GGUF: of tensors (ggml_type), of metadata (gguf_type) and of the whole file.
GGML_TYPES = {"f32": 0, "q8_0": 8, "bf16": 30}
GGUF_U32, GGUF_F32, GGUF_STRING = 4, 6, 8
FILE_TYPES = {"f32": 0, "q8_0": 7, "bf16": 32}


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int = 1024
    layers: int = 24
    heads: int = 16
    kv_heads: int = 4
    head_dim: int = 64
    ffn: int = 2816
    vocabulary: int = 32000
    context: int = 8192

    def parameters(self) -> int:
        return sum(tensor.elements for tensor in tensors(self))

    def weight_bytes(self, kind: str) -> int:
        """Of the weights that a token reads: all but the table of embeddings, of which one row."""
        read = self.parameters() - (self.vocabulary - 1) * self.hidden
        return int(read * {"f32": 4, "bf16": 2, "q8_0": 34 / 32}[kind])

    def kv_bytes(self, context: int, kv: str) -> int:
        values = 2 * self.layers * self.kv_heads * self.head_dim * context
        return values * {"f32": 4, "bf16": 2, "f16": 2}[kv]


@dataclasses.dataclass(frozen=True)
class Tensor:
    name: str
    gguf_name: str
    rows: int  # 0: a vector
    cols: int
    rotated_heads: int = 0  # of Q and K, whose rows GGUF stores in another order

    @property
    def elements(self) -> int:
        return max(self.rows, 1) * self.cols


def tensors(shape: Shape) -> Iterator[Tensor]:
    width = shape.heads * shape.head_dim
    kv_width = shape.kv_heads * shape.head_dim
    yield Tensor("model.embed_tokens.weight", "token_embd.weight", shape.vocabulary, shape.hidden)
    for i in range(shape.layers):
        layer, block = f"model.layers.{i}.", f"blk.{i}."
        for name, gguf, rows, cols, heads in (
            ("input_layernorm", "attn_norm", 0, shape.hidden, 0),
            ("self_attn.q_proj", "attn_q", width, shape.hidden, shape.heads),
            ("self_attn.k_proj", "attn_k", kv_width, shape.hidden, shape.kv_heads),
            ("self_attn.v_proj", "attn_v", kv_width, shape.hidden, 0),
            ("self_attn.o_proj", "attn_output", shape.hidden, width, 0),
            ("post_attention_layernorm", "ffn_norm", 0, shape.hidden, 0),
            ("mlp.gate_proj", "ffn_gate", shape.ffn, shape.hidden, 0),
            ("mlp.up_proj", "ffn_up", shape.ffn, shape.hidden, 0),
            ("mlp.down_proj", "ffn_down", shape.hidden, shape.ffn, 0),
        ):
            yield Tensor(f"{layer}{name}.weight", f"{block}{gguf}.weight", rows, cols, heads)
    yield Tensor("model.norm.weight", "output_norm.weight", 0, shape.hidden)
    yield Tensor("lm_head.weight", "output.weight", shape.vocabulary, shape.hidden)


def _signed(code: int) -> int:
    """A random byte as a weight's q; -128 has no counterpart and is -127."""
    return max(code - 256 if code > 127 else code, -127)


def _float_byte(index: int) -> bytes:
    """Byte `index` of the float32 of each code's weight, as a table of bytes.translate."""
    return bytes(struct.pack("<f", _signed(code) / 4096)[index] for code in range(256))


HIGH, LOW = _float_byte(3), _float_byte(2)  # the two bytes of a bfloat16; the others are 0
Q8_CODE = bytes(_signed(code) & 0xFF for code in range(256))


def encoded(codes: bytes, kind: str) -> bytes:
    """Random bytes as weights of a format; whole blocks of 32."""
    if kind == "q8_0":
        out = bytearray(len(codes) // Q8_BLOCK * (Q8_BLOCK + 2))
        for i, byte in enumerate(struct.pack("<e", 1 / 4096)):
            out[i :: Q8_BLOCK + 2] = bytes([byte]) * (len(codes) // Q8_BLOCK)
        weights = codes.translate(Q8_CODE)
        for i in range(Q8_BLOCK):
            out[2 + i :: Q8_BLOCK + 2] = weights[i::Q8_BLOCK]
        return bytes(out)
    width = 4 if kind == "f32" else 2
    out = bytearray(len(codes) * width)
    out[width - 1 :: width] = codes.translate(HIGH)
    out[width - 2 :: width] = codes.translate(LOW)
    return bytes(out)


def ones(count: int, kind: str) -> bytes:
    return (b"\x00\x00\x80\x3f" if kind == "f32" else b"\x80\x3f") * count


def in_gguf_order(codes: bytes, tensor: Tensor) -> bytes:
    """The rows of Q and K with the two halves of each head's pairs side by side, as llama.cpp's
    converter writes them for Llama."""
    if tensor.rotated_heads == 0:
        return codes
    half = tensor.rows // tensor.rotated_heads // 2
    rows = [codes[i : i + tensor.cols] for i in range(0, len(codes), tensor.cols)]
    return b"".join(rows[(head * 2 + j) * half + i]
                    for head in range(tensor.rotated_heads) for i in range(half) for j in range(2))


def stored_bytes(tensor: Tensor, kind: str) -> int:
    return tensor.elements * 34 // 32 if kind == "q8_0" else tensor.elements * (4 if kind == "f32" else 2)


def safetensors_header(shape: Shape, kind: str) -> bytes:
    entries, offset = {}, 0
    for tensor in tensors(shape):
        size = stored_bytes(tensor, kind)
        entries[tensor.name] = {
            "dtype": {"f32": "F32", "bf16": "BF16"}[kind],
            "shape": [tensor.rows, tensor.cols] if tensor.rows else [tensor.cols],
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_header(shape: Shape, kind: str) -> bytes:
    metadata = [
        ("general.architecture", GGUF_STRING, "llama"),
        ("general.name", GGUF_STRING, "bench-cpu"),
        ("general.alignment", GGUF_U32, GGUF_ALIGNMENT),
        ("general.file_type", GGUF_U32, FILE_TYPES[kind]),
        ("llama.block_count", GGUF_U32, shape.layers),
        ("llama.context_length", GGUF_U32, shape.context),
        ("llama.embedding_length", GGUF_U32, shape.hidden),
        ("llama.feed_forward_length", GGUF_U32, shape.ffn),
        ("llama.attention.head_count", GGUF_U32, shape.heads),
        ("llama.attention.head_count_kv", GGUF_U32, shape.kv_heads),
        ("llama.rope.dimension_count", GGUF_U32, shape.head_dim),
        ("llama.rope.freq_base", GGUF_F32, 10000.0),
        ("llama.attention.layer_norm_rms_epsilon", GGUF_F32, 1e-5),
        ("llama.vocab_size", GGUF_U32, shape.vocabulary),
        ("tokenizer.ggml.model", GGUF_STRING, "none"),
    ]
    infos, offset = b"", 0
    listed = list(tensors(shape))
    for tensor in listed:
        stored = kind if tensor.rows else "f32"
        dims = [tensor.cols] + ([tensor.rows] if tensor.rows else [])
        infos += _string(tensor.gguf_name) + struct.pack("<I", len(dims))
        infos += struct.pack(f"<{len(dims)}Q", *dims)
        infos += struct.pack("<IQ", GGML_TYPES[stored], offset)
        offset += -(-stored_bytes(tensor, stored) // GGUF_ALIGNMENT) * GGUF_ALIGNMENT
    out = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(metadata))
    for key, value_type, value in metadata:
        out += _string(key) + struct.pack("<I", value_type)
        if value_type == GGUF_STRING:
            out += _string(value)
        else:
            out += struct.pack("<I" if value_type == GGUF_U32 else "<f", value)
    out += infos
    return out + b"\0" * (-len(out) % GGUF_ALIGNMENT)


def config(shape: Shape, kind: str) -> dict:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": {"f32": "float32", "bf16": "bfloat16"}[kind],
        "hidden_size": shape.hidden,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.context,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


class ModelFiles:
    """The files in a folder: <format>/ with config.json and model.safetensors, and
    model-<format>.gguf."""

    def __init__(self, folder: pathlib.Path, shape: Shape = Shape()) -> None:
        self.folder = folder
        self.shape = shape

    def checkpoint(self, kind: str) -> pathlib.Path:
        """What llm-run and transformers read."""
        return self.gguf(kind) if kind == "q8_0" else self.folder / kind

    def gguf(self, kind: str) -> pathlib.Path:
        return self.folder / f"model-{kind}.gguf"

    def make(self) -> None:
        """Writes them where they are not there yet, or are of another shape."""
        stamp = self.folder / "stamp.json"
        wanted = {"seed": SEED, "shape": dataclasses.asdict(self.shape)}
        if stamp.is_file() and json.loads(stamp.read_text(encoding="utf-8")) == wanted:
            return
        stamp.unlink(missing_ok=True)
        for kind in ("f32", "bf16"):
            (self.folder / kind).mkdir(parents=True, exist_ok=True)
            text = json.dumps(config(self.shape, kind), indent=2) + "\n"
            (self.folder / kind / "config.json").write_text(text, encoding="utf-8")
        self._write()
        stamp.write_text(json.dumps(wanted), encoding="utf-8")

    def _write(self) -> None:
        plain = {kind: (self.folder / kind / "model.safetensors").open("wb")
                 for kind in ("f32", "bf16")}
        gguf = {kind: self.gguf(kind).open("wb") for kind in FORMATS}
        for kind, file in plain.items():
            file.write(safetensors_header(self.shape, kind))
        for kind, file in gguf.items():
            file.write(gguf_header(self.shape, kind))
        for tensor in tensors(self.shape):
            codes = random.Random(f"{SEED} {tensor.name}").randbytes(tensor.elements)
            for kind, file in plain.items():
                file.write(encoded(codes, kind) if tensor.rows else ones(tensor.cols, kind))
            codes = in_gguf_order(codes, tensor)
            for kind, file in gguf.items():
                data = encoded(codes, kind) if tensor.rows else ones(tensor.cols, "f32")
                file.write(data + b"\0" * (-len(data) % GGUF_ALIGNMENT))
        for file in (*plain.values(), *gguf.values()):
            file.close()
