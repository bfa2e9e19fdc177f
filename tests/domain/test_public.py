"""What `mnemosyned` itself hands out, and what loading that costs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.cases import each_case

import mnemosyned
from mnemosyned import errors
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.request import result_type
from mnemosyned.version import DEBIAN_EXTRAS, DEBIAN_PREFIX, install_command

ENGINE = ("sqlite3", "msgspec", "structlog", "apscheduler", "mnemosyned.service")
PURE = [
    "ContextManager", "MemoryConsolidator", "TokenBudget", "RoundsPolicy", "AutoPolicy",
]  # fmt: skip


PUBLIC = [name for name in dir(mnemosyned) if not name.startswith("_")]


@each_case("name", PUBLIC)
def test_every_public_name_can_be_loaded(name: str) -> None:
    assert getattr(mnemosyned, name).__name__ == name


def test_a_program_derives_errors_of_its_own() -> None:
    class Mine(errors.NotFound):
        code = "mine"

    assert (Mine("x").code, Mine("x").kind) == ("mine", errors.NotFound.kind)


def test_every_error_of_the_tree_is_public() -> None:
    tree = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.MnemosynedError)
    }

    assert tree <= set(PUBLIC)


def test_every_result_of_a_verb_is_public() -> None:
    assert {result_type(verb).__name__ for verb in VERBS.values()} <= set(PUBLIC)


def test_a_star_import_brings_the_public_names_alone() -> None:
    names: dict[str, object] = {}
    exec("from mnemosyned import *", names)  # noqa: S102

    assert {name for name in names if not name.startswith("__")} == set(PUBLIC)


def test_the_pure_part_loads_nothing_that_must_be_installed() -> None:
    script = (
        "import sys, mnemosyned\n"
        "assert {name for name in sys.modules if name.startswith('mnemosyned.')} == "
        "{'mnemosyned.version'}\n"
        f"from mnemosyned import {', '.join(PURE)}\n"
        f"assert not sys.modules.keys() & set({ENGINE!r})"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


# ---------------------------------------- the command where an extra is missing


DEBIAN = Path(__file__).parents[2] / "config" / "debian"


def test_an_extra_comes_from_pip_or_uv_where_no_package_manager_has_it() -> None:
    assert "psycopg[binary]" in install_command("postgres")


def test_in_debian_an_extra_is_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", DEBIAN_PREFIX)

    assert install_command("top") == "sudo apt install mnemosyned-top"
    assert "llama-cpp-python" in install_command("llm")


def test_the_debian_packages_are_the_extras_that_are_named() -> None:
    control = (DEBIAN / "control").read_text()
    script = (DEBIAN / "fill_packages.py").read_text()

    assert set(re.findall(r"^Package: mnemosyned-(.*)$", control, re.MULTILINE)) == {
        *DEBIAN_EXTRAS
    }
    assert f"EXTRAS = {DEBIAN_EXTRAS!r}".replace("'", '"') in script
