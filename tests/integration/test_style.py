"""What people read is plain American English: pages, comments of settings, help, errors, docstrings.

The rules are in `tests/support/prose.py`, the words in `tests/support/words.toml`.
"""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from support.cases import each_case
from support.pages import PAGES
from support.prose import (
    PROJECT,
    RULES,
    Sentence,
    of_comments,
    of_docstrings,
    of_errors,
    of_help,
    of_page,
    of_targets,
    sentences,
)

SURFACES: dict[str, Callable[[], Iterable[Sentence]]] = {
    "pages": lambda: (
        sentence
        for page in (*PAGES, PROJECT / "CHANGELOG.md")
        for sentence in of_page(page)
    ),
    "config": lambda: (
        sentence
        for file in sorted((PROJECT / "config").rglob("*.y*ml"))
        for sentence in of_comments(file)
    ),
    "targets": of_targets,
    "help": of_help,
    "errors": of_errors,
    "docstrings": of_docstrings,
}


@pytest.mark.parametrize("surface", SURFACES)
def test_prose_keeps_to_the_rules(surface: str) -> None:
    faults: dict[str, list[str]] = {}
    for sentence in SURFACES[surface]():
        for rule, hint in sentence.faults():
            faults.setdefault(rule, []).append(
                f"{sentence.place}: {hint}\n    {sentence.text}"
            )

    limits = Counter(RULES["limits"].get(surface, {}))
    over = {rule: found for rule, found in faults.items() if len(found) > limits[rule]}

    assert not over, "\n".join(
        f"{len(found)} of rule {rule!r}, at most {limits[rule]}:\n" + "\n".join(found)
        for rule, found in over.items()
    )


def test_pages_for_users_break_no_rule() -> None:
    excepted = {PROJECT / name for name in RULES["plain"]["excepted"]}

    faults = [
        f"{sentence.place}: {rule}, {hint}: {sentence.text}"
        for page in PAGES
        if page not in excepted
        for sentence in of_page(page)
        for rule, hint in sentence.faults()
    ]

    assert not faults, "\n".join(faults)


@each_case(
    "text, rules",
    [
        ("The daemon stores each memory on disk.", ""),
        ("What was forgotten is deleted.", "opener subject"),
        ("What is captured?", ""),
        ("The agent is told about it.", "word"),
        ("Call `told` and [read on](told.md).", ""),
        ("Stop it; wait; start it again.", "semicolons"),
        ("It takes those of which one fails.", "pronouns"),
        (f"The daemon {'really ' * 33}stops.", "long"),
        (f"The daemon {'really ' * 32}stops.", ""),
        ("It ends. So it is.", "opener"),
    ],
)
def test_a_rule_finds_what_it_is_for(text: str, rules: str) -> None:
    found = {rule for each in sentences("here", text) for rule, _ in each.faults()}

    assert " ".join(sorted(found)) == rules
