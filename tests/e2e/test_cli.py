"""`mnem`: what it reads and prints, whom it asks, and the codes that it ends with."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from e2e.commands import COMMANDS
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, Json, kept, mnem, short_room
from e2e.scripted_daemon import answer, saying, scripted
from e2e.terminals import on_terminal, shell

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


@pytest.fixture(scope="module")
def filled(shared: Daemon) -> Daemon:
    """A daemon with an episode, working memory, a statement that ended, an injection and a log."""
    for number in range(3):
        shared.post(
            "remember", id=f"old-{number}", content=f"Old news, number {number}."
        )
    shared.post("sleep", force=True)
    shared.post("remember", id="tea", content="Tea at four.", metadata={"pot": 1})
    for port in ("listens on port 8080", "now listens on port 9090"):
        shared.post("remember", content=f"The samovar {port}.", role="user")
    shared.post("context", message="when is tea?", messages=[])
    return shared


PRINTING = [
    name
    for name in COMMANDS
    if name not in ("completion", "remove-learning", "restore")
]
"""Commands that print again when they are called twice."""


COLOR = b"\x1b["


@pytest.fixture(scope="module")
def episode(filled: Daemon) -> str:
    found: str = filled.post("get", id="old-0").body["memory"]["episode"]
    return found


def words_of(command: str, episode: str, lesson: str, file: Path) -> list[str]:
    file.write_text('{"content": "from a file", "id": "from-a-file"}\n')
    talk = file.with_name("talk.json")
    talk.write_text(
        '{"model": "any", "messages": [{"role": "user", "content": "tea?"}]}'
    )
    return {
        "remember": ["remember", "--id", "said", "said"],
        "import": ["import", str(file)],
        "recall": ["recall", "tea"],
        "get": ["get", "tea"],
        "expand": ["expand", episode],
        "sleep": ["sleep", "--dry-run"],
        "consolidate": ["consolidate", "--dry-run", "--force"],
        "forget": ["forget", "said", "--dry-run"],
        "undo": ["undo", "--dry-run"],
        "edit": ["edit", "tea", "--role", "guest"],
        "tag": ["tag", "a,b", "tea"],
        "untag": ["untag", "b", "tea"],
        "pin": ["pin", "tea"],
        "unpin": ["unpin", "tea"],
        "archive": ["archive", "prune", "--dry-run"],
        "backup": ["backup", str(file.with_name("copy.db"))],
        "context": ["context", "more tea?", "--messages", str(talk)],
        "compact": ["compact", str(talk)],
        "learn": ["learn", "taste first"],
        "learnings": ["learnings", "--superseded"],
        "briefing": ["briefing", "--project", "none"],
        "edit-learning": ["edit-learning", lesson, "--text", "taste twice"],
    }.get(command, [command])


@pytest.mark.parametrize("command", PRINTING)
def test_what_is_printed_is_plain_or_json(
    filled: Daemon, episode: str, tmp_path: Path, command: str
) -> None:
    lesson = filled.post("learn", content="Taste first.").body["learning"]["id"]
    words = words_of(command, episode, lesson, tmp_path / "m.jsonl")
    filled.post("remember", id="said", content="said")

    printed = filled.mnem(*words)
    filled.post("remember", id="said", content="said")
    as_json = filled.mnem(*words, "--json")

    assert (printed.returncode, as_json.returncode) == (0, 0)
    assert bool(printed.stdout.strip()) == (command != "projects")  # as it has none
    assert (
        COLOR not in printed.stdout + printed.stderr + as_json.stdout + as_json.stderr
    )
    assert isinstance(json.loads(as_json.stdout), dict)


def test_a_terminal_sees_colours(filled: Daemon) -> None:
    with on_terminal(filled, "recall", "tea") as (process, seen):
        assert process.wait(WAIT_S) == 0

        assert COLOR in seen()


def test_standard_input_is_remembered_without_its_last_newline(filled: Daemon) -> None:
    done = filled.mnem(
        "remember", "--id", "piped", stdin="Grüße\naus der Küche\n".encode()
    )

    assert (done.returncode, done.stdout) == (0, b"piped\n")
    assert (
        filled.post("get", id="piped").body["memory"]["content"]
        == "Grüße\naus der Küche"
    )


def test_on_a_terminal_nothing_to_remember_is_said_at_once(filled: Daemon) -> None:
    with on_terminal(filled, "remember") as (process, seen):
        assert process.wait(WAIT_S) == 2

        assert b"say what to remember" in seen()


def test_a_reader_that_has_seen_enough_is_no_failure(filled: Daemon) -> None:
    done = shell(filled, "set -o pipefail; mnem log | head -0")

    assert (done.returncode, done.stderr) == (0, "")


def test_remember_and_learn_print_the_id_alone(shared: Daemon) -> None:
    done = shell(
        shared,
        """
        one=$(mnem remember --dedupe 'the password is larch-4471')
        again=$(mnem remember --dedupe 'the password is larch-4471')
        new=$(mnem learn 'Answer in French.')
        newer=$(mnem learn 'Answer in German.')
        echo "$one $again $new $newer"
        mnem get "$one" --json >/dev/null && echo kept
        mnem recall zeppelin | while read -r line; do echo "read $line"; done
        mnem log --session nobody | while read -r line; do echo "read $line"; done
    """,
    )

    ids, kept = done.stdout.splitlines()
    one, again, new, newer = ids.split()
    assert (kept, one, len({one, new, newer})) == ("kept", again, 3)
    for remark in (
        "a secret in it was kept",
        "already known",
        "Answer in German.",
        "nothing found",
    ):
        assert remark in done.stderr
    assert "no entries: nothing was consolidated" in done.stderr


@pytest.mark.parametrize("command", ["doctor", "watch", "config", "setup --check"])
def test_json_is_printed_however_it_is_asked_for(shared: Daemon, command: str) -> None:
    words = ("--socket", str(shared.socket))
    typed = command.split()
    asked = [
        mnem(*words, *typed, "--json", home=shared.home),
        mnem(*words, *typed, "--format", "json", home=shared.home),
        mnem(*words, "--json", *typed, home=shared.home),
        mnem(*words, "--format", "json", *typed, home=shared.home),
        mnem(*words, *typed, home=shared.home, MNEM_FORMAT="json"),
    ]
    plain = mnem(*words, *typed, home=shared.home)

    assert len({type(json.loads(done.stdout)) for done in asked}) == 1
    with pytest.raises(json.JSONDecodeError):
        json.loads(plain.stdout)


def test_recall_explains_its_scores_on_request(filled: Daemon) -> None:
    assert b"score" not in filled.mnem("recall", "tea").stdout

    explained = filled.mnem("recall", "--explain", "tea").stdout
    hit = json.loads(filled.mnem("recall", "--explain", "--json", "tea").stdout)[
        "hits"
    ][0]

    assert f"score {hit['score']:.2f} = words".encode() in explained
    assert sum(hit["explanation"].values()) == pytest.approx(hit["score"])


def test_the_socket_is_found_in_four_ways(start: Start, tmp_path: Path) -> None:
    with short_room() as room:
        usual = room / "mnemosyned" / "mnemosyned.sock"
        daemon = start("--socket", str(usual))
        file = tmp_path / ".config" / "mnemosyned" / "mnemosyned.yaml"
        elsewhere: dict[str, Json] = {"XDG_RUNTIME_DIR": str(tmp_path)}

        by_habit = mnem("status", home=tmp_path, XDG_RUNTIME_DIR=str(room))
        by_option = mnem("--socket", str(usual), "status", home=tmp_path, **elsewhere)
        by_variable = mnem(
            "status", home=tmp_path, MNEMOSYNE_SOCKET=str(usual), **elsewhere
        )
        nowhere = mnem("status", home=tmp_path, **elsewhere)
        file.parent.mkdir(parents=True)
        file.write_text(f"socket: {usual}\n")
        by_file = mnem("status", home=tmp_path, **elsewhere)
        daemon.stop()

    found = [by_habit, by_option, by_variable, by_file]
    assert [done.returncode for done in found] == [0, 0, 0, 0]
    assert nowhere.returncode == 3


def test_a_backup_goes_where_the_shell_is(daemon: Daemon, tmp_path: Path) -> None:
    daemon.post("remember", id="tea", content="Tea at four.")
    file = os.path.relpath(tmp_path / "copy.db")

    done = daemon.mnem("backup", file)

    assert done.returncode == 0
    assert done.stdout.decode().startswith(f"{tmp_path / 'copy.db'}: ")
    assert kept(tmp_path / "copy.db") == ["tea"]


@pytest.mark.parametrize("words", ["backup", "export", "export --format markdown"])
def test_an_empty_name_of_a_file_is_not_this_folder(
    shared: Daemon, tmp_path: Path, words: str
) -> None:
    done = shell(shared, f"cd {tmp_path} && mnem {words} ''")

    assert done.returncode == 2
    assert (
        done.stderr == 'mnem: "" cannot be used: it is empty; name a file or a folder\n'
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("remember - <&-", 2, "mnem: there is nothing to remember: content is empty\n"),
        ("recall tea >&-", 0, ""),
        ("export - >&-", 0, ""),
        ("sleep --force 2>&-", 0, ""),
        ("forget -s default <&-", 2, "use --yes\n"),
    ],
)  # fmt: skip
def test_a_closed_stream_reads_and_writes_nothing(
    daemon: Daemon, line: str, code: int, said: str
) -> None:
    daemon.post("remember", content="tea at four")

    done = shell(daemon, f"mnem {line}")

    assert done.returncode == code
    assert done.stderr.endswith(said)
    assert "Traceback" not in done.stderr


# The codes that `mnem` ends with, and how it names what is at fault.


@pytest.mark.parametrize(
    ("words", "field"),
    [(["recall", "tea", "--tier", "cold"], "tier"), (["recal", "tea"], None)],
)
def test_a_mistyped_command_is_told_in_json(
    filled: Daemon, words: list[str], field: str | None
) -> None:
    plain = filled.mnem(*words)
    as_json = filled.mnem(*words, "--json")

    assert (plain.returncode, as_json.returncode) == (2, 2)
    assert plain.stderr.startswith(b"mnem: ")
    error = json.loads(as_json.stderr)["error"]
    assert (error["code"], error["field"]) == ("invalid_request", field)


def test_an_object_for_a_list_is_refused(filled: Daemon, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('{"name": "search"}')

    done = filled.mnem("context", "tea", "--tools", str(tmp_path / "tools.json"))

    assert done.stderr == b"mnem: --tools must be a list, not an object\n"


def test_a_format_that_there_is_not_is_named_as_it_was_set(shared: Daemon) -> None:
    words = ("--socket", str(shared.socket), "list")
    done = mnem(*words, home=shared.home, MNEM_FORMAT="xml")

    assert done.returncode == 2
    assert done.stderr.startswith(b"mnem: MNEM_FORMAT=xml is not a format; ")


@pytest.mark.parametrize("command", ["status", "recall", "remember"])
def test_without_a_daemon_the_code_is_three(tmp_path: Path, command: str) -> None:
    words = [command, *(["tea"] if command != "status" else [])]

    done = mnem("--socket", str(tmp_path / "none"), *words, home=tmp_path)

    assert done.returncode == 3
    assert b"Start it with `mnem start`" in done.stderr


def test_a_failure_of_the_daemon_is_six(tmp_path: Path) -> None:
    error = {"code": "internal_error", "message": "unexpected", "field": None}
    with short_room() as room:
        place = ("--socket", str(room / "s"))
        with scripted(room / "s", saying(answer({"error": error}, status=500))):
            done = mnem(*place, "status", home=tmp_path)

    assert (done.returncode, done.stderr) == (6, b"mnem: unexpected\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["recall", "tea"], 0, ""),
        (["recall", "zeppelin"], 1, "nothing found\n"),
        (["learnings", "--id", "nobody"], 1, "no learning matches\n"),
        (["log", "--cycle", "nobody"], 1, "no entries: "),
        (["recall"], 2, "mnem: "),
        (["dream"], 2, "mnem: "),
        (["archive"], 2, "Usage: mnem archive "),
        (["recall", "--limit", "x", "tea"], 2, "mnem: "),
        (["recall", "--limit", "101", "tea"], 2, "mnem: --limit must be at most 100"),
        (["recall", "tea", "--since=soon"], 2, 'mnem: --since: "soon" is not a valid time; try '),
        (
            ["recall", "tea", "--until", "03/04/2026"],
            2,
            'mnem: --until: "03/04/2026" can be read as 2026-03-04 or',
        ),
        (["recall", "tea", "-n0"], 2, "mnem: -n must be at least 1"),
        (["recall", "tea", "--session", ""], 2, "mnem: --session must not be empty"),
        (["remember", "tea", "--tag", "x" * 101], 2, "mnem: --tag: a tag must have at most 100"),
        (["edit", "tea", "--time", "soon"], 2, 'mnem: --time: "soon" is not a valid time'),
        (["pin"], 2, "mnem: say which memories: give an id or a filter, such as `--query` or `--since`"),
        (["edit", "-sx"], 2, "mnem: say which memories: give an id or a filter, such as `--query` or"),
        (["get", "--", "77"], 2, "mnem: there is no number 77"),
        (["restore", "nobody"], 4, "mnem: there is no memory 'nobody'; `mnem recall` shows"),
        (["archive", "prune", "--keep-days", "0"], 2, "mnem: --keep-days must be more than 0"),
        (["get", ""], 2, "mnem: id must not be empty"),
        (["pin", ""], 2, "mnem: id must not be empty"),
        (["tag", "x", ""], 2, "mnem: id must not be empty"),
        (["get", "x" * 201], 2, "mnem: id must have at most 200 characters"),
        (["get", "nobody"], 4, "mnem: there is no memory 'nobody'"),
        (["remember", "--id", "tea", "coffee"], 5, "mnem: "),
    ],
)  # fmt: skip
def test_a_command_ends_with_the_code_of_what_became_of_it_and_names_what_was_typed(
    filled: Daemon, words: list[str], code: int, said: str
) -> None:
    done = filled.mnem(*words)

    assert (done.returncode, bool(done.stdout)) == (code, code == 0)
    assert done.stderr.decode().startswith(said)
    assert b"Traceback" not in done.stderr


# `mnem forget`: what it shows before it does anything, and whom it asks.


def test_forgetting_shows_what_would_go_and_needs_a_yes(filled: Daemon) -> None:
    filled.post("remember", id="ask", content="the heron stands alone")

    refused = filled.mnem("forget", "--query", "heron")
    left = filled.post("get", id="ask").status
    done = filled.mnem("forget", "--query", "heron", "--yes")

    assert (refused.returncode, left) == (2, 200)
    assert b"would forget 1 memory\n" in refused.stderr
    assert b"the heron stands alone" in refused.stderr
    assert b"--yes" in refused.stderr
    assert (done.returncode, done.stdout.startswith(b"forgot 1 memory\n")) == (0, True)
    assert b"heron" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [(["forget", "--query", "zeppelin"], 1), (["archive", "prune"], 0)],
)
def test_forgetting_nothing_asks_no_question(
    filled: Daemon, words: list[str], code: int
) -> None:
    done = filled.mnem(*words)
    as_json = filled.mnem(*words, "--json")

    assert (done.returncode, done.stderr) == (code, b"")
    assert done.stdout.startswith(b"nothing to ")
    assert json.loads(as_json.stdout)["memories"] == 0


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("answer", "code", "tier"), [(b"n\n", 1, "archive"), (b"y\n", 0, "working")]
)
def test_taking_a_cycle_back_says_of_what_and_asks(
    start: Start, answer: bytes, code: int, tier: str, *, named: bool
) -> None:
    daemon = start()
    for number in range(3):
        content = f"the heron number {number} stands alone"
        daemon.post("remember", id=f"heron-{number}", content=content)
    cycle = daemon.post("sleep", force=True).body["cycle"]
    words = ["undo", *([cycle] if named else [])]

    refused = daemon.mnem(*words)
    with on_terminal(daemon, *words) as (process, seen):
        seen.type(answer)
        process.wait(WAIT_S)
        said = seen()

    foreseen = b"would put back 3 memories of 1 group, 93 characters"
    assert refused.returncode == 2
    head = rb"cycle %b of 20\d\d-.*: %b" % (cycle.encode(), foreseen)
    assert re.match(head, refused.stderr)
    assert b"would put back 3 memories" in said
    assert b"refusing to undo without a terminal" in refused.stderr
    assert b"Undo this sleep cycle? Its summaries are deleted." in said
    assert (b"nothing was undone" in said) == (code == 1)
    assert process.returncode == code
    assert daemon.post("get", id="heron-0").body["memory"]["tier"] == tier
