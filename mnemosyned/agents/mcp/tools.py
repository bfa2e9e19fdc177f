"""The tools as clients list and call them: each calls verbs and returns its result."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

import msgspec

from mnemosyned.agents.mcp import forms
from mnemosyned.agents.mcp.identity import AgentSessions, ClientIdentity
from mnemosyned.agents.mcp.protocol import INVALID_PARAMS, Json, ProtocolError
from mnemosyned.errors import InvalidRequest, MnemosynedError, NotFound
from mnemosyned.memory.values import Hit, Learning
from mnemosyned.text import frames, rule_files
from mnemosyned.text.display import escape_invisible_json
from mnemosyned.verbs import conversation, facade, memories, retention, times, upkeep
from mnemosyned.verbs.request import Request, fields_of, parse_text

PROJECT_SESSIONS_MAX = 500
"""Maximum sessions of a project that recall searches first."""
RECALL_MAX = 100
PROJECT_SHARE = 3
"""Number of hits of this project before each hit of another project, so that all projects are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The context of a request: its client, the verbs and the time."""

    caller: facade.Caller
    identity: ClientIdentity
    sessions: AgentSessions
    now: datetime
    """With the zone of this machine."""
    bytes_max: int = forms.RESULT_BYTES_MAX - forms.OVERHEAD_BYTES
    """Limit of a result's lines or words."""

    def moment(
        self, tool: Request[Any], field: str, *, since: datetime | None = None
    ) -> datetime | None:
        """Return the time in an argument of a tool; None without it. Raises `InvalidTime`.

        A time without a zone is local. `until` includes the whole day; a weekday in it comes after `since`.
        """
        text = getattr(tool, field)
        return text and times.read_given(text, field=field, now=self.now, since=since)


def remember(context: ToolContext, tool: forms.RememberTool) -> Json:
    """Store a memory in the client's session, unless the same text is there; return its id and notes."""
    identity = context.identity
    when = context.moment(tool, "when")
    stored = context.caller.call(
        memories.Remember(
            tool.content,
            session=identity.session,
            source=identity.client,
            role=tool.role,
            created_at=when,
            valid_until=context.moment(tool, "valid_until", since=when),
            supersedes=tool.supersedes,
            dedupe=tool.supersedes is None,
        )
    )
    context.sessions.note_session(identity, context.now)
    notes = [] if stored.stored else ["the same text was already there"]
    if stored.secrets:
        notes.append(f"a secret in it was {stored.secrets}")
    return {
        "id": stored.id,
        "stored": stored.stored,
        "session": identity.session,
        "project": identity.project,
        "note": "; ".join(notes),
    }


# -------------------------------------------------------------------- recall


def recall(context: ToolContext, tool: forms.RecallTool) -> Json:
    """Return a page of the memories and summaries that match a query, best first.

    Hits of the client's project come first, mixed with others unless `only_this_project` is set. Without
    hits, the nearest memories are returned apart.
    """
    wanted = tool.offset + tool.limit
    here = context.sessions.sessions_of(context.identity.project, PROJECT_SESSIONS_MAX)
    in_project = _search_memory(context, tool, here) if here else memories.Recalled([])
    answer, hits = in_project, in_project.hits
    if not tool.only_this_project:
        answer = _search_memory(context, tool, None)
        hits = merge_hits(in_project.hits, answer.hits)
    mine = {key_of(hit) for hit in (*in_project.hits, *in_project.nearest)}

    def fit(page: Sequence[Hit]) -> list[Json]:
        """Return the first hits as entries of the answer, as many as fit into it."""
        zone = context.now.tzinfo
        lines = [
            forms.make_hit_line(hit, zone=zone, this_project=key_of(hit) in mine)
            for hit in page
        ]
        return forms.fitting_parts(lines, context.bytes_max) if lines else []

    shown = fit(hits[tool.offset : wanted])
    nearest = [] if hits else fit(answer.nearest[:3])
    end = tool.offset + len(shown)
    note = answer.note
    if not (note or shown):
        note = "there are no further hits" if hits else "nothing relevant is known"
        if nearest:
            note += "; `nearest` is what comes closest, and may be about something else"
        if tool.only_this_project and not context.identity.project:
            note = "this session belongs to no project; leave out only_this_project"
    return {
        "notice": forms.QUOTED,
        "hits": shown,
        "next_offset": end if end < min(len(hits), RECALL_MAX) else None,
        "note": note,
        "nearest": nearest,
    }


def _search_memory(
    context: ToolContext, tool: forms.RecallTool, sessions: Sequence[str] | None
) -> memories.Recalled:
    """Return the recall of a query in these sessions, or in all if None."""
    return context.caller.call(
        memories.Recall(
            tool.query,
            limit=min(RECALL_MAX, tool.offset + tool.limit + 1),
            session=None if sessions is None else list(sessions),
            source=tool.source,
            since=context.moment(tool, "since"),
            until=context.moment(tool, "until"),
        )
    )


key_of = attrgetter("owner", "id")
"""Returns the owner and the id of a hit, as memories of two owners may have the same id."""


def merge_hits(project: Sequence[Hit], everywhere: Iterable[Hit]) -> list[Hit]:
    """Return one ranking, with a hit from `everywhere` after every `PROJECT_SHARE` hits of the project.

    A hit of the project comes after one from elsewhere that is more than twice as probably relevant. A
    longer ranking does not change the beginning of the list, so that pages continue each other.
    """
    mine = set(map(key_of, project))
    others = deque(hit for hit in everywhere if key_of(hit) not in mine)
    hits: list[Hit] = []
    count = 0
    for hit in project:
        while others and (
            count == PROJECT_SHARE or others[0].confidence > 2 * hit.confidence
        ):
            hits.append(others.popleft())
            count = 0
        hits.append(hit)
        count += 1
    return [*hits, *others]


# ----------------------------------------------------------- get and expand


def get(context: ToolContext, tool: forms.PartOfText) -> Json:
    """Return the text of a memory or summary from an offset on, as far as fits. Raises `NotFound`."""
    got = context.caller.call(memories.Get(tool.id))
    episode, memory = got.episode, got.memory
    item = episode or memory
    if item is None:
        raise NotFound(f"there is no memory {tool.id}")
    words = frames.neutralize(item.content)
    text = forms.text_beginning(words[tool.offset :], context.bytes_max)
    end = tool.offset + len(text)
    zone = context.now.tzinfo
    replaced = ""
    if memory and memory.superseded_at:
        newer = memory.superseded_by or "a memory that was forgotten"
        replaced = f"{forms.format_minute(memory.superseded_at, zone)} by {newer}"
    return {
        "notice": forms.QUOTED,
        "id": item.id,
        "kind": forms.kind_of(item),
        "date": forms.format_minute(forms.said_at(item), zone),
        "text": text,
        "session": item.session,
        "source": forms.one_line(item.source or "", 60),
        "role": forms.one_line(memory.role, 40) if memory else "",
        "tokens": forms.tokens_of(item.content),
        "originals": episode.item_count if episode else 0,
        "replaced": replaced,
        "next_offset": end if end < len(words) else None,
    }


def expand(context: ToolContext, tool: forms.PartOfText) -> Json:
    """Return a page of a summary's parts: lower summaries or memories. Raises `NotFound`."""
    expanded = context.caller.call(memories.Expand(tool.id, depth=1))
    zone = context.now.tzinfo
    below = expanded.summaries or expanded.originals
    page = below[tool.offset : tool.offset + context.bytes_max // 100]
    parts = [forms.make_part(item, zone) for item in page]
    shown = forms.fitting_parts(parts, context.bytes_max) if parts else []
    end = tool.offset + len(shown)
    return {
        "notice": forms.QUOTED,
        "id": expanded.episode.id,
        "kind": forms.kind_of(expanded.episode),
        "date": forms.format_minute(forms.said_at(expanded.episode), zone),
        "parts": shown,
        "next_offset": end if end < len(below) else None,
    }


# ---------------------------------------------------------- learn and forget


def learn(context: ToolContext, tool: forms.LearnTool) -> Json:
    """Store a rule for all agents, or only for the calling one; return the rule and rules it replaced."""
    identity = context.identity
    source = identity.client if tool.only_this_agent else None
    learned = context.caller.call(
        conversation.Learn(tool.rule, session=identity.session, source=source)
    )
    context.sessions.note_session(identity, context.now)
    return {
        "id": learned.learning.id,
        "rule": learned.learning.text,
        "kind": learned.learning.kind.value,
        "replaced": learned.superseded,
    }


def forget(context: ToolContext, tool: forms.ForgetTool) -> Json:
    """Delete memories or a rule if `confirm` is set; return the deletion or its preview.

    Raises `NotFound`, and `InvalidRequest` for filters without the mark of their preview.
    """
    if tool.confirm and not (tool.id or tool.mark):
        raise InvalidRequest(
            "first call it without confirm, and then with the `mark` of that preview",
            field="mark",
        )
    request = retention.Forget(
        tool.id,
        query=tool.query,
        person=tool.person,
        session=tool.session,
        source=tool.source,
        since=context.moment(tool, "since"),
        until=context.moment(tool, "until"),
        dry_run=not tool.confirm,
        mark=tool.mark if tool.confirm else None,
    )
    receipt: Json = {
        "deleted": tool.confirm,
        "memories": 0,
        "rules": 1,
        "summaries_deleted": 0,
        "summaries_rewritten": 0,
        "lines": [],
        "further": 0,
        "mark": "",
        "next_step": "",
    }
    try:
        forgotten = context.caller.call(request)
    except NotFound:
        listed = context.caller.call(conversation.Learnings(id=tool.id))
        rule = next((rule for rule in listed if rule.id == tool.id), None)
        if rule is None:
            raise
        return receipt | _forget_rule(context, rule, confirm=tool.confirm)
    zone = context.now.tzinfo
    lines = [
        forms.make_quotation(
            line.id, line.created_at, line.snippet, line.role, zone=zone
        )
        for line in forgotten.lines[:12]
    ]
    further = forgotten.further + len(forgotten.lines) - len(lines)
    return receipt | {
        "memories": forgotten.memories,
        "rules": forgotten.learnings,
        "summaries_deleted": forgotten.episodes_removed,
        "summaries_rewritten": forgotten.episodes_rewritten,
        "lines": lines,
        "further": further if forgotten.dry_run else 0,
        "mark": forgotten.mark,
        "next_step": _describe_next_step(forgotten),
    }


def _forget_rule(context: ToolContext, rule: Learning, *, confirm: bool) -> Json:
    """Delete a rule if `confirm` is set, and return {}; if it is not, return the fields of a preview."""
    if confirm:
        context.caller.call(conversation.RemoveLearning(rule.id))
        return {}
    line = forms.make_quotation(
        rule.id, rule.created_at, rule.text, "rule", zone=context.now.tzinfo
    )
    agree = (
        "Nothing was deleted. If the user agrees, repeat the call with confirm: true."
    )
    return {"lines": [line], "next_step": agree}


def _describe_next_step(forgotten: retention.Forgotten) -> str:
    """Return a sentence on what to do after a deletion or preview; empty if nothing remains to be done."""
    if forgotten.dry_run:
        if not forgotten.memories and not forgotten.learnings:
            return "nothing matches; nothing would be deleted"
        return (
            "Nothing was deleted. Show this to the user; if they agree, repeat the call with "
            "confirm: true and this mark."
        )
    if forgotten.complete:
        return ""
    waiting = "the words leave the database's files shortly"
    return f"{waiting}: {forgotten.reason}" if forgotten.reason else waiting


# -------------------------------------------------------------------- status


def status(context: ToolContext, _: forms.StatusTool) -> Json:
    """Return counts and problems of the memory, and the client's session and project."""
    stats = context.caller.call(upkeep.Status())
    identity, last = context.identity, stats.sleep.last_cycle
    return {
        "version": stats.version,
        "memories": {tier.value: totals.count for tier, totals in stats.tiers.items()},
        "client": identity.client,
        "session": identity.session,
        "project": identity.project,
        "last_sleep": forms.format_minute(last, context.now.tzinfo) if last else "",
        "problems": [*stats.problems, *stats.warnings],
    }


Tool = Callable[[ToolContext, Any], Json]

META_LOADED = {"anthropic/alwaysLoad": True}
"""Metadata with which Claude Code shows a tool to the model from the start, not only its name."""


TEXTS: Json = rule_files.read_tables(__file__, "texts.toml")
TOOLS: dict[str, tuple[type[Request[Any]], Tool]] = {
    "recall": (forms.RecallTool, recall),
    "remember": (forms.RememberTool, remember),
    "get": (forms.PartOfText, get),
    "expand": (forms.PartOfText, expand),
    "learn": (forms.LearnTool, learn),
    "forget": (forms.ForgetTool, forget),
    "status": (forms.StatusTool, status),
}
"""The arguments and the function of each tool."""
ARGUMENTS = {"remember": {"created_at": "when"}, "learn": {"content": "rule"}}
"""By tool: fields of the verb whose argument in the tool has another name."""


def _list_tool(name: str) -> Json:
    """Return the entry of a tool for `tools/list`."""
    about = TEXTS["tools"][name]
    help = about.get("arguments", {})
    entry = {
        "name": name,
        "title": about["title"],
        "description": about["help"],
        "inputSchema": forms.arguments_schema(TOOLS[name][0], help),
        "annotations": {"openWorldHint": False, **about["hints"]},
    }
    return entry | ({"_meta": META_LOADED} if about.get("always_loaded") else {})


LISTED = [_list_tool(name) for name in TOOLS]


def call_tool(context: ToolContext, name: object, arguments: object) -> Json:
    """Call a tool by name and return its result in the protocol's form.

    Errors that the model can correct are results with `isError`. Raises `ProtocolError`.
    """
    if not isinstance(name, str) or name not in TOOLS:
        names = ", ".join(TOOLS)
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool; the tools are {names}")
    if not isinstance(arguments, dict):
        raise ProtocolError(INVALID_PARAMS, "arguments must be an object")
    try:
        form, run = TOOLS[name]
        optional = {field.name for field in fields_of(form) if not field.required}
        # Some models fill every argument in, those that they do not need with "".
        given = {k: v for k, v in arguments.items() if v != "" or k not in optional}
        result = run(context, parse_text(form, given))
    except MnemosynedError as error:
        told = frames.neutralize(error.message)
        field = error.field or ""
        if field in ARGUMENTS.get(name, ()) and field not in arguments:
            told = told.replace(field, ARGUMENTS[name][field])
        return {
            "content": [{"type": "text", "text": told}],
            "isError": True,
        }
    text = result_as_text(result)
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": msgspec.json.decode(text),
        "isError": False,
    }


def result_as_text(result: Json) -> str:
    """Return a result as JSON text for a model, one line per list member, with tags neutralized."""
    fields = []
    for name, value in result.items():
        if isinstance(value, list) and value:
            members = (msgspec.json.encode(member).decode() for member in value)
            text = "[\n" + ",\n".join(members) + "\n]"
        else:
            text = msgspec.json.encode(value).decode()
        fields.append(f'"{name}": {text}')
    return escape_invisible_json(frames.neutralize_tags("{" + ",\n".join(fields) + "}"))
