"""The site is built and opened where MkDocs and Playwright are installed: by `make test-docs`."""

from importlib.util import find_spec

HAS_BROWSER = find_spec("playwright") is not None
collect_ignore_glob = [] if HAS_BROWSER else ["test_*.py"]

if HAS_BROWSER:
    from web.browsing import browser

    __all__ = ["browser"]
