"""Reads what a model is told of a function out of its docstring, in Google's style."""

import re
from inspect import cleandoc

_ARGUMENT = re.compile(r"\*{0,2}(\w+)(?: *\([^)]*\))?: *(.*)")
_SECTION = re.compile(r"[A-Z][\w ]*:")


def first_paragraph(docstring: str | None) -> str:
    """Return the first paragraph of a docstring, as one line."""
    return " ".join(cleandoc(docstring or "").partition("\n\n")[0].split())


def argument_texts(docstring: str | None) -> dict[str, str]:
    """Return what the section `Args:` says of each argument, each as one line."""
    texts: dict[str, str] = {}
    inside, depth, name = False, 0, ""
    for line in cleandoc(docstring or "").splitlines():
        indent = len(line) - len(line.lstrip())
        if not indent and line.strip():
            inside = _SECTION.fullmatch(line.strip()) is not None and line.startswith("Arg")
            depth, name = 0, ""
        elif inside and line.strip():
            depth = depth or indent
            begun = _ARGUMENT.fullmatch(line.strip()) if indent == depth else None
            if begun:
                name, texts[begun[1]] = begun[1], begun[2]
            elif name:
                texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts
