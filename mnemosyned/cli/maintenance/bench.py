"""`mnem bench`: replays saved conversations day by day, and reports what agents would get."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from operator import itemgetter
from pathlib import Path

import click
from msgspec.structs import replace

from mnemosyned import errors, instants
from mnemosyned.agents.hooks import events, service
from mnemosyned.assembly import build, embedded
from mnemosyned.cli.options import json_option, prints_json
from mnemosyned.cli.output.conversation import injection_lines
from mnemosyned.cli.output.show import escape_strings, say_result
from mnemosyned.cli.output.terminal import count_of, local_time, progress_line, say
from mnemosyned.config.loading import load_config
from mnemosyned.importers.importer import START, ImportItem, ImportSource
from mnemosyned.importers.run import plan_import
from mnemosyned.memory.injections import (
    Injection,
    InjectionFilter,
    InjectionKind,
    InjectionOutcome,
)
from mnemosyned.text.token_counts import TokenEstimator
from mnemosyned.verbs import memories, request, upkeep

FORMATS = ("transcript", "specstory", "opencode", "opencode-files")
"""Import formats that are conversations with agents."""
NIGHT = time(3)
"""Local time at which a replayed day ends with a sleep."""
MESSAGES_MAX = 200_000
_PROJECT_FOLDER = re.compile(r".*/(?:projects|tmp)/[^/]+(?=/)")
"""Folder in which Cursor or Gemini CLI keeps a project, as their transcripts do not name its directory."""


Said = tuple[datetime, memories.Remember]
"""A message of a saved conversation, and when it was said."""


@dataclass(slots=True, kw_only=True)
class BenchReport:
    """Texts that a replay gave, and their cost."""

    conversations: int = 0
    projects: int = 0
    first: datetime | None = None
    last: datetime | None = None
    messages: int = 0
    prompts: int = 0
    tokens: int = 0
    """Estimated tokens of the conversations themselves."""
    starts_given: int = 0
    start_tokens: int = 0
    prompts_given: int = 0
    prompt_tokens: int = 0
    said_again: int = 0
    """Times that the user said or asked again what memory knew and had not given."""
    undated: int = 0
    """Messages without a time, which were left out."""
    skipped_files: int = 0
    """Files that are no conversation, or cannot be read."""
    injections: list[Injection] = field(default_factory=list)
    """Everything that was given, and what was said again, oldest first."""


@dataclass(slots=True)
class ReplayClock:
    """A clock that shows the time of the replayed message."""

    moment: datetime

    def now(self) -> datetime:
        """Return the time of the replay."""
        return self.moment


def read_conversations(paths: Sequence[Path], report: BenchReport) -> list[Said]:
    """Return the messages of all conversations below the paths, oldest first.

    Count skipped files and undated messages in `report`. Raises `InvalidRequest` if there
    are no messages, or too many.
    """
    plan = plan_import([ImportSource.of_path(path) for path in paths], None)
    report.skipped_files = plan.unknown_files + len(plan.unreadable)
    messages: list[Said] = []
    for part in plan.parts:
        if part.format.name not in FORMATS:
            report.skipped_files += 1
            continue
        folder = _PROJECT_FOLDER.match(str(part.source.text_path.absolute()))
        directory = {"cwd": folder[0]} if folder else {}
        for record in part.format.read(part.source, START):
            if not isinstance(record, ImportItem):
                continue
            said_at = request.instant(record.memory.created_at)
            if said_at is None:
                report.undated += 1
                continue
            metadata = {**directory, **record.memory.metadata}
            messages.append((said_at, replace(record.memory, metadata=metadata)))
            if len(messages) > MESSAGES_MAX:
                raise errors.InvalidRequest(
                    f"there are more than {MESSAGES_MAX:,} messages; name a part of the folder",
                    field="path",
                )
    if not messages:
        raise errors.InvalidRequest(
            "no conversation with an agent was found there; name a folder such as "
            "~/.claude/projects, ~/.codex/sessions or PROJECT/.specstory/history",
            field="path",
        )
    return sorted(messages, key=itemgetter(0))


class ConversationReplay:
    """The replay of saved conversations through the hooks of a new memory."""

    def __init__(
        self, memory: build.OpenMemory, clock: ReplayClock, report: BenchReport
    ) -> None:
        self._memory = memory
        self._clock = clock
        self._report = report
        self._hooks = service.HookService(memory.service)
        self._counter = TokenEstimator()
        self._seen: set[str] = set()
        self._directories: set[str] = set()

    def run(
        self, messages: Sequence[Said], advance: Callable[[int, int], object]
    ) -> None:
        """Replay the messages, with a sleep cycle in the night after each day that has messages.

        `advance` is called after each message with its size, and the number of messages done.
        """
        report = self._report
        report.first, report.last = messages[0][0], messages[-1][0]
        night = self._next_night(messages[0][0])
        for number, (said_at, message) in enumerate(messages, 1):
            if said_at >= night:
                self._clock.moment = night
                self._memory.service.call(upkeep.Sleep(force=True))
                night = self._next_night(said_at)
            self._clock.moment = said_at
            if message.session not in self._seen:
                self._seen.add(message.session)
                self._directories.add(message.metadata.get("cwd", ""))
                self._call_hook(message, "SessionStart", {"source": "startup"})
            report.messages += 1
            report.tokens += self._counter.count(message.content)
            if message.role == "user":
                report.prompts += 1
                self._call_hook(
                    message, "UserPromptSubmit", {"prompt": message.content}
                )
            else:
                said = {"role": message.role, "content": message.content}
                self._call_hook(message, "Stop", {"messages": [said]})
            advance(len(message.content), number)
        report.conversations = len(self._seen)
        report.projects = len(self._directories)

    def _next_night(self, moment: datetime) -> datetime:
        """Return in UTC the first time after `moment` at which a day ends in the local zone."""
        local = instants.in_zone(moment, None).replace(tzinfo=None)
        night = datetime.combine(local, NIGHT)
        return instants.in_zone(night + timedelta(days=night <= local), UTC)

    def _call_hook(
        self, message: memories.Remember, event: str, payload: Mapping[str, object]
    ) -> None:
        """Call a hook as the message's tool would, and count the texts returned in the report."""
        ledger, report = self._memory.store.injections, self._report
        named, _, conversation = message.session.partition(":")
        client = named if named in events.CLIENTS else "agent"
        session = InjectionFilter(session=f"{client}:{conversation}")
        before = ledger.find(session, limit=1)
        self._hooks.handle_call(
            service.HookEnvelope(
                payload={
                    "client": client,
                    "hook_event_name": event,
                    "session_id": conversation,
                    "cwd": message.metadata.get("cwd", ""),
                    **payload,
                }
            )
        )
        for injection in ledger.find(session, limit=1):
            if injection in before:
                continue
            report.injections.append(injection)
            if injection.outcome is InjectionOutcome.SAID_AGAIN:
                report.said_again += 1
            elif injection.kind is InjectionKind.START:
                report.starts_given += 1
                report.start_tokens += injection.tokens
            else:
                report.prompts_given += 1
                report.prompt_tokens += injection.tokens


@click.command("bench")
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH…", type=click.Path(path_type=Path)
)
@click.option(
    "--show", is_flag=True, help="List everything that would have been given, and why."
)
@json_option()
def bench(paths: tuple[Path, ...], *, show: bool) -> None:
    """Replay your own conversations with agents, and see what memory would have given them.

    PATH is a folder or file of transcripts, such as ~/.claude/projects, or of SpecStory's
    Markdown. The command replays them day by day in a temporary memory. It reports what each start
    and each prompt would have been given, what you repeated although it was known, and the cost in
    tokens. Your memory and the files stay as they are, and nothing is sent anywhere.
    """
    report = BenchReport()
    for path in paths:
        if not path.exists():
            raise errors.InvalidRequest(f"there is no {path}", field="path")
    messages = read_conversations(paths, report)
    clock = ReplayClock(messages[0][0])
    with embedded.private_directory() as directory:
        config = load_config(
            overrides={"database": str(directory / "memory.db"), "auto_sleep": False}
        )
        size = sum(len(message.content) for _, message in messages)
        with (
            build.open_memory(config, clock=clock) as memory,
            progress_line("replaying", "message", size) as advance,
        ):
            ConversationReplay(memory, clock, report).run(messages, advance)
    if show and not prints_json():  # which lists them, too
        for injection in escape_strings(report.injections):
            say("\n".join([*injection_lines(injection), ""]), styled=True)
    say_result(report, "\n".join(report_lines(report)))


def report_lines(report: BenchReport) -> Iterator[str]:
    """Yield a replay's report as lines of text."""
    projects = count_of(report.projects, "project")
    yield (
        f"{count_of(report.conversations, 'conversation')} in {projects}, "
        f"{local_time(report.first)} to {local_time(report.last)}: "
        f"{count_of(report.prompts, 'prompt')} of {count_of(report.messages, 'message')}"
    )
    for name, given, total, tokens in (
        ("starts", report.starts_given, report.conversations, report.start_tokens),
        ("prompts", report.prompts_given, report.prompts, report.prompt_tokens),
    ):
        each = f", {tokens // given:,} each time" if given else ""
        text = f"{given:,} of {total:,} {name}: {count_of(tokens, 'token')}{each}"
        yield f"memories given at {text}"
    cost = report.start_tokens + report.prompt_tokens
    yield (
        f"cost: {count_of(cost, 'token')}, {cost / max(1, report.tokens):.1%} of the "
        f"{count_of(report.tokens, 'token')} of the conversations"
    )
    again = count_of(report.said_again, "prompt")
    yield f"said or asked again, although known and not given: {again}"
    if report.undated:
        yield f"left out: {count_of(report.undated, 'message')} without a time"
    if report.skipped_files:
        yield f"left out: {count_of(report.skipped_files, 'file')} without a conversation"
