"""What waits in the spool is handed in, whatever else lies there; a hook's time limit fills it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mnemosyned.agents.hooks import fallback, spool

NOBODY = 65_534


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The spool, with a short path that another user could reach."""
    state = Path(tempfile.mkdtemp(prefix="spool"))
    state.chmod(0o755)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    (state / "spool").mkdir()
    yield state / "spool"
    shutil.rmtree(state)


def _into(posted: list[bytes]) -> Callable[[bytes], int]:
    """A daemon that takes all it is handed."""

    def post(content: bytes) -> int:
        posted.append(content)
        return 200

    return post


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def _link(path: Path) -> None:
    outside = path.parent.parent / "secret"
    outside.write_bytes(b"secret")
    path.symlink_to(outside)


ODD: dict[str, Callable[[Path], None]] = {
    "folder": Path.mkdir,
    "full folder": lambda path: (path / "in it").mkdir(parents=True),
    "FIFO": os.mkfifo,
    "socket": _socket,
    "link": _link,
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "loop": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_entry_is_set_aside_and_others_handed_in(place: Path, odd: str) -> None:
    for number in range(60):  # more than one hook hands in
        ODD[odd](place / f"a-{number:02}")
    for number in range(3):
        assert spool.put(str(place), f"c-{number}", b"%d" % number)
    posted: list[bytes] = []

    spool.hand_in(str(place), _into(posted))

    assert posted == [b"0", b"1", b"2"]
    assert not spool.list_waiting(str(place))
    aside = sorted(path.name for path in place.iterdir())
    assert len(aside) == 60
    assert all(name.startswith(spool.SET_ASIDE) for name in aside)


def test_a_file_that_may_not_be_read_is_set_aside(place: Path) -> None:
    (place / "a").write_bytes(b"of another user")
    (place / "a").chmod(0 if os.geteuid() else 0o600)
    (place / "b").write_bytes(b"call")
    (place / "b").chmod(0o644)
    posted: list[bytes] = []
    if is_root := os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        spool.hand_in(str(place), _into(posted))
    finally:
        if is_root:
            os.seteuid(0)

    assert posted == [b"call"]
    (left,) = place.iterdir()
    assert left.name.startswith(spool.SET_ASIDE)
    assert left.name.endswith("-a")


def test_a_folder_in_the_place_of_a_call_makes_way(place: Path) -> None:
    (place / "c-1" / "in it").mkdir(parents=True)

    assert spool.put(str(place), "c-1", b"call")
    assert (place / "c-1").read_bytes() == b"call"


def test_a_link_to_a_large_file_does_not_fill_the_spool(place: Path) -> None:
    with (place.parent / "large").open("wb") as file:
        file.truncate(1 << 40)
    (place / "a").symlink_to(place.parent / "large")

    assert spool.put(str(place), "c-1", b"call")


@pytest.mark.parametrize("status", [408, 429], ids=["too slow", "beyond a limit"])
def test_a_call_that_is_refused_for_now_waits_for_a_hook(
    place: Path, status: int
) -> None:
    assert spool.put(str(place), "c-1", b"call")
    spool.hand_in(str(place), lambda _: status)
    posted: list[bytes] = []

    spool.hand_in(str(place), _into(posted))

    assert posted == [b"call"]
    assert not list(place.iterdir())


def test_a_call_is_flushed_and_a_full_spool_takes_no_more(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(
        os, "fsync", lambda file: flushed.append(os.fstat(file).st_size)
    )
    monkeypatch.setattr(spool, "BYTES_MAX", 8)

    assert spool.put(str(place), "c-1", b"call")
    assert not spool.put(str(place), "c-2", b"other")
    assert spool.put(str(place), "c-1", b"the same")

    assert flushed == [4, 8]
    assert spool.list_waiting(str(place)) == ["c-1"]


def test_the_next_warning_has_the_number_of_lost_calls(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "BYTES_MAX", 0)

    def warning(event: str) -> str:
        payload = json.dumps({"hook_event_name": event}).encode()
        shown = fallback.put_aside(str(place), payload, b"call", ("", "full"))
        return str(json.loads(shown).get("systemMessage"))

    lost = "full; events lost since the last warning: "
    assert warning("Stop") == f"{lost}1"
    assert warning("Stop") == warning("Stop") == "None"
    assert warning("SessionStart") == f"{lost}3"


def test_each_cause_is_warned_of_once_an_hour(place: Path) -> None:
    payload = json.dumps({"hook_event_name": "Stop"}).encode()

    def warning(cause: str) -> str | None:
        notes = (f"waits: {cause}", "full")
        shown = fallback.put_aside(str(place), payload, b"call", notes, cause)
        told: str | None = json.loads(shown).get("systemMessage")
        return told

    causes = ("", "401", "", "401")
    assert [warning(cause) for cause in causes] == ["waits: ", "waits: 401", None, None]
    hour_ago = time.time() - 3_601
    os.utime(place / ".warned401", (hour_ago, hour_ago))
    assert [warning(cause) for cause in causes] == [None, "waits: 401", None, None]


def test_the_folder_above_the_spool_is_closed_to_others_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))

    spool.put(spool.folder(), "call", b"{}")

    for folder in (tmp_path / "state", tmp_path / "state" / "spool"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_call_written_again_while_it_is_handed_in_waits(place: Path) -> None:
    assert spool.put(str(place), "c-1", b"call")
    os.utime(place / "c-1", (time.time() - 1, time.time() - 1))

    def post(_: bytes) -> int:
        return 200 if spool.put(str(place), "c-1", b"newer") else 0

    spool.hand_in(str(place), post)

    assert (place / "c-1").read_bytes() == b"newer"


# The time limit of a hook holds wherever the interpreter is when it is over.

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
STOOD_STILL = """
from mnemosyned.agents.hooks import client

client.STDIN_S = -1  # over before the first look
client.main()
"""
PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Hello."}


@pytest.mark.parametrize(
    "program", [LOSES_ONE, STOOD_STILL], ids=["error ignored", "late look"]
)
def test_a_call_at_the_end_of_a_limit_is_kept(tmp_path: Path, program: str) -> None:
    state = {"STATE_DIRECTORY": str(tmp_path), "MNEMOSYNE_HOOK_WAIT_S": "0.01"}

    with tempfile.TemporaryFile() as given:
        given.write(json.dumps(PROMPT).encode())
        given.seek(0)
        run = subprocess.run(
            [sys.executable, "-P", "-c", program],
            stdin=given,
            env={**os.environ, **state},
            capture_output=True,
            check=True,
            timeout=60,
        )

    assert isinstance(json.loads(run.stdout), dict)
    assert run.stderr == b""
    assert len(list((tmp_path / "spool").glob("c-*"))) == 1
