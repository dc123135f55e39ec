"""Which class methods of the engine are data, and which are rules.

A method whose answer follows from its arguments and its class alone can be asked once and written
down. One that looks at the machine, the packages or the user's configuration is a rule: the table
names it by the class that defines it, and the C++ side has a function of that name.
"""

import ast
import inspect
import textwrap

# Names that a method may use and still be data: constants of the language and value types.
PLAIN_NAMES = {
    "cls", "super", "len", "min", "max", "list", "tuple", "set", "int", "bool", "str", "isinstance",
    "any", "all", "range", "None", "True", "False", "NotImplementedError", "ValueError",
    "AttentionType", "MultipleOf", "DeviceCapability", "KVCacheLayout", "MLADimensions",
    "AttentionCGSupport", "AttentionSpec", "KVQuantMode",
}

# What a method may take from torch: names of types, nothing that asks the machine.
TORCH_TYPES = {"float16", "bfloat16", "float32", "dtype"}


def find_method(cls: type, name: str):
    """The class of the MRO that defines `name` and the plain function, or (None, None)."""
    for owner in cls.__mro__:
        if name in vars(owner):
            value = vars(owner)[name]
            return owner, getattr(value, "__func__", value)
    return None, None


def is_constant(function, name: str) -> bool:
    """A module-level value that the method may read: plain numbers, names and lists of them."""
    if name not in function.__globals__:
        return False
    value = function.__globals__[name]
    return isinstance(value, (int, str, float, tuple, list, frozenset, type(None)))


def names_used(function) -> tuple[set[str], set[str]]:
    """Free names, and attributes read from `cls` or `super()`; annotations do not count."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    bound = {argument.arg for argument in ast.walk(tree) if isinstance(argument, ast.arg)}
    bound |= {node.id for node in ast.walk(tree)
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    free: set[str] = set()
    own: set[str] = set()
    for statement in tree.body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                free.add("import")
            if isinstance(node, ast.Name) and node.id not in bound | {"torch"}:
                free.add(node.id)
            if isinstance(node, ast.Attribute):
                base = node.value
                if isinstance(base, ast.Name) and base.id == "cls":
                    own.add(node.attr)
                if isinstance(base, ast.Name) and base.id == "torch":
                    free |= set() if node.attr in TORCH_TYPES else {"torch." + node.attr}
                if isinstance(base, ast.Call) and getattr(base.func, "id", "") == "super":
                    own.add("super." + node.attr)
    return free, own


def is_data(cls: type, name: str) -> bool:
    """Whether the answer of `cls.name` depends on its arguments and the class alone."""
    return _is_data(cls, cls.__mro__, name)


def _is_data(cls: type, mro: tuple, name: str) -> bool:
    for position, owner in enumerate(mro):
        if name in vars(owner):
            break
    else:
        return True
    value = vars(owner)[name]
    function = getattr(value, "__func__", value)
    if not inspect.isfunction(function):
        return True
    captured = zip(function.__code__.co_freevars, function.__closure__ or ())
    if any(inspect.isclass(cell.cell_contents) for variable, cell in captured
           if variable != "__class__"):
        return False
    free, own = names_used(function)
    if any(n not in PLAIN_NAMES and not is_constant(function, n) for n in free):
        return False
    for attribute in own:
        if attribute.startswith("super."):
            if not _is_data(cls, mro[position + 1:], attribute.removeprefix("super.")):
                return False
        elif not _is_data(cls, cls.__mro__, attribute):
            return False
    return True


def rule_name(cls: type, name: str) -> str:
    """How a rule is called: the class that defines it and the method."""
    owner, _ = find_method(cls, name)
    # Classes that the engine composes at run time all share one set of rules.
    if hasattr(owner, "general_backend_cls"):
        return f"CompositeAttentionBackend.{name}"
    return f"{owner.__name__}.{name}"
