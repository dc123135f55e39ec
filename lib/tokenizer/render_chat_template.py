#!/usr/bin/env python3
"""Renders a chat template as transformers does it, for the programs of kernelpath.

usage: render_chat_template.py MEMORY_BYTES CPU_SECONDS OUTPUT_CHARACTERS

Reads {"template": "…", "variables": {…}} from standard input and writes {"text": "…"} or
{"error": KIND, "message": "…"}. Templates come from strangers: they run in Jinja2's immutable
sandbox, in a process of their own with limits. KIND is one of: missing (no Jinja2 that could be
used), syntax, refused (raise_exception, or an error while rendering), limit.
"""

import datetime
import json
import resource
import sys


def answer(**members) -> None:
    sys.stdout.write(json.dumps(members))
    sys.stdout.flush()
    raise SystemExit(0)


def set_limits(memory_bytes: int, cpu_seconds: int) -> None:
    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(kind, (limit, limit))


def environment():
    """What transformers renders with (utils/chat_template_utils.py of its version 5)."""
    import jinja2
    import jinja2.ext
    import jinja2.sandbox

    version = tuple(int(part) for part in jinja2.__version__.split(".")[:2])
    if version < (3, 1):
        raise ImportError(f"Jinja2 {jinja2.__version__} is too old; 3.1 or newer is needed")

    class Generation(jinja2.ext.Extension):
        """{% generation %} marks what the assistant wrote; rendering passes over the marks."""

        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            call = self.call_method("_render")
            return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

        def _render(self, caller):
            return caller()

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        # Jinja2's own filter escapes for HTML.
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    def strftime_now(form):
        return datetime.datetime.now().strftime(form)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = strftime_now
    return made


def render(question: dict, output_characters: int) -> None:
    try:
        made = environment()
    except ImportError as error:
        answer(error="missing", message=str(error))
    import jinja2

    try:
        template = made.from_string(question["template"])
    except jinja2.exceptions.TemplateSyntaxError as error:
        answer(error="syntax", message=f"line {error.lineno}: {error.message}")
    parts, length = [], 0
    try:
        for part in template.generate(**question["variables"]):
            parts.append(part)
            length += len(part)
            if length > output_characters:
                answer(error="limit", message="it writes more text than is allowed")
    except (MemoryError, RecursionError, OverflowError) as error:
        answer(error="limit", message=f"{type(error).__name__}: {error}")
    except jinja2.exceptions.TemplateError as error:
        answer(error="refused", message=error.message or type(error).__name__)
    except Exception as error:  # whatever an expression of a template raises
        answer(error="refused", message=f"{type(error).__name__}: {error}")
    answer(text="".join(parts))


def main() -> None:
    memory_bytes, cpu_seconds, output_characters = (int(word) for word in sys.argv[1:])
    set_limits(memory_bytes, cpu_seconds)
    try:
        render(json.loads(sys.stdin.buffer.read()), output_characters)
    except MemoryError:
        answer(error="limit", message="MemoryError")


if __name__ == "__main__":
    main()
