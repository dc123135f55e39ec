#!/usr/bin/env python3
"""Checks documents of the programs against schema/*.schema.json.

usage: validate_documents.py SCHEMA_FOLDER FILE...

Each FILE is one JSON document; its "schema" field ("kernelpath/inspect") names the schema. Exit code 0
if all are valid, 1 with the first error of each that is not, 77 if python3-jsonschema is missing.
"""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)


def main() -> int:
    folder, files = pathlib.Path(sys.argv[1]), sys.argv[2:]
    validators = {}
    failures = 0
    for name in files:
        document = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
        kind = document["schema"].split("/")[1]
        if kind not in validators:
            schema = json.loads((folder / f"{kind}.schema.json").read_text(encoding="utf-8"))
            jsonschema.Draft7Validator.check_schema(schema)
            validators[kind] = jsonschema.Draft7Validator(schema)
        error = jsonschema.exceptions.best_match(validators[kind].iter_errors(document))
        if error is not None:
            failures += 1
            place = "/" + "/".join(str(part) for part in error.absolute_path)
            print(f"{name}: {place}: {error.message[:300]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
