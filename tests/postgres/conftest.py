"""Databases on a server that the tests start; without psycopg nothing here is collected."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from support.engines import new_database

collect_ignore_glob = [] if find_spec("psycopg") else ["test_*.py"]


@pytest.fixture
def dsn() -> str:
    """A database of the present schema, with nothing in it."""
    return new_database()


@pytest.fixture
def other_dsn() -> str:
    """Another one."""
    return new_database()
