"""The verb `context`: assemble an agent's context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mnemosyned.config.settings import MODEL_TOKENIZER, ContextConfig, SettingsInForce
from mnemosyned.conversation.budget import TokenBudget
from mnemosyned.conversation.context import (
    ChosenWindow,
    ContextManager,
    WindowFitter,
    as_user_message,
)
from mnemosyned.conversation.learnings.relevance import RateTexts, select_relevant
from mnemosyned.conversation.messages import FullCounter, MessageCounter, message_text
from mnemosyned.conversation.sections import Quoted, Relevance
from mnemosyned.conversation.summary_message import sendable
from mnemosyned.errors import ConfigInvalid, InvalidRequest, TokenizerUnusable
from mnemosyned.instants import in_zone
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.engine_ports import Summarizer
from mnemosyned.memory.injections import InjectedLine, InjectionKind
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import Hit, Learning
from mnemosyned.service.briefing import make_injection
from mnemosyned.text.dates.questions import QuestionTimes, parse_times
from mnemosyned.text.terms import cut_snippet, parse_terms
from mnemosyned.text.token_counts import CounterWithMargin, TokenEstimator
from mnemosyned.verbs.conversation import Assembled, Context
from mnemosyned.verbs.memories import Recall, Recalled
from mnemosyned.verbs.request import QUERY_CHARS_MAX, names
from mnemosyned.verbs.times import local_zone

if TYPE_CHECKING:
    from mnemosyned.service.service import Groups

RECALLED_MAX = 30
"""More hits than fit into memory's share of a usual window."""
QUOTED_CHARS_MAX = 600
"""Characters of a longer memory that are shown: the stretch that matches best."""
LEARNINGS_MAX = 1_000
"""Newest learnings considered; a context shows five."""


def token_budget(context: ContextConfig) -> TokenBudget:
    """Return the token budget of the settings. Raises `ConfigInvalid`."""
    try:
        return TokenBudget(
            total=context.total,
            system_reserve=context.system_reserve,
            tool_definitions_reserve=context.tools_reserve,
            memory_fraction=context.memory_fraction,
            learnings_fraction=context.learnings_fraction,
            fresh_tail_count=context.fresh_tail,
        )
    except InvalidRequest as error:
        raise ConfigInvalid(f"context: {error.message}", field="context") from error


def default_counter() -> MessageCounter:
    """Return the token counter used without a tokenizer: an estimate with a safety margin."""
    return FullCounter(CounterWithMargin(TokenEstimator()))


def make_counter(tokenizer: str | None, summarizer: Summarizer) -> MessageCounter:
    """Return the token counter that the setting `context.tokenizer` names.

    None is an estimate, "model" the tokenizer of the model in `summarizer`, and any other text a
    file. Raises `ConfigInvalid` for an unusable file, or for "model" without a model.
    """
    if tokenizer is None:
        return default_counter()
    # Loaded here: the estimate needs none of them.
    from mnemosyned.models.tokenizers import ModelCounter, open_counter  # noqa: PLC0415

    if tokenizer == MODEL_TOKENIZER:
        model = summarizer.model
        if model is None:
            raise ConfigInvalid(
                'context.tokenizer is "model", but no model is configured; name one in llm, or a '
                "tokenizer's file",
                field="context.tokenizer",
            )
        return FullCounter(
            ModelCounter(model, otherwise=CounterWithMargin(TokenEstimator()))
        )
    try:
        return FullCounter(open_counter(Path(tokenizer).expanduser()))
    except TokenizerUnusable as error:
        raise ConfigInvalid(
            f"context.tokenizer: {error.message}", field="context.tokenizer"
        ) from error


@dataclass(eq=False, kw_only=True)
class ContextService:
    """The verb `context` over one store."""

    store: MemoryStore
    clock: Clock
    recall: Callable[[Recall, Groups], Recalled]
    settings: SettingsInForce
    rate: RateTexts | None = None
    """Rates learnings by their meaning."""

    def context(
        self, request: Context, groups: Groups = MappingProxyType({})
    ) -> Assembled:
        """Return the context for the next message: system prompt, messages and recalled memories.

        Memories of `groups` are recalled, too; the ledger counts their words and keeps none.
        Raises `InvalidRequest` if the parts that must be in it exceed the total budget.
        """
        budget, counter = self._token_budget(request), self.settings.counter
        new = as_user_message(request.message)
        question = " ".join(message_text(new).replace("\0", " ").split())[
            :QUERY_CHARS_MAX
        ]
        # Learnings of its sources and of none; without a source, of all.
        sources = (*names(request.source), None) if request.source else ()
        learnings = select_relevant(
            self.store.learnings.find(sources=sources, limit=LEARNINGS_MAX),
            question=_make_subject_text(request, question),
            now=self.clock.now(),
            budget_tokens=budget.learnings,
            count=counter.text,
            rate=self.rate,
        )
        fitter = WindowFitter(
            request.system,
            new,
            request.messages,
            budget=budget,
            counter=counter,
            tools=request.tools,
        )
        chosen = fitter.fit()
        manager = ContextManager(
            budget,
            counter=counter,
            memory_place=request.memory_place,
            shrink_learnings=True,
        )
        recalled = self._select_quotes(request, question, chosen, learnings, groups)
        window = manager.assemble(
            chosen,
            memory_results=[quoted for *_, quoted in recalled],
            learnings=[learning.text for learning in learnings],
            tool_definitions=request.tools,
        )
        quoted = recalled[: window.memory_shown]
        rules = learnings[: window.learnings_shown]
        shown = [
            *(
                InjectedLine(
                    id=id,
                    text=words,
                    reason="recalled for this message"
                    + (", given as ended" if quote.text != words else ""),
                )
                for owner, id, words, quote in quoted
                if owner is None
            ),
            *(
                InjectedLine(
                    id=each.id, text=each.text, reason=f"{each.kind} for this message"
                )
                for each in rules
            ),
        ]
        if (quoted or rules) and not self.store.read_only:
            words = [
                *(words for _, _, words, _ in quoted),
                *(each.text for each in rules),
            ]
            self.store.injections.add(
                make_injection(
                    self.clock.now(),
                    InjectionKind.CONTEXT,
                    client=next(iter(names(request.source)), ""),
                    session=next(iter(names(request.session)), ""),
                    prompt=question,
                    text="\n".join(words),
                    lines=shown,
                )
            )
        return Assembled(
            system=window.system,
            messages=sendable(window.messages),
            tokens=window.breakdown,
            total=window.breakdown.total,
            kept=list(window.kept),
            dropped=list(window.dropped),
            recalled=[id for _, id, *_ in quoted],
            learnings=[learning.id for learning in rules],
            orphans=list(window.orphans),
        )

    def _token_budget(self, request: Context) -> TokenBudget:
        """Return the token budget of the settings, overridden by the values of the request."""
        given: dict[str, Any] = {
            "total": request.total,
            "system_reserve": request.system_reserve,
            "tool_definitions_reserve": request.tools_reserve,
            "memory_fraction": request.memory_fraction,
            "learnings_fraction": request.learnings_fraction,
            "fresh_tail_count": request.fresh_tail,
        }
        return replace(
            token_budget(self.settings.config.context),
            **{name: value for name, value in given.items() if value is not None},
        )

    def _select_quotes(
        self,
        request: Context,
        question: str,
        chosen: ChosenWindow,
        learnings: Sequence[Learning],
        groups: Groups,
    ) -> list[tuple[str | None, str, str, Quoted]]:
        """Return recalled texts to quote, best first, each after its memory's owner, id and words.

        Texts that the chosen window or a learning shows anyway are not quoted.
        """
        hits = self._find_relevant_hits(request, question, groups)
        if not hits:
            return []
        in_window = (request.messages[position] for position in chosen.kept)
        # Quoted, superseded learnings would contradict the new ones.
        sources = (*names(request.source), None) if request.source else ()
        every = self.store.learnings.find(
            sources=sources, superseded=True, limit=LEARNINGS_MAX
        )
        seen = {
            *(_normalize_spaces(message_text(message)) for message in in_window),
            _normalize_spaces(message_text(as_user_message(request.message))),
            *(_normalize_spaces(each.text) for each in every if each.superseded_by),
        }
        known = {learning.memory for learning in learnings if learning.memory}
        return list(_quotable_lines(hits, question, seen=seen, known=known))

    def _find_relevant_hits(
        self, request: Context, question: str, groups: Groups
    ) -> list[Hit]:
        """Return the hits relevant enough to be shown; none for a message without content words."""
        times = parse_times(question, in_zone(self.clock.now(), local_zone()))
        relevance = Relevance(question, times)
        if not relevance.has_content:
            return []
        recalled = self.recall(
            Recall(
                question,
                limit=RECALLED_MAX,
                session=request.session,
                source=request.source,
                explain=True,
            ),
            groups,
        )
        return relevance.select_relevant_hits(recalled.hits)


def _make_subject_text(request: Context, question: str) -> str:
    """Return the question, with the last user message if it has no content words, as "go on"."""
    if Relevance(question, QuestionTimes()).has_content:
        return question
    before = (
        message_text(message)
        for message in reversed(request.messages)
        if message.get("role") == "user" and message_text(message).strip()
    )
    return f"{question} {next(before, '')}"[:QUERY_CHARS_MAX]


def _quotable_lines(
    hits: Sequence[Hit], question: str, *, seen: set[str], known: set[str]
) -> Iterator[tuple[str | None, str, str, Quoted]]:
    """Yield each recalled text once, best first, after the owner, id and words of its memory.

    The words come without notes on ends, whose words are forgotten with another memory. Texts in
    `seen` are left out, and each yielded text is added there; so are memories with an id in `known`.
    """
    asked = parse_terms(question)
    for hit in hits:
        for line in hit.lines or (hit,):
            words = _normalize_spaces(line.content)
            if not words or words in seen or line.id in known:
                continue
            seen.add(words)
            snippet = cut_snippet(line.content, asked, width=QUOTED_CHARS_MAX)
            quoted = Quoted(
                text="\n".join([snippet, *(f"({ended.note})" for ended in line.ended)]),
                said=line.created_at,
                speaker=line.role,
                source=": ".join(filter(None, (hit.owner, hit.source or hit.session))),
            )
            yield hit.owner, line.id, snippet, quoted


def _normalize_spaces(words: str) -> str:
    """Return the text with single spaces between words, for comparison."""
    return " ".join(words.split())
