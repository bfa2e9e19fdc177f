"""What `mnemosyned` itself hands out, and what loading that costs."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


def test_every_error_and_result_is_public_and_a_star_import_brings_those_names() -> (
    None
):
    names: dict[str, Any] = {}
    exec("from mnemosyned import *", names)  # noqa: S102
    names = {name: each for name, each in names.items() if name[:2] != "__"}

    results = {result_type(verb).__name__ for verb in VERBS.values()}
    tree = {name for name, each in vars(errors).items() if is_error(each)}
    assert tree | results <= names.keys() == set(PUBLIC)
    assert all(each.__name__ == name for name, each in names.items())


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, errors.MnemosynedError)


def test_a_program_derives_errors_of_its_own() -> None:
    class Mine(errors.NotFound):
        code = "mine"

    assert (Mine("x").code, Mine("x").kind) == ("mine", errors.NotFound.kind)


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
