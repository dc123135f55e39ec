"""Reading llama.cpp's C++ as text: comments, enums, name tables, blocks of statements."""

import re


def without_comments(text: str) -> str:
    kept = re.compile(r"(\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')|/\*.*?\*/|//[^\n]*", re.S)
    return kept.sub(lambda match: match.group(1) or "", text)


def function_body(text: str, signature: str) -> str:
    """The text between the braces of the function whose head matches `signature`."""
    match = re.search(signature + r"[^{;]*\{", text)
    if not match:
        raise SystemExit(f"llama.cpp: no function {signature}")
    return text[match.end():closing(text, match.end() - 1)]


def closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start`."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    stack = []
    quote = ""
    at = start
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in pairs:
            stack.append(pairs[char])
        elif stack and char == stack[-1]:
            stack.pop()
            if not stack:
                return at
        at += 1
    raise SystemExit("llama.cpp: brackets do not match")


def name_table(text: str, name: str) -> dict:
    """{ CONSTANT, "name" } rows of a static map, in the source's order."""
    start = text.index(f"{name} = {{")
    rows = text[start:closing(text, text.index("{", start))]
    return dict(re.findall(r"\{\s*(\w+)\s*,\s*\"([^\"]*)\"\s*\}", rows))


def switch_cases(body: str) -> list:
    """(names, statements) of each group of cases of a switch; the default has no names."""
    groups = []
    names, last = [], 0
    for match in re.finditer(r"case\s+(\w+)\s*:|default\s*:", body):
        between = body[last:match.start()].strip()
        if between and (names or groups or last):
            groups.append((names, between))
            names = []
        names = names + [match.group(1)] if match.group(1) else names
        last = match.end()
    groups.append((names, body[last:].strip()))
    return groups


def statements(body: str, guards: tuple = ()) -> list:
    """(guards, statement) of a block, in order; conditions that hold for a statement are its guards.

    The head of an `if` is a statement of its own, so that a read in it is seen. Loops are walked
    into; a switch is left out.
    """
    out = []
    at = 0
    while at < len(body):
        match = re.compile(r"\s*(if|for|while|switch)\s*\(").match(body, at)
        if match:
            at = _control(body, match, guards, out)
            continue
        end = _statement_end(body, at)
        text = " ".join(body[at:end].split())
        if text:
            out.append((guards, text))
        at = end + 1
    return out


def _statement_end(body: str, at: int) -> int:
    while at < len(body) and body[at] != ";":
        at = closing(body, at) + 1 if body[at] in "({[" else at + 1
    return at


def _block(body: str, at: int) -> tuple:
    """The statement or block at `at`, and where it ends."""
    while body[at].isspace():
        at += 1
    if body[at] == "{":
        end = closing(body, at)
        return body[at + 1:end], end + 1
    control = re.compile(r"(if|for|while|switch)\s*\(").match(body, at)
    if control:
        inner, end = _block(body, closing(body, control.end() - 1) + 1)
        return body[at:end], end
    end = _statement_end(body, at) + 1
    return body[at:end], end


def _control(body: str, match, guards: tuple, out: list) -> int:
    close = closing(body, match.end() - 1)
    condition = " ".join(body[match.end():close].split())
    block, at = _block(body, close + 1)
    if match.group(1) == "switch":
        return at
    inner = guards
    if match.group(1) == "if":
        out.append((guards, condition))
        inner = guards + (condition.rpartition("; ")[2],)
    out += statements(block, inner)
    otherwise = re.compile(r"\s*else\b").match(body, at)
    if match.group(1) == "if" and otherwise:
        block, at = _block(body, otherwise.end())
        out += statements(block, guards + (f"!({condition})",))
    return at
