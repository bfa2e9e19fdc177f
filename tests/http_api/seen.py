"""Schemathesis' hooks: count the responses by operation, status and code, for the test to read."""

import atexit
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis

SEEN: Counter[str] = Counter()


@schemathesis.hook  # type: ignore[untyped-decorator]
def after_call(context: Any, case: Any, response: Any) -> None:  # noqa: ANN401, ARG001
    """Count a response."""
    try:
        code = response.json()["error"]["code"]
    except (ValueError, KeyError, TypeError):
        code = ""
    operation = f"{case.operation.method.upper()} {case.operation.path}"
    SEEN[f"{operation} {response.status_code} {code}"] += 1


@atexit.register
def write() -> None:
    """Leave the counts in the file that the test names."""
    Path(os.environ["SEEN_FILE"]).write_text(json.dumps(SEEN), encoding="utf-8")
