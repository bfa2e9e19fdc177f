"""The fuzzer knows a wrong answer, and makes requests of every verb from its seed alone."""

from __future__ import annotations

from typing import Any

import pytest
from fuzz.requests import Requests
from fuzz.run import problem
from soak.wire import Reply

from mnemosyned.verbs.facade import VERBS


def error(code: str, message: str = "do something else") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "field": None}}


@pytest.mark.parametrize(
    ("status", "body", "seconds", "found"),
    [
        (200, {"hits": []}, 0.1, ""),
        (400, error("invalid_request"), 0.1, ""),
        (503, error("storage_failed", "database or disk is full"), 0.1, ""),
        (503, error("storage_failed", "database disk image is malformed"), 0.1, "503"),
        (500, error("internal_error"), 0.1, "500 internal_error"),
        (0, "ConnectionResetError()", 0.1, "no answer"),
        (200, {"hits": []}, 30.0, "slow"),
        (200, "<html>", 0.1, "not an object"),
        (400, error("surprise"), 0.1, "an error of another form"),
        (400, error("invalid_request", ""), 0.1, "an error of another form"),
    ],
)
def test_a_wrong_answer_is_known(
    status: int, body: object, seconds: float, found: str
) -> None:
    assert problem(Reply(status, body, seconds)).startswith(found)
    assert bool(problem(Reply(status, body, seconds))) == bool(found)


def test_a_seed_makes_the_same_requests_again_and_leaves_no_verb_out() -> None:
    first, again = Requests("seed"), Requests("seed")
    made = [first.next() for _ in range(400)]

    assert made == [again.next() for _ in range(400)]
    assert {sent.verb for sent in made} >= VERBS.keys()
    assert {sent.method for sent in made} == {"GET", "POST"}


def test_verbs_can_be_left_out() -> None:
    requests = Requests("seed", without=["forget", "sleep"])

    assert {requests.next().verb for _ in range(400)}.isdisjoint({"forget", "sleep"})
