"""Shell sessions and test runs: what ran, how it ended, and what failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import islice

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.lines import (
    RecordLine,
    RecordReading,
    RecordRule,
    RecordSentence,
    Sentences,
    collapse_blanks,
    enclose,
    end_line,
    find_first_reading,
    group_by,
    is_prose,
    make_line,
    shorten,
    show_count,
    split_command,
    split_nonblank_lines,
    write_sentences,
)
from mnemosyned.text.rule_files import read_rule_file

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__)


COMMANDS_MAX = 24
SESSION_LINES_MAX = 5_000
PROMPT_CHARS_MAX = 120
SESSION_COMMAND_CHARS_MAX = 140
OUTPUT_CHARS_MAX = 160
COMMAND_WORTH = 0.35
FAILED_COMMAND_WORTH = 0.8


def read_session(memory: MemoryRecord, _zone: tzinfo) -> Sentences | None:
    """Return a sentence for each command of a shell session, with its output or failure.

    None if the memory is not a shell session.
    """
    if not _PATTERNS["prompt_sign"].search(memory.content, 0, PROMPT_CHARS_MAX):
        return None
    lines = split_nonblank_lines(memory.content.strip())[:SESSION_LINES_MAX]
    ends_in_prose = is_prose(lines[-1]) and not _PATTERNS["failure"].search(lines[-1])
    if not _find_command(lines[0]) or ends_in_prose:
        return None
    if sum(map(is_prose, lines)) > len(lines) // 3:
        return None
    commands: list[tuple[str, list[str]]] = []
    for line in lines:
        if command := _find_command(line):
            commands.append((command, []))
        else:
            commands[-1][1].append(line)
    sentences = [_describe_command(*command) for command in commands[:COMMANDS_MAX]]
    if hidden := commands[COMMANDS_MAX:]:
        source = "\n".join(command for command, _ in hidden)
        text = f"The session ran {len(hidden)} more commands."
        sentences.append(RecordSentence(text, 0.2, source))
    return tuple(sentences)


def _find_command(line: str) -> str:
    """Return the command after a shell prompt in a line; empty if the line has none."""
    match = _PATTERNS["prompt"].fullmatch(line.strip())
    if not match or _PATTERNS["not_a_command"].match(match["command"]):
        return ""
    command = match["command"].strip()
    return "" if is_prose(command) else command


def _describe_command(command: str, output: Sequence[str]) -> RecordSentence:
    """Return the sentence about a command: how it failed, or else its last line of output.

    `output` are the lines that it printed.
    """
    exits = list(filter(None, map(_PATTERNS["exit"].fullmatch, output)))
    code = exits[-1]["code"] if exits else ""
    failures = list(filter(_PATTERNS["failure"].search, output))
    has_failed = code != "0" and bool(code or failures)
    outcome = _summarize_output(output)
    if has_failed:
        outcome = failures[-1].strip() if failures else outcome
        outcome += enclose(" (exit code ", code, ")")
    outcome = shorten(outcome.strip(), OUTPUT_CHARS_MAX).rstrip(".")
    line = shorten(command, SESSION_COMMAND_CHARS_MAX)
    verb = "failed with" if has_failed else "printed"
    text = f"The command `{line}` {verb}: {outcome}" if outcome else f"Ran `{line}`"
    worth = FAILED_COMMAND_WORTH if has_failed else COMMAND_WORTH
    source = "\n".join((command, *output[-40:]))
    return RecordSentence(end_line(text), worth, source)


def _summarize_output(output: Sequence[str]) -> str:
    """Return the last line of output that reports success; else "12 lines, the last …".

    A single line is returned as it is; empty without output.
    """
    lines = [line for line in output if not _PATTERNS["exit"].fullmatch(line)]
    successes = list(filter(_PATTERNS["success"].search, lines))
    if successes or len(lines) < 2:
        return "".join((successes or lines)[-1:]).strip()
    return f"{len(lines)} lines, the last {lines[-1].strip()}"


SHELLS = RecordRule("commands", read_session, write_sentences)


RUN_LINES_MAX = 5_000
FAILURES_SHOWN_MAX = 4
FAILURES_READ_MAX = 40
RUN_MESSAGE_CHARS_MAX = 120
RUN_COMMAND_CHARS_MAX = 60
PROSE_SHARE_MAX = 0.34
PASSED_RUN_WORTH = 0.35
FAILED_RUN_WORTH = 0.85


_SIGNS = (
    "passed", "failed", "test result:", "Ran ", "Tests run:", "examples,", "example,", "OK (",
    "Tests:", "passing", "ok  \t", "ok \t", "FAIL", "Passed!", "Failed!", "# tests", "succeeded",
    "--- ", "errored", "timed out",
)  # fmt: skip
_ONE_LINE_SIGNS = (
    "passed", "failed", "succeeded", "errored", "is green", "timed out", "Passed!",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TestRun:
    """Outcome of one run of a test suite."""

    suite: str
    """The test runner or command; runs of one suite are counted together."""
    title: str
    """Name of the run: its number and branch, or its command."""
    counts: str
    failed: bool
    failures: tuple[str, ...] = ()
    """Each failed test with its message."""


def read_run(memory: MemoryRecord, _zone: tzinfo) -> TestRun | None:
    """Return the outcome of a test run whose output is all that the memory contains; else None."""
    content = memory.content.strip()
    is_one_line = "\n" not in content
    signs = _ONE_LINE_SIGNS if is_one_line else _SIGNS
    if not any(sign in content for sign in signs):
        return None
    if is_one_line:
        return find_first_reading(_ONE_LINE_READERS, content)
    command, lines = split_command(split_nonblank_lines(content)[:RUN_LINES_MAX])
    if not lines or sum(map(is_prose, lines)) > PROSE_SHARE_MAX * len(lines):
        return None
    for line in (lines[0].strip(), lines[-1].strip()):
        if is_prose(line) and not any(form.match(line) for form in _FORMS["failures"]):
            return None  # a report about a run
    return _read_output("\n".join(lines), command)


def _read_ci_sentence(content: str) -> TestRun | None:
    """Return the outcome in a sentence "Run 8791 on main passed: 412 passed, 3 skipped".

    None for any other text.
    """
    match = _PATTERNS["title"].fullmatch(content)
    if not match:
        return None
    title, detail = match["title"], collapse_blanks(match["detail"] or "")
    suite = title.partition(" ")[0].lower()
    failed = match["verdict"] not in {"passed", "succeeded", "is green"}
    if _PATTERNS["counted"].fullmatch(detail):
        return TestRun(suite, title, detail.rstrip("."), failed)
    if not failed:
        return None if detail else TestRun(suite, title, "", failed=False)
    if is_prose(detail) and not _PATTERNS["test_name"].search(detail):
        return None
    return TestRun(suite, title, "", failed, (detail,))


def _read_bare_counts(content: str) -> TestRun | None:
    """Return the outcome in a text of counts alone: "2 failed, 61 passed in 8.4 s"; else None."""
    match = _PATTERNS["counted"].fullmatch(content)
    if not match or "," not in match["counts"]:
        return None
    return TestRun("tests", "", content.rstrip("."), _has_failed(content))


def _read_command_with_counts(content: str) -> TestRun | None:
    """Return the outcome in a line "pytest -q: 2 failed, 61 passed in 8.4 s".

    None for any other text.
    """
    match = _PATTERNS["command"].fullmatch(content)
    if not match:
        return None
    parts = match.groupdict("")
    command, detail = parts["command"], collapse_blanks(parts["detail"])
    if not _PATTERNS["runners"].search(command) or is_prose(command):
        return None
    if detail and not _PATTERNS["test_name"].search(detail):
        return None
    counts = parts["counts"] + parts["time"].rstrip(" .")
    failed = _has_failed(counts)
    failures = tuple(filter(None, (detail.rstrip("."),))) if failed else ()
    return TestRun(_name_suite(command), command, counts, failed, failures)


def _read_summary_line(content: str) -> TestRun | None:
    """Return the outcome in the last line that a test runner prints; None for any other text."""
    return _read_output(content, "") if _PATTERNS["bare"].match(content) else None


_ONE_LINE_READERS = (
    _read_ci_sentence,
    _read_bare_counts,
    _read_command_with_counts,
    _read_summary_line,
)


def _name_suite(command: str) -> str:
    """Return the name of the test runner in a command, or else the command's first word."""
    match = _PATTERNS["runners"].search(command)
    return match[0] if match else command.partition(" ")[0]


def _has_failed(counts: str) -> bool:
    """Return True if counts such as "2 failed, 61 passed" have a failure."""
    return _PATTERNS["failed_count"].search(counts) is not None


def _read_output(text: str, command: str) -> TestRun | None:
    """Return the outcome in the output of a test runner, or None if it has no counts.

    `command` is the command that ran, empty if unknown.
    """
    summary = find_first_reading((_count_go_packages, _find_summary_counts), text)
    if summary is None:
        return None
    counts, failed = summary
    failures = _list_failed_tests(text)
    if counts.startswith("# tests"):
        counts, failed = show_count(int(counts[8:]), "test"), bool(failures)
    suite = next(
        (suite for sign, suite in _NAMES["suites"].items() if sign in text), "tests"
    )
    shown = (f"failed: {failures[0]}", *failures[1:]) if failed and failures else ()
    return TestRun(
        _name_suite(command) if command else suite, command, counts, failed, shown
    )


def _find_summary_counts(text: str) -> tuple[str, bool] | None:
    """Return the counts in the last summary line of a test run, and whether the run failed.

    None if the output has no such line.
    """
    for form in _FORMS["summaries"]:
        if summaries := [match.groupdict("") for match in form.finditer(text)]:
            break
    else:
        return None
    last = summaries[-1]
    time = enclose(" in ", last.get("took", "")) or last.get("time", "")
    counts = collapse_blanks(last["counts"].replace(";", ",").replace(" |", ",") + time)
    failing = _PATTERNS["failing"].search(text)
    if failing and "passing" in counts:
        counts += f", {failing[1]}"
    verdicts = {summary.get("verdict") for summary in summaries}
    failed = "FAILED" in verdicts or _PATTERNS["verdict"].search(text) is not None
    return counts, failed or _has_failed(counts)


def _count_go_packages(text: str) -> tuple[str, bool] | None:
    """Return the counts of packages that `go test` reports, as text, and whether any failed.

    None for other output.
    """
    verdicts = Counter(
        match["verdict"] for match in _PATTERNS["go_package"].finditer(text)
    )
    if not verdicts:
        return None
    counts = [
        f"{show_count(verdicts[verdict], 'package')} {result}"
        for verdict, result in (("ok", "ok"), ("FAIL", "failed"))
        if verdicts[verdict]
    ]
    return ", ".join(counts), "FAIL" in verdicts


def _list_failed_tests(text: str) -> tuple[str, ...]:
    """Return the name of each failed test in a runner's output, with its message in brackets."""
    above = text.rpartition("passing")[0] or text
    messages_by_form = (
        _find_failure_messages(form, above) for form in _FORMS["failures"]
    )
    messages = next(filter(None, messages_by_form), {})
    error = _PATTERNS["error_line"].search(text)
    if error and list(messages.values()) == [""]:
        messages = dict.fromkeys(messages, error["message"])
    return tuple(
        (test.rsplit("/", 1)[-1] if "::" in test else test)
        + enclose(" (", shorten(message, RUN_MESSAGE_CHARS_MAX), ")")
        for test, message in messages.items()
    )


def _find_failure_messages(form: re.Pattern[str], text: str) -> dict[str, str]:
    """Return the failed tests in the lines that match `form`, each with its message or ""."""
    messages: dict[str, str] = {}
    for match in form.finditer(text):
        parts = match.groupdict("")
        test = parts["test"].strip()
        messages[test] = messages.get(test) or parts.get("message", "")
    return dict(islice(messages.items(), FAILURES_READ_MAX))


def write_runs(
    readings: Sequence[RecordReading[TestRun]], _zone: tzinfo
) -> Iterator[RecordLine]:
    """Yield one line for each test suite about all its runs."""
    for group in group_by(readings, lambda reading: reading.value.suite).values():
        runs = [reading.value for reading in group]
        text = _describe_run(runs[0]) if len(runs) == 1 else _describe_suite(runs)
        source = "\n".join(f"{run.title} {' '.join(run.failures)}" for run in runs)
        positions = [reading.position for reading in group]
        failed = any(run.failed for run in runs)
        worth = FAILED_RUN_WORTH if failed else PASSED_RUN_WORTH
        yield make_line(end_line(text), source, positions, worth)


def _describe_run(run: TestRun) -> str:
    """Return a test run as text: its name, counts and failed tests."""
    unnamed = "Test run" if run.suite == "tests" else f"Test run of {run.suite}"
    title = shorten(run.title, RUN_COMMAND_CHARS_MAX) or unnamed
    if not run.counts:
        title += " failed" if run.failed else " passed"
    parts = filter(None, (run.counts, *_limit_failures(run.failures)))
    return title + enclose(": ", "; ".join(part.rstrip(".") for part in parts))


def _describe_suite(runs: Sequence[TestRun]) -> str:
    """Return several runs of a suite as text: failures, and the counts of the last that passed."""
    failed = [run for run in runs if run.failed]
    suite = runs[0].suite
    noun = "test run" if suite in _WORDS["plain_suites"] else f"{suite} run"
    text = f"{show_count(len(runs), noun)}, {len(failed) or 'none'} failed"
    causes: dict[str, None] = {}
    for run in failed:
        named = (cause.removeprefix("failed: ") for cause in _list_failure_causes(run))
        causes.update(dict.fromkeys(named))
    text += enclose(": ", "; ".join(_limit_failures(list(causes))))
    if passed := [run for run in runs if run.counts and not run.failed]:
        last = passed[-1]
        title = shorten(last.title, RUN_COMMAND_CHARS_MAX) if suite != "tests" else ""
        text += f"; the last that passed{enclose(' (', title, ')')} had {last.counts}"
    return text


def _list_failure_causes(run: TestRun) -> tuple[str, ...]:
    """Return the failed tests of a run, or else its title with what is known of the failure."""
    if run.failures and (run.counts or not run.title):
        return run.failures
    title = shorten(run.title, RUN_COMMAND_CHARS_MAX)
    cause = run.failures[0].rstrip(".") if run.failures else run.counts
    return (f"{title} ({cause})" if title else cause,)


def _limit_failures(failures: Sequence[str]) -> list[str]:
    """Return the first failures, shortened; if there are more, then "and 3 more" at the end."""
    shown = [
        shorten(failure, 2 * RUN_MESSAGE_CHARS_MAX)
        for failure in failures[:FAILURES_SHOWN_MAX]
    ]
    left = len(failures) - len(shown)
    return [*shown, f"and {left} more"] if left else shown


RUNS = RecordRule("test runs", read_run, write_runs)
