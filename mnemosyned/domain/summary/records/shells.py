"""Shell sessions: which commands ran, and how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.lines import (
    Reading,
    RecordLine,
    Rule,
    Sentence,
    merge_equal,
)
from mnemosyned.domain.summary.records.wording import is_prose, lines_of, shorten

COMMANDS_MAX = 24
LINES_MAX = 5_000
PROMPT_CHARS_MAX = 120
COMMAND_CHARS_MAX = 140
OUTPUT_CHARS_MAX = 160
WORTH = 0.35
FAILED_WORTH = 0.8

_PROMPT = re.compile(
    r"(?:\([\w.-]+\) )?(?:(?:\[?[\w.-]+@[\w.-]+(?::| )[^\s$#%❯➜]*\]? ?|~?[\w/.~-]* ?)?[$%❯➜]"
    r"|\[?[\w.-]+@[\w.-]+(?::| )[^\s$#]*\]? ?#|PS [A-Z]:\\[^>]*>|[A-Z]:\\[^>]*>)"
    r"\s+(?P<command>[\w./~\"'({\[!:-].*)"
)
_PROMPT_SIGN = re.compile("[$%❯➜#>] ")
_NOT_A_COMMAND = re.compile(r"\d|(?:is|per|and|to|for|und|ist|sign|amount)\b")
_FAILURE = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|denied|refused|not found|no such file|cannot|panic"
    r"|killed|traceback|aborted|timed out|unable|conflict|no space left)\b",
    re.IGNORECASE,
)
_SUCCESS = re.compile(
    r"\b(?:succeeded|success(?:ful(?:ly)?)?|passed|finished|done|completed?|added|built|switched)\b",
    re.IGNORECASE,
)
_EXIT = re.compile(
    r"(?:\[?(?:exit(?:ed)?(?: with)?(?: code| status)?|return code|rc)[ :=]+(?P<code>\d{1,3})\]?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Command:
    """One command with the line of its output that says how it ended."""

    command: str
    outcome: str
    failed: bool
    output: str


def read_session(memory: MemoryRecord) -> tuple[Command, ...] | None:
    """Return the commands of a memory that is a shell session from its first line on."""
    if not _PROMPT_SIGN.search(memory.content, 0, PROMPT_CHARS_MAX):
        return None
    lines = lines_of(memory.content.strip())[:LINES_MAX]
    if not lines or not _command_of(lines[0]):
        return None
    if len(lines) > 1 and is_prose(lines[-1]) and not _FAILURE.search(lines[-1]):
        return None
    commands: list[Command] = []
    command, output = "", list[str]()
    for line in lines:
        if next_command := _command_of(line):
            if command:
                commands.append(_finished(command, output))
            command, output = next_command, []
        else:
            output.append(line)
    commands.append(_finished(command, output))
    prose = sum(is_prose(line) for line in lines)
    return None if prose > len(lines) // 3 else tuple(commands)


def _command_of(line: str) -> str:
    match = _PROMPT.fullmatch(line.strip())
    if not match or _NOT_A_COMMAND.match(match["command"]):
        return ""
    command = match["command"].strip()
    return "" if is_prose(command) else command


def _finished(command: str, output: Sequence[str]) -> Command:
    """Return a command with its failure, or else the last line that it printed."""
    failures = [line for line in output if _FAILURE.search(line)]
    exits = [match for line in output if (match := _EXIT.fullmatch(line.strip()))]
    failed = bool(exits and exits[-1]["code"] != "0")
    printed = [line for line in output if not _EXIT.fullmatch(line.strip())]
    if failures and not (exits and not failed):
        failed = True
        outcome = failures[-1]
    else:
        outcome = _last_word(printed)
    if exits and failed:
        outcome = f"{outcome.strip()} (exit code {exits[-1]['code']})".strip()
    return Command(command, outcome.strip(), failed, "\n".join(output[-40:]))


def _last_word(printed: Sequence[str]) -> str:
    """Return the line that says how it went, or else the last one and how many came."""
    said = [line for line in printed if _SUCCESS.search(line)]
    if said or len(printed) < 2:
        return (said or [*printed, ""])[-1 if said else 0]
    return f"{len(printed)} lines, the last {printed[-1].strip()}"


def write_sessions(
    readings: Sequence[Reading[tuple[Command, ...]]], _zone: tzinfo
) -> Iterator[RecordLine]:
    """Write each command with how it ended; equal ones once."""
    return merge_equal(
        (reading.position, sentence)
        for reading in readings
        for sentence in _sentences(reading.value)
    )


def _sentences(commands: Sequence[Command]) -> Iterator[Sentence]:
    for command in commands[:COMMANDS_MAX]:
        yield _sentence(command)
    hidden = commands[COMMANDS_MAX:]
    if hidden:
        source = "\n".join(command.command for command in hidden)
        yield Sentence(f"The session ran {len(hidden)} more commands.", 0.2, source)


def _sentence(command: Command) -> Sentence:
    line = shorten(command.command, COMMAND_CHARS_MAX)
    outcome = shorten(command.outcome, OUTPUT_CHARS_MAX).rstrip(".")
    source = f"{command.command}\n{command.output}"
    verb = "failed with" if command.failed else "printed"
    text = f"The command `{line}` {verb}: {outcome}." if outcome else f"Ran `{line}`."
    worth = FAILED_WORTH if command.failed else WORTH
    return Sentence(text.replace("….", "…"), worth, source)


SHELLS = Rule("commands", read_session, write_sessions)
