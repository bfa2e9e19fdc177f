"""The command that is named where an extra is missing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mnemosyned.version import DEBIAN_EXTRAS, DEBIAN_PREFIX, install_command

DEBIAN = Path(__file__).parents[2] / "config" / "debian"


def test_an_extra_comes_from_pip_or_uv_where_no_package_manager_has_it() -> None:
    assert "psycopg[binary]" in install_command("postgres")


def test_in_the_debian_package_an_extra_is_another_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
