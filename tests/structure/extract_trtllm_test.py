"""Tests of scripts/extract_profile/trtllm_*.py on small sources of the engine's shape."""

import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "scripts" / "extract_profile"
sys.path.insert(0, str(FOLDER))

import trtllm_arguments
import trtllm_command
from trtllm_source import SourceError

NOTHING = {"inferred_variants": [], "added": {}, "changed": {}}

SOURCE = '''
class Policy(StrEnum, metaclass=Meta):
    FIRST = "first"
    EVEN = "even"

class LoadFormat(Enum):
    AUTO = 0
    DUMMY = 1

class Inner(StrictBaseModel):
    size: Optional[PositiveInt] = Field(default=None, description="x")
    policy: Policy = Field(default=Policy.EVEN)
    _state: int = PrivateAttr(default=0)
    SHARED: ClassVar[int] = 3

class BaseDraft(StrictBaseModel):
    length: Optional[int] = Field(default=None)
    model: Optional[Union[str, Path]] = Field(
        default=None, validation_alias=AliasChoices("model", "model_dir"))

class First(BaseDraft):
    kind: Literal["A"] = Field(default="A")
    width: int = Field(default=3, gt=0)

class Second(BaseDraft):
    kind: Literal["B"] = "B"
    width: int = Field(default=4, gt=0)
    tree: bool = False

Draft: TypeAlias = Annotated[Union[First, Second], Field(discriminator="kind")]
_Strict = Annotated[StrictInt, PydanticField(ge=0)]

class BaseLlmArgs(StrictBaseModel):
    model_config = ConfigDict(extra="forbid")
    backend: Optional[str] = Field(default=None, status="deprecated")
    inner: Inner = Field(default_factory=Inner)
    draft: Optional[Draft] = Field(default=None)

    @property
    def world_size(self) -> int:
        return 1

class TorchLlmArgs(BaseLlmArgs):
    fraction: float = Field(default=0.5, ge=0.0, lt=1)
    version: bool | Literal["auto"] = Field(default="auto")
    ratio: Optional[Union[int, float]] = Field(default=128)
    cache: int = Field(default=1024**3)
    load_format: Union[str, LoadFormat] = Field(default=LoadFormat.AUTO)
    lora: Optional[LoraConfig] = Field(default=None)
    extra: dict[str, Any] | None = None
    count: _Strict = Field(default=2)
    backend: Literal["pytorch"] = Field(default="pytorch")
'''


def rows(text: str, annotations: dict = NOTHING) -> dict:
    found, _ = trtllm_arguments.arguments(text, annotations)
    return {row["name"]: {k: v for k, v in row.items() if k != "name"} for row in found}


class ArgumentsTest(unittest.TestCase):
    def setUp(self):
        self.rows = rows(SOURCE)

    def test_fields_have_types_bounds_and_defaults(self):
        self.assertEqual(self.rows["fraction"],
                         {"type": "number", "default": 0.5, "min": 0, "below": 1})
        self.assertEqual(self.rows["cache"], {"type": "integer", "default": 1073741824})
        self.assertEqual(self.rows["count"], {"type": "integer", "default": 2, "min": 0})
        self.assertEqual(self.rows["inner.size"], {"type": "integer", "above": 0})

    def test_unions_are_what_all_parts_allow(self):
        self.assertEqual(self.rows["ratio"], {"type": "number", "default": 128})
        self.assertEqual(self.rows["version"],
                         {"type": "any", "default": "auto", "choices": [True, False, "auto"]})
        self.assertEqual(self.rows["load_format"], {"type": "any", "default": "auto"})

    def test_enumerations_are_choices(self):
        self.assertEqual(self.rows["inner.policy"],
                         {"type": "string", "default": "even", "choices": ["first", "even"]})

    def test_a_field_declared_again_keeps_its_place(self):
        self.assertEqual(next(iter(self.rows)), "backend")
        self.assertEqual(self.rows["backend"],
                         {"type": "string", "default": "pytorch", "choices": ["pytorch"]})

    def test_private_fields_methods_and_class_variables_are_none(self):
        for name in ("inner._state", "inner.SHARED", "world_size", "model_config"):
            self.assertNotIn(name, self.rows)

    def test_variants_say_which_of_them_has_a_field(self):
        self.assertEqual(self.rows["draft.kind"], {"type": "string", "choices": ["A", "B"]})
        # Both have it, with different defaults.
        self.assertEqual(self.rows["draft.width"], {"type": "integer", "above": 0})
        self.assertEqual(self.rows["draft.tree"],
                         {"type": "bool", "default": False, "only_for": ["B"]})
        _, discriminators = trtllm_arguments.arguments(SOURCE, NOTHING)
        self.assertEqual(discriminators, {"draft": "draft.kind"})

    def test_inferred_variants_have_no_discriminator(self):
        annotations = {**NOTHING, "inferred_variants": ["draft"]}
        self.assertNotIn("only_for", rows(SOURCE, annotations)["draft.tree"])
        self.assertEqual(trtllm_arguments.arguments(SOURCE, annotations)[1], {})

    def test_aliases_are_names_of_their_own(self):
        self.assertEqual(self.rows["draft.model"], self.rows["draft.model_dir"])

    def test_what_is_declared_elsewhere_is_open(self):
        self.assertEqual(self.rows["lora"], {"type": "object", "open": True})
        self.assertEqual(self.rows["extra"], {"type": "object", "open": True})

    def test_annotations_add_and_change(self):
        annotations = {**NOTHING, "added": {"old": {"type": "any", "because": "removed"}},
                       "changed": {"fraction": {"without": ["min"], "max": 1, "because": "x"}}}
        found = rows(SOURCE, annotations)
        self.assertEqual(found["old"], {"type": "any"})
        self.assertEqual(found["fraction"],
                         {"type": "number", "default": 0.5, "max": 1, "below": 1})

    def test_annotations_that_the_source_outgrew_are_errors(self):
        for annotations in ({"added": {"cache": {"type": "any"}}}, {"changed": {"gone": {}}},
                            {"changed": {"cache": {"without": ["min"]}}}):
            with self.assertRaises(SourceError):
                rows(SOURCE, {**NOTHING, **annotations})

    def test_converted_numbers_must_be_annotated(self):
        text = SOURCE + '''
    @field_validator("cache", mode="before")
    @classmethod
    def read(cls, v):
        return int(v)
'''
        with self.assertRaisesRegex(SourceError, "'cache' is converted"):
            rows(text)
        self.assertIn("cache", rows(text, {**NOTHING, "changed": {"cache": {"type": "any"}}}))


CLICK = '''
@click.command("serve")
@click.argument("model", type=str)
@click.option("--tp_size", type=int, default=1)
@click.option("--free_fraction", "--kv_free_fraction", type=float, default=0.9)
@click.option("--chunked/--no-chunked", default=False)
@click.option("--backend", type=click.Choice(["pytorch", "other"]))
@click.option("--log_level", type=click.Choice(levels.keys()))
def serve(model, **options):
    pass

@click.command()
def disaggregated():
    pass
'''
MERGE = '''
def update(a, b):
    cli_to_kv_cache_field = {"free_fraction": "free_gpu_memory_fraction"}
'''
PLAIN = {"nested": {}, "options": {"backend": {"about": "x", "because": "y"}}}


class CommandTest(unittest.TestCase):
    def test_click_decorators_are_read(self):
        known = {"tp_size", "kv_cache_config.free_gpu_memory_fraction", "backend"}
        found = trtllm_command.command(trtllm_command.from_source(CLICK), MERGE, known, PLAIN)
        self.assertEqual(found["other_subcommands"], ["disaggregated"])
        self.assertEqual(found["options"], [
            {"flags": ["--backend"], "type": "string", "choices": ["pytorch", "other"],
             "sets": "backend", "about": "x"},
            {"flags": ["--chunked", "--no-chunked"], "type": "flag",
             "negative_flags": ["--no-chunked"]},
            {"flags": ["--free_fraction", "--kv_free_fraction"], "type": "number",
             "sets": "kv_cache_config.free_gpu_memory_fraction"},
            {"flags": ["--log_level"], "type": "string"},
            {"flags": ["--tp_size"], "type": "integer", "sets": "tp_size"},
        ])

    def test_the_reference_is_read(self):
        def option(kind, flags, flag=False, status="beta"):
            return {"type": kind, "status": status, "multiple": False, "is_flag": flag, "flags": flags}

        reference = {"commands": {"serve": {"options": {
            "backend": option("Choice(['a', 'b'])", ["--backend"], status="deprecated"),
            "tp_size": option("int", ["--tensor", "--tp_size"])}}, "other": {"options": {}}}}
        found = trtllm_command.command(trtllm_command.from_reference(reference), MERGE, {"tp_size"},
                                       PLAIN)
        self.assertEqual(found["options"], [
            {"flags": ["--backend"], "type": "string", "choices": ["a", "b"],
             "deprecated": "no replacement", "about": "x"},
            {"flags": ["--tp_size", "--tensor"], "type": "integer", "sets": "tp_size"}])
        self.assertEqual(found["other_subcommands"], ["other"])

    def test_annotated_options_must_exist(self):
        annotations = {"nested": {}, "options": {"gone": {}}}
        with self.assertRaisesRegex(SourceError, "gone"):
            trtllm_command.command(trtllm_command.from_source(CLICK), MERGE, set(), annotations)


class AnnotationsTest(unittest.TestCase):
    def test_rules_that_are_named_exist(self):
        annotations = json.loads((FOLDER / "trtllm_annotations.json").read_text("utf-8"))
        rules = json.loads((ROOT / "data" / "rules" / "trtllm.json").read_text("utf-8"))
        ids = {rule.get("id") for rule in rules["rules"]}
        for name, change in annotations["changed"].items():
            if change["because"].startswith("rule "):
                self.assertIn(change["because"].removeprefix("rule "), ids, name)


if __name__ == "__main__":
    unittest.main()
