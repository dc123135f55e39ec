"""Which metadata keys each model class of llama.cpp reads, in its order."""

import pathlib
import re

from llamacpp_source import closing, function_body, name_table, statements, without_comments

TYPES = {
    "uint32_t": "u32", "int32_t": "u32", "int": "u32", "float": "f32", "bool": "bool",
    "std::string": "str", "uint64_t": "u64", "llama_token": "u32", "uint16_t": "u16",
}
READ = re.compile(r"ml\.(get_key_or_arr|get_key|get_arr_n|get_arr)\(")
FORMS = {"get_key": "scalar", "get_key_or_arr": "scalar_or_array", "get_arr": "array",
         "get_arr_n": "count"}


def field_types(sources: list) -> dict:
    """Name of a variable or member -> its element type, over several source texts.

    "u32[]" is a list of any length (std::vector); a list in a std::array has the element's type.
    """
    out = {}
    array = r"(?:std::array<\s*(\w+)\s*,[^>]*>|std::vector<\s*([\w:]+)\s*>|std::bitset<[^>]*>|([\w:]+))"
    declaration = re.compile(r"^\s*(?:enum |struct )?" + array + r"\s+(\w+)\s*(?:=[^;]*|\{\})?;", re.M)
    for text in sources:
        for match in declaration.finditer(text):
            kind = match.group(1) or match.group(2) or match.group(3)
            name = match.group(4)
            kind = TYPES.get(kind, "u32" if kind and kind.startswith("llama_") else kind)
            out.setdefault(name, f"{kind}[]" if match.group(2) else kind)
    return out


def split_arguments(text: str) -> list:
    parts, depth, last = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{<") - (char in ")]}>")
        if char == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    return [*parts, text[last:].strip()]


def is_required(argument: str) -> bool:
    values = {"true": True, "false": False, "0": False, "0.0f": False}
    if argument not in values:
        raise SystemExit(f"llama.cpp: {argument} is no value of `required`")
    return values[argument]


# What a class sets by itself and the build's rules look at; the rest does not shape memory.
SHAPING = {
    "causal_attn", "f_max_alibi_bias", "full_attn_interval", "n_kv_shared_layers",
    "n_layer_kv_from_start", "n_swa", "swa_type",
}
SET = re.compile(r"(?:\w+ )?(?:hparams\.)?(\w+) = (LLAMA_SWA_TYPE_\w+|true|false|[0-9.]+f?)$")


FOUND = re.compile(r"(?:const )?(?:bool|auto) (\w+) = ml\.get_key\((LLM_KV_\w+),")


def simple_guard(guard: str, keys: dict, local: dict) -> str:
    """A condition without names of this source alone: a read in it becomes found(KEY)."""
    found = re.compile(r"ml\.get_\w+\((LLM_KV_\w+),[^()]*\)")
    guard = found.sub(lambda match: f"found({keys[match.group(1)]})", guard)
    for name, key in local.items():
        guard = re.sub(rf"\b{name}\b", f"found({keys[key]})", guard)
    return guard.replace("hparams.", "")


def constant(text: str) -> int | float | str:
    if text in ("true", "false"):
        return int(text == "true")
    if text.startswith("LLAMA_"):
        return text.removeprefix("LLAMA_SWA_TYPE_").lower()
    return float(text.rstrip("f")) if "." in text else int(text)


def call_arguments(statement: str, start: int) -> list:
    """The arguments of a call whose bracket opens just before `start`."""
    return split_arguments(statement[start:closing(statement, start - 1)])


def read_row(call: str, arguments: list, keys: dict, types: dict) -> dict:
    target = arguments[1].removeprefix("hparams.").rpartition(".")[2]
    form = "list" if call == "get_arr" and types[target].endswith("[]") else FORMS[call]
    row = {"form": form, "key": keys[arguments[0]], "type": types[target].removesuffix("[]"),
           "into": target}
    rest = arguments[2:]
    if call == "get_key_or_arr":
        row["length"] = rest.pop(0).removeprefix("hparams.").removesuffix("()")
    row["required"] = is_required(rest[0]) if rest else True
    return row


def statement_rows(statement: str, keys: dict, types: dict) -> list:
    """What a statement reads; all reads of a chain `a || b`, also those in a condition.

    A refusal is a row, too, where its message is fixed; see reads().
    """
    refusal = re.match(r'throw std::runtime_error\("([^"]*)"\)$', statement)
    if refusal:
        return [{"form": "refuse", "into": "", "message": refusal.group(1)}]
    assignment = SET.match(statement)
    if assignment and assignment.group(1) in SHAPING:
        return [{"form": "set", "into": assignment.group(1),
                 "value": constant(assignment.group(2))}]
    pattern = re.match(r"(?:hparams\.)?(load|set)_swa_pattern\(", statement)
    if pattern:
        return [pattern_row(pattern.group(1), call_arguments(statement, pattern.end()), keys)]
    calls = [(match.group(1), call_arguments(statement, match.end()))
             for match in READ.finditer(statement)]
    return [read_row(call, arguments, keys, types) for call, arguments in calls
            if arguments[0] in keys]


def pattern_row(call: str, arguments: list, keys: dict) -> dict:
    """A list of flags in the file, or a number in the file, or this number (0: every layer)."""
    numbers = [text for text in arguments if text != "ml"]
    row = {"form": "window_pattern", "into": "is_swa_impl", "period": int(numbers[0]),
           "dense_first": len(numbers) > 1 and numbers[1].rpartition("=")[2] == "true"}
    if call == "load":
        row["key"] = keys["LLM_KV_ATTENTION_SLIDING_WINDOW_PATTERN"]
    return row


# Refusals for other reasons than absent keys are C++ in lib/engines/llamacpp.
ABSENT = re.compile(r"!found\([^()]*\)(?: && !found\([^()]*\))*$")


def reads(body: str, keys: dict, types: dict, follow_return: bool = True) -> list:
    """The rows of a function, in order, with the conditions under which each is reached."""
    out = []
    returned = ()
    local = dict(FOUND.findall(" ".join(body.split())))
    for guards, statement in statements(body):
        conditions = [simple_guard(guard, keys, local) for guard in guards]
        if statement == "return" and follow_return:
            returned += (f"!({' && '.join(conditions)})",)
            continue
        for row in statement_rows(statement, keys, types):
            when = [*conditions, *returned]
            if row["form"] == "refuse" and not (when and all(ABSENT.match(text) for text in when)):
                continue
            out.append({**row, "when": when} if when else row)
    return out


class ClassTable:
    """Model classes, their bases and what each reads."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        header = without_comments((root / "src/models/models.h").read_text(encoding="utf-8"))
        self.bases = dict(re.findall(r"struct (llama_model_\w+) : public (\w+)", header))
        hparams = without_comments((root / "src/llama-hparams.h").read_text(encoding="utf-8"))
        arch = without_comments((root / "src/llama-arch.cpp").read_text(encoding="utf-8"))
        model = without_comments((root / "src/llama-model.h").read_text(encoding="utf-8"))
        self.keys = name_table(arch, "LLM_KV_NAMES")
        self.types = field_types([hparams, model, header])
        self.functions = {}
        for path in sorted((root / "src/models").glob("*.cpp")):
            text = without_comments(path.read_text(encoding="utf-8"))
            for name in re.findall(r"void (\w+)::load_arch_hparams\(", text):
                self.functions[name] = (path.relative_to(root).as_posix(), text)

    def definition(self, class_name: str) -> str:
        """The class that defines what `class_name` reads: itself or a base."""
        while class_name not in self.functions:
            if class_name not in self.bases:
                raise SystemExit(f"llama.cpp: {class_name} reads nothing")
            class_name = self.bases[class_name]
        return class_name

    def file(self, class_name: str) -> str:
        return self.functions[class_name][0]

    def reads(self, class_name: str) -> list:
        body = function_body(self.functions[class_name][1],
                             rf"void {class_name}::load_arch_hparams\(llama_model_loader &")
        return reads(body, self.keys, {**self.types, **field_types([body])})
