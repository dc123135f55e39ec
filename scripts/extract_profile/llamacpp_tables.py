"""The tables of llama.cpp, from a checkout of its repository."""

import pathlib
import re

from llamacpp_command import OPTIONS, PARAMETERS, Commands
from llamacpp_converter import Converter
from llamacpp_hparams import ClassTable, reads
from llamacpp_source import closing, function_body, name_table, switch_cases, without_comments

ARCH = "src/llama-arch.cpp"
MODEL = "src/llama-model.cpp"
GGML = "ggml/src/ggml.c"
CONVERTER = "conversion/__init__.py"
FLAGS = {"recurrent": "llm_arch_is_recurrent", "hybrid": "llm_arch_is_hybrid",
         "diffusion": "llm_arch_is_diffusion", "state_rollback": "llm_arch_supports_rs_rollback"}
UNKNOWN = "LLM_ARCH_UNKNOWN"


class Checkout:
    def __init__(self, root: pathlib.Path):
        self.root = root
        self.classes = ClassTable(root)
        self.converter = Converter(root)

    def text(self, path: str) -> str:
        return without_comments((self.root / path).read_text(encoding="utf-8"))

    def switch(self, path: str, signature: str) -> list:
        body = function_body(self.text(path), signature)
        start = body.index("{", body.index("switch ("))
        return switch_cases(body[start + 1:closing(body, start)])

    def architectures(self) -> list:
        """Every name in the engine's order, with its class and what its class of memory is."""
        names = name_table(self.text(ARCH), "LLM_ARCH_NAMES")
        classes = {
            case: re.search(r"new (llama_model_\w+)", statements).group(1)
            for cases, statements in self.switch(MODEL, r"llama_model_mapping\(")
            for case in cases if "new " in statements
        }
        flags = {
            flag: {case for cases, statements in self.switch(ARCH, rf"bool {function}\(")
                   for case in cases if "true" in statements}
            for flag, function in FLAGS.items()
        }
        split = {case for cases, statements in
                 self.switch(ARCH, r"bool llm_arch_supports_sm_tensor\(")
                 for case in cases if "false" in statements}
        memoryless = {case for cases, statements in
                      self.switch(MODEL, r"llama_model::create_memory\(")
                      for case in cases if "res = nullptr" in statements}
        # Where the file's sections decide, the row stays plain.
        multi_rope = {case for cases, statements in
                      self.switch(MODEL, r"llama_rope_type llama_model_rope_type\(")
                      for case in cases
                      if re.fullmatch(r"return LLAMA_ROPE_TYPE_I?MROPE;", statements)}
        out = []
        for case, name in names.items():
            if case == UNKNOWN:
                continue
            row = {"name": name, "constant": case, "class": classes.get(case)}
            row |= {flag: True for flag, cases in flags.items() if case in cases}
            row |= {"no_tensor_split": True} if case in split else {}
            row |= {"no_memory": True} if case in memoryless else {}
            row |= {"multi_rope": True} if case in multi_rope else {}
            out.append(row)
        return out

    def cache_types(self) -> list:
        """Types of --cache-type-k and --cache-type-v, in the option's order."""
        text = self.text(OPTIONS)
        start = text.index("{", text.index("kv_cache_types ="))
        constants = re.findall(r"GGML_TYPE_\w+", text[start:closing(text, start)])
        traits = dict(re.findall(r"\[(GGML_TYPE_\w+)\]\s*=\s*\{\s*\.type_name\s*=\s*\"([^\"]+)\"",
                                 self.text(GGML)))
        return [traits[constant] for constant in constants]

    def class_reads(self) -> list:
        """What each class reads beside the common keys; the common ones come first."""
        body = function_body(self.text(MODEL), r"void llama_model_base::load_hparams\(")
        types = self.classes.types
        types = {**types, "ropescale": "f32", "rope_scaling": "str"}
        # The early return is for files without a language model, which have no class rules.
        common = [row for row in reads(body, self.classes.keys, types, follow_return=False)
                  if row.get("key") != "general.name"]
        out = [{"class": "llama_model_base", "file": MODEL, "rows": common}]
        used = {row["class"] for row in self.architectures() if row["class"]}
        for name in sorted(used):
            definition = self.classes.definition(name)
            row = {"class": name, "file": self.classes.file(definition)}
            row |= {"like": definition} if definition != name else {}
            row |= {"rows": self.classes.reads(definition)} if definition == name else {}
            out.append(row)
        missing = {row["like"] for row in out if "like" in row} - {row["class"] for row in out}
        for name in sorted(missing):
            out.append({"class": name, "file": self.classes.file(name),
                        "rows": self.classes.reads(name)})
        return out

    def command_tables(self) -> dict:
        """What llm-validate reads: the arguments, and the options that state them."""
        commands = Commands(self)
        return {
            "arguments.json": (PARAMETERS, {"discriminators": {},
                                            "arguments": commands.arguments()}),
            "command.json": (OPTIONS, commands.command()),
        }

    def tables(self) -> dict:
        """File name -> (sources, content)."""
        converter = self.converter
        return {
            "registry": ([ARCH, MODEL, CONVERTER, OPTIONS], {
                "architectures": self.architectures(),
                "cache_types": self.cache_types(),
                "converter": converter.rows(converter.text_map, mmproj=False),
                "projector_converter": converter.rows(converter.mmproj_map, mmproj=True),
                "listed_without_class": converter.unregistered(),
            }),
            "hparams": ([MODEL, ARCH, "src/models/models.h"], {"classes": self.class_reads()}),
        }
