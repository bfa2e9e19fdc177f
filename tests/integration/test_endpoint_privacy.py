"""What leaves the machine for an endpoint: to whom, under which certificate, with which key."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from support.endpoint_client import ask, expect_refusal, make_model
from support.endpoints import says, serving, unused_port
from support.openssl import HAVE_OPENSSL, self_signed

from mnemosyned.errors import ConfigInvalid, ModelUnavailable
from mnemosyned.models.endpoint import read_api_key

# ------------------------------------------------------------------------ TLS


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
        error = expect_refusal(make_model(f"https://localhost:{served.port}/v1"))

    assert isinstance(error, ModelUnavailable)
    assert "certificate" in error.message
    assert served.seen == []


@HAVE_OPENSSL
def test_a_certificate_that_is_trusted_is_taken(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(says("Safe."), certificate=certificate) as served:
        assert ask(make_model(f"https://localhost:{served.port}/v1")) == "Safe."
        assert (
            "certificate"
            in expect_refusal(make_model(f"https://127.0.0.1:{served.port}/v1")).message
        )


# ------------------------------------------------------- what leaves the machine


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
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


def test_a_host_that_nobody_knows_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch)

    with pytest.raises(ConfigInvalid, match="not known"):
        make_model("http://models.test/v1")
    assert make_model("http://models.test/v1", local_only=False).name


def test_a_host_that_moves_away_later_is_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "127.0.0.1")
    asked = make_model(f"http://models.test:{unused_port()}/v1")
    resolving(monkeypatch, "192.0.2.1")

    error = expect_refusal(asked)

    assert isinstance(error, ModelUnavailable)
    assert "not this machine" in error.message


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://localhost/v1",
        "http://",
        "http://localhost:port/v1",
        "http://localhost:99999/v1",
        "http://me:sk-1@localhost/v1",
        "http://localhost/v1?key=sk-1",
        "http://localhost/v1\r\nX: sk-1",
        "http://[::1/v1",
    ],
)
def test_an_invalid_address_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        make_model(url)

    assert "sk-1" not in caught.value.message


def test_a_name_that_no_host_can_have_is_refused() -> None:
    with pytest.raises(ConfigInvalid):
        make_model(f"http://{'x' * 70}.test/v1")


# ------------------------------------------------------------------------ key


def test_the_key_comes_from_its_file_before_the_variable(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file\n")
    file.chmod(0o600)

    assert read_api_key(str(file), variable="sk-variable") == "sk-file"
    assert read_api_key(None, variable=" sk-variable ") == "sk-variable"
    assert read_api_key(None, variable=None) is None
    assert read_api_key(None, variable="") is None


def test_a_key_file_that_others_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file")
    file.chmod(0o640)

    read_api_key(str(file), variable=None)

    assert "key_file_readable_by_others" in caplog.text
    assert "sk-file" not in caplog.text


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"sk-1\nsk-2", b"sk 1", b"\xff", "ключ".encode()]
)
def test_a_file_that_holds_no_key_is_refused_without_its_words(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    file.chmod(0o600)

    with pytest.raises(ConfigInvalid) as caught:
        read_api_key(str(file), variable=None)

    assert "sk" not in caught.value.message
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        read_api_key(str(tmp_path / "none"), variable=None)
