"""`make demo` at a terminal, as somebody who tries the program sees it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, environment
from e2e.terminals import Seen

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

DEMO = Path(__file__).parents[1] / "demo" / "demo.py"


def test_the_demo_opens_no_pager_on_a_small_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with subprocess.Popen(
        [sys.executable, "-W", "error", str(DEMO)],
        cwd=tmp_path,
        env=environment(tmp_path, TERM="xterm", PAGER="sed s/^/paged:/"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            seen = Seen(ours)
            seen.until(b"claims held")
            assert process.wait(WAIT_S) == 0
            assert b"paged:" not in seen()
        finally:
            process.kill()
            os.close(ours)
