"""The tests in a browser are collected where Playwright is installed: by `make test-web`."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("playwright") else ["test_browser.py"]
