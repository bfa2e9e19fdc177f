"""The client starts fast: it loads the values of answers, and none of the rules."""

import subprocess
import sys

import pytest

NEEDLESS = {
    "asyncio",
    "email",
    "hashlib",
    "http.client",
    "logging",
    "mnemosyned.text.languages.tables",
    "mnemosyned.memory.forgetting",
    "mnemosyned.text.terms",
    "numpy",
    "ssl",
    "tempfile",
}
"""Modules that the client had once, or could easily get, and does not need."""


def modules_after(statement: str) -> set[str]:
    """The modules in memory once a new interpreter has run a statement."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        check=True,
        text=True,
    )
    return set(run.stdout.split())


def test_the_client_loads_no_rules_and_no_library_it_does_not_need() -> None:
    assert modules_after("import mnemosyned.client.blocking") & NEEDLESS == set()


def test_tls_is_loaded_for_a_daemon_behind_https_alone() -> None:
    make = "from mnemosyned.client.connection import Connection as C; C({})"
    local = modules_after(make.format("'/run/none'"))
    loopback = modules_after(make.format("url='http://127.0.0.1:1', token='x'"))
    elsewhere = modules_after(make.format("url='https://memory.example', token='x'"))
    shell = modules_after("import mnemosyned.cli.main, mnemosyned.cli.calls")

    assert "ssl" in elsewhere
    assert not {"ssl", "mnemosyned.client.tls"} & (local | loopback | shell)
    assert not {"mnemosyned.client.remote"} & (local | shell)


@pytest.mark.thorough
def test_a_framework_is_loaded_by_its_own_adapter_alone() -> None:
    loaded = modules_after("import mnemosyned.adapters, mnemosyned.assembly.embedded")

    assert not {name for name in loaded if name.startswith("mnemosyned.adapters.")}
    assert not loaded & {"agents", "langgraph", "llama_index", "pydantic_ai"}


@pytest.mark.thorough
def test_a_module_that_is_loaded_would_be_noticed() -> None:
    loaded = modules_after("import http.client, mnemosyned.service.service")

    assert {"http.client", "email", "mnemosyned.text.terms"} <= loaded
