"""A path that somebody names: what is wrong with it is said before anything is done with it."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.cases import each_case

from mnemosyned import Client, Memory
from mnemosyned.cli.maintenance.databases import restore_database
from mnemosyned.config.loading import load_config
from mnemosyned.errors import (
    ConfigInvalid,
    DaemonUnreachable,
    InvalidRequest,
    InvalidText,
)
from mnemosyned.paths import (
    DATABASE_SUFFIX,
    DEPTH_MAX,
    NAME_BYTES_MAX,
    PATH_BYTES_MAX,
    path_fault,
    path_form_fault,
    require_usable_path,
)

NOBODY = 65_534


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder with a loop of links, a file and a folder in it."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory(tmp_path_factory.mktemp("memory") / "memory.db") as memory:
        yield memory


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user can reach."""
    with TemporaryDirectory(prefix="mn-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def as_another_user() -> Iterator[None]:
    """Be no root for a moment, whom no folder is closed to."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


FAULTS: dict[str, tuple[str, str]] = {
    "a NUL": ("a\0b", "NUL character; remove it"),
    "half a character": ("\ud800", "not valid Unicode at character"),
    "a long name": ("x" * 256, "a name of 256 bytes, and 255 fit; choose a shorter one"),
    "a long name of few characters": ("é" * 128, "a name of 256 bytes"),
    "a long name above": (f"{'x' * 256}/y", "a name of 256 bytes"),
    "line breaks": ("\n" * 600, "a name of"),
    "a long path": ("/".join(["x" * 99] * 42), "bytes, and 4,095 fit"),
    "many folders": ("x/" * 1_500, "folders, and 256 fit"),
    "a loop": ("loop", "links lead in a circle"),
    "below a loop": ("loop/x", "links lead in a circle"),
    "below a file": ("file/x", "a file is where it needs a folder"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_a_path_is_named_with_what_to_do_wherever_it_is_given(
    room: Path, memory: Memory, name: str, fault: str
) -> None:
    path = f"{room}/{name}"

    assert fault in path_fault(path)
    with pytest.raises(InvalidRequest, match="cannot be used: ") as refused:
        require_usable_path(path, field="file")
    with pytest.raises((InvalidRequest, InvalidText)) as no_backup:
        memory.backup(path)
    with pytest.raises(ConfigInvalid) as no_database:
        Memory(path)

    assert refused.value.field == "file"
    assert len(refused.value.message) < 400
    assert refused.value.message.isprintable()
    assert no_backup.value.field in ("file", None)
    assert no_database.value.field == "database"
    assert no_database.value.message.isprintable()


@pytest.mark.parametrize(
    "name",
    ["file", "folder", "nothing", "no/such/folder", "x" * 255, "é" * 127, "a b\n"],
)
def test_a_path_that_can_be_has_no_fault(room: Path, name: str) -> None:
    assert path_fault(f"{room}/{name}") == ""
    assert require_usable_path(f"{room}/{name}", field="file") == room / name


def test_a_home_is_put_in_place_of_its_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")

    assert require_usable_path("~/x", field="file") == Path("/home/ada/x")
    assert "no known user" in path_fault("~nobody-of-this-name/x")


def test_names_of_files_beside_it_need_room() -> None:
    longest = NAME_BYTES_MAX - len(".partial")

    assert path_form_fault("x" * longest, suffix=".partial") == ""
    assert "with .partial" in path_form_fault("x" * (longest + 1), suffix=".partial")
    assert path_form_fault("/x" * 9, bytes_max=18) == ""
    assert "18 bytes, and 17 fit" in path_form_fault("/x" * 9, bytes_max=17)


def test_what_passes_as_form_the_system_takes(room: Path) -> None:
    longest = ("x" * (NAME_BYTES_MAX - 1) + "/") * (PATH_BYTES_MAX // NAME_BYTES_MAX)

    assert path_form_fault(longest) == ""
    assert path_form_fault("/".join("x" * DEPTH_MAX)) == ""
    with pytest.raises(FileNotFoundError):
        (room / "x" / ("x" * NAME_BYTES_MAX)).stat()


# ------------------------------------------------------------------- callers


def test_a_backup_leaves_room_for_its_unfinished_part(
    memory: Memory, room: Path
) -> None:
    with pytest.raises(InvalidRequest, match="for files beside it"):
        memory.backup(f"{room}/{'x' * 250}")

    made = memory.backup(f"{room}/{'x' * 230}")

    assert Path(made.file).is_file()


def test_a_folder_that_is_closed_or_no_database_is_named(
    memory: Memory, public: Path
) -> None:
    closed, read_only = public / "closed", public / "read-only"
    for folder, mode in ((closed, 0o000), (read_only, 0o555)):
        folder.mkdir()
        folder.chmod(mode)

    with pytest.raises(ConfigInvalid, match="is a folder; name a file in it"):
        Memory(read_only)
    with as_another_user():
        assert "closed to this user" in path_fault(f"{closed}/x")
        with pytest.raises(InvalidRequest, match="closed to the process") as refused:
            memory.backup(f"{read_only}/copy.db")

    assert refused.value.field == "file"


PATHS = (
    "backup.dir",
    "context.tokenizer",
    "embedding.model_path",
    "llm.api_key_file",
    "llm.model_path",
    "socket",
    "tls.certificate",
    "watch.paths",
)


@each_case("key", PATHS)
@each_case("path", ["a\0b", "x" * 256, "~nobody-of-this-name/x"])
def test_a_setting_that_can_be_no_path_is_refused_where_it_is_read(
    key: str, path: str
) -> None:
    with pytest.raises(ConfigInvalid, match=f"^argument: {key}: ") as refused:
        load_config(overrides={key: ["/", path] if key == "watch.paths" else path})

    assert refused.value.field == key


def test_a_database_that_no_log_can_name_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / os.fsdecode(b"caf\xe9")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)

    for named in ({}, {"database": str(home / "memory.db")}):
        with pytest.raises(ConfigInvalid, match=r"not UTF-8; .*`database`") as refused:
            _ = load_config(overrides=named).database_path
        refused.value.message.encode()


@pytest.mark.parametrize("name", ["memory [1]*.db", "x" * (255 - len(DATABASE_SUFFIX))])
def test_a_backup_is_restored_under_any_name_that_is_taken(
    tmp_path: Path, name: str
) -> None:
    database, copy = tmp_path / name, tmp_path / "copy.db"
    with Memory(database) as memory:
        memory.remember("tea at four")
        memory.backup(str(copy))
        memory.remember("and cake at five")

    restored = restore_database(copy, database)

    assert restored.set_aside is not None
    with Memory(database) as memory:
        assert len(memory.list()) == 1
    with closing(sqlite3.connect(restored.set_aside)) as former:
        (count,) = former.execute("SELECT count(*) FROM working_memory").fetchone()
        assert count == 2


@each_case("name", ["a\0b", "\ud800", "x" * 256])
def test_a_socket_that_can_be_no_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"the socket .* cannot be") as refused:
        Client(name)

    assert refused.value.field == "socket"


@pytest.mark.parametrize("name", ["loop", "file/x", "x" * 120])
def test_a_socket_that_leads_nowhere_has_no_daemon(room: Path, name: str) -> None:
    with (
        Client(room / name) as client,
        pytest.raises(DaemonUnreachable, match=r"no daemon can answer on .*: "),
    ):
        client.status()
