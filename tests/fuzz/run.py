"""Sends random requests to a real daemon and keeps those that it should not have answered so."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from e2e.daemons import Daemon
from fuzz.requests import Requests, Sent
from fuzz.room import furnish
from soak.wire import Reply, Wire

from mnemosyned.agents.mcp.protocol import INTERNAL_ERROR
from mnemosyned.errors import error_classes_by_code
from mnemosyned.verbs.exchange import FOOTER

TIMEOUT_S = 60.0
SLOW_S = 20.0
SAME_MAX = 5
"""Findings of one kind that are worth reading."""
BODY_SHOWN = 600
KNOWN_CODES = error_classes_by_code().keys() | {"malformed_request"}
PROGRESS = 1_000


@dataclass(slots=True)
class Fuzzed:
    """What a run did and found."""

    answers: Counter[int] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    """Requests and what was wrong with their answers, a few of each kind."""
    kinds: Counter[str] = field(default_factory=Counter)
    """All findings, by verb and answer."""

    def add(self, sent: Sent, wrong: str, answer: str) -> None:
        """Count a finding, and keep it unless there are enough of its kind."""
        kind = f"{sent.verb} {wrong}"
        self.kinds[kind] += 1
        if self.kinds[kind] <= SAME_MAX:
            self.findings.append(f"{_shown(sent)}\n    -> {answer}")


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
    wire, fuzzed = Wire(daemon.socket, timeout_s=TIMEOUT_S), Fuzzed()
    for number in range(count):
        sent = requests.next()
        reply = wire.send(sent.method, sent.path, sent.body)
        fuzzed.answers[reply.status] += 1
        wrong = problem(reply, sent.verb)
        if wrong:
            text = json.dumps(reply.body)[:300]
            fuzzed.add(sent, wrong, f"{reply.status} in {reply.seconds:.1f} s: {text}")
            say(f"{number}: {fuzzed.findings[-1]}")
        else:
            requests.learn(reply.body)
        if daemon.process.poll() is not None:
            ended = f"the daemon ended with {daemon.process.poll()}"
            fuzzed.add(sent, ended, ended)
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


def _shown(sent: Sent) -> str:
    body = (sent.body or b"").decode("utf-8", "backslashreplace")
    cut = f"… ({len(body):,} characters)" if len(body) > BODY_SHOWN else ""
    return f"{sent.method} {sent.path[:BODY_SHOWN]} {body[:BODY_SHOWN]}{cut}"
