"""The options of llama-server and llama-cli, and the parameters that they state."""

import ast
import re

from llamacpp_source import closing, function_body

SERVER, CLI = "llama-server", "llama-cli"
EXAMPLES = {SERVER: "LLAMA_EXAMPLE_SERVER", CLI: "LLAMA_EXAMPLE_CLI"}
COMMON = "LLAMA_EXAMPLE_COMMON"
PARAMETERS = "common/common.h"
OPTIONS = "common/arg.cpp"

# Fields of common_params under the names that the settings of kernelpath give them: no_mmproj turned
# round would be the name of the object that holds the projector's path.
RENAMED = {"flash_attn_type": "flash_attn", "no_mmproj": "mmproj_auto"}
# Three options add patterns of their own to one list.
OWN_NAME = {"tensor_buft_overrides", "speculative.draft.tensor_buft_overrides"}
# What the server decides the memory and the speed of a slot by, beside the parameters of model and
# context; other fields concern sampling, HTTP, logging or the terminal.
OF_THE_SERVER = {
    "kv_unified_per_slot", "n_cache_reuse", "cache_prompt", "cache_idle_slots", "n_ctx_checkpoints",
    "checkpoint_min_step", "cache_ram_mib", "ctx_shift", "mmproj", "mmproj_use_gpu",
    "mmproj_device", "fit_params", "fit_params_target", "fit_params_min_ctx", "lora_adapters",
    "control_vectors", "speculative", "model",
}
NO_DECISION = {"cpuparams", "cpuparams_batch"}  # threads of the CPU
# The first word of each stands for all of them.
WORDS = {"is_truthy": ["on", "enabled", "true", "1"], "is_falsey": ["off", "disabled", "false", "0"],
         "is_autoy": ["auto", "-1"]}
# How the program was built, which no option changes: ggml/CMakeLists.txt.
BUILD = [{"name": "build", "type": "object"},
         {"name": "build.cuda", "type": "integer", "default": 13, "choices": [12, 13]},
         {"name": "build.fa_all_quants", "type": "bool", "default": False}]
CONSTANTS = {"COMMON_SPECULATIVE_TYPE_NGRAM_MOD": "ngram-mod", "LLAMA_POOLING_TYPE_RANK": "rank"}


def split_arguments(text: str) -> list:
    """The arguments between the brackets of a call, at its own level."""
    out, last, at = [], 0, 0
    while at < len(text):
        char = text[at]
        if char in "([{":
            at = closing(text, at)
        elif char == '"':
            at = re.compile(r'"(?:\\.|[^"\\])*"').match(text, at).end() - 1
        elif char == ",":
            out.append(text[last:at].strip())
            last = at + 1
        at += 1
    return out + [text[last:].strip()]


def literals(text: str) -> list:
    return re.findall(r'"((?:\\.|[^"\\])*)"', text)


class Definition:
    """One add_opt(common_arg(…).set_…()) of the source."""

    def __init__(self, text: str, only_server):
        call = text.index("(", text.index("common_arg"))
        parts = split_arguments(text[call + 1:closing(text, call)])
        chain = text[closing(text, call) + 1:]
        self.only_server = only_server
        self.flags = literals(parts[0])
        self.negative = literals(parts[1]) if parts[1].startswith("{") else []
        self.handler = parts[-1]
        self.help = " ".join(literals(parts[-2]))
        environment = re.search(r"set_env\(\"(\w+)\"\)", chain)
        self.environment = environment.group(1) if environment else ""
        self.sampling = "set_sampling" in chain
        self.examples = self.listed(chain, "set_examples") or {COMMON}
        self.excludes = self.listed(chain, "set_excludes")

    @staticmethod
    def listed(chain: str, setter: str) -> set:
        found = re.search(rf"{setter}\(\{{?([^)]*)\)", chain)
        if found and "mmproj_examples" in found.group(1):
            return {EXAMPLES[SERVER], EXAMPLES[CLI]}
        return set(re.findall(r"LLAMA_EXAMPLE_\w+", found.group(1))) if found else set()

    def programs(self) -> list:
        out = []
        for program, example in EXAMPLES.items():
            if self.only_server is not None and self.only_server != (program == SERVER):
                continue
            if (example in self.examples or COMMON in self.examples) \
                    and example not in self.excludes:
                out.append(program)
        return out

    @property
    def body(self) -> str:
        return self.handler[self.handler.index("{", self.handler.index(")")):]

    @property
    def signature(self) -> str:
        return self.handler[self.handler.index("("):self.handler.index("{")]

    def values(self) -> int:
        """How many words the option takes."""
        count = self.signature.count("std::string")
        return 1 if re.search(r"\bint\b", self.signature) else count

    def assigned(self) -> list:
        """Paths of the parameters that the handler changes."""
        change = r"params\.([\w.]+?)(?:\[\w+\])?\s*(?:\|?=(?!=)|\.(?:push_back|emplace_back|insert)\()"
        paths = re.findall(change, self.body)
        if not paths:  # filled by a helper or an algorithm
            paths = re.findall(r"[(\s]params\.([\w.]+?)(?:\.(?:begin|end)\(\))?[,)]", self.body)
        return list(dict.fromkeys(path for path in paths if not path.endswith("_sampling_config")))

    def sets(self) -> str:
        paths = self.assigned()
        if not paths or self.values() == 2 or (len(paths) > 1 and self.values() == 0):
            return ""
        constant = r"(?:true|false|nullptr);"
        given = [path for path in paths if re.search(
            rf"params\.{re.escape(path)}\b(?!\s*=\s*{constant})", self.body)]
        path = (given or paths)[0]
        if path in RENAMED:
            return RENAMED[path]
        if path in OWN_NAME and (self.values() == 0 or "int " in self.signature):
            return self.environment.replace("LLAMA_ARG_", "").lower()
        inverted = re.search(r"=\s*!\s*value", self.body) and re.search(r"(^|\.)no_", path)
        return re.sub(r"(^|\.)no_", r"\1", path) if inverted else path

    def kind(self) -> str:
        if self.values() == 0:
            return "flag"
        if "int " in self.signature:
            return "integer"
        if self.separators() or self.values() == 2:
            return "string"
        if re.search(r"std::sto(?:i|u?ll?)\(value", self.body):
            return "integer_or_word" if 'value == "' in self.body else "integer"
        return "number" if re.search(r"std::sto[fd]\((?:value|text)\b", self.body) else "string"

    def separators(self) -> str:
        """The characters that stand between the items of a value which is a list."""
        if "[,/]+" in self.body:
            return ",/"
        split = re.search(r"parse_csv_row|parse_tensor_buffer|string_split<std::string>\(\w+, ','\)"
                          r"|parse_device_list", self.body)
        return "," if split else ""

    def appends(self) -> bool:
        return bool(re.search(r"\.(?:push_back|emplace_back|insert)\(|parse_tensor_buffer_overrides"
                              r"|parse_kv_override", self.body)) and self.values() == 1

    def choices(self, cache_types: list, speculative: list) -> list:
        if "kv_cache_type_from_str" in self.body:
            return cache_types
        if "common_speculative_types_from_names" in self.body:
            return speculative
        words = [group[0] for test, group in WORDS.items() if test in self.body]
        named = [word for word in re.findall(r'value == "([^"]*)"', self.body) if word]
        closed = "throw" in self.body or self.kind() == "integer_or_word"
        return (words or named) if closed and "parse_device_list" not in self.body else []

    def spellings(self) -> dict:
        """Words that stand for one of the choices."""
        return {word: group[0] for test, group in WORDS.items()
                if test in self.body and self.kind() == "string" for word in group[1:]}

    def bounds(self) -> dict:
        found = re.search(r"if \((?:value|prio) < (-?\d+)(?: \|\| (?:value|prio) > (\d+))?\) \{\s*"
                          r"throw", self.body)
        if not found:
            return {}
        out = {"min": int(found.group(1))}
        return out | ({"max": int(found.group(2))} if found.group(2) else {})

    def states(self, concerns) -> dict:
        """What a flag that stands for several options states of the parameters that concern."""
        paths = self.assigned()
        if self.values() != 0 or "bool" in self.signature or len(paths) < 2:
            return {}
        out = {}
        for path, text in re.findall(r"params\.([\w.]+)\s*=\s*([^;]+);", self.body):
            text = re.sub(r"params\.([\w.]+)", lambda m: str(out[m.group(1)]), text)
            if concerns(path):
                out[path] = self.constant(text)
        for path, text in re.findall(r"params\.([\w.]+)\.push_back\((\w+)\)", self.body):
            out[path] = [CONSTANTS[text]]
        return out

    @staticmethod
    def constant(text: str):
        if text in ("true", "false"):
            return text == "true"
        if "*" in text and text[0] != '"':
            left, right = text.split("*")
            return int(left) * int(right)
        return CONSTANTS.get(text) or ast.literal_eval(text.rstrip("f") if text[0] != '"' else text)


class Commands:
    """Reads common/arg.cpp of a checkout (llamacpp_tables.Checkout)."""

    def __init__(self, checkout):
        self.checkout = checkout
        self.text = checkout.text(OPTIONS)
        self.definitions = self.read_definitions()
        self.cache_types = checkout.cache_types()
        self.speculative = re.findall(
            r'return "([\w-]+)";', function_body(
                checkout.text("common/speculative.cpp"),
                r"std::string common_speculative_type_to_str\(")[:-1])
        self.speculative.remove("unknown")
        self.context = self.fields_of_the_context()

    def read_definitions(self) -> list:
        body = function_body(self.text, r"common_params_context common_params_parser_init\(")
        server = body.index("if (ex == LLAMA_EXAMPLE_SERVER) {", body.index("add_opt(common_arg"))
        server_end = closing(body, body.index("{", server))
        other_end = closing(body, body.index("{", server_end + 1))
        out = []
        for match in re.finditer(r"add_opt\(\s*common_arg\(", body):
            only = True if server < match.start() < server_end else None
            only = False if server_end < match.start() < other_end else only
            call = match.start() + len("add_opt")
            out.append(Definition(body[call + 1:closing(body, call)], only))
        return [definition for definition in out if definition.programs()]

    def fields_of_the_context(self) -> set:
        """The parameters that reach the model and its context."""
        text = self.checkout.text("common/common.cpp")
        bodies = [function_body(text, rf"struct {kind}_params common_{kind.split('_')[1]}"
                                      r"_params_to_llama\(") for kind in
                  ("llama_model", "llama_context")]
        return {path.split(".")[0] for body in bodies
                for path in re.findall(r"params\.([a-z]\w*)", body)}

    def concerns(self, path: str) -> bool:
        fields = self.context | OF_THE_SERVER
        first = path.split(".")[0]
        if first in NO_DECISION or ".cpuparams" in path:
            return False
        if path in RENAMED.values() or path.endswith(("cpu_moe", "n_cpu_ffn")):
            return True
        return bool({first, f"no_{first}", f"{first}_type"} & fields)

    def option(self, definition: Definition) -> dict:
        row = {"flags": definition.flags + definition.negative, "type": definition.kind()}
        if definition.negative:
            row["negative_flags"] = definition.negative
        sets = definition.sets()
        if sets and self.concerns(sets) and not definition.sampling:
            row["sets"] = sets
            row |= {"separators": definition.separators()} if definition.separators() else {}
            row |= {"appends": True} if definition.appends() else {}
        states = {} if definition.sampling else definition.states(self.concerns)
        row |= {"states": states} if states else {}
        row |= {"words": 2} if definition.values() == 2 else {}
        choices = definition.choices(self.cache_types, self.speculative)
        row |= {"choices": choices} if choices else {}
        row |= {"spellings": definition.spellings()} if definition.spellings() else {}
        row |= {"inverse": True} if re.search(r"1\.0f / std::stof", definition.body) else {}
        row |= {"env": definition.environment} if definition.environment else {}
        removed = re.search(r"arg_removed\(\"([^\"]*)\"\)", definition.body)
        row |= {"removed": "the argument has been removed. " + removed.group(1)} if removed else {}
        if "DEPRECATED" in definition.body:
            row["deprecated"] = literals(definition.body)[-1].replace("\\n", "").partition(": ")[2]
        programs = definition.programs()
        return row | ({"programs": programs} if len(programs) < len(EXAMPLES) else {})

    def command(self) -> dict:
        return {
            "program": SERVER,
            "programs": list(EXAMPLES),
            "defaults": self.program_defaults(),
            "subcommands": [],
            "other_subcommands": [],
            "underscores": True,
            "equals": False,
            "positionals": False,
            "model": "model.path",
            "number_prefix": True,
            "options": self.options(),
        }

    def program_defaults(self) -> dict:
        """Program -> the parameters that it starts with, where they are not those of all."""
        body = function_body(self.text, r"common_params_context common_params_parser_init\(")
        out = {}
        for program, example in EXAMPLES.items():
            for block in re.findall(rf"\(ex == {example}\) \{{([^{{}}]*)\}}",
                                    body[:body.index("add_opt")]):
                stated = {path: Definition.constant(value) for path, value in
                          re.findall(r"params\.([\w.]+)\s*=\s*([^;]+);", block)}
                out[program] = {k: v for k, v in stated.items() if self.concerns(k)}
        return out

    def options(self) -> list:
        """One row an option; two definitions that differ by their program alone are one."""
        out = []
        for row in (self.option(definition) for definition in self.definitions):
            alike = [old for old in out if old["flags"] == row["flags"]]
            same = alike and {**alike[0], "programs": []} == {**row, "programs": []}
            if same and "programs" in row:
                del alike[0]["programs"]
            else:
                out.append(row)
        return out

    def defaults(self) -> dict:
        """Path -> default of the fields of common_params that are numbers, flags or text."""
        text = self.checkout.text(PARAMETERS)
        out = {}

        def read(structure: str, prefix: str) -> None:
            body = function_body(text, rf"struct {structure} ")
            for line in body.split(";"):
                words = re.match(r"\s*(?:enum\s+)?(?:struct\s+)?([\w:<>]+)\s+(\w+)\s*(?:=\s*(.+))?$",
                                 line, re.S)
                if not words:
                    continue
                kind, name, value = words.groups()
                if kind.startswith("common_params_speculative"):
                    read(kind, f"{prefix}{name}.")
                elif value is not None and re.fullmatch(r'-?[\d.]+f?|true|false|"[^"]*"', value):
                    out[prefix + name] = Definition.constant(value)

        read("common_params", "")
        return out

    def arguments(self) -> list:
        defaults = self.defaults()
        out = {}
        for definition in self.definitions:
            row = self.option(definition)
            if "sets" not in row or "removed" in row:
                continue
            name = row["sets"]
            kind = {"flag": "bool", "integer_or_word": "any"}.get(row["type"], row["type"])
            entry = {"name": name, "type": "list" if "separators" in row or "appends" in row else
                     kind}
            original = next((path for path in definition.assigned() if path in defaults), "")
            if original and entry["type"] in ("bool", "integer", "number"):
                value = defaults[original]
                inverted = "!value" in definition.body.replace(" ", "")
                entry["default"] = not value if inverted else value
            if "choices" in row and entry["type"] == "string":
                entry["choices"] = row["choices"]
            out.setdefault(name, entry | definition.bounds())
        objects = {}
        for name in out:
            parts = name.split(".")
            for size in range(1, len(parts)):
                objects[".".join(parts[:size])] = {"name": ".".join(parts[:size]),
                                                   "type": "object"}
        return [*objects.values(), *out.values(), *BUILD]
