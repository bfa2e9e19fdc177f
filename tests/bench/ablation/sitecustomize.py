"""Takes one rule for natural language out of the product, in a process and all that it starts.

MNEMOSYNED_WITHOUT holds a JSON list of `[module, name, expression]`: as soon as the module is loaded,
and before another can import from it, the name gets the value of the expression, which is
evaluated among the module's own names.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Sequence
from types import ModuleType

REPLACED: list[list[str]] = json.loads(os.environ.get("MNEMOSYNED_WITHOUT", "[]"))


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for name, attribute, expression in REPLACED:
            if name == module.__name__:
                getattr(
                    module, attribute
                )  # a name that is gone is an error, not a rule without use
                value = eval(expression, module.__dict__)  # noqa: S307 the table of a benchmark
                setattr(module, attribute, value)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in {name for name, _, _ in REPLACED}:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


if REPLACED:
    sys.meta_path.insert(0, _Finder())
