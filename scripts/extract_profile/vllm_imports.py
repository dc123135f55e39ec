"""Which packages a backend's module imports as it is loaded, and so cannot do without."""

import ast
import functools

from vllm_environment import package_folder

# Packages that a machine may lack; everything else is a requirement of vLLM itself.
OPTIONAL = {"flashinfer", "tokenspeed_mla", "b12x", "aiter"}


def always_run(statements: list[ast.stmt]):
    """Statements that importing the module runs whatever the machine is: nothing under a condition
    and nothing whose failure is caught."""
    for statement in statements:
        if isinstance(statement, ast.With):
            yield from always_run(statement.body)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement


def imported_modules(statement: ast.stmt, module: str) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    base = statement.module or ""
    if statement.level:
        package = module.split(".")[:-statement.level]
        base = ".".join([*package, *([base] if base else [])])
    # `from package import submodule` imports the submodule too.
    return [base, *(f"{base}.{alias.name}" for alias in statement.names)]


def source_of(module: str) -> str | None:
    """The text of a module of vLLM, found without importing anything."""
    path = package_folder("vllm").parent.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None


@functools.cache
def imports(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """The optional packages and the modules of vLLM that one module imports itself."""
    source = source_of(module)
    names = {name for statement in always_run(ast.parse(source).body if source else [])
             for name in imported_modules(statement, module)}
    tops = {name: name.partition(".")[0] for name in names}
    return (frozenset(top for top in tops.values() if top in OPTIONAL),
            frozenset(name for name, top in tops.items() if top == "vllm"))


def needs(module: str) -> set[str]:
    """The optional packages that `module` imports, itself or through vLLM's own modules."""
    found: set[str] = set()
    todo, done = [module], set()
    while todo:
        name = todo.pop()
        if name not in done:
            done.add(name)
            packages, modules = imports(name)
            found |= packages
            todo += modules
    return found
