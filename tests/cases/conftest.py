"""The file the cases are read from; `--seed-cases PATH` names another of the same form."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed-cases", default=None, help="a file of cases instead of ours"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    path = (
        metafunc.config.getoption("--seed-cases", default=None)
        or HERE / "seed_cases.json"
    )
    cases = json.loads(Path(path).read_text(encoding="utf-8"))["cases"]
    names = [f"{case['id']} {case['title']}" for case in cases]
    metafunc.parametrize("case", cases, ids=names)
