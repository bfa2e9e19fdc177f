"""`mnem` and `mnem mcp` over https: what works from elsewhere, and what does not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.authorities import Authority, Certificate
from e2e.daemons import Json, environment, mnem, running
from e2e.doors import TOKEN, Door
from e2e.programs import BIN
from e2e.pumps import pumping
from e2e.scripted_daemon import read_request
from e2e.tls_servers import relaying, reset, serving
from support.cases import thorough
from support.openssl import HAVE_OPENSSL

from mnemosyned.cli.registry import LOCAL

pytestmark = [pytest.mark.e2e, HAVE_OPENSSL]


Result = subprocess.CompletedProcess[bytes]
Run = Callable[..., Result]
REMOTE: dict[str, Json] = {
    "MNEMOSYNE_URL": "https://memory.example:7464",
    "MNEMOSYNE_TOKEN": TOKEN,
}


@pytest.fixture
def run(door: Door, tmp_path: Path) -> Run:
    """Run `mnem` with the variables of the daemon; those given as None are not set."""

    def ask(*words: str, **settings: Json) -> Result:
        return mnem(*words, home=tmp_path, **(door.variables | settings))

    return ask


def printed(done: Result) -> str:
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def test_memories_are_kept_found_changed_and_forgotten(run: Run) -> None:
    assert "bike" in printed(run("remember", "The bike is blue.", "--id", "bike"))
    assert "The bike is blue." in printed(run("recall", "bike"))
    assert "The bike is blue." in printed(run("list"))
    run("edit", "bike", "--text", "The bike is green.")
    assert "The bike is green." in printed(run("get", "bike"))
    assert "The bike is green." in printed(run("tail"))
    assert json.loads(printed(run("status", "--json")))["tiers"]["working"]["count"]
    assert "mnemosyned" in printed(run())
    assert "forgot" in printed(run("forget", "bike", "--yes")).lower()
    assert run("get", "bike").returncode == 4


def test_options_weigh_more_than_variables(
    run: Run, door: Door, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(f"{door.token}\n")
    token.chmod(0o600)
    unset = {
        "MNEMOSYNE_URL": "https://192.0.2.1",
        "MNEMOSYNE_TOKEN": "x",
        "MNEMOSYNE_CA": None,
    }
    options = ("--url", door.url, "--token-file", str(token), "--ca", str(door.ca))

    for words in ([*options, "sources"], ["sources", *options]):
        done = run(*words, **unset)
        assert done.returncode in (0, 1), done.stderr
    assert run("--socket", str(door.daemon.socket), "status", **unset).returncode == 0
    file = {"MNEMOSYNE_TOKEN": None, "MNEMOSYNE_TOKEN_FILE": str(token)}
    assert run("status", **file).returncode == 0


@pytest.mark.thorough
def test_an_export_comes_back_by_an_import(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    with (
        running(tmp_path / "a") as first,
        running(tmp_path / "b") as second,
        relaying(first.socket, certificate) as source,
        relaying(second.socket, certificate) as target,
    ):
        for number in range(30):
            first.post("remember", id=f"bell-{number}", content=f"bell {number}")
        common: dict[str, Json] = {
            "MNEMOSYNE_TOKEN": TOKEN,
            "MNEMOSYNE_CA": str(authority.file),
        }
        files = [str(tmp_path / name) for name in ("first.jsonl", "second.jsonl")]
        for url, words in (
            (source.url, ("export", files[0])),
            (target.url, ("import", files[0])),
            (target.url, ("export", files[1])),
            (target.url, ("export", str(tmp_path / "days.md"))),
        ):
            done = mnem(*words, home=tmp_path, MNEMOSYNE_URL=url, **common)
            assert done.returncode == 0, done.stderr

    memories = [
        [
            line
            for line in Path(file).read_text("utf-8").splitlines()
            if '"memory"' in line
        ]
        for file in files
    ]
    assert len(memories[0]) >= 30
    assert memories[0][1:-1] == memories[1][1:-1]
    assert "bell 29" in (tmp_path / "days.md").read_text("utf-8")


@pytest.mark.thorough
def test_a_long_export_takes_no_more_memory_than_a_short_one(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    most: dict[str, int] = {}
    with running(tmp_path) as daemon, relaying(daemon.socket, certificate) as relay:
        variables = environment(
            tmp_path,
            MNEMOSYNE_URL=relay.url,
            MNEMOSYNE_TOKEN=TOKEN,
            MNEMOSYNE_CA=str(authority.file),
        )
        for name, batches in (("short", 1), ("long", 25)):
            for batch in range(batches):
                memories = [
                    {"content": f"{name} {batch} {number} " + "word " * 4_000}
                    for number in range(50)
                ]
                assert daemon.post("remember_many", memories=memories).status == 200
            command = [str(BIN / "mnem"), "export", str(tmp_path / name)]
            process = os.posix_spawn(command[0], command, variables)
            _, status, used = os.wait4(process, 0)
            assert status == 0
            most[name] = used.ru_maxrss << 10

    sizes = {name: (tmp_path / name).stat().st_size for name in most}
    assert sizes["long"] - sizes["short"] > 20 << 20
    assert most["long"] - most["short"] < 8 << 20


@pytest.mark.thorough
def test_an_imports_journal_is_of_one_url(run: Run, door: Door, tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    texts = [f"well {number}" for number in range(1_000)]
    texts += [f"well {number} is {'deep ' * 50}" for number in range(1_000)]
    notes.write_text("".join(f'{{"content": "{text}"}}\n' for text in texts))
    socket = str(door.daemon.socket)

    for words in (
        (),
        ("--socket", socket),
    ):  # the second half exceeds a request's limit
        done = run(*words, "import", str(notes))
        assert b"1,000 memories of this import are stored" in done.stderr, done

    journals = list((tmp_path / ".local/state/mnemosyned/imports").iterdir())
    assert len(journals) == 2
    assert not any(door.token in path.read_text("utf-8") for path in journals)


# --------------------------------------------------------------------------- faults


def line_of(done: Result) -> str:
    """The one line that a command printed, to standard error."""
    lines = done.stderr.decode().splitlines()
    assert done.stdout == b""
    assert len(lines) == 1, lines
    return lines[0]


FAULTS = [
    ({"MNEMOSYNE_TOKEN": TOKEN}, 7, "refuses the token of MNEMOSYNE_TOKEN: "),
    ({"MNEMOSYNE_CA": None}, 3, "name the PEM file of that authority (ca, --ca"),
    ({"MNEMOSYNE_CA": "/nowhere"}, 2, "ca: /nowhere cannot be used: No such file"),
    ({"MNEMOSYNE_TOKEN": None}, 2, "set MNEMOSYNE_TOKEN, or name a file"),
    ({"MNEMOSYNE_TOKEN": "two words"}, 2, "printable ASCII without blanks"),
    ({"MNEMOSYNE_URL": "https://localhost:1"}, 3, "no daemon answers on https://"),
    ({"MNEMOSYNE_URL": "http://10.0.0.1:7464"}, 2, "in the clear: write https://"),
    ({"MNEMOSYNE_SOCKET": "/run/x.sock"}, 2, "both set: unset one of them"),
]


@pytest.mark.parametrize(
    ("settings", "code", "words"), [FAULTS[0], *thorough(*FAULTS[1:])]
)
def test_a_fault_is_one_line_that_says_what_to_do(
    run: Run, settings: dict[str, str | None], code: int, words: str
) -> None:
    for command in (["recall", "bike"], ["tail", "-f"], []):
        done = run(*command, **settings)
        assert done.returncode == code
        assert words in line_of(done)
    shown = json.loads(run("status", "--json", **settings).stderr)
    assert words in shown["error"]["message"]


@pytest.mark.parametrize(
    ("mode", "text", "words"),
    [
        (0o644, TOKEN, "others may read or change the token file"),
        (0o620, TOKEN, "chmod 600"),
        (0o600, "", "has no token in it"),
        (0o600, "x" * 2_000, "has no token in it"),
        (0o600, "\N{SNOWMAN}", "it is not ASCII"),
        (None, "", "cannot be read: No such file"),
    ],
)
def test_a_token_file_must_be_private_and_hold_a_token(
    run: Run, tmp_path: Path, mode: int | None, text: str, words: str
) -> None:
    file = tmp_path / "token"
    if mode is not None:
        file.write_text(text)
        file.chmod(mode)

    done = run("status", "--token-file", str(file))

    assert (done.returncode, words in line_of(done)) == (2, True), done


@pytest.mark.parametrize(
    "words",
    [
        ["--socket", "/run/x", "--url", "https://memory.example", "status"],
        ["--socket", "/run/x", "status", "--ca", "/run/ca.pem"],
        ["--token-file", "/run/token", "status"],
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, words: list[str]) -> None:
    done = mnem(*words, home=tmp_path)

    assert done.returncode == 2
    assert "go" in line_of(done)


LEAVES = {
    "db": ["db", "purge"],
    "audit": ["audit", "list"],
    "config": ["config", "set", "wm_max", "9"],
    "model": ["model", "list"],
    "watch": ["watch", "--list"],
    "backup": ["backup", "never.db"],
    "restore-db": ["restore-db", "never.db"],
    "move": ["move", "--to", "never.db"],
    "bench": ["bench", "never"],
}


@pytest.mark.parametrize(
    "command",
    [*sorted(LOCAL)[::8], *thorough(*sorted({*LOCAL} - {*sorted(LOCAL)[::8]}))],
)
def test_what_works_on_the_machine_itself_says_so(command: str, tmp_path: Path) -> None:
    words = LEAVES.get(command, [command])
    url = ("--url", str(REMOTE["MNEMOSYNE_URL"]))

    typed = mnem(*words, *url, home=tmp_path)
    named = mnem(*words, home=tmp_path, **REMOTE)

    assert (typed.returncode, named.returncode) == (2, 2), (typed, named)
    for done, remedy in ((typed, "leave out --url"), (named, "unset MNEMOSYNE_URL")):
        line = line_of(done)
        assert f"mnem {command}" in line
        assert "works on the daemon's own machine alone" in line
        assert line.endswith(remedy)
    assert mnem(*words, "--help", home=tmp_path, **REMOTE).returncode == 0
    assert list(tmp_path.rglob("*.yaml")) == []


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("copy.db", 2, "mnem export --format sqlite works on the daemon's own"),
        ("all.jsonl", 4, "hands out no exports"),
    ],
    ids=["a copy of the database", "of a daemon without owners"],
)
def test_an_export_that_is_not_to_be_had_leaves_no_file(
    run: Run, tmp_path: Path, name: str, code: int, words: str
) -> None:
    done = run("export", str(tmp_path / name))

    assert (done.returncode, words in line_of(done)) == (code, True), done
    assert not (tmp_path / name).exists()


def test_the_help_names_the_options_and_a_shell_completes_over_https(run: Run) -> None:
    shown = run("--help", MNEMOSYNE_URL=None).stdout.decode()
    for option in ("--url URL", "--token-file FILE", "--ca FILE", "MNEMOSYNE_TOKEN"):
        assert option in shown
    run("remember", "The kettle sings.", "--session", "kitchen")
    for typed, place, expected in (
        ("mnem recall --session ki", "3", b"plain,kitchen"),
        ("mnem recall --token-f", "2", b""),
        ("mnem --token-f", "1", b"plain,--token-file"),
    ):
        done = run(_MNEM_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=place)
        assert done.stdout.strip() == expected, (typed, done)


# `mnem mcp` over https: an agent is served, reads what is wrong, and has nothing done twice.


@pytest.mark.thorough
def test_an_agent_is_served(door: Door, tmp_path: Path) -> None:
    typed = ("--url", door.url, "--ca", str(door.ca))
    for words, settings in (
        ((), door.variables),
        (typed, {"MNEMOSYNE_TOKEN": door.token}),
    ):
        with pumping(tmp_path, None, *words, **settings) as pump:
            pump.initialize()
            stored = pump.call("remember", content="The gate is open.")
            assert stored["structuredContent"]["id"]
            found = pump.call("recall", query="gate")["structuredContent"]["hits"]
            assert "The gate is open." in json.dumps(found)
            assert pump.end() == 0


AGENTS_FAULTS = [
    ({"MNEMOSYNE_TOKEN": TOKEN}, "refuses the token of MNEMOSYNE_TOKEN"),
    ({"MNEMOSYNE_CA": ""}, "name the PEM file of that authority"),
    ({"MNEMOSYNE_CA": "/dev/null"}, "has no certificate in PEM"),
    ({"MNEMOSYNE_TOKEN": ""}, "set MNEMOSYNE_TOKEN"),
    ({"MNEMOSYNE_SOCKET": "/run/x.sock"}, "both set: unset one of them"),
    ({"MNEMOSYNE_URL": "https://localhost:1"}, "no daemon answers on https://"),
]


@pytest.mark.parametrize(
    ("settings", "words"), [AGENTS_FAULTS[0], *thorough(*AGENTS_FAULTS[1:])]
)
def test_an_agent_reads_what_is_wrong(
    door: Door, tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    with pumping(tmp_path, **(door.variables | settings)) as pump:
        pump.initialize()
        assert words in json.dumps(pump.call("recall", query="gate"))


@pytest.mark.thorough
def test_a_message_that_was_read_before_a_reset_is_not_sent_again(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    requests: list[bytes] = []

    def serve(tls: socket.socket) -> None:
        requests.append(read_request(tls))
        reset(tls)

    with (
        serving(serve, certificate) as server,
        pumping(
            tmp_path,
            MNEMOSYNE_URL=server.url,
            MNEMOSYNE_TOKEN=TOKEN,
            MNEMOSYNE_CA=str(authority.file),
        ) as pump,
    ):
        said = json.dumps(pump.call("remember", content="The gate is open."))

    assert "look whether it was done, then try again" in said
    assert len(requests) == 1
