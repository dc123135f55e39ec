"""Checks JSON files against the schemas of this repository.

usage: check_schemas.py FILE…

A file under schema/ must be a valid JSON Schema; any other file names its schema in its field
"schema" ("kernelpath/NAME"), which is schema/NAME.schema.json.
"""

import json
import pathlib
import sys

import jsonschema

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent.parent / "schema"


def problems(path: pathlib.Path) -> list[str]:
    document = json.loads(path.read_text(encoding="utf-8"))
    if path.name.endswith(".schema.json"):
        try:
            jsonschema.Draft202012Validator.check_schema(document)
        except jsonschema.SchemaError as error:
            return [error.message]
        return []
    name = document.get("schema", "")
    schema = SCHEMAS / f"{name.removeprefix('kernelpath/')}.schema.json"
    if not name.startswith("kernelpath/") or not schema.is_file():
        return [f"names no schema of {SCHEMAS.name}/: {name!r}"]
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    return [f"/{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(document)]


def main() -> int:
    found = 0
    for name in sys.argv[1:]:
        for problem in problems(pathlib.Path(name)):
            print(f"{name}: {problem}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
