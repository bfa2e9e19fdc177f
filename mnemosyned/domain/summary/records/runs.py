"""Test runs: how many, how they ended, and which tests failed with what message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.lines import Reading, RecordLine, Rule
from mnemosyned.domain.summary.records.wording import (
    collapse,
    counted,
    index_terms,
    is_prose,
    lines_of,
    shorten,
)

LINES_MAX = 5_000
FAILURES_SHOWN_MAX = 4
FAILURES_READ_MAX = 40
MESSAGE_CHARS_MAX = 120
COMMAND_CHARS_MAX = 60
PROSE_SHARE_MAX = 0.34
PASSED_WORTH = 0.35
FAILED_WORTH = 0.85

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
    signs = _SIGNS if "\n" in content else _ONE_LINE_SIGNS
    if not any(sign in content for sign in signs):
        return None
    if "\n" not in content:
        run = _read_title(content) or _read_command(content)
        return run or (_read_output(content, "") if _BARE.match(content) else None)
    lines = lines_of(content)[:LINES_MAX]
    command = ""
    if lines[0].startswith("$ "):
        command = lines.pop(0)[2:]
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
    title = match["title"]
    failed = match["verdict"] not in {"passed", "succeeded", "is green"}
    detail = collapse(match["detail"] or "")
    suite = title.partition(" ")[0].lower()
    counted_ = _COUNTED.fullmatch(detail)
    if counted_:
        return Run(suite, title, detail.rstrip("."), failed, (), detail)
    if not failed:
        return None if detail else Run(suite, title, "", failed=False)
    if detail and is_prose(detail) and not _TEST_NAME.search(detail):
        return None
    return Run(suite, title, "", failed, (detail,), detail)


def _read_command(content: str) -> Run | None:
    """Read a command with its counts: "pytest -q: 2 failed, 61 passed in 8.4 s"."""
    match = _COUNTED.fullmatch(content)
    if match and "," in match["counts"]:
        return Run("tests", "", content.rstrip("."), _has_failed(content))
    match = _COMMAND.fullmatch(content)
    if not match or not _RUNNERS.search(match["command"]) or is_prose(match["command"]):
        return None
    detail = collapse(match["detail"] or "")
    if detail and not _TEST_NAME.search(detail):
        return None
    counts = match["counts"] + (match["time"] or "").rstrip(" .")
    command = match["command"]
    failed = _has_failed(counts)
    failures = (detail.rstrip("."),) if detail and failed else ()
    return Run(_suite(command), command, counts, failed, failures, detail)


def _suite(command: str) -> str:
    match = _RUNNERS.search(command)
    return match[0] if match else command.partition(" ")[0]


def _has_failed(counts: str) -> bool:
    return _FAILED_COUNT.search(counts) is not None


def _read_output(text: str, command: str) -> Run | None:
    """Read what a test runner prints over many lines."""
    counts, failed = _go_counts(text)
    if not counts:
        counts, failed = _summary_counts(text)
    if not counts:
        return None
    failures = _failures(text)
    failing = _FAILING.search(text)
    if "passing" in counts and failing:
        counts = f"{counts}, {failing[1]}"
    failed = failed or _has_failed(counts) or _VERDICT.search(text) is not None
    if counts.startswith("# tests"):
        counts, failed = counted(int(counts[8:]), "test"), bool(failures)
    suite = _suite(command) if command else _runner_of(text)
    shown = (f"failed: {failures[0]}", *failures[1:]) if failed and failures else ()
    return Run(suite, command, counts, failed, shown, text)


def _summary_counts(text: str) -> tuple[str, bool]:
    """Return the counts of the last summary line, and whether it says that the run failed."""
    for form in _SUMMARIES:
        summaries = list(form.finditer(text))
        if summaries:
            parts = summaries[-1].groupdict()
            time = f" in {parts['took']}" if parts.get("took") else parts.get("time")
            counts = parts["counts"].replace(";", ",").replace(" |", ",")
            failed = any(
                summary.groupdict().get("verdict") == "FAILED" for summary in summaries
            )
            return collapse(counts + (time or "")), failed
    return "", False


def _go_counts(text: str) -> tuple[str, bool]:
    """Return how many packages passed and failed under `go test`."""
    verdicts = [match["verdict"] for match in _GO_PACKAGE.finditer(text)]
    if not verdicts:
        return "", False
    failed = verdicts.count("FAIL")
    passed = len(verdicts) - failed
    said = [counted(passed, "package") + " ok"] if passed else []
    said += [counted(failed, "package") + " failed"] if failed else []
    return ", ".join(said), failed > 0


def _runner_of(text: str) -> str:
    signs = {
        "test result:": "cargo test", "test session starts": "pytest", "::": "pytest",
        "Test Suites:": "jest", "Tests run:": "maven", "--- FAIL": "go test", "ok  \t": "go test",
        "Ran ": "unittest", "examples,": "rspec", "assertions": "phpunit", "passing": "mocha",
    }  # fmt: skip
    return next((runner for sign, runner in signs.items() if sign in text), "tests")


def _failures(text: str) -> tuple[str, ...]:
    """Return each failed test with its message where the output has it."""
    found: dict[str, str] = {}
    counted_text = text.rpartition("passing")[0] or text
    for form in _FAILURES:
        for match in form.finditer(counted_text):
            message = match.groupdict().get("message") or ""
            test = match["test"].strip()
            found[test] = found.get(test) or message
            if len(found) == FAILURES_READ_MAX:
                break
        if found:
            break
    messages = [match["message"] for match in _ERROR_LINE.finditer(text)]
    if len(found) == 1 and messages and not next(iter(found.values())):
        found = dict.fromkeys(found, messages[0])
    return tuple(_failure(test, message) for test, message in found.items())


def _failure(test: str, message: str) -> str:
    name = test.rsplit("/", 1)[-1] if "::" in test else test
    said = shorten(message, MESSAGE_CHARS_MAX)
    return f"{name} ({said})" if said else name


def write_runs(readings: Sequence[Reading[Run]], _zone: tzinfo) -> Iterator[RecordLine]:
    """Write one line for the runs of each suite."""
    groups: dict[str, list[Reading[Run]]] = {}
    for reading in readings:
        groups.setdefault(reading.value.suite, []).append(reading)
    for group in groups.values():
        yield _single(group[0]) if len(group) == 1 else _several(group)


def _single(reading: Reading[Run]) -> RecordLine:
    run = reading.value
    named = bool(run.title)
    title = shorten(run.title, COMMAND_CHARS_MAX) or f"Test run of {run.suite}"
    if run.suite == "tests" and not named:
        title = "Test run"
    verdict = " failed" if run.failed and not run.counts else ""
    verdict = verdict or (" passed" if not run.counts else "")
    parts = [run.counts, *_shown_failures(run.failures)]
    said = "; ".join(part.rstrip(".") for part in parts if part)
    text = f"{title}{verdict}: {said}." if said else f"{title}{verdict}."
    return _line(text, [reading], failed=run.failed)


def _several(group: Sequence[Reading[Run]]) -> RecordLine:
    """Return one line for the runs of a suite: the failures, and how the last one passed."""
    runs = [reading.value for reading in group]
    failed = [run for run in runs if run.failed]
    suite = runs[0].suite
    noun = "test run" if suite in _PLAIN_SUITES else f"{suite} run"
    head = f"{counted(len(runs), noun)}, {len(failed) or 'none'} failed"
    causes = _distinct_causes(failed)
    if causes:
        head += f": {'; '.join(_shown_failures(causes))}"
    passing = [run for run in runs if not run.failed and run.counts]
    last = _last_passed(passing[-1]) if passing else ""
    return _line(f"{head}{last}.", group, failed=bool(failed))


def _distinct_causes(failed: Sequence[Run]) -> list[str]:
    causes = chain.from_iterable(map(_causes_of, failed))
    return list(dict.fromkeys(cause.removeprefix("failed: ") for cause in causes))


def _last_passed(run: Run) -> str:
    title = shorten(run.title, COMMAND_CHARS_MAX) if run.suite != "tests" else ""
    named = f" ({title})" if title else ""
    return f"; the last that passed{named} had {run.counts}"


def _causes_of(run: Run) -> tuple[str, ...]:
    title = shorten(run.title, COMMAND_CHARS_MAX)
    if run.failures:
        if run.title and not run.counts:
            return (f"{title} ({run.failures[0].rstrip('.')})",)
        return run.failures
    return (f"{title} ({run.counts})" if title else run.counts,)


def _shown_failures(failures: Sequence[str]) -> list[str]:
    shown = [
        shorten(failure, 2 * MESSAGE_CHARS_MAX)
        for failure in failures[:FAILURES_SHOWN_MAX]
    ]
    left = len(failures) - len(shown)
    return [*shown, f"and {left} more"] if left else shown


def _line(text: str, group: Sequence[Reading[Run]], *, failed: bool) -> RecordLine:
    source = "\n".join(
        f"{reading.value.title} {' '.join(reading.value.failures)}" for reading in group
    )
    return RecordLine(
        text=text.replace("….", "…"),
        index_terms=index_terms(source, text),
        position=group[0].position,
        worth=FAILED_WORTH if failed else PASSED_WORTH,
        memories=len(group),
    )


RUNS = Rule("test runs", read_run, write_runs)
