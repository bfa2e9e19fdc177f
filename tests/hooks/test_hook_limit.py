"""The time limit of a hook holds wherever the interpreter is when it is over."""

import json
import os
import subprocess
import sys
from pathlib import Path

LOSES_ONE = """
import time
from mnemosyned.agents.hooks import client

class Slow:
    def __del__(self):  # Python ignores what is raised in it
        while True:
            time.sleep(0.01)

def post(*_):
    Slow()
    time.sleep(60)

client.post = post
client.main()
"""
PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Hello."}


def test_a_limit_whose_error_python_ignored_is_raised_again(tmp_path: Path) -> None:
    state = {"STATE_DIRECTORY": str(tmp_path), "MNEMOSYNE_HOOK_WAIT_S": "0.01"}

    run = subprocess.run(
        [sys.executable, "-P", "-c", LOSES_ONE],
        input=json.dumps(PROMPT).encode(),
        env={**os.environ, **state},
        capture_output=True,
        check=True,
        timeout=30,
    )

    assert isinstance(json.loads(run.stdout), dict)
    assert run.stderr == b""
    assert len(list((tmp_path / "spool").glob("c-*"))) == 1
