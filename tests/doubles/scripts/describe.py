"""Prints the public names of a double as JSON; run as a script, with the module's name."""

import importlib
import inspect
import json
import sys


def own_names(cls):
    """Public names that the double itself defines, base classes of its own included."""
    package = cls.__module__.partition(".")[0]
    mro = [c for c in cls.__mro__ if c.__module__.partition(".")[0] == package]
    names = {n for c in mro for n in vars(c) if not n.startswith("_")}
    return sorted(names | set(getattr(cls, "__members__", ())))


def describe_member(cls, name):
    if name in getattr(cls, "__members__", ()):
        return ["value", int(cls[name])]
    value = inspect.getattr_static(cls, name)
    value = value.__func__ if isinstance(value, staticmethod) else value
    if inspect.isfunction(value):
        return ["method", parameters(value)]
    if isinstance(value, property):
        return ["property", value.fset is not None]
    return ["attribute", None]


def parameters(function):
    rows = inspect.signature(function).parameters.values()
    return [[p.name, p.default is not p.empty] for p in rows if p.name != "self"]


def main():
    module = importlib.import_module(sys.argv[1])
    found = {}
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or inspect.ismodule(value):
            continue
        if inspect.isclass(value):
            members = {n: describe_member(value, n) for n in own_names(value)}
            if inspect.isfunction(vars(value).get("__init__")):
                members["__init__"] = ["method", parameters(value.__init__)]
            found[name] = members
        elif callable(value):
            found[name] = parameters(value)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
