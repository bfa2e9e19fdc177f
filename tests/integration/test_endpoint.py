"""A model behind an endpoint: how it answers, what is done about it, and what leaves the machine."""

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.cases import each_case
from support.endpoints import (
    PATH,
    Behavior,
    Exchange,
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
from support.openssl import HAVE_OPENSSL, self_signed
from support.vector_service import wait_until

from mnemosyned.errors import ConfigInvalid, ModelUnavailable, SummarizerFailed
from mnemosyned.models import endpoint
from mnemosyned.models.endpoint import EndpointModel, estimate_tokens, read_api_key

SECRET = "the cabin's code is larch-4471"  # noqa: S105 what a memory says
QUESTION = [{"role": "user", "content": SECRET}]


def make_model(url: str, **changes: Any) -> EndpointModel:  # noqa: ANN401
    return EndpointModel(**{"endpoint": url, "time_limit_s": 10.0, **changes})


def ask(asked: EndpointModel) -> str:
    return asked.complete(QUESTION, max_tokens=99, temperature=0.2)


def expect_refusal(asked: EndpointModel) -> SummarizerFailed:
    with pytest.raises(SummarizerFailed) as caught:
        ask(asked)
    assert SECRET not in caught.value.message
    return caught.value


def expect_unavailable(asked: EndpointModel) -> str:
    """What is said of a model that is not asked again for a while."""
    error = expect_refusal(asked)
    assert isinstance(error, ModelUnavailable)
    return error.message


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "BACKOFF_S", 0.01)


def test_it_asks_in_openais_form_and_reads_the_answer() -> None:
    with serving(says("All is well.")) as served:
        text = ask(make_model(served.url + "/", model="small", key="sk-1"))

    (seen,) = served.seen
    assert text == "All is well."
    assert seen.path == PATH
    assert seen.headers["Authorization"] == "Bearer sk-1"
    assert seen.headers["Host"] == f"127.0.0.1:{served.port}"
    limits = {"max_tokens": 99, "temperature": 0.2, "stream": False}
    assert seen.body == {"model": "small", "messages": QUESTION, **limits}


def test_without_a_name_or_a_key_neither_is_sent() -> None:
    with serving(says("Yes.")) as served:
        asked = make_model(served.url)
        ask(asked)

    assert "model" not in served.seen[0].body
    assert "Authorization" not in served.seen[0].headers
    assert (asked.name, asked.context_tokens) == ("endpoint:127.0.0.1", 4096)
    assert make_model(served.url, context_tokens=900).context_tokens == 900


def test_a_proxy_of_the_environment_is_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    with serving(says("Yes.")) as served:
        assert ask(make_model(served.url)) == "Yes."


@each_case(
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


def test_it_waits_as_long_as_it_is_told() -> None:
    with serving(gives(429, Retry_After="1"), says("Now.")) as served:
        begun = time.monotonic()
        assert ask(make_model(served.url)) == "Now."

    assert time.monotonic() - begun >= 1


@each_case(
    ("bad", "tries", "word"),
    [
        (gives(503), endpoint.TRIES, "503"),
        (gives(429, Retry_After="3600"), 1, "429"),
        *((gives(status, SECRET.encode()), 1, str(status)) for status in (401, 403)),
        *((gives(status, SECRET.encode()), 1, str(status)) for status in (404, 418)),
    ],
)
def test_a_no_to_all_makes_it_unavailable(bad: Behavior, tries: int, word: str) -> None:
    with serving(bad) as served:
        message = expect_unavailable(make_model(served.url, key="sk-1"))

    assert word in message
    assert "sk-1" not in message
    assert len(served.seen) == tries


def test_a_closed_port_makes_the_model_unavailable() -> None:
    closed = make_model(f"http://127.0.0.1:{unused_port()}/v1")

    assert "connection refused" in expect_unavailable(closed)


@each_case("bad", [gives(400, SECRET.encode()), gives(413), says(None), says(" \n")])
def test_a_no_to_this_request_says_nothing_of_the_next(bad: Behavior) -> None:
    with serving(bad) as served:
        assert not isinstance(expect_refusal(make_model(served.url)), ModelUnavailable)


@each_case(
    "garbage",
    [
        *(b"", b"<html>" + SECRET.encode(), b"\xff\xfe", b"[" * 100_000, b"{}"),
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": ["a"]}}]}',
        json.dumps({"error": SECRET}).encode(),
    ],
)
def test_an_answer_in_another_form_makes_it_unavailable(garbage: bytes) -> None:
    with serving(gives(200, garbage)) as served:
        assert "OpenAI" in expect_unavailable(make_model(served.url))


@each_case(
    "thoughts",
    [
        answer("", reasoning="Hm."),
        answer(None, reasoning_content="Hm."),
        answer("<think>Hm."),
    ],
)
def test_a_model_that_only_thought_is_asked_not_to(thoughts: bytes) -> None:
    with serving(gives(200, thoughts), says("Yes.")) as served:
        asked = make_model(served.url)
        answers = [ask(asked), ask(asked)]

    assert answers == ["Yes.", "Yes."]
    sent = [seen.body.get("reasoning_effort") for seen in served.seen]
    assert sent == [None, "none", "none"]
    assert served.seen[1].body["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_server_may_reject_a_request_not_to_think() -> None:
    thinks = gives(200, answer("Yes.", reasoning="Hm."))
    with serving(thinks, gives(400), thinks, gives(400), gives(400)) as served:
        asked = make_model(served.url)
        answers = [ask(asked), ask(asked)]
        expect_refusal(asked)

    assert answers == ["Yes.", "Yes."]
    assert len(served.seen) == 5


def test_a_model_that_cannot_but_think_is_named() -> None:
    with serving(gives(200, answer("", reasoning=SECRET))) as served:
        assert "it only thinks" in expect_refusal(make_model(served.url)).message


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    with serving(gives(200, answer("x" * (endpoint.ANSWER_BYTES_MAX + 1)))) as served:
        assert "bytes" in expect_refusal(make_model(served.url)).message


@each_case("slow", [waits(3, says("late")), drips])
def test_it_takes_no_longer_than_it_may(slow: Behavior) -> None:
    with serving(slow) as served:
        asked = make_model(served.url, time_limit_s=0.3)
        assert "longer than 0.3 s" in expect_unavailable(asked)


@each_case(
    ("slow", "is_answered"),
    [
        (waits(3, says("late")), False),
        (drips, False),
        (gives(429, Retry_After="9"), True),
    ],
)
def test_closing_ends_one_call_alone(slow: Behavior, *, is_answered: bool) -> None:
    answered = threading.Event()

    def behave(exchange: Exchange) -> None:
        slow(exchange)
        answered.set()

    with serving(behave, says("Again.")) as served:
        asked = make_model(served.url)

        def close_once_asked() -> None:
            wait_until(lambda: bool(served.seen))
            if is_answered:
                wait_until(answered.is_set)
            asked.close()

        closing = threading.Thread(target=close_once_asked)
        closing.start()
        error = expect_refusal(asked)
        closing.join()

        assert "interrupted" in error.message
        assert ask(asked) == "Again."


def test_a_redirect_is_not_followed() -> None:
    with serving(says("elsewhere")) as elsewhere:
        place = f"http://localhost:{elsewhere.port}{PATH}"
        with serving(gives(307, Location=place)) as served:
            error = expect_refusal(make_model(served.url))

    assert "redirect" in error.message
    assert elsewhere.seen == []


@each_case(
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


# What leaves the machine for an endpoint: to whom, under which certificate, with which key.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that nobody vouches for."""
    room = tmp_path_factory.mktemp("tls")
    made, key = self_signed(room, "localhost", names="DNS:localhost")
    both = room / "both.pem"
    both.write_text(key.read_text() + made.read_text())
    return both


@HAVE_OPENSSL
def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with serving(says("psst"), certificate=certificate) as served:
        asked = make_model(f"https://localhost:{served.port}/v1")
        assert "certificate" in expect_unavailable(asked)

    assert served.seen == []


@HAVE_OPENSSL
def test_a_trusted_certificate_is_taken(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(says("Safe."), certificate=certificate) as served:
        assert ask(make_model(f"https://localhost:{served.port}/v1")) == "Safe."
        other_name = make_model(f"https://127.0.0.1:{served.port}/v1")
        assert "certificate" in expect_refusal(other_name).message


@each_case(
    "url",
    [
        "http://192.0.2.1/v1",
        "https://198.51.100.7:8443/v1",
        "http://0.0.0.0:8080/v1",
        "http://[2001:db8::1]/v1",
        "http://[::ffff:192.0.2.1]/v1",
    ],
)
def test_an_endpoint_elsewhere_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(ConfigInvalid, match="local_only") as caught:
        make_model(url)

    assert caught.value.field == "llm.endpoint"
    assert make_model(url, local_only=False).name


@each_case("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
def test_an_endpoint_on_this_machine_is_taken(host: str) -> None:
    assert make_model(f"http://{host}:8080/v1").name


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def lookup(_: str, port: int, **__: object) -> list[Any]:
        if not addresses:
            raise socket.gaierror(-2, "Name or service not known")
        kind = socket.SOCK_STREAM
        return [(socket.AF_INET, kind, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)


def test_every_address_of_the_host_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1", "192.0.2.1")

    with pytest.raises(ConfigInvalid, match="not this machine"):
        make_model("http://models.test/v1")


def test_a_host_that_nobody_knows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch)

    with pytest.raises(ConfigInvalid, match="not known"):
        make_model("http://models.test/v1")
    assert make_model("http://models.test/v1", local_only=False).name


def test_a_host_that_moves_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1")
    asked = make_model(f"http://models.test:{unused_port()}/v1")
    resolving(monkeypatch, "192.0.2.1")

    assert "not this machine" in expect_unavailable(asked)


@each_case(
    "url",
    [
        *("", "localhost:8080", "ftp://localhost/v1", "http://", "http://[::1/v1"),
        *("http://localhost:port/v1", "http://localhost:99999/v1"),
        *("http://me:sk-1@localhost/v1", "http://localhost/v1?key=sk-1"),
        *("http://localhost/v1\r\nX: sk-1", f"http://{'x' * 70}.test/v1"),
    ],
)
def test_an_invalid_address_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        make_model(url)

    assert "sk-1" not in caught.value.message


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    file.write_text("sk-file\n")
    file.chmod(0o600)
    return file


def test_the_key_comes_from_its_file_before_the_variable(key_file: Path) -> None:
    assert read_api_key(str(key_file), variable="sk-variable") == "sk-file"
    assert read_api_key(None, variable=" sk-variable ") == "sk-variable"
    assert read_api_key(None, variable=None) is None
    assert read_api_key(None, variable="") is None


def test_a_key_file_that_others_can_read_is_warned_of(
    key_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key_file.chmod(0o640)

    read_api_key(str(key_file), variable=None)

    assert "key_file_readable_by_others" in caplog.text
    assert "sk-file" not in caplog.text


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"sk-1\nsk-2", b"sk 1", b"\xff", "ключ".encode(), None]
)
def test_a_file_without_a_key_is_refused_without_its_words(
    key_file: Path, content: bytes | None
) -> None:
    if content is None:
        key_file.unlink()
    else:
        key_file.write_bytes(content)

    with pytest.raises(ConfigInvalid) as caught:
        read_api_key(str(key_file), variable=None)

    assert "sk" not in caught.value.message.replace(str(key_file), "")
    assert content is not None or "cannot be read" in caught.value.message
