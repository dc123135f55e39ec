"""SGLang's attention backends: names, the classes that their factories build, direct refusals."""

import ast

from sglang_source import Package, assigned, string_constants, strings

REGISTRY = "srt/layers/attention/attention_registry.py"
CHOICES = "srt/arg_groups/choices.py"


def built_classes(node: ast.FunctionDef) -> list[str]:
    """Classes that the factory returns, first the one of the CUDA path's last return."""
    found = []
    for item in ast.walk(node):
        if isinstance(item, ast.Return) and isinstance(item.value, ast.Call):
            found.append(ast.unparse(item.value))
    return found


def refusals(node: ast.FunctionDef) -> list[str]:
    found = []
    for item in ast.walk(node):
        if isinstance(item, ast.Assert) and item.msg is not None:
            found += string_constants(item.msg)[:1]
        elif isinstance(item, ast.Raise) and isinstance(item.exc, ast.Call):
            found += string_constants(item.exc)[:1]
    return found


def backends(package: Package) -> list[dict]:
    rows = {}
    for node in package.module(REGISTRY).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if ast.unparse(getattr(decorator, "func", decorator)) == "register_attention_backend":
                name = string_constants(decorator)[0]
                rows[name] = {"name": name, "builds": built_classes(node),
                              "refuses": refusals(node)}
    choices = strings(package.module(CHOICES),
                      assigned(package.module(CHOICES), "ATTENTION_BACKEND_CHOICES"))
    missing = [name for name in choices if name not in rows]
    return [rows[n] for n in choices if n in rows] + [
        {"name": n, "builds": [], "refuses": []} for n in missing
    ]
