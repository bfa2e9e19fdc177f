"""Models fetched from a real server that breaks off, lies or leads elsewhere."""

from __future__ import annotations

import pytest
from support.model_source import CONTENT, DIGEST, Source, pull, shelf, source

from mnemosyned.errors import FetchFailed, InvalidRequest
from mnemosyned.models import catalog
from mnemosyned.models.catalog import CatalogEntry, ModelStore, check_url

__all__ = ["shelf", "source"]


def give_up(shelf: ModelStore, source: Source) -> None:
    """A first call that gets 1,000 bytes."""
    source.break_after, source.outage_after = 1_000, 1
    with pytest.raises(FetchFailed, match="1,000 bytes are kept"):
        pull(shelf, source.url)
    source.break_after = source.outage_after = None


def test_a_fetched_model_is_whole_and_leaves_nothing_beside_it(
    shelf: ModelStore, source: Source
) -> None:
    seen: list[tuple[int, int | None]] = []

    path, digest = shelf.pull(
        source.url, progress=lambda have, total: seen.append((have, total))
    )

    assert (path.read_bytes(), digest) == (CONTENT, DIGEST)
    assert {kept.name for kept in shelf.folder.iterdir()} == {
        "tiny.gguf",
        "tiny.gguf.sha256",
    }
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_fetch_goes_on_where_the_connection_broke_off(
    shelf: ModelStore, source: Source
) -> None:
    source.break_after = 300_000

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == CONTENT
    assert source.requests == ["", *(f"bytes={n * 300_000}-" for n in (1, 2, 3))]


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(
    shelf: ModelStore, source: Source
) -> None:
    give_up(shelf, source)
    source.break_after = 600_000
    source.requests.clear()

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == CONTENT
    assert source.requests[0] == "bytes=1000-"


def test_a_file_that_changed_meanwhile_is_fetched_anew(
    shelf: ModelStore, source: Source
) -> None:
    give_up(shelf, source)
    source.content, source.etag, source.break_after = (
        b"GGUF" + bytes(5_000),
        '"two"',
        None,
    )

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == source.content


def test_a_part_that_nobody_knows_is_not_gone_on_with(
    shelf: ModelStore, source: Source
) -> None:
    shelf.folder.mkdir(parents=True)
    (shelf.folder / "tiny.gguf.part").write_bytes(b"another model")

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == CONTENT


def test_a_server_without_ranges_sends_it_all_again(
    shelf: ModelStore, source: Source
) -> None:
    give_up(shelf, source)
    source.ranges, source.break_after = False, None

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_fetched_anew(
    shelf: ModelStore, source: Source
) -> None:
    give_up(shelf, source)
    (shelf.folder / "tiny.gguf.part").write_bytes(CONTENT + b"more")

    path, _ = pull(shelf, source.url)

    assert path.read_bytes() == CONTENT


def test_attempts_that_bring_nothing_come_to_an_end(
    shelf: ModelStore, source: Source
) -> None:
    source.status = 503

    with pytest.raises(FetchFailed, match="503"):
        pull(shelf, source.url)

    assert len(source.requests) == 4


def test_a_missing_file_is_not_requested_again(
    shelf: ModelStore, source: Source
) -> None:
    source.status = 404

    with pytest.raises(FetchFailed, match="404"):
        pull(shelf, source.url)

    assert len(source.requests) == 1


def test_a_download_that_is_no_model_is_deleted(
    shelf: ModelStore, source: Source
) -> None:
    source.content = b"<!DOCTYPE html><title>Sign in</title>"

    with pytest.raises(FetchFailed, match="not a model in GGUF"):
        pull(shelf, source.url)

    assert not list(shelf.folder.iterdir())


def test_another_digest_than_the_stated_one_is_refused(
    shelf: ModelStore, source: Source
) -> None:
    with pytest.raises(FetchFailed, match=DIGEST):
        pull(shelf, source.url, sha256="0" * 64)

    assert not list(shelf.folder.iterdir())


def test_another_size_than_the_known_one_is_refused(
    shelf: ModelStore, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = CatalogEntry(url=source.url, size=len(CONTENT) + 1, license="none")
    monkeypatch.setattr(catalog, "CATALOG", {"tiny": known})

    with pytest.raises(FetchFailed, match="another file"):
        pull(shelf, "tiny")


def test_a_redirect_is_followed_and_a_circle_is_left(
    shelf: ModelStore, source: Source
) -> None:
    source.redirects = 3
    path, _ = pull(shelf, source.url)
    assert path.read_bytes() == CONTENT

    path.unlink()
    source.redirects = 1_000
    with pytest.raises(FetchFailed, match="302"):
        pull(shelf, source.url)


def test_a_redirect_away_from_tls_is_not_followed(
    shelf: ModelStore, source: Source
) -> None:
    source.redirects, source.location = 1, "http://models.example/tiny.gguf"

    with pytest.raises(InvalidRequest, match="https"):
        pull(shelf, source.url)


@pytest.mark.parametrize(
    "url",
    [
        "http://models.example/a.gguf",
        "ftp://127.0.0.1/a.gguf",
        "file:///etc/a.gguf",
        "x://",
    ],
)
def test_only_tls_leaves_the_machine(url: str) -> None:
    with pytest.raises(InvalidRequest, match="https"):
        check_url(url)


def test_without_a_network_the_file_and_its_place_are_named(
    shelf: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = CatalogEntry(url="http://127.0.0.1:9/tiny.gguf", size=1_234, license="none")
    monkeypatch.setattr(catalog, "CATALOG", {"tiny": known})

    with pytest.raises(FetchFailed) as caught:
        pull(shelf, "tiny")

    for word in (known.url, "1,234 bytes", str(shelf.folder / "tiny.gguf")):
        assert word in caught.value.message


@pytest.mark.parametrize(
    "name",
    ["giantllama", "https://models.example/", "https://models.example/.hidden.gguf"],
)
def test_a_name_that_leads_nowhere_is_refused(shelf: ModelStore, name: str) -> None:
    with pytest.raises(InvalidRequest):
        shelf.resolve(name)


def test_no_address_leads_out_of_the_folder(shelf: ModelStore) -> None:
    _, target = shelf.resolve("https://models.example/x%2F..%2F..%2Fa.gguf?b=/c")

    assert target == shelf.folder / "a.gguf"


def test_a_fetch_that_brought_nothing_leaves_nothing(
    shelf: ModelStore, source: Source
) -> None:
    source.status = 404

    with pytest.raises(FetchFailed):
        pull(shelf, source.url)

    assert not list(shelf.folder.iterdir())
