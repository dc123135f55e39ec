#!/usr/bin/env python3
"""Checks one JSON file against one schema: check_schema.py SCHEMA FILE. Exit code 1 if it does not fit."""

import json
import pathlib
import sys

import jsonschema


def main() -> int:
    schema, document = (json.loads(pathlib.Path(name).read_text("utf-8")) for name in sys.argv[1:3])
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    checker = jsonschema.FormatChecker()
    error = jsonschema.exceptions.best_match(validator(schema, format_checker=checker).iter_errors(document))
    if error is None:
        return 0
    print("/" + "/".join(str(part) for part in error.absolute_path), error.message[:300])
    return 1


if __name__ == "__main__":
    sys.exit(main())
