"""The version of this package, and commands that install missing packages."""

from __future__ import annotations

__version__ = "0.1.0"
IS_PUBLISHED = False
"""Whether the package is on PyPI: else extras are named by their packages."""
DEBIAN_PREFIX = "/usr/lib/mnemosyned"
"""The environment of the Debian package; `config/debian/fill_packages.py` makes it."""
DEBIAN_EXTRAS = ("postgres", "oidc", "otel", "top", "personal")
"""Extras with a Debian package of their own."""


def pip_command(*packages: str) -> str:
    """Return the shell command that installs packages into the environment of mnemosyned."""
    # Loaded here: only a failure needs them.
    import shlex  # noqa: PLC0415
    import sys  # noqa: PLC0415
    from importlib.util import find_spec  # noqa: PLC0415

    python, named = shlex.quote(sys.executable), shlex.join(packages)
    if find_spec("pip") is None:  # an environment that uv made
        return f"uv pip install --python {python} {named}"
    return f"{python} -m pip install {named}"


def install_command(extra: str) -> str:
    """Return the shell command that installs an optional extra, such as "llm"."""
    # Loaded here: only a failure needs them.
    import re  # noqa: PLC0415
    import sys  # noqa: PLC0415
    from importlib.metadata import requires  # noqa: PLC0415

    if sys.prefix == DEBIAN_PREFIX and extra in DEBIAN_EXTRAS:
        return f"sudo apt install mnemosyned-{extra}"
    if IS_PUBLISHED:
        return pip_command(f"mnemosyned[{extra}]")
    marked = re.compile(rf"(.*?) *; *extra == .{re.escape(extra)}.")
    needed = filter(None, map(marked.fullmatch, requires("mnemosyned") or ()))
    return pip_command(*(match[1] for match in needed))
