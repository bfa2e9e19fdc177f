"""`mnem bench`: a person's own conversations, replayed in a memory of their own."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.agents import claude_line, codex_meta, cursor_line, write_lines

from mnemosyned.cli.maintenance.bench import bench

DAY = 24 * 60


def line(role: str, text: str, uuid: str, **fields: Any) -> Any:  # noqa: ANN401
    return claude_line(role, text, uuid=uuid, cwd="/w/shop", **fields)


@pytest.fixture
def transcripts(tmp_path: Path) -> Path:
    """Two conversations with Claude Code, a day apart, of which the second asks about the first."""
    folder = tmp_path / ".claude" / "projects" / "-w-shop"
    decided = "We decided to use PostgreSQL 16 for the shop for its row security."
    noted = "Noted: the shop gets PostgreSQL 16."
    asked = "Which PostgreSQL did we decide on for the shop?"
    first = [line("user", decided, "u1"), line("assistant", noted, "a1", minutes=1)]
    write_lines(folder / "s1.jsonl", first)
    second = [line("user", asked, "u2", minutes=DAY, sessionId="s2")]
    write_lines(folder / "s2.jsonl", second)
    return folder


def shown(*words: str) -> str:
    result = CliRunner().invoke(bench, words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_says_what_would_have_been_given_and_its_cost(transcripts: Path) -> None:
    text = shown(str(transcripts), "--show")

    for part in (
        "2 conversations in 1 project",
        "2 prompts of 3 messages",
        "memories given at 1 of 2 starts",
        "row security",
    ):
        assert part in text
    assert r"\x1b" not in text
    assert "of the" in text.partition("cost: ")[2]


def test_its_json_has_every_injection_with_its_reasons(transcripts: Path) -> None:
    report = json.loads(shown(str(transcripts), "--json", "--show"))

    assert (report["conversations"], report["messages"]) == (2, 3)
    told = report["injections"]
    assert told
    assert all(line["reason"] for each in told for line in each["lines"])
    tokens = sum(each["tokens"] for each in told)
    assert report["start_tokens"] + report["prompt_tokens"] == tokens


def test_conversations_that_name_no_directory_are_replayed_by_their_folders(
    tmp_path: Path,
) -> None:
    said = [cursor_line("user", "Sort by date"), cursor_line("assistant", "Sorted.")]
    for project, session in (("w-shop", "c1"), ("w-shop", "c2"), ("w-site", "c3")):
        folder = tmp_path / ".cursor" / "projects" / project / "agent-transcripts"
        write_lines(folder / session / f"{session}.jsonl", said)

    text = shown(str(tmp_path / ".cursor" / "projects"))

    assert "3 conversations in 2 projects" in text
    assert "3 prompts of 6 messages" in text


def test_files_without_a_conversation_are_left_out(transcripts: Path) -> None:
    (transcripts / "notes.md").write_text("Water the tomatoes")
    write_lines(transcripts / "rollout-2026-03-16T09-00-00-0199.jsonl", [codex_meta()])

    assert "left out: 1 file without a conversation" in shown(str(transcripts))


def test_a_folder_without_a_conversation_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Water the tomatoes")

    result = CliRunner().invoke(bench, [str(tmp_path)], standalone_mode=False)

    assert "~/.claude/projects" in str(result.exception)
