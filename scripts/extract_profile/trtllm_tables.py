"""TensorRT-LLM's argument table and the options of trtllm-serve, from a checkout of the engine."""

import json
import pathlib

import trtllm_arguments
import trtllm_command

ARGUMENTS = "tensorrt_llm/llmapi/llm_args.py"
SERVE = "tensorrt_llm/commands/serve.py"
REFERENCE = "tests/unittest/api_stability/references/trtllm_serve_cli.yaml"
ARGUMENTS_ABOUT = (
    "Every argument that the engine's argument classes declare; others are refused. `only_for`: only "
    "the variants of its object whose discriminator (`discriminators`) has one of these values have "
    "it; `open`: its members are not judged; min, max, above, below: bounds that the field itself "
    "declares."
)
COMMAND_ABOUT = (
    "Options of trtllm-serve. `sets`: the argument that the option states; options without it do not "
    "reach the engine's arguments. `options_file`: names an options file, whose values the options "
    "override, but for those marked `file_wins`."
)


def head(schema: str, version: str, source: dict, about: str) -> dict:
    return {"schema": f"kernelpath/{schema}", "schema_version": "1.0.0", "engine": "trtllm",
            "version": version, "project": "TensorRT-LLM", "source": source, "about": about}


def read_options(checkout: pathlib.Path) -> tuple[str, tuple[list[dict], list[str]]]:
    """The file that the options stand in, and they."""
    if (checkout / REFERENCE).is_file():
        import yaml

        reference = yaml.safe_load((checkout / REFERENCE).read_text(encoding="utf-8"))
        return REFERENCE, trtllm_command.from_reference(reference)
    return SERVE, trtllm_command.from_source((checkout / SERVE).read_text(encoding="utf-8"))


def tables(checkout: pathlib.Path, version: str, commits: dict[str, str]) -> dict[str, dict]:
    """File name → table; `commits` names the commit of either file, or of both under ""."""
    folder = pathlib.Path(__file__).resolve().parent
    annotations = json.loads((folder / "trtllm_annotations.json").read_text(encoding="utf-8"))
    text = (checkout / ARGUMENTS).read_text(encoding="utf-8")
    rows, discriminators = trtllm_arguments.arguments(text, annotations)
    file, options = read_options(checkout)
    known = {row["name"] for row in rows}
    command = trtllm_command.command(options, text, known, annotations["command"])

    def source(name: str, path: str) -> dict:
        return {"file": path, "version": commits.get(name, commits.get(""))}

    return {
        "arguments.json": {
            **head("engine-arguments", version, source("arguments", ARGUMENTS), ARGUMENTS_ABOUT),
            "discriminators": discriminators, "arguments": rows},
        "command.json": {
            **head("engine-commands", version, source("command", file), COMMAND_ABOUT),
            "program": "trtllm-serve", **command},
    }
