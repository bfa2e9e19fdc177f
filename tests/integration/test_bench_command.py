"""`mnem bench`: a person's own conversations, replayed in a memory of their own."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.agents import claude_line, codex_meta, write_lines

from mnemosyned.cli.maintenance.bench import bench

DAY = 24 * 60


@pytest.fixture
def transcripts(tmp_path: Path) -> Path:
    """Two conversations with Claude Code, a day apart, of which the second asks about the first."""
    folder = tmp_path / ".claude" / "projects" / "-w-shop"
    write_lines(
        folder / "s1.jsonl",
        [
            claude_line(
                "user",
                "We decided to use PostgreSQL 16 for the shop, because of its row security.",
                uuid="u1",
                cwd="/w/shop",
            ),
            claude_line(
                "assistant",
                "Noted: the shop gets PostgreSQL 16.",
                uuid="a1",
                minutes=1,
                cwd="/w/shop",
            ),
        ],
    )
    write_lines(
        folder / "s2.jsonl",
        [
            claude_line(
                "user",
                "Which PostgreSQL did we decide on for the shop?",
                uuid="u2",
                minutes=DAY,
                sessionId="s2",
                cwd="/w/shop",
            )
        ],
    )
    return folder


def test_it_says_what_would_have_been_given_and_its_cost(transcripts: Path) -> None:
    result = CliRunner().invoke(bench, [str(transcripts), "--show"])

    assert result.exit_code == 0, result.output
    shown = result.stdout
    assert "2 conversations in 1 project" in shown
    assert "2 prompts of 3 messages" in shown
    assert "memories given at 1 of 2 starts" in shown
    assert "row security" in shown
    assert "of the" in shown.partition("cost: ")[2]


def test_its_json_has_every_injection_with_its_reasons(transcripts: Path) -> None:
    result = CliRunner().invoke(bench, [str(transcripts), "--json"])

    report = json.loads(result.stdout)
    assert (report["conversations"], report["messages"]) == (2, 3)
    told = report["injections"]
    assert told
    assert all(line["reason"] for each in told for line in each["lines"])
    assert report["start_tokens"] + report["prompt_tokens"] == sum(
        each["tokens"] for each in told
    )


def test_files_without_a_conversation_are_left_out(transcripts: Path) -> None:
    (transcripts / "notes.md").write_text("Water the tomatoes")
    write_lines(transcripts / "rollout-2026-03-16T09-00-00-0199.jsonl", [codex_meta()])

    result = CliRunner().invoke(bench, [str(transcripts)])

    assert "left out: 1 file without a conversation" in result.stdout


def test_a_folder_without_a_conversation_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Water the tomatoes")

    result = CliRunner().invoke(bench, [str(tmp_path)], standalone_mode=False)

    assert "~/.claude/projects" in str(result.exception)
