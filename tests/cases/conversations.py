"""Cases about conversations: contexts, key facts, consolidation and rounds."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any

from cases.dsl import Given, Holds

from mnemosyned import (
    ContextManager,
    MemoryConsolidator,
    MnemosynedError,
    PastSummary,
    Quoted,
    RoundsPolicy,
    TokenBudget,
    extract_facts,
    should_compact,
)
from mnemosyned.conversation.compaction import ConsolidationAudit
from mnemosyned.conversation.messages import (
    FullCounter,
    Message,
    group_messages,
    message_text,
)
from mnemosyned.conversation.summary_message import NO_FACTS, is_summary, read_summary
from mnemosyned.text.token_counts import Chars4

Facts = dict[str, Any]


# ------------------------------------------------------------------ assembling


def assemble(given: Given) -> Facts:
    history = given("history", [])
    before = deepcopy(history)
    try:
        budget = TokenBudget(**(given("budget") or {}))
    except MnemosynedError:
        return {"error": True}
    new, system = given("new_message", "x"), given("system", "")
    policy = MemoryConsolidator(**given.some("threshold_pct", "max_tokens"))
    consolidator = policy if given("consolidate") else None
    manager = ContextManager(
        budget,
        consolidator=consolidator,
        **given.some("reclaim_unused", "shrink_learnings"),
    )
    context = manager.build_messages(
        system,
        new,
        history,
        memory_results=[_snippet(one) for one in given("memory") or []],
        learnings=given("learnings"),
        summaries=[_past(one) for one in given("summaries") or []],
    )
    messages = context.messages
    kept = [
        at
        for at, one in enumerate(history, 1)
        if any(one is other for other in messages)
    ]
    assert [at + 1 for at in context.kept] == kept
    summaries = [at for at, message in enumerate(messages) if is_summary(message)]
    positions = [at for one in messages for at, old in enumerate(history) if one is old]
    memory = _section(context.system, "## Relevant Memory")
    return {
        **_shape(history, before, messages),
        "error": False,
        "kept": kept,
        "kept_count": len(kept),
        "dropped": [at for at in range(1, len(history) + 1) if at not in kept],
        "kept_identical": all(
            messages_equal(history[at - 1], before[at - 1]) for at in kept
        ),
        "last_is_new": messages[-1] == {"role": "user", "content": new},
        "in_order": positions == sorted(positions),
        "system": context.system,
        "memory_chars": len(memory),
        "consolidated": context.compaction is not None,
        "over_budget": context.over_budget,
        "summary_positions": summaries,
        "summary_texts": [message_text(messages[at]) for at in summaries],
    }


def messages_equal(one: Message, other: Message) -> bool:
    return list(one) == list(other) and all(one[key] == other[key] for key in one)


def _snippet(given: str | Mapping[str, Any]) -> str | Quoted:
    if isinstance(given, str):
        return given
    said = given.get("said")
    return Quoted(**{**given, "said": datetime.fromisoformat(said) if said else None})


def _past(given: Mapping[str, Any]) -> PastSummary:
    named = dict(given)
    if named.pop("rolled_up", False):
        named["parent"] = "another"
    if "parent_id" in named:
        named["parent"] = named.pop("parent_id")
    assert named.keys() <= set(PastSummary.__slots__), (
        f"unknown keys of a summary: {named}"
    )
    return PastSummary.of(named)


def _section(system: str, heading: str) -> str:
    """What stands under a heading, up to the next."""
    _, _, rest = f"\n{system}".partition(f"\n{heading}\n")
    return rest.partition("\n\n## ")[0]


def _shape(
    given: Sequence[Message], before: object, messages: Sequence[Message]
) -> Facts:
    """What can be said of any list of messages that came out."""
    return {
        "n_messages": len(messages),
        "n_summaries": sum(map(is_summary, messages)),
        "input_unchanged": given == before,
        "no_orphans": _orphans(messages) <= _orphans(given),
    }


def _orphans(messages: Sequence[Message]) -> set[int]:
    known = group_messages(messages)
    return {id(messages[at]) for at in known.orphans}


def budget(given: Given) -> Facts:
    try:
        made = TokenBudget(**given("budget"))
    except MnemosynedError:
        return {"error": True}
    shares = ("available", "memory", "learnings", "history")
    return {
        "error": False,
        **{name: getattr(made, name) for name in (*TokenBudget.__slots__, *shares)},
    }


# --------------------------------------------------------------- consolidating


def facts(given: Given) -> Facts:
    found = extract_facts(given("messages"))
    return {
        "facts": found,
        "count": len(found),
        "first": found[0] if found else "",
        "contains": Holds(lambda wanted: _all_in(wanted, found), found),
        "not_contains": Holds(lambda wanted: not _any_in(wanted, found), found),
    }


def should_consolidate(given: Given) -> Facts:
    policy = MemoryConsolidator(**given.some("threshold_pct", "max_tokens"))
    result = policy.should_consolidate(current_tokens=given("current_tokens"))
    assert should_compact(policy, given("current_tokens")).due is result
    return {"result": result}


def estimate(given: Given) -> Facts:
    return {"tokens": MemoryConsolidator.estimate_tokens(given("messages"))}


def consolidate(given: Given) -> Facts:
    messages = given("messages")
    before = deepcopy(messages)
    audits: list[ConsolidationAudit] = []
    policy = MemoryConsolidator(
        on_audit=audits.append,
        **given.some("threshold_pct", "max_tokens", "keep_recent"),
    )
    result, summary = policy.consolidate(messages, given("system_prompt", ""))
    return {
        **_consolidated(messages, before, result),
        "unchanged": result == before,
        "summary": summary,
        "audit": _audit(audits),
    }


def _consolidated(
    messages: Sequence[Message], before: object, result: list[Message]
) -> Facts:
    places = [place for place, one in enumerate(result) if is_summary(one)]
    at = places[0] if places else len(result)
    written = message_text(result[at]) if places else ""
    header, _, body = written.partition("\n")
    lines = [line for line in body.split("\n") if line.strip()]
    bullets = [line for line in lines if line.startswith("- ")]
    found = _facts_of(written)
    return {
        **_shape(messages, before, result),
        "header": header,
        "bullets": lines,
        "n_bullets": len(bullets),
        "facts": found,
        "contains_facts": Holds(lambda wanted: _all_in(wanted, found), found),
        "not_facts": Holds(lambda wanted: not _any_in(wanted, found), found),
        "head": _same(messages, result[:at]),
        "tail": _same(messages, result[at + 1 :]),
        "summary_role": result[at]["role"] if places else None,
    }


def _facts_of(summary: str) -> list[str]:
    """The facts as anyone would read them off the summary's text."""
    found: list[str] = []
    for line in summary.split("\n")[1:]:
        if line.startswith("- "):
            found.append(line[2:])
        elif line.startswith("  ") and found:
            found[-1] += "\n" + line[2:]
    return [fact for fact in found if not fact.startswith(NO_FACTS)]


def _same(given: Sequence[Message], kept: Sequence[Message]) -> list[int]:
    """Positions of the very same messages; -1 for one that was not given."""
    return [
        next((at for at, old in enumerate(given) if old is one), -1) for one in kept
    ]


def _audit(audits: Sequence[ConsolidationAudit]) -> Any:  # noqa: ANN401
    if not audits:
        return Holds(lambda wanted: wanted is None, "no record")
    (audit,) = audits
    values = {
        "messages_removed": audit.messages_removed,
        "summary_length": audit.summary_length,
        "summary_length_positive": audit.summary_length > 0,
    }
    return Holds(
        lambda wanted: wanted is not None and wanted.items() <= values.items(), values
    )


def consolidate_repeat(given: Given) -> Facts:
    policy = MemoryConsolidator(**given.some("keep_recent"))
    messages = given("messages")
    first, _ = policy.consolidate(messages, "")
    result, everything = first, list(messages)
    for further in given("append_rounds", [given("append", [])]):
        everything += further
        result, _ = policy.consolidate([*result, *further], "")
    return {
        **_consolidated(everything, list(everything), result),
        "same_as_first": result == first,
    }


def _all_in(wanted: Sequence[str], found: Sequence[str]) -> bool:
    return all(one in found for one in wanted)


def _any_in(wanted: Sequence[str], found: Sequence[str]) -> bool:
    return any(one in found for one in wanted)


# ---------------------------------------------------------------------- rounds

PADDING = " and so on" * 100


def sequence(names: Sequence[str]) -> list[dict[str, Any]]:
    """Messages called S, U1, A1, T1…: a tool's result answers the assistant before it."""
    made: list[dict[str, Any]] = []
    caller: dict[str, Any] = {}
    for name in names:
        kind = name[0]
        role = {"S": "system", "U": "user", "A": "assistant", "T": "tool"}[kind]
        message: dict[str, Any] = {"id": name, "role": role, "content": name}
        if kind in "AT":
            message["content"] += PADDING
        if kind == "A":
            caller = message
        if kind == "T":
            call = {"id": f"call-{name}", "type": "function"}
            call["function"] = {"name": "sh", "arguments": "{}"}  # type: ignore[assignment]
            caller.setdefault("tool_calls", []).append(call)
            message |= {"tool_call_id": call["id"], "name": "sh"}
        made.append(message)
    return made


def _fails(_: Sequence[Message]) -> str:
    raise ConnectionError("no model there")


MODELS: dict[str, Callable[[Sequence[Message]], str] | None] = {
    "ok": lambda _: "The agent did what it was asked.",
    "raises": _fails,
    "empty": lambda _: "",
    "none": None,
}


def rounds(given: Given) -> Facts:
    names, later = given("sequence"), given("append", [])
    everything = sequence([*names, *later])
    messages, rest = everything[: len(names)], everything[len(names) :]
    before = deepcopy(everything)
    counter = FullCounter(Chars4())
    options = given.some("keep_last")
    model = MODELS[given("llm", "ok")]
    short = 1 if given("over_limit") else 0
    over = False
    result: list[Message] = list(messages)
    for further in ([], rest) if later else ([],):
        result = [*result, *further]
        limit = sum(map(counter.message, result)) - short
        policy = RoundsPolicy(limit, summarize=model, counter=counter, **options)
        done = policy.compact(result)
        result, over = done.messages, done.over_budget
    users = [one for one in result if one["role"] == "user" and not is_summary(one)]
    said = [one for one in everything if one["role"] == "user"]
    written = [message_text(one) for one in result if is_summary(one)]
    return {
        **_shape(everything, before, result),
        "structure": [_named(one) for one in result],
        "users": [one["content"] for one in users],
        "users_identical": all(
            one is other for one, other in zip(users, said, strict=True)
        ),
        "first": _named(result[0]),
        "summaries_nonempty": bool(written) and all(len(one) > 20 for one in written),
        "unchanged": result == before,
        "over_budget": over,
    }


def _named(message: Message) -> str:
    return (
        f"[{' '.join(read_summary(message).summary_of)}]"
        if is_summary(message)
        else message["id"]
    )


def rounds_trigger(given: Given) -> Facts:
    limits = [*given.some("token_limit", "limit").values()]
    policy = RoundsPolicy(*limits[:1])
    return {"result": should_compact(policy, given("tokens")).due}
