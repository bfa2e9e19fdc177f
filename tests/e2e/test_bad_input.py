"""Bad input is refused with the same code and field on every surface, and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from e2e.daemons import Daemon, Json, UnixConnection, kept
from e2e.surfaces import InPython, InTheShell, OverHttp, Refused, Surface

from mnemosyned import Memory
from mnemosyned.daemon.openapi import openapi
from mnemosyned.errors import InvalidRequest, InvalidText
from mnemosyned.verbs.request import DEPTH_MAX

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

TWO_DATES = "03/04/2026"
AHEAD = {"content": "x", "created_at": "2999-01-01T00:00:00Z"}
HEAVY = {"content": "x", "importance": 2}
LONG_NAME = {"content": "x", "session": "s" * 201}
REFUSALS: dict[str, tuple[str, dict[str, Json], str, str, int]] = {
    "no words": ("remember", {"content": ""}, "empty_content", "content", 2),
    "only space": ("remember", {"content": " \n\t "}, "empty_content", "content", 2),
    "a long text": ("remember", {"content": "é" * 1001}, "content_too_large", "content", 2),
    "two dates": ("remember", {"content": "x", "created_at": TWO_DATES}, "invalid_time", "created_at", 2),
    "a future": ("remember", AHEAD, "invalid_time", "created_at", 2),
    "no time": ("remember", {"content": "x", "created_at": "soon"}, "invalid_time", "created_at", 2),
    "an empty id": ("remember", {"content": "x", "id": ""}, "invalid_request", "id", 2),
    "no new words": ("edit", {"id": "tea", "text": " "}, "empty_content", "text", 2),
    "an unknown learning": ("remove_learning", {"id": "nobody"}, "not_found", "id", 4),
    "an empty path": ("watch", {"paths": [""]}, "invalid_request", "paths[0]", 2),
    "much weight": ("remember", HEAVY, "invalid_request", "importance", 2),
    "a word for a number": (
        "remember",
        {"content": "x", "importance": "high"},
        "invalid_request",
        "importance",
        2,
    ),
    "a list for an object": ("remember", {"content": "x", "metadata": [1]}, "invalid_request", "metadata", 2),
    "large metadata": (
        "remember",
        {"content": "x", "metadata": {"all": "x" * 65536}},
        "content_too_large",
        "metadata",
        2,
    ),
    "no session": ("remember", {"content": "x", "session": ""}, "invalid_request", "session", 2),
    "a long session": ("remember", LONG_NAME, "invalid_request", "session", 2),
    "a taken id": ("remember", {"content": "other", "id": "tea"}, "id_taken", "id", 5),
    "no query": ("recall", {"query": ""}, "invalid_request", "query", 2),
    "a long query": ("recall", {"query": "q" * 4097}, "invalid_request", "query", 2),
    "no hits asked for": ("recall", {"query": "x", "limit": 0}, "invalid_request", "limit", 2),
    "a query since two dates": ("recall", {"query": "x", "since": TWO_DATES}, "invalid_time", "since", 2),
    "an unknown id to show": ("get", {"id": "nobody"}, "not_found", "id", 4),
    "an unknown id to expand": ("expand", {"id": "nobody"}, "not_found", "id", 4),
    "an unknown id to forget": ("forget", {"id": "nobody"}, "not_found", "id", 4),
    "an original to expand": ("expand", {"id": "tea"}, "invalid_request", "id", 2),
    "many rows of the log": ("log", {"limit": 1001}, "invalid_request", "limit", 2),
}  # fmt: skip
TEA: dict[str, Json] = {"content": "Tea at four.", "id": "tea"}
CONTENT_BYTES_MAX = 2000  # as the shared daemon has it


@pytest.fixture(scope="module")
def surfaces(
    shared: Daemon, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Surface]]:
    home = tmp_path_factory.mktemp("surfaces")
    limits: dict[str, Json] = {"limits.content_bytes_max": CONTENT_BYTES_MAX}
    with shared.client() as client, Memory(home / "memory.db", **limits) as embedded:
        shared.post("remember", **TEA)
        embedded.remember(**TEA)
        yield [
            OverHttp(shared),
            InPython(client),
            InTheShell(shared, home),
            InPython(embedded),
        ]


@pytest.fixture(scope="module")
def described() -> dict[str, Json]:
    return openapi()


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_alike_by_every_surface_and_as_described(
    surfaces: list[Surface], shared: Daemon, described: dict[str, Json], case: str
) -> None:
    verb, fields, code, field, exit_code = REFUSALS[case]
    before = kept(shared.database)

    refused = []
    for surface in surfaces:
        with pytest.raises(Refused) as caught:
            surface.call(verb, **fields)
        refused.append(caught.value)

    status = str(shared.post(verb, **fields).status)
    responses = described["paths"][f"/v1/{verb}"]["post"]["responses"]
    assert f"`{code}`" in responses[status]["description"]
    http, client, shell, embedded = refused
    assert http.code == client.code == shell.code == embedded.code == code
    assert http.field == client.field == shell.field == embedded.field == field
    assert shell.exit_code == exit_code
    assert client.message == embedded.message == http.message
    assert shell.message == http.message
    assert kept(shared.database) == before


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (["good", "good", " "], ("empty_content", "memories[2].content")),
        ([], ("invalid_request", "memories")),
        (["x"] * 1001, ("invalid_request", "memories")),
    ],
    ids=["a bad memory", "an empty batch", "an endless batch"],
)
def test_a_bad_batch_is_refused_and_named_by_its_place(
    surfaces: list[Surface], shared: Daemon, batch: list[str], error: tuple[str, str]
) -> None:
    before = kept(shared.database)

    for surface in (one for one in surfaces if not isinstance(one, InTheShell)):
        with pytest.raises(Refused) as caught:
            surface.call(
                "remember_many", memories=[{"content": text} for text in batch]
            )
        assert (caught.value.code, caught.value.field) == error

    assert kept(shared.database) == before


def test_a_field_nobody_knows_is_refused(shared: Daemon) -> None:
    with shared.client() as client:
        answer = shared.post("remember", content="x", colour="red")
        typed = shared.mnem("remember", "--colour", "red", "x")
        with pytest.raises(TypeError, match="colour"):
            client.remember(content="x", colour="red")  # type: ignore[call-arg]

    assert (answer.status, *answer.error) == (400, "invalid_request", "colour")
    assert (typed.returncode, b"--colour" in typed.stderr) == (2, True)


def test_bytes_other_than_utf8_are_refused(
    surfaces: list[Surface], shared: Daemon
) -> None:
    before = kept(shared.database)

    answer = shared.request("POST", "/v1/remember", b'{"content": "caf\xe9"}')
    query = shared.request("GET", "/v1/recall?query=caf%e9")
    half = shared.request("POST", "/v1/remember", rb'{"content": "\ud83d"}')
    argument = shared.mnem("remember", b"caf\xe9")
    piped = shared.mnem("remember", stdin=b"caf\xe9")
    for surface in (surface for surface in surfaces if isinstance(surface, InPython)):
        with pytest.raises(InvalidText):
            surface.caller.remember("caf\udce9")

    assert (answer.status, answer.error[0]) == (400, "invalid_text")
    assert (query.status, query.error[0]) == (400, "invalid_text")
    assert (half.status, half.error[0]) == (400, "invalid_text")
    assert (argument.returncode, piped.returncode) == (2, 2)
    assert b"not valid Unicode at character" in argument.stderr
    assert b"not UTF-8 at byte 3" in piped.stderr
    assert kept(shared.database) == before


@pytest.mark.parametrize(
    ("verb", "fields", "field"),
    [
        ("remember", {"content": "a\0b"}, "content"),
        ("remember", {"content": "x", "session": "a\0b"}, "session"),
        ("recall", {"query": "a\0b"}, "query"),
        ("list", {"role": "\0b"}, "role"),
        ("list", {"tag": ["\0"]}, "tag[0]"),
        ("get", {"id": "\0"}, "id"),
        ("sessions", {"prefix": "\0"}, "prefix"),
        ("compact", {"messages": [], "session": "\0"}, "session"),
        ("backup", {"file": "/\0"}, "file"),
        ("watch", {"paths": ["/a", "\0"]}, "paths[1]"),
        ("watch", {"paths": ["/a", "\0"], "remove": True}, "paths[1]"),
    ],
)
def test_a_nul_character_is_refused_in_every_field(
    shared: Daemon, verb: str, fields: dict[str, Json], field: str
) -> None:
    answer = shared.post(verb, **fields)

    assert (answer.status, *answer.error) == (400, "invalid_text", field)


@pytest.mark.parametrize("text", ["a\0b", "half an emoji: \ud83e"], ids=["nul", "half"])
def test_every_surface_refuses_a_nul(
    surfaces: list[Surface], shared: Daemon, text: str
) -> None:
    for surface in (surface for surface in surfaces if isinstance(surface, InPython)):
        with pytest.raises(InvalidText) as caught:
            surface.caller.remember(text)
        assert caught.value.field == "content"
    piped = shared.mnem("remember", stdin=b"a\0b")
    assert (piped.returncode, b"NUL" in piped.stderr) == (2, True)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"content": "x"', (400, "malformed_json")),
        (b"tea at four", (400, "malformed_json")),
        (b'{"content": "x", "importance": NaN}', (400, "malformed_json")),
        (b'{"content": "x", "metadata": ' + b'{"":' * 9000 + b"0" + b"}" * 9001, (400, "malformed_json")),
        (b"[]", (400, "invalid_request")),
        (b"null", (400, "invalid_request")),
        (b"", (400, "invalid_request")),
        (b"x" * 150_000, (413, "content_too_large", None)),
    ],
    ids=["cut short", "no json", "nan", "deep", "array", "null", "nothing", "over the limit"],
)  # fmt: skip
def test_another_body_is_refused_in_json(
    shared: Daemon, body: bytes, error: tuple[object, ...]
) -> None:
    answer = shared.request("POST", "/v1/remember", body)

    assert (answer.status, *answer.error)[: len(error)] == error


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/v1/dream", 404, "unknown_verb"),
        ("GET", "/", 404, "unknown_verb"),
        ("POST", "/remember", 404, "unknown_verb"),
        ("POST", "/v1/remember/", 404, "unknown_verb"),
        ("PUT", "/v1/remember", 405, "method_not_allowed"),
        ("DELETE", "/v1/forget", 405, "method_not_allowed"),
        ("GET", "/v1/remember?content=x", 405, "method_not_allowed"),
        ("POST", "/v1/forget?dry_run=true", 400, "invalid_request"),
        ("POST", "/v1/health", 405, "method_not_allowed"),
        ("GET", "/mcp", 405, "method_not_allowed"),
        ("DELETE", "/mcp", 405, "method_not_allowed"),
        ("GET", "/v1/recall?colour=red", 400, "invalid_request"),
        ("GET", "/v1/recall", 400, "invalid_request"),
        ("GET", "/v1/list", 400, "invalid_request"),
    ],
)
def test_a_path_or_method_nobody_serves_is_refused(
    shared: Daemon, method: str, path: str, status: int, code: str
) -> None:
    has_body = method == "PUT" or path == "/v1/list"
    answer = shared.request(method, path, b'{"session": "x"}' if has_body else None)

    assert (answer.status, answer.error[0]) == (status, code)


def test_a_client_that_hangs_up_within_its_body_leaves_nothing(shared: Daemon) -> None:
    before = kept(shared.database)

    with closing(UnixConnection(shared.socket)) as connection:
        connection.connect()
        connection.sock.sendall(
            b"POST /v1/remember HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\n\r\n"
        )
        connection.sock.sendall(b'{"content": "')

    assert shared.post("status").status == 200
    assert kept(shared.database) == before


# JSON of the caller's own that is nested too deep for the work on it.


DEPTHS = [DEPTH_MAX + 1, 330, 450, 600, 900]


def lists(depth: int) -> object:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def objects(depth: int) -> object:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", DEPTHS)
def test_json_that_is_too_deep_is_refused(shared: Daemon, depth: int) -> None:
    before = kept(shared.database)
    message = {"role": "user", "content": "x", "tool_calls": lists(depth)}
    requests = [
        ("metadata", shared.post("remember", content="x", metadata=objects(depth))),
        (
            "metadata",
            shared.post("remember", content="x", metadata={"a": lists(depth)}),
        ),
        (
            "memories[0].metadata",
            shared.post(
                "remember_many", memories=[{"content": "x", "metadata": objects(depth)}]
            ),
        ),
        ("messages", shared.post("compact", messages=[message], force=True)),
        ("messages", shared.post("context", message="x", messages=[message])),
        ("message", shared.post("context", message=message)),
        ("tools", shared.post("context", message="x", tools=[lists(depth)])),
    ]

    for field, answer in requests:
        assert (answer.status, *answer.error) == (400, "invalid_request", field)
    assert kept(shared.database) == before


@pytest.mark.parametrize("path", ["/hooks", "/mcp", "/v1/import", "/v1/remember"])
def test_what_python_cannot_decode_is_no_json(shared: Daemon, path: str) -> None:
    deep = b'{"payload": ' + b"[" * 20_000 + b"]" * 20_000 + b"}"

    assert shared.request("POST", path, deep).status == 400


def test_the_client_refuses_it_too(shared: Daemon) -> None:
    with shared.client() as client, pytest.raises(InvalidRequest, match="levels deep"):
        client.remember("x", metadata={"a": lists(450)})


def test_json_at_the_depth_limit_is_accepted(shared: Daemon) -> None:
    deepest = objects(DEPTH_MAX)
    message = {"role": "user", "content": "x", "tool_calls": lists(DEPTH_MAX - 2)}

    written = shared.post("remember", content="deep", id="deep", metadata=deepest)
    read = shared.post("get", id="deep")
    compacted = shared.post("compact", messages=[message], force=True)
    assembled = shared.post(
        "context", message=message, messages=[message], tools=[lists(99)]
    )

    assert (written.status, read.status) == (200, 200)
    assert read.body["memory"]["metadata"] == deepest
    assert (compacted.status, assembled.status) == (200, 200)
