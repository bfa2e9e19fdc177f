"""The version of this package, and the command that installs an extra."""

from __future__ import annotations

__version__ = "0.1.0"
DEBIAN_PREFIX = "/usr/lib/mnemosyned"
"""The environment of the Debian package; `config/debian/fill_packages.py` makes it."""
DEBIAN_EXTRAS = ("postgres", "oidc", "otel", "top", "personal")
"""Extras with a Debian package of their own."""


def install_command(extra: str) -> str:
    """Return the shell command that installs the packages of an optional extra, such as "llm".

    The packages are named one by one, since this package is on no index.
    """
    # Loaded here: only a failure needs them.
    import re  # noqa: PLC0415
    import shlex  # noqa: PLC0415
    import sys  # noqa: PLC0415
    from importlib.metadata import requires  # noqa: PLC0415
    from importlib.util import find_spec  # noqa: PLC0415

    if sys.prefix == DEBIAN_PREFIX and extra in DEBIAN_EXTRAS:
        return f"sudo apt install mnemosyned-{extra}"
    marked = re.compile(rf"(.*?) *; *extra == .{re.escape(extra)}.")
    needed = filter(None, map(marked.fullmatch, requires("mnemosyned") or ()))
    packages = shlex.join(match[1] for match in needed)
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:  # an environment that uv made
        return f"uv pip install --python {python} {packages}"
    return f"{python} -m pip install {packages}"
