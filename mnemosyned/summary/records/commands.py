"""Shell sessions and test runs: which commands and tests ran, how they ended, and what failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain, islice, starmap

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.lines import (
    Reading,
    RecordLine,
    Rule,
    Sentence,
    below_command,
    collapse,
    counted,
    full_stop,
    is_prose,
    lines_of,
    make_line,
    phrase,
    shorten,
    write_each,
)
from mnemosyned.summary.records.matching import first_reading, grouped

COMMANDS_MAX = 24
SESSION_LINES_MAX = 5_000
PROMPT_CHARS_MAX = 120
SESSION_COMMAND_CHARS_MAX = 140
OUTPUT_CHARS_MAX = 160
COMMAND_WORTH = 0.35
FAILED_COMMAND_WORTH = 0.8

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
    lines = lines_of(memory.content.strip())[:SESSION_LINES_MAX]
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


def _session_sentences(
    reading: Reading[tuple[Command, ...]], _zone: tzinfo
) -> Iterator[Sentence]:
    """Write each command with how it ended."""
    commands = reading.value
    for command in commands[:COMMANDS_MAX]:
        yield _command_sentence(command)
    hidden = commands[COMMANDS_MAX:]
    if hidden:
        source = "\n".join(command.command for command in hidden)
        yield Sentence(f"The session ran {len(hidden)} more commands.", 0.2, source)


def _command_sentence(command: Command) -> Sentence:
    line = shorten(command.command, SESSION_COMMAND_CHARS_MAX)
    outcome = shorten(command.outcome, OUTPUT_CHARS_MAX).rstrip(".")
    source = f"{command.command}\n{command.output}"
    verb = "failed with" if command.failed else "printed"
    text = f"The command `{line}` {verb}: {outcome}" if outcome else f"Ran `{line}`"
    worth = FAILED_COMMAND_WORTH if command.failed else COMMAND_WORTH
    return Sentence(full_stop(text), worth, source)


SHELLS = Rule("commands", read_session, write_each(_session_sentences))


RUN_LINES_MAX = 5_000
FAILURES_SHOWN_MAX = 4
FAILURES_READ_MAX = 40
MESSAGE_CHARS_MAX = 120
RUN_COMMAND_CHARS_MAX = 60
PROSE_SHARE_MAX = 0.34
PASSED_RUN_WORTH = 0.35
FAILED_RUN_WORTH = 0.85

_STATES = r"passed|failed|skipped|errors?|xfailed|xpassed|warnings?|deselected|failures?|pending|todo"
_COUNTS = rf"\d+ (?:{_STATES})(?:, \d+ (?:{_STATES}))*"
_TIME = r" in (?:\d[\d.:]* ?(?:ms|s|sec|seconds|min|m|h)\b\.? ?)+(?:\(\d+:\d\d:\d\d\))?"
_SUMMARIES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"^=* ?(?P<counts>{_COUNTS})(?P<time>{_TIME})? ?=*$",
        r"^Tests: +(?P<counts>\d.*?, \d+ total)$",
        r"^ *Tests +(?P<counts>\d+ (?:passed|failed).*?)(?: \(\d+\))?$",
        r"^test result: (?P<verdict>ok|FAILED)\. (?P<counts>.*?)(?:; finished in (?P<took>[\d.]+s))?$",
        r"^(?P<counts>Ran \d+ tests? in [\d.]+s)$",
        r"^(?:\[\w+\] )?(?P<counts>Tests run: \d+, Failures: \d+, Errors: \d+(?:, Skipped: \d+)?).*$",
        r"^(?P<counts>\d+ examples?, \d+ failures?(?:, \d+ pending)?)$",
        r"^(?P<counts>OK \(\d+ tests?, \d+ assertions?\))$",
        r"^(?P<counts>Tests: \d+, Assertions: \d+.*?)\.?$",
        r"^ +(?P<counts>\d+ passing)(?: \((?P<took>[\w. ]+)\))?$",
        r"^(?:Passed!|Failed!) +- +(?P<counts>Failed: +\d+, Passed: +\d+.*?), Duration:.*$",
        r"^(?P<counts># tests \d+)$",
    )
)
_GO_PACKAGE = re.compile(
    r"^(?:(?P<verdict>ok|FAIL)\s+(?P<package>[\w.-]+(?:/[\w.-]+)+|\w+)\s+(?P<took>[\d.]+s|\(cached\)|\[.*\]).*)$",
    re.MULTILINE,
)
_FAILURES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^(?:FAILED|ERROR) (?P<test>\S+::\S+(?: [^-\n]*\])?)(?: - (?P<message>.*))?$",
        r"^\s*--- FAIL: (?P<test>\S+)",
        r"^test (?P<test>\S+) \.\.\. FAILED$",
        r"^\s*● (?P<test>.+ › .+)$",
        r"^(?:FAIL|ERROR): (?P<test>\w+ \(\S+\))$",
        r"^rspec (?P<test>\S+:\d+)(?: # (?P<message>.*))?$",
        r"^not ok \d+ -? ?(?P<test>.+)$",
        r"^ +\d+\) (?P<test>\S.*?):?$",
        r"^\d+\) (?P<test>[\w\\]+::\w+)$",
        r"^(?:\[ERROR\]\s+)(?P<test>\w+(?:\.\w+)+)(?::\d+)?(?: » | )(?P<message>.*)$",
        r"^ *FAIL +(?P<test>\S+ > .+)$",
    )
)
_ERROR_LINE = re.compile(
    r"^E +(?P<message>\w*(?:Error|Exception)\b.*|assert .*)$", re.MULTILINE
)
_TITLE = re.compile(
    r"(?P<title>(?:Run|Build|Job|Pipeline|Workflow|Lauf|CI run) #?\d+(?: [^:.]{1,80}?)?(?: \([^)]*\))?)"
    r" (?P<verdict>passed|failed|succeeded|is green|is red|errored|was canceled|timed out)"
    r"(?:: (?P<detail>.*))?",
    re.DOTALL,
)
_COMMAND = re.compile(
    rf"(?P<command>[^\n]{{2,200}}?): (?P<counts>{_COUNTS})(?P<time>{_TIME})?\.?(?P<detail> .*)?",
    re.DOTALL,
)
_RUNNERS = re.compile(
    r"\b(?:pytest|py\.test|jest|vitest|mocha|npm|yarn|pnpm|cargo|go test|make|tox|nox|rspec|phpunit"
    r"|gradle\w*|mvn|dotnet|ctest|bazel|unittest|deno|bun|playwright|cypress|tests?|suite)\b"
)
_FAILING = re.compile(r"^ +(\d+ failing)$", re.MULTILINE)
_VERDICT = re.compile(r"^FAILED \(", re.MULTILINE)
_PLAIN_SUITES = frozenset("tests run job build pipeline".split())
_BARE = re.compile(r"=|Passed!|Failed!|test result: |ok +\t|Tests: |Tests run: ")
_COUNTED = re.compile(rf"(?P<counts>{_COUNTS})(?P<time>{_TIME})?\.?")
_FAILED_COUNT = re.compile(
    r"(?<!\d)(?!0 )(\d+) (?:failed|failing|errors?|failures?)\b|(?:Failures|Errors|Failed): +(?!0)(\d+)"
)
_TEST_NAME = re.compile(
    r"\btest_\w+|::|\bTest[A-Z]\w+|\w(?:Error|Exception)\b|\bassert\b"
)


@dataclass(frozen=True, slots=True)
class Run:
    """How one run of tests ended."""

    suite: str
    """What ran; runs of one suite are counted together."""
    title: str
    """What this run is called: its number and branch, or its command."""
    counts: str
    failed: bool
    failures: tuple[str, ...] = ()
    """Each test that failed, with its message."""
    detail: str = ""


def read_run(memory: MemoryRecord) -> Run | None:
    """Return the result of a memory that is nothing but the output of a test run."""
    content = memory.content.strip()
    is_one_line = "\n" not in content
    signs = _ONE_LINE_SIGNS if is_one_line else _SIGNS
    if not any(sign in content for sign in signs):
        return None
    if is_one_line:
        return first_reading(_ONE_LINE_READERS, content)
    command, lines = below_command(lines_of(content)[:RUN_LINES_MAX])
    if not lines or _is_report(lines):
        return None
    return _read_output("\n".join(lines), command)


_SIGNS = (
    "passed", "failed", "test result:", "Ran ", "Tests run:", "examples,", "example,", "OK (",
    "Tests:", "passing", "ok  \t", "ok \t", "FAIL", "Passed!", "Failed!", "# tests", "succeeded",
    "--- ", "errored", "timed out",
)  # fmt: skip


_ONE_LINE_SIGNS = (
    "passed",
    "failed",
    "succeeded",
    "errored",
    "is green",
    "timed out",
    "Passed!",
)


def _is_report(lines: Sequence[str]) -> bool:
    """Tell whether a person wrote about a run around its output."""
    outer = [lines[0].strip(), lines[-1].strip()]
    framing = any(is_prose(line) and not _is_failure(line) for line in outer)
    return framing or sum(map(is_prose, lines)) > PROSE_SHARE_MAX * len(lines)


def _is_failure(line: str) -> bool:
    return any(form.match(line) for form in _FAILURES)


def _read_title(content: str) -> Run | None:
    """Read a sentence of a CI server: "Run 8791 on main passed: 412 passed, 3 skipped"."""
    match = _TITLE.fullmatch(content)
    if not match:
        return None
    title, detail = match["title"], collapse(match["detail"] or "")
    suite = title.partition(" ")[0].lower()
    failed = match["verdict"] not in {"passed", "succeeded", "is green"}
    if _COUNTED.fullmatch(detail):
        return Run(suite, title, detail.rstrip("."), failed, (), detail)
    if not failed:
        return None if detail else Run(suite, title, "", failed=False)
    if is_prose(detail) and not _TEST_NAME.search(detail):
        return None
    return Run(suite, title, "", failed, (detail,), detail)


def _read_counts(content: str) -> Run | None:
    """Read counts alone: "2 failed, 61 passed in 8.4 s"."""
    match = _COUNTED.fullmatch(content)
    if not match or "," not in match["counts"]:
        return None
    return Run("tests", "", content.rstrip("."), _has_failed(content))


def _read_command(content: str) -> Run | None:
    """Read a command with its counts: "pytest -q: 2 failed, 61 passed in 8.4 s"."""
    match = _COMMAND.fullmatch(content)
    if not match or not _runs_tests(match["command"]):
        return None
    parts = match.groupdict("")
    command, detail = parts["command"], collapse(parts["detail"])
    if detail and not _TEST_NAME.search(detail):
        return None
    counts = parts["counts"] + parts["time"].rstrip(" .")
    failed = _has_failed(counts)
    failures = tuple(filter(None, (detail.rstrip("."),))) if failed else ()
    return Run(_suite(command), command, counts, failed, failures, detail)


def _runs_tests(command: str) -> bool:
    return _RUNNERS.search(command) is not None and not is_prose(command)


def _read_bare_output(content: str) -> Run | None:
    """Read the last line that a test runner prints."""
    return _read_output(content, "") if _BARE.match(content) else None


_ONE_LINE_READERS = (_read_title, _read_counts, _read_command, _read_bare_output)


def _suite(command: str) -> str:
    match = _RUNNERS.search(command)
    return match[0] if match else command.partition(" ")[0]


def _has_failed(counts: str) -> bool:
    return _FAILED_COUNT.search(counts) is not None


def _read_output(text: str, command: str) -> Run | None:
    """Read what a test runner prints over many lines."""
    summary = first_reading((_go_counts, _summary_counts), text)
    if summary is None:
        return None
    counts, failed = summary
    failures = _failures(text)
    if counts.startswith("# tests"):
        counts, failed = counted(int(counts[8:]), "test"), bool(failures)
    suite = _suite(command) if command else _runner_of(text)
    shown = (f"failed: {failures[0]}", *failures[1:]) if failed and failures else ()
    return Run(suite, command, counts, failed, shown, text)


def _summary_counts(text: str) -> tuple[str, bool] | None:
    """Return the counts of the last summary line, and whether the run failed."""
    for form in _SUMMARIES:
        if summaries := [match.groupdict("") for match in form.finditer(text)]:
            break
    else:
        return None
    last = summaries[-1]
    time = phrase(" in ", last.get("took", "")) or last.get("time", "")
    counts = collapse(last["counts"].replace(";", ",").replace(" |", ",") + time)
    failing = _FAILING.search(text)
    if failing and "passing" in counts:
        counts += f", {failing[1]}"
    verdicts = {summary.get("verdict") for summary in summaries}
    failed = "FAILED" in verdicts or _VERDICT.search(text) is not None
    return counts, failed or _has_failed(counts)


def _go_counts(text: str) -> tuple[str, bool] | None:
    """Return how many packages passed and failed under `go test`."""
    verdicts = Counter(match["verdict"] for match in _GO_PACKAGE.finditer(text))
    if not verdicts:
        return None
    counts = [
        f"{counted(verdicts[verdict], 'package')} {result}"
        for verdict, result in (("ok", "ok"), ("FAIL", "failed"))
        if verdicts[verdict]
    ]
    return ", ".join(counts), "FAIL" in verdicts


def _runner_of(text: str) -> str:
    signs = {
        "test result:": "cargo test", "test session starts": "pytest", "::": "pytest",
        "Test Suites:": "jest", "Tests run:": "maven", "--- FAIL": "go test", "ok  \t": "go test",
        "Ran ": "unittest", "examples,": "rspec", "assertions": "phpunit", "passing": "mocha",
    }  # fmt: skip
    return next((runner for sign, runner in signs.items() if sign in text), "tests")


def _failures(text: str) -> tuple[str, ...]:
    """Return each failed test with its message where the output has it."""
    above = text.rpartition("passing")[0] or text
    named = (_named_failures(form, above) for form in _FAILURES)
    messages = next(filter(None, named), {})
    error = _ERROR_LINE.search(text)
    if error and list(messages.values()) == [""]:
        messages = dict.fromkeys(messages, error["message"])
    return tuple(starmap(_failure, messages.items()))


def _named_failures(form: re.Pattern[str], text: str) -> dict[str, str]:
    """Return the failed tests that the lines of one form name, with their messages."""
    messages: dict[str, str] = {}
    for match in form.finditer(text):
        parts = match.groupdict("")
        test = parts["test"].strip()
        messages[test] = messages.get(test) or parts.get("message", "")
    return dict(islice(messages.items(), FAILURES_READ_MAX))


def _failure(test: str, message: str) -> str:
    name = test.rsplit("/", 1)[-1] if "::" in test else test
    return name + phrase(" (", shorten(message, MESSAGE_CHARS_MAX), ")")


def write_runs(readings: Sequence[Reading[Run]], _zone: tzinfo) -> Iterator[RecordLine]:
    """Write one line for the runs of each suite."""
    for group in grouped(readings, _suite_of).values():
        runs = [reading.value for reading in group]
        text = _single(runs[0]) if len(runs) == 1 else _several(runs)
        source = "\n".join(f"{run.title} {' '.join(run.failures)}" for run in runs)
        positions = [reading.position for reading in group]
        failed = any(run.failed for run in runs)
        worth = FAILED_RUN_WORTH if failed else PASSED_RUN_WORTH
        yield make_line(full_stop(text), source, positions, worth)


def _suite_of(reading: Reading[Run]) -> str:
    return reading.value.suite


def _single(run: Run) -> str:
    unnamed = "Test run" if run.suite == "tests" else f"Test run of {run.suite}"
    title = shorten(run.title, RUN_COMMAND_CHARS_MAX) or unnamed
    if not run.counts:
        title += " failed" if run.failed else " passed"
    parts = filter(None, (run.counts, *_shown_failures(run.failures)))
    return title + phrase(": ", "; ".join(part.rstrip(".") for part in parts))


def _several(runs: Sequence[Run]) -> str:
    """Return what is said of the runs of a suite: the failures, and how the last passed."""
    failed = [run for run in runs if run.failed]
    passed = [run for run in runs if run.counts and not run.failed]
    suite = runs[0].suite
    noun = "test run" if suite in _PLAIN_SUITES else f"{suite} run"
    head = f"{counted(len(runs), noun)}, {len(failed) or 'none'} failed"
    causes = phrase(": ", "; ".join(_shown_failures(_distinct_causes(failed))))
    return head + causes + "".join(map(_last_passed, passed[-1:]))


def _distinct_causes(failed: Sequence[Run]) -> list[str]:
    causes = chain.from_iterable(map(_causes_of, failed))
    return list(dict.fromkeys(cause.removeprefix("failed: ") for cause in causes))


def _last_passed(run: Run) -> str:
    title = shorten(run.title, RUN_COMMAND_CHARS_MAX) if run.suite != "tests" else ""
    return f"; the last that passed{phrase(' (', title, ')')} had {run.counts}"


def _causes_of(run: Run) -> tuple[str, ...]:
    if run.failures and (run.counts or not run.title):
        return run.failures
    title = shorten(run.title, RUN_COMMAND_CHARS_MAX)
    cause = run.failures[0].rstrip(".") if run.failures else run.counts
    return (f"{title} ({cause})" if title else cause,)


def _shown_failures(failures: Sequence[str]) -> list[str]:
    shown = [
        shorten(failure, 2 * MESSAGE_CHARS_MAX)
        for failure in failures[:FAILURES_SHOWN_MAX]
    ]
    left = len(failures) - len(shown)
    return [*shown, f"and {left} more"] if left else shown


RUNS = Rule("test runs", read_run, write_runs)
