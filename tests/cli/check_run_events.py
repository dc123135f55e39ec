#!/usr/bin/env python3
"""Checks what llm-run printed against schema/run.schema.json.

usage: check_run_events.py SCHEMA_FOLDER json|jsonl FILE

Errors inside are checked against error.schema.json. Exit code 1 with the first line that does not fit.
"""

import json
import pathlib
import sys

import jsonschema


def validator(folder: pathlib.Path, name: str) -> jsonschema.Draft7Validator:
    schema = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def errors_in(value: object) -> list[dict]:
    """Every "error" member at any depth."""
    if isinstance(value, list):
        return [error for item in value for error in errors_in(item)]
    if not isinstance(value, dict):
        return []
    own = [value["error"]] if isinstance(value.get("error"), dict) else []
    return own + [error for key, item in value.items() if key != "resolution" for error in errors_in(item)]


def main() -> int:
    folder, form, name = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    text = pathlib.Path(name).read_text(encoding="utf-8")
    documents = text.splitlines() if form == "jsonl" else [text]
    runs, errors = validator(folder, "run"), validator(folder, "error")
    for number, line in enumerate(documents, start=1):
        document = json.loads(line)
        for check, part in [(runs, document), *((errors, error) for error in errors_in(document))]:
            fault = jsonschema.exceptions.best_match(check.iter_errors(part))
            if fault is not None:
                place = "/" + "/".join(str(step) for step in fault.absolute_path)
                print(f"line {number}: {place}: {fault.message[:300]}")
                return 1
    return 0 if documents else 1


if __name__ == "__main__":
    sys.exit(main())
