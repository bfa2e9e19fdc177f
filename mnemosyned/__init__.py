"""Memory for AI agents that remembers, sleeps and recalls, and loses nothing."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from mnemosyned.version import __version__ as __version__


@cache
def _modules_by_public_name() -> dict[str, str]:
    """Return the module of each public name, read from the stub `__init__.pyi`."""
    import ast  # noqa: PLC0415 who imports a module by its own name never needs it

    source = __spec__.loader.get_data(f"{__file__}i")
    imports = [
        each for each in ast.parse(source).body if isinstance(each, ast.ImportFrom)
    ]
    return {name.name: part.module for part in imports for name in part.names}


def __dir__() -> list[str]:
    return [*_modules_by_public_name()]


def __getattr__(name: str) -> object:
    """Return a public name, imported at its first use: the shell client needs no engine."""
    if name == "__all__":
        return __dir__()
    if name.startswith("_") or name not in _modules_by_public_name():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_modules_by_public_name()[name])
    value = globals()[name] = getattr(module, name)
    return value
