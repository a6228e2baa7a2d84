"""Prints the public names of TensorRT's bindings as JSON: classes, members, signatures.

Run as a script in a process of its own, with the bindings' folder as the only argument: one
process holds one version. See `tests.bindings.versions`.
"""

import enum
import inspect
import json
import re
import sys

SIGNATURE = re.compile(r"^(?:\d+\. )?(\w+)\((.*)\)(?: -> (.*))?$")


def split(text):
    """`a: int, b: List[int, str] = 1` at the commas that stand in no bracket or quote."""
    parts, depth, start, quoted = [], 0, 0, ""
    for i, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "'\"":
            quoted = c
        elif c in "[(<{":
            depth += 1
        elif c in "])>}" and text[i - 1] != "-":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in (*parts, text[start:]) if p.strip()]


def parameter(text):
    name = re.match(r"[*\w]+", text)
    return [name.group(), " = " in text] if name else ["?", False]


def overloads(function, name):
    """[[parameter, has a default], ...] of each overload, without self; None where not said."""
    found = []
    for line in (function.__doc__ or "").splitlines():
        match = SIGNATURE.match(line.strip())
        if match and match[1] == name:
            rows = [parameter(p) for p in split(match[2])]
            found.append([r for r in rows if r[0] != "self"])
    found = [f for f in found if [r[0] for r in f] != ["*args", "**kwargs"]]
    if found:
        return found
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    rows = [[p.name, p.default is not p.empty] for p in signature.parameters.values()]
    return [[r for r in rows if r[0] != "self"]]


def member(cls, name):
    static = inspect.getattr_static(cls, name)
    value = getattr(cls, name)
    if isinstance(static, property):
        return {"kind": "property", "writable": static.fset is not None}
    if hasattr(cls, "__members__") and name in cls.__members__:
        return {"kind": "value", "value": int(value)}
    if inspect.isclass(value):
        return {"kind": "class"}
    if callable(value):
        return {"kind": "method", "overloads": overloads(value, name)}
    return {"kind": "attribute"}


def describe(value):
    if not inspect.isclass(value):
        return {"kind": "function" if callable(value) else type(value).__name__}
    names = [n for n in dir(value) if not n.startswith("_") or n in ("__init__", "__call__")]
    return {
        "kind": "enum"
        if hasattr(value, "__members__") or issubclass(value, enum.Enum)
        else "class",
        "bases": [b.__name__ for b in value.__mro__[1:-1] if "pybind11" not in b.__name__],
        "members": {n: member(value, n) for n in names},
    }


def main():
    sys.path.insert(0, sys.argv[1])
    import tensorrt_bindings as trt

    names = [n for n in dir(trt) if not n.startswith("_")]
    functions = {
        n: {"kind": "function", "overloads": overloads(getattr(trt, n), n)}
        for n in names
        if callable(getattr(trt, n)) and not inspect.isclass(getattr(trt, n))
    }
    result = {n: describe(getattr(trt, n)) for n in names} | functions
    json.dump({"version": trt.__version__, "names": result}, sys.stdout)


if __name__ == "__main__":
    main()
