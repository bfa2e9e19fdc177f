"""Show what agents are told: whether a prompt gets the fact that it needs, and silence if none.

    python tests/bench/bench_telling.py [--half held] [--project NAME] [--history FOLDER] [--show]
        [--no-encoder]

The projects of a half are lived in one memory, day by day, with a sleep in every night: each message
and each start goes through the hooks of Claude Code as the daemon answers them, on transcripts that
grow. A prompt of the set is asked at its moment in two sessions of its own, of which nothing is
stored: in one the prompt's hook alone, in the other after the start of a session. `recall` is asked
the same within the project, as an upper bound.

With `--history`, each project has imported these conversations that SpecStory saved before its first
session: half a year of talk with pasted code, reports and reviews, in which no prompt's answer is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time as wall
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report
from bench.telling import (
    HALVES,
    NOTE,
    PAUSE,
    EndedFact,
    Entry,
    Kind,
    Project,
    Session,
    ended_facts,
    facts_told_only_as_older,
    has_key,
    kind_of,
    load_half,
    load_unsaid,
    tells_rule,
)
from support.agents import Agent, Json, claude, claude_line, context_of, write_lines
from support.fakes import FakeClock
from support.settings import change

from mnemosyned.agents.hooks.service import HookService
from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.config.loading import load_config
from mnemosyned.ids import new_id
from mnemosyned.importers.formats.transcripts import captured_memory, read_specstory
from mnemosyned.importers.importer import SourceRefused
from mnemosyned.importers.transcripts import TranscriptIdentity, TranscriptMessage
from mnemosyned.memory.values import EmbedderState, Tier
from mnemosyned.search.vectors import indexer
from mnemosyned.text.token_counts import TokenEstimator
from mnemosyned.verbs.conversation import Context, EndedLine, Endings, Learnings
from mnemosyned.verbs.memories import Recall, Remember, RememberMany
from mnemosyned.verbs.upkeep import Sleep, Status

NIGHT = time(2, tzinfo=UTC)
EMBEDDED_WITHIN_S = 600.0
LOOK_S = 0.04
RECALLED = 10
FIRST = 3
SESSIONS_MAX = 100
LEARNINGS_MAX = 1_000
START = "start"
"""The occasion of a text told at the start of a session; of any other, it is the prompt."""
LATER = " (later: "
OTHERS_MAX = 4
"""Other lines beside a rule that still count as told for its request."""
BARS: Mapping[str, float] = {"by hook": 0.80, "with start": 0.90, "silent": 0.95}
TOLD = {
    "lines": ("Said before", "Perhaps about"),
    "lines that are perhaps about them": ("Perhaps about",),
    "rules": ("Standing rules",),
}
"""What a prompt is told, and the headings over that."""
LEARNED_MIN, RULES_TOLD_MIN = 0.85, 0.60


@dataclass(slots=True, kw_only=True)
class AskedPrompt:
    """A prompt that was asked, with everything that an agent was told."""

    project: Project
    entry: Entry
    kind: Kind
    hook: str
    """What the prompt's hook told, without a start."""
    start: str
    hook_after_start: str
    recalled: list[str]
    """The lines of each hit of recall, best first."""
    nearest: list[str]
    """The lines of each memory that recall shows as nearest, where nothing bears on the prompt."""
    context: str
    """The learnings in the context for this prompt."""
    learnings_shown: int

    def is_told_by(self, *texts: str) -> bool:
        """Return True if everything that the prompt needs is in the texts."""
        facts, rules = self.project.facts(), self.project.rules()
        return all(
            has_key("\n".join(texts), facts[id])
            if id in facts
            else tells_rule(texts, rules[id])
            for id in self.entry.needs
        )


@dataclass(frozen=True, slots=True)
class ToldText:
    """A text that a hook told in a project."""

    project: str
    told_at: datetime
    occasion: str
    text: str


@dataclass(slots=True)
class Life:
    """What happened while the projects of a half were lived."""

    asked: list[AskedPrompt] = field(default_factory=list)
    unsaid: list[AskedPrompt] = field(default_factory=list)
    """At the end, about things that nothing said."""
    told: list[ToldText] = field(default_factory=list)
    prompt_tokens: list[int] = field(default_factory=list)
    """Tokens told at each prompt of the sessions themselves, 0 for silence."""
    start_tokens: list[int] = field(default_factory=list)
    learned: dict[str, list[str]] = field(default_factory=dict)
    """By project, the texts of all learnings from it, also of those that newer ones ended."""
    endings: list[EndedLine] = field(default_factory=list)
    """The statements that the memory takes for ended."""


class Replay:
    """One memory, lived through by the projects of a half."""

    def __init__(self, memory: OpenMemory, clock: FakeClock, home: Path) -> None:
        self._memory = memory
        self._clock = clock
        self._home = home
        self._hooks = HookService(memory.service, home=home)
        self._counter = TokenEstimator()
        self._probes = 0
        self.life = Life()

    def live(self, projects: Sequence[Project], history: str) -> Life:
        """Live all sessions in order of time, after a history, with a sleep in every night."""
        sessions = sorted(
            (
                (session.start.astimezone(UTC), project, session)
                for project in projects
                for session in project.session
            ),
            key=lambda each: each[0],
        )
        self._clock.moment = sessions[0][0]
        for start, project, session in sessions:
            self._sleep_until(start)
            if history and session is project.session[0]:
                self.import_history(project, Path(history))
                self._memory.service.call(Sleep(force=True))
            self._live_session(project, session)
        unsaid = load_unsaid()
        told = list(self.life.told)
        for project in projects:
            self.life.unsaid += [
                self._probe(project, entry) for entry in unsaid.get(project.name, ())
            ]
            learnings = self._memory.service.call(
                Learnings(superseded=True, limit=LEARNINGS_MAX)
            ).learnings
            prefix = f"claude-code:{project.name}-"
            self.life.learned[project.name] = [
                learning.text
                for learning in learnings
                if learning.session.startswith(prefix)
            ]
        self.life.told = told  # without what is told of the unsaid
        answer = self._memory.service.call(Endings(limit=LEARNINGS_MAX))
        self.life.endings = answer.endings
        return self.life

    def import_history(self, project: Project, folder: Path) -> None:
        """Import the conversations of a folder into a project, as if they ended a day before it."""
        talks = list[tuple[TranscriptIdentity, list[TranscriptMessage]]]()
        for path in sorted(folder.glob("*.md")):
            with suppress(SourceRefused):
                talks.append(read_specstory(path))
        last = max(
            said.created_at for _, talk in talks for said in talk if said.created_at
        )
        later = project.session[0].start - timedelta(days=1) - last
        for number, (_, messages) in enumerate(talks):
            name = f"{project.name}-before-{number}"
            identity = TranscriptIdentity("claude-code", name, project.directory)
            memories = [
                captured_memory(
                    replace(said, created_at=said.created_at + later), identity, name
                )
                for said in messages
                if said.created_at
            ]
            request = RememberMany(memories, import_id=new_id(self._clock.now()))
            self._memory.service.call(request)

    def _sleep_until(self, moment: datetime) -> None:
        """Sleep in every night from now to a moment."""
        while True:
            now = self._clock.now()
            night = datetime.combine(now.date(), NIGHT)
            night += timedelta(days=night <= now)
            if night >= moment:
                break
            self._clock.moment = night
            self._memory.service.call(Sleep(force=True))
        self._clock.moment = max(moment, self._clock.now())

    def _wait_for_vectors(self) -> None:
        """Return when every memory has a vector; at once without an encoder."""
        until = wall.monotonic() + EMBEDDED_WITHIN_S
        while wall.monotonic() < until:
            status = self._memory.service.call(Status())
            embedder, tiers = status.embedder, status.tiers
            if embedder.state is EmbedderState.UNAVAILABLE:
                raise RuntimeError(embedder.reason)
            memories = tiers[Tier.WORKING].count + tiers[Tier.ARCHIVE].count
            if embedder.state is EmbedderState.OFF or embedder.embedded >= memories:
                return
            wall.sleep(LOOK_S)
        raise RuntimeError(f"not every memory was embedded in {EMBEDDED_WITHIN_S:g} s")

    def _live_session(self, project: Project, session: Session) -> None:
        """Hold a session in Claude Code and ask the prompts of the set in between."""
        id = f"{project.name}-{session.start:%m%d-%H%M}"
        folder = self._home / ".claude" / "projects" / f"-w-{project.name}"
        transcript = folder / f"{id}.jsonl"
        agent = claude(self._hooks, transcript, cwd=project.directory, session=id)
        self._wait_for_vectors()
        start = self._start(agent)
        self._note(project, START, start)
        self.life.start_tokens.append(self._count(start))
        begun = self._clock.now()
        is_open = False
        for number, entry in enumerate(session.messages):
            self._clock.moment = begun + number * PAUSE
            if entry.ask:
                if is_open:
                    self._stop(agent)
                    is_open = False
                self.life.asked.append(self._probe(project, entry))
                continue
            if entry.note:
                self._memory.service.call(Remember(entry.note))
                self._wait_for_vectors()
                continue
            if entry.user:
                told = self._submit(agent, entry.user)
                self._note(project, entry.user, told)
                self.life.prompt_tokens.append(self._count(told))
            lines = transcript_lines(entry, f"{id}-{number}", self._clock.now())
            write_lines(transcript, lines)
            following = session.messages[number + 1 : number + 2]
            is_open = True
            if entry.agent and not (
                following and (following[0].agent or following[0].tool)
            ):
                self._stop(agent)
                is_open = False
        agent.call(hook_event_name="SessionEnd")
        self._hooks.capture.drain()

    def _stop(self, agent: Agent) -> None:
        """End a turn: what was said is captured, and all of it embedded."""
        agent.call(hook_event_name="Stop")
        self._hooks.capture.drain()
        self._memory.service.call(
            Endings()
        )  # finds them, as the daemon does at leisure
        self._wait_for_vectors()

    @staticmethod
    def _start(agent: Agent) -> str:
        answer = agent.call(hook_event_name="SessionStart", source="startup")
        return context_of(answer)

    @staticmethod
    def _submit(agent: Agent, prompt: str) -> str:
        answer = agent.call(hook_event_name="UserPromptSubmit", prompt=prompt)
        return context_of(answer)

    def _probe(self, project: Project, entry: Entry) -> AskedPrompt:
        """Ask a prompt in sessions of its own, of which nothing is stored."""
        with self._not_capturing():
            hook = self._submit(self._new_agent(project), entry.ask)
            other = self._new_agent(project)
            start = self._start(other)
            hook_after_start = self._submit(other, entry.ask)
        for occasion, text in ((START, start), (entry.ask, hook)):
            self._note(project, occasion, text)
        sessions = self._memory.store.agents.sessions_of(
            self._project_key(project), SESSIONS_MAX
        )
        recalled = self._memory.service.call(
            Recall(entry.ask, limit=RECALLED, session=sessions or None)
        )
        context = self._memory.service.call(Context(entry.ask))
        return AskedPrompt(
            project=project,
            entry=entry,
            kind=kind_of(entry, project),
            hook=hook,
            start=start,
            hook_after_start=hook_after_start,
            recalled=[
                "\n".join(line.content for line in hit.lines or (hit,))
                for hit in recalled.hits
            ],
            nearest=[
                "\n".join(line.content for line in hit.lines or (hit,))
                for hit in recalled.nearest
            ],
            context=context.system.partition("## Past Learnings")[2],
            learnings_shown=len(context.learnings),
        )

    def _new_agent(self, project: Project) -> Agent:
        self._probes += 1
        id = f"probe-{self._probes}"
        missing = self._home / ".claude" / "projects" / "-w-probe" / f"{id}.jsonl"
        return claude(self._hooks, missing, cwd=project.directory, session=id)

    def _project_key(self, project: Project) -> str:
        """Return the name under which the store has the sessions of a project."""
        latest = self._memory.store.agents.recent(1_000)
        own = (each for each in latest if each.directory == project.directory)
        return next(own).project

    @contextmanager
    def _not_capturing(self) -> Iterator[None]:
        change(self._memory.service.settings, {"hooks.capture": False})
        try:
            yield
        finally:
            change(self._memory.service.settings, {"hooks.capture": True})

    def _note(self, project: Project, occasion: str, text: str) -> None:
        if text:
            told = ToldText(project.name, self._clock.now(), occasion, text)
            self.life.told.append(told)

    def _count(self, text: str) -> int:
        return self._counter.count(text) if text else 0


def transcript_lines(entry: Entry, id: str, now: datetime) -> list[Json]:
    """Return the lines that Claude Code writes of a message or a tool's result."""
    fixed: dict[str, Any] = {
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "sessionId": id.rpartition("-")[0],
    }
    if not entry.tool:
        role = "user" if entry.user else "assistant"
        return [claude_line(role, entry.user or entry.agent, uuid=id, **fixed)]
    call = {"type": "tool_use", "id": f"t-{id}", "name": entry.name, "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t-{id}", "content": entry.tool}
    return [
        {
            **claude_line(role, "", uuid=f"{id}-{role}", **fixed),
            "message": {"role": role, "content": [part]},
            **more,
        }
        for role, part, more in (
            ("assistant", call, {}),
            ("user", result, {"toolUseResult": entry.tool}),
        )
    ]


def live_half(
    projects: Sequence[Project], *, settings: Mapping[str, object], history: str = ""
) -> Life:
    """Live the projects in a new memory, each after a history, and return what happened."""
    with tempfile.TemporaryDirectory(prefix="telling-") as folder:
        home = Path(folder)
        clock = FakeClock()
        overrides = {
            "database": str(home / "memory.db"),
            "auto_sleep": False,
            **settings,
        }
        config = load_config(environ={}, overrides=overrides)
        with open_memory(config, clock=clock) as memory:
            return Replay(memory, clock, home).live(projects, history)


# -------------------------------------------------------------------- figures


def share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def told_lines(text: str) -> list[str]:
    """Return the quoted lines of a told text."""
    return [line for line in text.splitlines() if line.startswith("- ")]


def find_untimely(
    projects: Sequence[Project], life: Life
) -> list[tuple[ToldText, EndedFact, str]]:
    """Return the told lines that have an ended fact as in force."""
    ended = {project.name: ended_facts(project) for project in projects}
    return [
        (told, fact, line)
        for told in life.told
        for line in told_lines(told.text)
        for fact in ended[told.project]
        if told.told_at > fact.ended_at and fact.is_told_as_in_force(line)
    ]


def find_told_as_older(
    projects: Sequence[Project], life: Life
) -> list[tuple[ToldText, str]]:
    """Return the told texts that have a fact in force only as an older one, with the fact's id."""
    by_name = {project.name: project for project in projects}
    return [
        (told, id)
        for told in life.told
        for id in sorted(
            facts_told_only_as_older(
                by_name[told.project], told.told_at, told_lines(told.text)
            )
        )
    ]


def match_later(projects: Sequence[Project], life: Life) -> list[bool]:
    """Return whether each statement that a told text has behind an older one ends what that one states."""
    ended = {project.name: ended_facts(project) for project in projects}
    texts = dict.fromkeys((told.project, told.text) for told in life.told)
    return [
        any(
            has_key(older, fact.stale) and has_key(newer, fact.successors)
            for fact in ended[project]
        )
        for project, text in texts
        for older, *later in (line.split(LATER) for line in told_lines(text))
        for newer in later
    ]


def match_endings(
    projects: Sequence[Project], life: Life
) -> tuple[set[tuple[str, str]], list[EndedLine]]:
    """Return the ended facts that the memory knows as ended, and the other endings it found."""
    ended = [(each.name, fact) for each in projects for fact in ended_facts(each)]
    closed: set[tuple[str, str]] = set()
    others: list[EndedLine] = []
    for line in life.endings:
        names = {
            (name, fact.id)
            for name, fact in ended
            if has_key(line.sentence, fact.stale)
        }
        closed |= names
        if not names:
            others.append(line)
    return closed, others


def is_told_alone(asked: AskedPrompt) -> bool:
    """Return True if the hook told a rule with few other lines."""
    others = len(told_lines(asked.hook)) - len(asked.entry.needs)
    return asked.is_told_by(asked.hook) and others <= OTHERS_MAX


def publish(report: Report, half: str, projects: Sequence[Project], life: Life) -> None:
    kinds = {
        kind: [asked for asked in life.asked if asked.kind == kind]
        for kind in ("fact", "rule", "nothing")
    }
    facts, rules, nothing = kinds["fact"], kinds["rule"], kinds["nothing"]
    by_hook = share([asked.is_told_by(asked.hook) for asked in facts])
    with_start = share(
        [asked.is_told_by(asked.start, asked.hook_after_start) for asked in facts]
    )
    silent = share([not asked.hook for asked in nothing])
    said_in = {
        (project.name, id): entry.lang
        for project in projects
        for entry in project.entries()
        for id in entry.fact
    }
    parts: dict[str, list[AskedPrompt]] = {}
    for prompt in facts:
        lang, project_name = prompt.entry.lang, prompt.project.name
        langs = {said_in[project_name, id] for id in prompt.entry.needs}
        kind = "same language" if langs == {lang} else "another language"
        for name in (project_name, lang, kind, "all"):
            parts.setdefault(name, []).append(prompt)
    rows: list[list[object]] = []
    for name, part in parts.items():
        rows.append(
            [
                name,
                len(part),
                share([a.is_told_by(a.hook) for a in part]),
                share([a.is_told_by(a.start, a.hook_after_start) for a in part]),
                share([a.is_told_by(a.start) for a in part]),
                share([a.is_told_by(*a.recalled[:FIRST]) for a in part]),
                share([a.is_told_by(*a.recalled) for a in part]),
            ]
        )
    report.table(
        f"Prompts of the {half} half that are given the fact they need",
        ["", "prompts", "hook", "hook or start", "start", "recall 3", "recall 10"],
        rows,
    )
    report.figure("prompts that need a fact", len(facts))
    report.bar("given the fact by the prompt's hook", by_hook, ">=", BARS["by hook"])
    report.bar("given it by hook or start", with_start, ">=", BARS["with start"])
    for count in (FIRST, RECALLED):
        found = share([asked.is_told_by(*asked.recalled[:count]) for asked in facts])
        report.figure(f"recall has it among its first {count}", found)
    report.figure(
        "it is among the hits or the nearest",
        share([asked.is_told_by(*asked.recalled, *asked.nearest) for asked in facts]),
    )
    report.figure(
        "recall has no hit for a prompt that needs a fact",
        share([not asked.recalled for asked in facts]),
    )
    report.figure(
        "recall has no hit for a prompt that needs nothing",
        share([not asked.recalled for asked in nothing]),
    )
    report.figure("prompts that need nothing", len(nothing))
    report.bar("silent on prompts that need nothing", silent, ">=", BARS["silent"])
    for what, headings in TOLD.items():
        for group, prompts in (
            ("that need nothing", nothing),
            ("about what was never said", life.unsaid),
        ):
            told = [any(each in asked.hook for each in headings) for asked in prompts]
            report.figure(f"prompts {group} that are told {what}", share(told))
    report.figure("prompts about what was never said", len(life.unsaid))
    publish_ended(report, projects, life)
    publish_rules(report, projects, life, rules)
    tokens = life.prompt_tokens
    report.figure("prompts in the sessions themselves", len(tokens))
    report.figure(
        "share of these that are told something", share([n > 0 for n in tokens])
    )
    report.figure(
        "tokens told per prompt of a session", sum(tokens) / max(1, len(tokens))
    )
    starts = life.start_tokens
    report.figure(
        "tokens told per start of a session", sum(starts) / max(1, len(starts))
    )


def publish_ended(report: Report, projects: Sequence[Project], life: Life) -> None:
    ended = sum(len(ended_facts(project)) for project in projects)
    untimely = find_untimely(projects, life)
    texts = {(told.project, told.text) for told, _, _ in untimely}
    report.figure("facts and rules that others ended", ended)
    closed, others = match_endings(projects, life)
    report.figure("of these taken for ended by the memory", len(closed))
    report.figure("other statements taken for ended", len(others))
    report.figure(
        "of these told as in force", len({(t.project, f.id) for t, f, _ in untimely})
    )
    later = match_later(projects, life)
    report.figure("statements told as later ones, behind older ones", len(later))
    report.figure("of these, share that ends what the older one states", share(later))
    older = find_told_as_older(projects, life)
    report.figure(
        "facts and rules in force told only as older ones",
        len({(told.project, id) for told, id in older}),
    )
    report.figure("different texts told", len({(t.project, t.text) for t in life.told}))
    report.bar("texts that tell an ended fact as in force", len(texts), "<=", 0)
    older_texts = {(told.project, told.text) for told, _ in older}
    report.bar(
        "texts that tell a fact in force only as older", len(older_texts), "<=", 0
    )


def publish_rules(
    report: Report,
    projects: Sequence[Project],
    life: Life,
    asked: Sequence[AskedPrompt],
) -> None:
    whole = [
        tells_rule(life.learned[project.name], clauses)
        for project in projects
        for clauses in project.rules().values()
    ]
    report.figure("instructions and preferences", len(whole))
    report.bar("learned whole", share(whole), ">=", LEARNED_MIN)
    report.figure("requests for which one matters", len(asked))
    report.bar(
        f"told for its request, with at most {OTHERS_MAX} others, by the hook",
        share([is_told_alone(each) for each in asked]),
        ">=",
        RULES_TOLD_MIN,
    )
    report.figure(
        "told for its request by hook or start",
        share([each.is_told_by(each.start, each.hook_after_start) for each in asked]),
    )
    report.figure(
        f"told for its request in a context, with at most {OTHERS_MAX} others",
        share(
            [
                each.is_told_by(each.context)
                and each.learnings_shown - len(each.entry.needs) <= OTHERS_MAX
                for each in asked
            ]
        ),
    )


def show_misses(projects: Sequence[Project], life: Life) -> None:
    """Print what was not told, what was told without need, and ended facts told as in force."""
    for asked in life.asked:
        place = f"{asked.project.name} [{asked.entry.lang}]"
        if asked.kind == "nothing":
            if asked.hook:
                print(f"\nNOT SILENT {place}: {asked.entry.ask}\n{asked.hook}")
        elif not asked.is_told_by(asked.hook):
            by_start = asked.is_told_by(asked.start, asked.hook_after_start)
            rank = next(
                (
                    n
                    for n, _ in enumerate(asked.recalled, 1)
                    if asked.is_told_by(*asked.recalled[:n])
                ),
                None,
            )
            print(
                f"\nMISSED {asked.kind} {place}: {asked.entry.ask}\n   needs {asked.entry.needs};"
                f" recall {rank}; start {by_start}"
            )
            for line in told_lines(asked.hook):
                print("   told", line)
    untimely = find_untimely(projects, life)
    for fact, line in {(fact, line): None for _, fact, line in untimely}:
        occasions = [told.occasion for told, _, other in untimely if other == line]
        starts = occasions.count(START)
        print(
            f"\nENDED {fact.id}, told at {starts} starts and {len(occasions) - starts} prompts"
        )
        print(
            "  ",
            line,
            *sorted({each for each in occasions if each != START}),
            sep="\n   ",
        )
    for name, id, line in {
        (told.project, id, line): None
        for told, id in find_told_as_older(projects, life)
        for line in told_lines(told.text)
        if NOTE.search(line)
        and id
        in facts_told_only_as_older(
            next(each for each in projects if each.name == told.project),
            told.told_at,
            [line],
        )
    }:
        print(f"\nIN FORCE, TOLD AS OLDER {name}: {id}\n   {line}")
    closed, others = match_endings(projects, life)
    for project in projects:
        for fact in ended_facts(project):
            if (project.name, fact.id) not in closed:
                print(f"\nNOT TAKEN FOR ENDED {project.name}: {fact.id}")
    for other in others:
        print(
            f"\nTAKEN FOR ENDED by {other.reason}: {other.sentence}\n   {other.successor}"
        )
    for project in projects:
        for id, clauses in project.rules().items():
            if not tells_rule(life.learned[project.name], clauses):
                print(f"\nNOT LEARNED WHOLE {project.name}: {id} {clauses}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="tune")
    parser.add_argument(
        "--project", default="", help="only projects with this in their name"
    )
    parser.add_argument(
        "--show", action="store_true", help="print the misses of the tune half"
    )
    parser.add_argument(
        "--history", default="", help="a folder of SpecStory's, imported before"
    )
    parser.add_argument("--no-encoder", action="store_true", help="without vectors")
    options = parser.parse_args()
    if options.show and options.half.endswith(("held", "strangers")):
        parser.error("--show is for a half that rules are tuned on")
    projects = load_half(options.half, only=options.project)
    if not projects:
        parser.error(
            f"no project of the {options.half} half has {options.project!r} in its name"
        )
    encoder = "none" if options.no_encoder else "builtin"
    indexer.START_AFTER_S = indexer.GATHER_S = 0.0
    settings = {"embedding.encoder": encoder}
    life = live_half(projects, settings=settings, history=options.history)
    name = f"telling-{options.half}{'-without-encoder' * options.no_encoder}"
    name += "-after-history" * bool(options.history)
    report = Report(name)
    publish(report, options.half, projects, life)
    if options.show:
        show_misses(projects, life)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
