"""Shell sessions: which commands ran, and how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import starmap

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.lines import Reading, Rule, Sentence, write_each
from mnemosyned.domain.summary.records.wording import (
    full_stop,
    is_prose,
    lines_of,
    phrase,
    shorten,
)

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
    r"\s*\[?(?:exit(?:ed)?(?: with)?(?: code| status)?|return code|rc)[ :=]+(?P<code>\d{1,3})\]?",
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
    if not _command_of(lines[0]) or _has_remarks(lines):
        return None
    parts: list[tuple[str, list[str]]] = []
    for line in lines:
        if command := _command_of(line):
            parts.append((command, []))
        else:
            parts[-1][1].append(line)
    return tuple(starmap(_finished, parts))


def _has_remarks(lines: Sequence[str]) -> bool:
    """Tell whether a person wrote the end, or too much of the rest."""
    ends_in_prose = is_prose(lines[-1]) and not _FAILURE.search(lines[-1])
    return ends_in_prose or sum(map(is_prose, lines)) > len(lines) // 3


def _command_of(line: str) -> str:
    match = _PROMPT.fullmatch(line.strip())
    if not match or _NOT_A_COMMAND.match(match["command"]):
        return ""
    command = match["command"].strip()
    return "" if is_prose(command) else command


def _finished(command: str, output: Sequence[str]) -> Command:
    """Return a command with its failure, or else the last line that it printed."""
    exits = list(filter(None, map(_EXIT.fullmatch, output)))
    code = exits[-1]["code"] if exits else ""
    failures = list(filter(_FAILURE.search, output))
    if code == "0" or not (code or failures):
        return _ended(command, _last_word(output), output, failed=False)
    outcome = failures[-1].strip() if failures else _last_word(output)
    outcome += phrase(" (exit code ", code, ")")
    return _ended(command, outcome, output, failed=True)


def _ended(
    command: str, outcome: str, output: Sequence[str], *, failed: bool
) -> Command:
    return Command(command, outcome.strip(), failed, "\n".join(output[-40:]))


def _last_word(output: Sequence[str]) -> str:
    """Return the line that says how it went, or else the last one and how many came."""
    printed = [line for line in output if not _EXIT.fullmatch(line)]
    successes = list(filter(_SUCCESS.search, printed))
    if successes or len(printed) < 2:
        return "".join((successes or printed)[-1:]).strip()
    return f"{len(printed)} lines, the last {printed[-1].strip()}"


def _sentences(
    reading: Reading[tuple[Command, ...]], _zone: tzinfo
) -> Iterator[Sentence]:
    """Write each command with how it ended."""
    commands = reading.value
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
    text = f"The command `{line}` {verb}: {outcome}" if outcome else f"Ran `{line}`"
    worth = FAILED_WORTH if command.failed else WORTH
    return Sentence(full_stop(text), worth, source)


SHELLS = Rule("commands", read_session, write_each(_sentences))
