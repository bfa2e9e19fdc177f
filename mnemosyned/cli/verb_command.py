"""The shell command of a verb: fields as options, confirmation, and the result in words."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import click
import msgspec

from mnemosyned.cli import arguments, calls, options
from mnemosyned.cli.ids import id_fields, ids_with_prefix, is_marked, with_whole_ids
from mnemosyned.cli.output import terminal
from mnemosyned.cli.output.show import page_output, render, renderer_of, show
from mnemosyned.client.connection import TIMEOUT_S, Connection
from mnemosyned.errors import InvalidRequest
from mnemosyned.verbs.request import R, Request, parse_text

DELETES = ("forget", "prune")
CONFIRMED = {
    "forget": ("delete", "forgotten"),
    "prune": ("delete", "pruned"),
    "undo": ("undo", "undone"),
    "edit": ("change memories", "edited"),
    "tag": ("change memories", "tagged"),
    "untag": ("change memories", "untagged"),
    "pin": ("change memories", "pinned"),
    "unpin": ("change memories", "unpinned"),
}
"""Verbs that ask for confirmation, each with its word and participle for the question."""
UNDO_QUESTIONS = {
    "sleep": "Undo this sleep cycle? Its summaries are deleted.",
    "import": "Undo this import? What it brought is forgotten.",
    "forget": "Put back what was forgotten?",
}
"""Questions before an undo, by the kind of the action."""


def confirm_and_call(client: Connection, request: Request[R]) -> object:
    """Show a request's dry run, ask the user, send the request; return its result, or an empty dry run.

    Raises `InvalidRequest` if there is no terminal to ask at; the answer no exits with code 1.
    """
    preview: Request[Any] = msgspec.structs.replace(request, dry_run=True)
    can_ask = sys.stdin.isatty()
    foreseen: Any = calls.call_daemon(client, preview)
    name = request.verb_name()
    doing, done = CONFIRMED[name]
    if name == "undo":  # and not what is done meanwhile
        request = msgspec.structs.replace(request, action=foreseen.actions[0].id)
    count = foreseen.memories + getattr(foreseen, "learnings", 0)
    if not count:
        believes = getattr(request, "believe_clock", False)
        return calls.call_daemon(client, request) if believes else foreseen
    if not can_ask:
        terminal.say(render(foreseen), err=True, styled=True)
        raise InvalidRequest(
            f"refusing to {doing} without a terminal to confirm; use --yes"
        )
    foreseen = join_preview_pages(client, preview, foreseen)
    text = render(foreseen)
    is_long = text.count("\n") >= shutil.get_terminal_size().lines
    if is_long and terminal.is_terminal(sys.stdout):
        with page_output():
            terminal.say(text, styled=True)
    else:
        terminal.say(text, err=True, styled=True)
    if not terminal.ask_user(_confirmation_question(name, foreseen), default=False):
        terminal.say(f"nothing was {done}", err=True)
        raise click.exceptions.Exit(options.EXIT_NOTHING)
    if getattr(foreseen, "doubt", ""):
        request = msgspec.structs.replace(request, believe_clock=True)
    if getattr(foreseen, "mark", ""):
        request = msgspec.structs.replace(request, mark=foreseen.mark)
    return calls.call_daemon(client, request)


def join_preview_pages(client: Connection, preview: Request[Any], first: R) -> R:
    """Return the result of a dry run, whose first page is `first`, with all its lines."""
    further = getattr(first, "further", 0)
    if not further:
        return first
    lines = list(getattr(first, "lines", ()))
    # The mark keeps further pages to the same memories.
    marked = {"mark": mark} if (mark := getattr(first, "mark", "")) else {}
    for _ in range(10_000):
        if not (further and lines):
            break
        page: Any = client.call(
            msgspec.structs.replace(preview, after=lines[-1].id, **marked)
        )
        further = page.further
        lines += page.lines
    joined: R = msgspec.structs.replace(first, lines=lines, further=further)  # type: ignore[type-var]
    return joined


def _confirmation_question(name: str, preview: Any) -> str:  # noqa: ANN401 the result of any such verb
    """Return the question before a change: what is deleted or changed, and whether for good."""
    if name == "undo":
        return UNDO_QUESTIONS.get(
            preview.actions[0].kind, "Undo this? The undo cannot be undone."
        )
    count = preview.memories
    if name == "prune":
        return f"Delete the words of {terminal.count_of(count, 'original')}? This cannot be undone."
    selected = [_this_or_these(count, "memory")] if count else []
    learnings = getattr(preview, "learnings", 0)
    if learnings:
        selected.append(_this_or_these(learnings, "learning"))
    final = " This cannot be undone." if name in DELETES else ""
    if until := getattr(preview, "final_at", None):
        part = "what is forgotten"
        if preview.recoverable < count:
            part = f"{preview.recoverable:,} of {count:,}"
        final = f" mnem restore can put back {part} until {terminal.local_time(until)}."
    if archived := getattr(preview, "archived", 0) if name in ("pin", "unpin") else 0:
        them = "One of them is" if archived == 1 else f"{archived:,} of them are"
        if archived == count:
            them = "It is" if count == 1 else "All of them are"
        final = f" {them} archived and cannot be {name}ned."
    return f"{name.capitalize()} {' and '.join(selected)}?{final}"


def _this_or_these(count: int, noun: str) -> str:
    """Return "this memory" or "these 3 memories", by the count and the noun."""
    return f"this {noun}" if count == 1 else f"these {terminal.count_of(count, noun)}"


def make_verb_command(name: str, verb: type[Request[Any]]) -> click.Command:
    """Return the click command of a verb, with the verb's fields as arguments and options."""
    first = arguments.FIRST.get(verb.verb_name())
    params = arguments.make_parameters(verb)
    params.sort(key=lambda parameter: parameter.name != first)
    if verb.verb_name() in CONFIRMED:
        words = "Do not ask for confirmation."
        params.append(click.Option(["--yes", "-y"], is_flag=True, help=words))

    def run_verb(
        context: click.Context,
        /,
        *,
        yes: bool = True,
        **given: Any,  # noqa: ANN401
    ) -> int:
        """Send the verb's request, print the result, return the exit code; `yes` skips any confirmation."""
        typed = arguments.read_fields(given, name)
        timeout_s = calls.PROBE_TIMEOUT_S if verb.is_probe else TIMEOUT_S
        with calls.connect_to_daemon(context, timeout_s=timeout_s) as client:
            ids, tags = typed.get("id") or [], typed.get("tags") or []
            is_pair = first == "tags" and len(ids) == len(tags) == 1 and ids[0]
            if is_pair and not is_marked(ids[0]):
                find_ids = partial(ids_with_prefix, verb="get", client=client)
                if not find_ids(ids[0]) and find_ids(tags[0]):  # `mnem tag ID WORD`
                    typed |= {"id": tags, "tags": ids}
            typed = with_whole_ids(verb.verb_name(), typed, client)
            request = parse_text(verb, typed)
            is_selection = getattr(request, "id", "") is None
            must_ask = is_selection or verb.verb_name() in ("undo", *DELETES)
            call: Callable[..., object] = calls.call_daemon
            if must_ask and not (yes or request.is_preview):
                call = confirm_and_call
            result = call(client, request)
            if request.is_preview and not given.get("after"):
                result = join_preview_pages(client, request, result)
        show(result)
        has_id = any(typed.get(field) for field in id_fields(verb.verb_name()))
        is_unknown = has_id and not getattr(result, "rows", result)  # of a list, by id
        is_nothing = renderer_of(type(result)).is_nothing(result)
        return options.EXIT_NOTHING if is_unknown or is_nothing else 0

    return options.AnswerCommand(
        name,
        params=params,
        callback=click.pass_context(run_verb),
        # Exit codes tell a shell the verb's errors.
        help=arguments.name_options(
            str(verb.__doc__).partition("\n\n    Raises")[0],
            arguments.options_of(verb),
        ),
    )


def add_change(
    command: click.Command,
    verb: type[Request[Any]],
    words: Mapping[str, Mapping[str, str]],
    *,
    hint: str,
) -> None:
    """Let a command that lists entries also change one, as `mnem endings undo ID`.

    `words` maps each word before the id to the fields of the `verb` that it sets; other words give
    a usage error with the `hint`.
    """
    list_entries = cast("Callable[..., int]", command.callback)

    def run_change(
        context: click.Context,
        /,
        *,
        change: tuple[str, ...],
        **given: Any,  # noqa: ANN401
    ) -> int:
        """List entries, or change the one that `change` names; return the exit code."""
        if not change:
            return list_entries(**given)
        if len(change) != 2 or change[0] not in words:
            raise click.UsageError(hint)
        word, id = change
        with calls.connect_to_daemon(context) as client:
            fields = with_whole_ids(verb.verb_name(), {"id": id}, client)
            show(calls.call_daemon(client, parse_text(verb, {**fields, **words[word]})))
        return 0

    metavar = f"[{'|'.join(words)} ID]"
    command.params.insert(0, click.Argument(["change"], nargs=-1, metavar=metavar))
    command.callback = click.pass_context(run_change)
