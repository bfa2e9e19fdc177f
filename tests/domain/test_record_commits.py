"""Git logs, single commits and hand-offs of hooks."""

import pytest
from support.records import record_lines, record_samples, record_texts


@pytest.mark.parametrize(("content", "expected"), record_samples("commits"))
def test_a_log_of_commits_is_grouped_by_what_they_touch(
    content: str, expected: list[str]
) -> None:
    assert record_texts(content) == expected


def test_commits_of_many_memories_are_joined_by_component() -> None:
    lines = record_lines(
        "a1b2c3d fix(importer): skip empty rows",
        "b2c3d4e docs: explain the import format",
        "c3d4e5f feat(importer): read semicolons",
    )
    assert [(line.text, line.position, line.memories) for line in lines] == [
        ("2 commits to importer: skip empty rows; read semicolons.", 0, 2),
        ("Commit (documentation): explain the import format.", 1, 1),
    ]


def test_a_long_log_stays_within_lines_of_a_few_subjects() -> None:
    log = "\n".join(f"{n:07x}a1 fix(store): close file {n}" for n in range(100))
    texts = record_texts(log)
    assert len(texts) == 25
    assert all(text.startswith("4 commits to store: ") for text in texts)


def test_hashes_in_a_subject_are_left_out() -> None:
    lines = record_lines("1f2e3d4 Revert 9c8b7a6f5e4d, it broke the importer")
    assert lines[0].text == "Commit: Revert, it broke the importer."


def test_a_breaking_change_is_worth_more() -> None:
    plain, breaking = record_lines(
        "a1b2c3d fix(store): close files", "b2c3d4e feat(api)!: drop v1"
    )
    assert breaking.worth > plain.worth


def test_the_body_and_the_paths_are_index_terms() -> None:
    (line,) = record_lines(
        "commit 3f2a9c81d0e7b6a54f3e2d1c0b9a887766554433\nAuthor: Ben <b@x.example>\n"
        "Date:   Tue Mar 10 09:12:44 2026 +0100\n\n    Round amounts\n\n    The accountant insists.\n"
    )
    assert line.text == "Commit by Ben on Tue 10 March 2026: Round amounts."
    assert "accountant" in line.index_terms
