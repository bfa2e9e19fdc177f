"""A model behind an endpoint: a real server that answers well, badly, late or not at all."""

from __future__ import annotations

import json
import threading
import time

import pytest
from support.endpoint_client import QUESTION, SECRET, ask, expect_refusal, make_model
from support.endpoints import (
    PATH,
    Behavior,
    answer,
    breaks_off,
    drips,
    gives,
    hangs_up,
    says,
    serving,
    unused_port,
    waits,
)

from mnemosyned.errors import ModelUnavailable
from mnemosyned.models import endpoint
from mnemosyned.models.endpoint import estimate_tokens


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "BACKOFF_S", 0.01)


# ------------------------------------------------------------------ it answers


def test_it_asks_in_openais_form_and_reads_the_answer() -> None:
    with serving(says("All is well.")) as served:
        text = ask(make_model(served.url + "/", model="small", key="sk-1"))

    (seen,) = served.seen
    assert text == "All is well."
    assert seen.path == PATH
    assert seen.headers["Authorization"] == "Bearer sk-1"
    assert seen.headers["Host"] == f"127.0.0.1:{served.port}"
    assert seen.body == {
        "model": "small",
        "messages": QUESTION,
        "max_tokens": 99,
        "temperature": 0.2,
        "stream": False,
    }


def test_without_a_name_or_a_key_neither_is_sent() -> None:
    with serving(says("Yes.")) as served:
        asked = make_model(served.url)
        ask(asked)

    assert "model" not in served.seen[0].body
    assert "Authorization" not in served.seen[0].headers
    assert asked.name == "endpoint:127.0.0.1"
    assert asked.context_tokens == 4096
    assert (
        make_model(served.url, model="small", context_tokens=900).context_tokens == 900
    )


def test_a_proxy_of_the_environment_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    with serving(says("Yes.")) as served:
        assert ask(make_model(served.url)) == "Yes."


# ---------------------------------------------------------------- second tries


@pytest.mark.parametrize(
    "bad",
    [
        gives(429, Retry_After="0"),
        gives(429, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"),
        gives(500),
        gives(503),
        hangs_up,
        breaks_off,
    ],
)
def test_a_temporary_failure_is_retried(bad: Behavior) -> None:
    with serving(bad, bad, says("At last.")) as served:
        assert ask(make_model(served.url)) == "At last."

    assert len(served.seen) == 3


def test_it_does_not_try_for_ever() -> None:
    with serving(gives(503)) as served:
        error = expect_refusal(make_model(served.url))

    assert isinstance(error, ModelUnavailable)
    assert "503" in error.message
    assert len(served.seen) == endpoint.TRIES


def test_it_waits_as_long_as_it_is_told() -> None:
    with serving(gives(429, Retry_After="1"), says("Now.")) as served:
        begun = time.monotonic()
        assert ask(make_model(served.url)) == "Now."

    assert time.monotonic() - begun >= 1


def test_an_endpoint_that_wants_an_hour_is_left_alone_at_once() -> None:
    with serving(gives(429, Retry_After="3600")) as served:
        begun = time.monotonic()
        error = expect_refusal(make_model(served.url))

    assert isinstance(error, ModelUnavailable)
    assert len(served.seen) == 1
    assert time.monotonic() - begun < 2


# -------------------------------------------------------------- it goes wrong


def test_a_closed_port_makes_the_model_unavailable() -> None:
    error = expect_refusal(make_model(f"http://127.0.0.1:{unused_port()}/v1"))

    assert isinstance(error, ModelUnavailable)
    assert "connection refused" in error.message


@pytest.mark.parametrize("status", [401, 403, 404, 418])
def test_a_no_to_all_requests_makes_it_unavailable(status: int) -> None:
    with serving(gives(status, SECRET.encode())) as served:
        error = expect_refusal(make_model(served.url, key="sk-1"))

    assert isinstance(error, ModelUnavailable)
    assert str(status) in error.message
    assert "sk-1" not in error.message
    assert len(served.seen) == 1


@pytest.mark.parametrize(
    "bad", [gives(400, SECRET.encode()), gives(413), says(None), says(" \n")]
)
def test_a_no_to_this_request_says_nothing_of_the_next(bad: Behavior) -> None:
    with serving(bad) as served:
        assert not isinstance(expect_refusal(make_model(served.url)), ModelUnavailable)


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"<html>" + SECRET.encode(),
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": ["a"]}}]}',
        json.dumps({"error": SECRET}).encode(),
    ],
)
def test_an_answer_in_another_form_makes_it_unavailable(garbage: bytes) -> None:
    with serving(gives(200, garbage)) as served:
        error = expect_refusal(make_model(served.url))

    assert isinstance(error, ModelUnavailable)
    assert "OpenAI" in error.message


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    with serving(gives(200, answer("x" * (endpoint.ANSWER_BYTES_MAX + 1)))) as served:
        assert "bytes" in expect_refusal(make_model(served.url)).message


@pytest.mark.parametrize("slow", [waits(3, says("late")), drips])
def test_it_takes_no_longer_than_it_may(slow: Behavior) -> None:
    with serving(slow) as served:
        begun = time.monotonic()
        error = expect_refusal(make_model(served.url, time_limit_s=0.3))

    assert time.monotonic() - begun < 1
    assert isinstance(error, ModelUnavailable)
    assert "longer than 0.3 s" in error.message


@pytest.mark.parametrize(
    "slow", [waits(3, says("late")), drips, gives(429, Retry_After="9")]
)
def test_closing_ends_a_call_within_a_second_and_the_next_one_works(
    slow: Behavior,
) -> None:
    with serving(slow, says("Again.")) as served:
        asked = make_model(served.url)
        closing = threading.Timer(0.2, asked.close)
        closing.start()
        begun = time.monotonic()
        error = expect_refusal(asked)

        assert time.monotonic() - begun < 1
        assert "interrupted" in error.message
        assert ask(asked) == "Again."


def test_a_redirect_is_not_followed() -> None:
    with serving(says("elsewhere")) as elsewhere:
        place = f"http://localhost:{elsewhere.port}{PATH}"
        with serving(gives(307, Location=place)) as served:
            error = expect_refusal(make_model(served.url))

    assert "redirect" in error.message
    assert elsewhere.seen == []


# --------------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("", 0),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("def f(x):\n    return x + 1\n", 14),
        ("2026-03-17 09:41:05", 18),
        ("Größe über alles", 9),
        ("猫が好きです", 9),
        ("🎉🎉", 8),
        ("internationalization", 4),
    ],
)
def test_tokens_are_counted_rather_too_many_than_too_few(text: str, real: int) -> None:
    counted = estimate_tokens(text)

    assert real <= counted <= max(2.2 * real, real + 12)
