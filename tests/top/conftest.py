"""The live view's tests are collected where Textual is installed: by `make test-top`."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("textual") else ["test_app.py"]
