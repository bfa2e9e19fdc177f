"""One owner per file: known by its process, gone with it."""

import os
from pathlib import Path

import pytest

from mnemosyned.domain.errors import DatabaseInUse
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite import open_store
from mnemosyned.storage.sqlite.ownership import Owner, owned, owner_of


def test_a_free_file_has_no_owner(database: Path) -> None:
    assert owner_of(database) is None


def test_the_owner_is_known_by_its_process_and_socket(database: Path) -> None:
    with owned(database, socket=Path("/run/m.sock")):
        assert owner_of(database) == Owner(os.getpid(), "/run/m.sock")


def test_an_embedded_owner_has_no_socket(database: Path) -> None:
    with owned(database):
        assert owner_of(database) == Owner(os.getpid(), None)


def test_a_file_has_only_one_owner(database: Path) -> None:
    with (
        owned(database, socket=Path("/run/m.sock")),
        pytest.raises(DatabaseInUse, match=rf"process {os.getpid()}, .*/run/m\.sock"),
        owned(database),
    ):
        pass


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_the_file_is_free_when_its_owner_is_done(
    database: Path, error: type[Exception] | None
) -> None:
    try:
        with owned(database):
            if error:
                raise error
    except RuntimeError:
        pass

    assert owner_of(database) is None
    with owned(database):
        assert owner_of(database) == Owner(os.getpid())


def test_asking_for_the_owner_takes_nothing_away(database: Path) -> None:
    with owned(database):
        owner_of(database)

        with pytest.raises(DatabaseInUse), owned(database):
            pass


def test_what_an_earlier_owner_left_in_the_lock_does_not_count(database: Path) -> None:
    database.with_name("memory.db.lock").write_text('{"pid": 1, "socket": "/gone.sock"}' * 9)

    assert owner_of(database) is None
    with owned(database):
        assert owner_of(database) == Owner(os.getpid())


def test_other_files_of_the_folder_are_free(database: Path) -> None:
    with owned(database), owned(database.with_name("other.db")):
        assert owner_of(database) == owner_of(database.with_name("other.db"))


def test_another_name_of_the_same_file_is_the_same_file(database: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(database)

    with (
        open_store(database, migrations=shipped("migrations")),
        pytest.raises(DatabaseInUse),
        open_store(link, migrations=shipped("migrations")),
    ):
        pass


def test_a_store_that_cannot_open_gives_the_file_free(database: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no migrations"), open_store(database, migrations=tmp_path):
        pass

    assert owner_of(database) is None
