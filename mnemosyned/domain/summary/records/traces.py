"""Stack traces: the error, its message and the deepest frame of one's own code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.lines import (
    Reading,
    RecordLine,
    Rule,
    make_line,
)
from mnemosyned.domain.summary.records.wording import (
    is_prose,
    lines_of,
    phrase,
    shorten,
)
from mnemosyned.domain.text.matching import first_match, grouped

MESSAGE_CHARS_MAX = 200
LINES_MAX = 2_000
OTHER_LINES_MAX = 4
NAMED_FRAMES_MAX = 12
WORTH = 0.8
REPEATED_WORTH = 0.9

_ERROR = (
    r"(?P<error>[A-Za-z_][\w.$:\\]*(?:Error|Exception|Warning|Interrupt|Exit|Fault|Failure|Panic)"
    r"|Error|Exception)"
)
_THREAD = r"thread '(?P<thread>[^']*)'(?: \(\d+\))? (?P<error>panicked)"
_PYTHON_END = re.compile(
    r"(?P<error>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?(?:\s*\|.*)?"
)
_HEADS = tuple(
    re.compile(pattern)
    for pattern in (
        (
            r"(?:Uncaught |Unhandled rejection |\[?Unhandled )?(?:Exception in thread \S+ )?"
            rf"{_ERROR}\]?(?:: (?P<message>.*?))?(?: \{{)?"
        ),
        rf"Caused by: {_ERROR}(?:: (?P<message>.*))?",
        rf"Unhandled [Ee]xception[.:] {_ERROR}(?:: (?P<message>.*))?",
        (
            rf"(?:PHP )?Fatal error:\s+Uncaught {_ERROR}: (?P<message>.*?)"
            r"(?: in (?P<path>\S+?):(?P<line>\d+))?"
        ),
        r"(?P<error>panic): (?P<message>.*)",
        r"(?P<error>fatal error): (?P<message>.*)",
        rf"{_THREAD} at '(?P<message>.*)', (?P<path>[^:]+):(?P<line>\d+)(?::\d+)?",
        rf"{_THREAD} at (?P<path>[^:']+):(?P<line>\d+)(?::\d+)?:?",
        rf"(?P<path>[^\s:]+\.rb):(?P<line>\d+):in [`'](?P<function>[^']*)': (?P<message>.*) \({_ERROR}\)",
    )
)
_FRAMES = tuple(
    re.compile(pattern)
    for pattern in (
        r'\s*File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?',
        r"\s+at (?:async )?(?P<function>[^()]+?) \((?P<path>[^()]+?):(?P<line>\d+)(?::\d+)?\)(?: \{)?",
        r"\s+at (?P<path>(?:file://)?[^\s()]+?):(?P<line>\d+):\d+",
        r"\s+at (?P<function>[\w.$<>/@]+)\((?P<path>[^():]+)(?::(?P<line>\d+))?\)(?: ~?\[.*\])?",
        r"\s+at (?P<function>.+?) in (?P<path>.+?):line (?P<line>\d+)",
        r"\s+(?P<path>/[^\s:]+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?",
        r"\s+at (?P<path>[^\s:]+\.rs):(?P<line>\d+)(?::\d+)?",
        r"\s+(?:\d+: from |from )(?P<path>[^\s:]+):(?P<line>\d+):in [`'](?P<function>[^']*)'",
        r"#\d+ (?P<path>/[^\s(]+)\((?P<line>\d+)\): (?P<function>.*)",
    )
)
_FOREIGN = re.compile(
    r"site-packages|dist-packages|node_modules|node:|internal/|<frozen|<anonymous>|<string>"
    r"|lib/python3|^(?:java|javax|jdk|sun|kotlin|scala|jakarta)\.|^org\.(?:springframework|apache|junit)"
    r"|/usr/(?:local/)?(?:lib|go)/|/rustc/|/go/pkg/mod/|/vendor/|^System\.|^Microsoft\.|/gems/"
)
_FURNITURE = re.compile(
    r"Traceback \(most recent call last\):|During handling of the above exception.*"
    r"|The above exception was the direct cause.*|\s*\.\.\. \d+ (?:more|common frames omitted)"
    r"|goroutine \d+.*:|\s*\[signal .*|created by .*|exit status \d+|note: .*|stack backtrace:"
    r"|\s+\d+: .*|\s+[~^]+\s*|[\w./*()-]{1,200}?\(.*\)|Stack trace:|#\d+ .*|Node\.js v.*|\s+thrown in .*"
    r"|\s+--- End of .*|\s+at .*|\s+\[Previous line repeated.*|main\..*|.*\{|\}|\s+throw .*|\S+:\d+"
)
_SIGNS = (
    "Traceback (most", "\n    at ", "\n\tat ", "   at ", "panic: ", "panicked at", "goroutine ",
    "Caused by: ", "Fatal error:", ":in `", ":in '",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """A stack trace's gist."""

    error: str
    message: str
    place: str
    """Function, file and line of the deepest frame of one's own code."""
    names: str = ""
    """Errors, files and functions of one's own code on the way."""
    repeats: int = 1


def read_trace(memory: MemoryRecord) -> Trace | None:
    """Return the gist of a memory that is nothing but a stack trace."""
    content = memory.content.strip("\n")
    if not _may_be_trace(content):
        return None
    lines = lines_of(content)[:LINES_MAX]
    if _has_remarks(lines):
        return None
    if "Traceback (most" in content:
        return _python_trace(lines, content.count("Traceback (most recent call last)"))
    return _other_trace(lines)


def _may_be_trace(content: str) -> bool:
    framed = "\n" in content or "panicked at" in content
    return framed and any(sign in content for sign in _SIGNS)


def _has_remarks(lines: Sequence[str]) -> bool:
    """Tell whether a person wrote some of the lines, or too many are no part of a trace."""
    others = [line for line in lines if not _is_part(line)]
    opens = is_prose(lines[0]) and not _is_part(lines[0])
    too_many = len(others) > OTHER_LINES_MAX + len(lines) // 2
    return opens or too_many or any(map(_is_remark, others))


def _python_trace(lines: Sequence[str], repeats: int) -> Trace | None:
    """Read tracebacks of Python: the deepest frame comes last, the error below it."""
    heads, frames = _python_ends(lines), _frames(lines)
    if not heads or not frames:
        return None
    same = len({match["error"] for match in heads}) == 1
    return _gist(lines, heads, heads[-1], frames[::-1], repeats=repeats if same else 1)


def _other_trace(lines: Sequence[str]) -> Trace | None:
    """Read traces with the error on top; the last cause is what went wrong."""
    heads, frames = _heads(lines), _frames(lines)
    if not heads or not (frames or heads[0].groupdict().get("path")):
        return None
    head = heads[0]
    if heads[-1][0].startswith("Caused"):
        head = heads[-1]
        frames = _frames("\n".join(lines).rpartition(head[0])[2].splitlines())
    return _gist(lines, heads, head, frames)


def _gist(
    lines: Sequence[str],
    heads: Sequence[re.Match[str]],
    head: re.Match[str],
    frames: Sequence[re.Match[str]],
    *,
    repeats: int = 1,
) -> Trace:
    """Return the gist of a trace from its frames, the deepest first."""
    message = head.groupdict().get("message") or _panic_message(lines, head)
    return Trace(
        error=_error_name(head),
        message=shorten(message, MESSAGE_CHARS_MAX),
        place=_place(frames, head),
        names=_names(heads, frames),
        repeats=repeats,
    )


def _frames(lines: Sequence[str]) -> list[re.Match[str]]:
    return [match for line in lines if (match := first_match(_FRAMES, line))]


def _heads(lines: Sequence[str]) -> list[re.Match[str]]:
    return [match for line in lines if (match := first_match(_HEADS, line.strip()))]


def _python_ends(lines: Sequence[str]) -> list[re.Match[str]]:
    """Return the lines that end a Python traceback: flush left, right below a frame."""
    ends: list[re.Match[str]] = []
    inside = False
    for line in lines:
        bare = line.lstrip("| +-") if line.startswith(("  |", "  +")) else line
        if bare.startswith("Traceback (most"):
            inside = True
        elif inside and not bare.startswith((" ", "\t")):
            inside = False
            if match := _PYTHON_END.fullmatch(bare):
                ends.append(match)
    return ends


def _is_part(line: str) -> bool:
    """Tell whether a line has a form that stack traces are made of."""
    body = first_match((*_FRAMES, _FURNITURE), line)
    return bool(body or first_match(_HEADS, line.strip()))


def _is_remark(line: str) -> bool:
    """Tell whether a line that is no part of a trace was written by a person."""
    return not line.startswith((" ", "\t")) and is_prose(line) and ": " not in line[:60]


def _panic_message(lines: Sequence[str], head: re.Match[str]) -> str:
    """Return the line below a panic of Rust, where its message stands."""
    if head["error"] != "panicked":
        return ""
    below = next(index for index, line in enumerate(lines) if head[0] in line) + 1
    return lines[below] if below < len(lines) else ""


def _error_name(head: re.Match[str]) -> str:
    error = head["error"]
    if error == "panicked":
        return f"Panic in thread {head['thread']}"
    if error == "panic":
        return "Panic"
    return re.split(r"[.\\]|::", error)[-1] if error != "fatal error" else "Fatal error"


def _place(frames: Sequence[re.Match[str]], head: re.Match[str]) -> str:
    """Return where it happened: the first own frame, or else the first of all."""
    if "path" in _parts(head):
        return _file_and_line(_parts(head))
    own = [frame for frame in frames if not _is_foreign(frame)]
    if not frames:
        return ""
    frame = _parts((own or frames)[0])
    where = _file_and_line(frame)
    function = frame.get("function", "").strip()
    is_named = function and not function.startswith("<")
    return f"{function} ({where})" if is_named else where


def _parts(match: re.Match[str]) -> dict[str, str]:
    """Return the groups of a match that have a text."""
    return {name: text for name, text in match.groupdict().items() if text}


def _file_and_line(parts: Mapping[str, str]) -> str:
    return _short_path(parts["path"]) + phrase(", line ", parts.get("line", ""))


def _names(heads: Sequence[re.Match[str]], frames: Sequence[re.Match[str]]) -> str:
    """Return the names worth finding a trace by."""
    names = [match["error"] for match in heads]
    for frame in frames[-NAMED_FRAMES_MAX:]:
        if not _is_foreign(frame):
            parts = _parts(frame)
            names += [_short_path(parts["path"]), parts.get("function", "")]
    return " ".join(names)


def _is_foreign(frame: re.Match[str]) -> bool:
    parts = _parts(frame)
    names = (parts["path"], parts.get("function", ""))
    return any(map(_FOREIGN.search, names))


def _short_path(path: str) -> str:
    """Return the last three parts of a path: enough to find the file."""
    return "/".join(path.removeprefix("file://").split("/")[-3:])


def write_traces(
    readings: Sequence[Reading[Trace]], _zone: tzinfo
) -> Iterator[RecordLine]:
    """Write each error with its place once, and how often it came."""
    for group in grouped(readings, _cause).values():
        trace = group[0].value
        count = sum(reading.value.repeats for reading in group)
        text = trace.error + phrase(": ", trace.message.rstrip("."))
        text += phrase(" in ", trace.place)
        worth = WORTH
        if count > 1:
            text += f", {count} times"
            worth = REPEATED_WORTH
        positions = [reading.position for reading in group]
        yield make_line(f"{text}.", trace.names, positions, worth)


def _cause(reading: Reading[Trace]) -> tuple[str, str, str]:
    """Return what traces of one fault have in common."""
    trace = reading.value
    return trace.error, re.sub(r"\d+", "#", trace.message), trace.place


TRACES = Rule("stack traces", read_trace, write_traces)
