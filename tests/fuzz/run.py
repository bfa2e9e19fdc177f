"""Sends random requests to a real daemon and keeps those that it should not have answered so."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from e2e.daemons import Daemon
from fuzz.requests import Requests, Sent
from fuzz.room import furnish
from fuzz.values import Raw
from soak.wire import Reply, Wire

from mnemosyned.agents.mcp.protocol import INTERNAL_ERROR
from mnemosyned.errors import error_classes_by_code
from mnemosyned.verbs.exchange import FOOTER

S = TypeVar("S", list[Any], str)

TIMEOUT_S = 60.0
SLOW_S = 20.0
SAME_MAX = 5
"""Findings of one kind that are worth minimizing."""
TRIES_MAX = 200
PARTS_MAX = 10
BODY_SHOWN = 600
KNOWN_CODES = error_classes_by_code().keys() | {"malformed_request"}
PROGRESS = 1_000


@dataclass(frozen=True, slots=True)
class Finding:
    """A request, made as small as it still fails, and its answer."""

    request: str
    answer: str

    def __str__(self) -> str:
        return f"{self.request}\n    -> {self.answer}"


@dataclass(slots=True)
class Fuzzed:
    """What a run did and found."""

    answers: Counter[int] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    """All findings, by verb and answer."""


def fuzz(
    daemon: Daemon,
    *,
    count: int,
    seed: str,
    without: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> Fuzzed:
    """Send so many requests, one after the other, as the seed makes them."""
    room = daemon.home / "room"
    if not room.exists():
        room.mkdir()
        furnish(room)
    requests = Requests(seed, without=without, room=room)
    wire, fuzzed = _wire(daemon), Fuzzed()
    for number in range(count):
        sent = requests.next()
        reply = _send(wire, sent)
        fuzzed.answers[reply.status] += 1
        wrong = problem(reply, sent.verb)
        if not wrong:
            requests.learn(reply.body)
        elif _kept(fuzzed, sent, wrong):
            small, answer = minimized(wire, sent, reply, wrong)
            fuzzed.findings.append(Finding(_shown(small), answer))
            say(f"{number}: {fuzzed.findings[-1]}")
        if daemon.process.poll() is not None:
            ended = f"the daemon ended with {daemon.process.poll()}"
            fuzzed.findings.append(Finding(_shown(sent), ended))
            break
        if number % PROGRESS == PROGRESS - 1:
            say(f"{number + 1} requests: {dict(sorted(fuzzed.answers.items()))}")
    wire.close()
    return fuzzed


def problem(reply: Reply, verb: str = "") -> str:
    """What is wrong with an answer; empty where nothing is."""
    if reply.status == 0:
        return "no answer"
    if reply.status >= 500 and "disk is full" not in reply.message:
        return f"{reply.status} {reply.code}"
    if reply.seconds > SLOW_S:
        return "slow"
    if verb == "mcp" and reply.code not in KNOWN_CODES:
        return _problem_of_mcp(reply)
    if verb == "export" and reply.status == 200:
        return "" if _is_whole(reply.body) else "an export that was cut off"
    return _problem_of_verb(reply)


def _problem_of_verb(reply: Reply) -> str:
    if not isinstance(reply.body, dict):
        return "not an object"
    if reply.status != 200 and (reply.code not in KNOWN_CODES or not reply.message):
        return "an error of another form"
    return ""


def _problem_of_mcp(reply: Reply) -> str:
    """What is wrong with an answer by JSON-RPC, a batch of them, or a stream of events."""
    if reply.status not in (200, 202, 400, 404):
        return f"{reply.status} of the protocol"
    text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
    code = f'"code":{INTERNAL_ERROR}'
    return "an internal error of the protocol" if code in text.replace(" ", "") else ""


def _is_whole(exported: object) -> bool:
    """Whether the last line of an export is its footer."""
    lines = str(exported).rstrip("\n").split("\n")
    return bool(json.loads(lines[-1]).get("record") == FOOTER)


def minimized(wire: Wire, sent: Sent, reply: Reply, wrong: str) -> tuple[Sent, str]:
    """The request without whatever it fails without, and its answer."""
    answer = _answer(reply)
    if sent.fields is None:
        return sent, answer
    tries, smaller = 0, True
    while smaller and tries < TRIES_MAX:
        smaller = False
        for fields in _smaller(sent.fields or {}):
            tries += 1
            candidate = sent.changed(fields)
            again = _send(wire, candidate)
            if problem(again, sent.verb) == wrong:
                sent, answer, smaller = candidate, _answer(again), True
                break
            if tries >= TRIES_MAX:
                break
    return sent, answer


def _smaller(value: Any) -> Iterator[Any]:  # noqa: ANN401 what JSON can hold
    """Values with something left out, the larger parts first."""
    if isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            yield from ({**value, key: less} for less in _smaller(item))
    elif isinstance(value, list):
        yield from _halves(value)
        for place, item in enumerate(value[:PARTS_MAX]):
            yield from (
                [*value[:place], less, *value[place + 1 :]] for less in _smaller(item)
            )
    elif isinstance(value, str) and not isinstance(value, Raw):
        yield from _halves(value)
        words = value.split()[: 2 * PARTS_MAX]
        if len(words) > 1:
            yield from (
                " ".join(words[:at] + words[at + 1 :]) for at in range(len(words))
            )


def _halves(value: S) -> Iterator[S]:
    half = len(value) // 2
    if half:
        yield value[:half]
        yield value[half:]


def _kept(fuzzed: Fuzzed, sent: Sent, wrong: str) -> bool:
    kind = f"{sent.verb} {wrong}"
    fuzzed.kinds[kind] += 1
    return fuzzed.kinds[kind] <= SAME_MAX


def _wire(daemon: Daemon) -> Wire:
    return Wire(daemon.socket, timeout_s=TIMEOUT_S)


def _send(wire: Wire, sent: Sent) -> Reply:
    return wire.send(sent.method, sent.path, sent.body)


def _shown(sent: Sent) -> str:
    body = (sent.body or b"").decode("utf-8", "backslashreplace")
    cut = f"… ({len(body):,} characters)" if len(body) > BODY_SHOWN else ""
    return f"{sent.method} {sent.path[:BODY_SHOWN]} {body[:BODY_SHOWN]}{cut}"


def _answer(reply: Reply) -> str:
    text = json.dumps(reply.body)[:300]
    return f"{reply.status} in {reply.seconds:.1f} s: {text}"
