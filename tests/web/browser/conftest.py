"""The tests in a browser are collected where Playwright is installed: by `make test-web`."""

from __future__ import annotations

from importlib.util import find_spec

HAS_BROWSER = find_spec("playwright") is not None
collect_ignore_glob = [] if HAS_BROWSER else ["test_*.py"]

if HAS_BROWSER:
    from web.browsing import browser, memory, pages, server, visitor

    __all__ = ["browser", "memory", "pages", "server", "visitor"]
