"""Work of a thread that begins again after it failed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mnemosyned.domain.errors import MnemosynedError, ModelUnavailable
from mnemosyned.logs import log_failure

RETRY_S = 300.0
"""After so long a model that cannot be run is tried again."""


def retrying(
    work: Callable[[], None],
    *,
    closing: threading.Event,
    failed: Callable[[str], None],
    retry_s: float,
) -> None:
    """Work until `closing` is set; tell `failed` why it cannot go on for now.

    A boundary: what is raised is logged, and all of it begins again after `retry_s` seconds.
    """
    while not closing.is_set():
        try:
            work()
        except ModelUnavailable as error:
            failed(error.message)
        except Exception as error:  # noqa: BLE001 a boundary: it is logged
            if closing.is_set():  # what it was working on was ended
                return
            log_failure("embedding_failed", error)
            ours = isinstance(error, MnemosynedError)
            failed(str(error) if ours else "it failed; the log says how")
        closing.wait(retry_s)
