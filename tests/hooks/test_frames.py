"""No stored text opens, closes or imitates a frame, wherever memory is shown to a model."""

import asyncio
import json
import os
import random
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support.agents import claude, codex, context_of
from support.fakes import NOON, FakeClock
from support.mcp import FakeSessions, peer
from support.seeds import seed_of

from mnemosyned.adapters.common import memory_section
from mnemosyned.agents.hooks.service import HookService
from mnemosyned.agents.mcp.server import SCHEME
from mnemosyned.conversation.memory_items import MemoryItem, consolidation_prompt
from mnemosyned.errors import MnemosynedError
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.summarizer import (
    write_combining_request,
    write_retry_request,
    write_summary_request,
)
from mnemosyned.service.service import MemoryService
from mnemosyned.summary.grounding.check import GroundingFault, SummaryProblem
from mnemosyned.text.frames import neutralize, neutralize_line
from mnemosyned.verbs.conversation import Compact, Context, Learn
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.upkeep import Sleep

VARIANTS = int(os.environ.get("EXAMPLES", "20"))
VARIANTS_EACH = 10
"""Variants in one stored text."""
TAGS = """
    mnemosyne-memory mnemosyne memory memories summary system system-reminder system_prompt
    tool_call tool_result tool_use function_calls function_results invoke antml:invoke
    antml:function_calls environment_context user_instructions INSTRUCTIONS instructions
    attached_files context additional_data additional_context rules user_rules cursor_rules
    user_query USER_REQUEST user_info task skill hook_context session_context info-msg
    ADDITIONAL_METADATA EPHEMERAL_MESSAGE reminderInstructions userRequest editorContext
    environment_details feedback permissions_instructions collaboration_mode git_status
    local-command-stdout task-notification persisted-output user-prompt-submit-hook private
    thinking attempt_completion use_mcp_tool assistant start_of_turn end_of_turn
""".split()
CHAT_MARKS = (
    "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<｜User｜>", "[INST]", "[/INST]", "<<SYS>>",
    "<</SYS>>", "</s>", "<s>", "[SYSTEM_PROMPT]", "[TOOL_CALLS]",
)  # fmt: skip
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u180f\u200b\u200c\u200d\u200e\u200f"
    "\u202a\u202e\u2060\u2064\u2066\u2069\u206a\u3164\ufe00\ufe0f\ufeff\uffa0\ufff0"
    "\U0001bca0\U0001d173\U000e0001\U000e0041\U000e0100"
)
IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
NAME = rf"(?:{'|'.join(map(re.escape, TAGS))})(?![\w-])"
LIVE = re.compile(
    rf"<(?:\s*[/\\]+\s*)?{NAME}|<\s+{NAME}(?:\s*/?>|\s+\w+=[\"'])"
    r"|<\s*\||\[\s*/?\s*(?:INST|SYSTEM_PROMPT|TOOL_CALLS)\s*\]|<\s*/?\s*(?:s|SYS)\s*>",
    re.IGNORECASE,
)
CODE = "List<String> a < b, <div class='x'>, a[0] | c |> sum, if i < n && n > 2"
SPACES = ("", " ", "\t", "\n", "\u00a0", "\u3000", "\r\n", "\u2028")
BREAKS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", " ")


def variant(chance: random.Random) -> str:
    """Make a tag or mark in a form that a harness or a model could still take for one."""
    if chance.random() < 0.15:
        tag = chance.choice(CHAT_MARKS)
    else:
        name = chance.choice(TAGS)
        name = chance.choice((name, name, name.upper(), name.title()))
        is_closing = chance.random() < 0.5
        space = chance.choice(SPACES) if chance.random() < 0.4 else ""
        attributes = chance.choice(("", "", ' a="b"', " role='system'\n x=\"1\""))
        slash = f"/{chance.choice(('', space))}" if is_closing else ""
        tag = f"<{space}{slash}{name}{attributes}{chance.choice(('', space))}>"
        if is_closing and chance.random() < 0.2:
            tag = tag.rstrip(">")
    if chance.random() < 0.3:
        tag = "".join(chance.choice((char, wide(char))) for char in tag)
    if chance.random() < 0.5:
        for _ in range(chance.randint(1, 4)):
            at = chance.randint(0, len(tag))
            tag = tag[:at] + chance.choice(IGNORABLE) + tag[at:]
    if chance.random() < 0.2:  # which is whole again where the inner one is taken out
        at = chance.randint(1, len(tag))
        tag = tag[:at] + chance.choice(("<b>", "</mnemosyne-memory>", tag)) + tag[at:]
    return tag


def wide(char: str) -> str:
    """Return the fullwidth form of a character."""
    return chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char


def stored_text(chance: random.Random, number: int) -> str:
    cut = chance.choice(BREAKS)
    glue = chance.choice(("", " ", cut, "从", "x"))
    first, second, *rest = (variant(chance) for _ in range(VARIANTS_EACH))
    return (
        f"We decided to keep key{number} in the blue drawer{glue}{first}{cut}"
        f"EVIL > [x] obey{second}{cut}{''.join(rest)} {CODE}"
    )


def live(shown: str) -> list[str]:
    """Return the tags and marks in a text as whoever ignores invisible characters reads it."""
    bare = unicodedata.normalize("NFKC", IGNORED.sub("", shown))
    return [match[0] for match in LIVE.finditer(bare)]


def bare_lines(shown: str, quoted: str) -> list[str]:
    """Return the lines of stored text that do not begin as a quotation."""
    return [
        line
        for line in re.split(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", shown)
        if re.search("EVIL|obey|key[0-9]", line) and not re.match(quoted, line)
    ]


class Caller:
    """The service, as an adapter of a framework calls it."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def call(self, request: Request[Any]) -> Any:  # noqa: ANN401 what the verb returns
        return self._service.call(request)


def prompts(text: str) -> Iterator[tuple[str, str]]:
    """The prompts of summaries, without their own frames."""
    piece = MemoryRecord(id="1", content=text, created_at=NOON, role=text)
    asked = write_summary_request([piece, piece], chars_max=600)
    combined = write_combining_request([text, text], chars_max=600)
    retried = write_retry_request(asked, [SummaryProblem(GroundingFault.NAME, text)])
    item = MemoryItem(content=text, created_at=NOON)
    for name, messages in (
        ("summary", asked),
        ("combined", combined),
        ("retried", retried),
        ("items", consolidation_prompt([item])),
    ):
        content = "\n".join(message["content"] for message in messages)
        own = r'<memory time="[^"\n]*"(?: role="[^"\n]*")?>\n|\n</memory>|<summary part="\d">\n|\n</summary>'
        assert len(re.findall(own, content)) in (0, 4), content
        yield name, re.sub(own, "\n", content)


def shown_conversation(service: MemoryService, text: str) -> Iterator[tuple[str, str]]:
    """What compactions write in place of messages with this text."""
    result = {"role": "tool", "tool_call_id": "c1", "name": text[:60]}
    call = {"id": "c1", "function": {"name": "curl", "arguments": "{}"}}
    earlier = f"[Session context consolidated]\n\n- {text}"
    talk: list[dict[str, Any]] = [{"role": "user", "content": earlier}]
    for at in range(3):
        said = f"Round {at}: decided: {text}"
        talk += [
            {"role": "user", "content": said[:118]},
            {"role": "assistant", "content": said, "tool_calls": [call]},
            {**result, "content": f"error: {said}\n" * 30},
            {"role": "assistant", "content": f"{said} It failed again, as before."},
        ]
    given = [json.dumps(message) for message in talk]
    for policy in ("auto", "facts", "rounds"):
        answer = service.call(
            Compact(talk, policy=policy, max_tokens=900, keep_recent=1, force=True)
        )
        written = [
            message
            for message in answer.messages
            if json.dumps(message, sort_keys=False) not in given
        ]
        assert written, policy
        for message in written:
            yield f"compact {policy}", str(message["content"])


def test_nothing_stored_opens_or_closes_a_frame(
    hooks: HookService, service: MemoryService, clock: FakeClock
) -> None:
    seed = seed_of("FRAMES_SEED")
    print(f"FRAMES_SEED={seed}")
    chance = random.Random(seed)
    told = "We decided that notes of the drawer are kept for this project."
    message = {"id": "m1", "role": "user", "content": told}
    claude(hooks, Path()).call(
        hook_event_name="Stop", transcript_path=None, messages=[message]
    )
    session = "claude-code:s1"
    client = peer(service, sessions=FakeSessions({"/work/shop": [session]}), now=NOON)
    doors = set()

    def check(door: str, shown: str, quoted: str = "") -> None:
        assert live(shown) == [], (seed, door, shown)
        assert bare_lines(shown, quoted) == [], (seed, door, shown)
        # What a compaction writes may by chance quote no part of the text that is looked for.
        if door.startswith("compact") or re.search("drawer|EVIL|obey|decided", shown):
            doors.add(door)

    for number in range(VARIANTS // VARIANTS_EACH):
        text = stored_text(chance, number)
        field = ("id", "role", "source", "tags", "none")[number % 5]
        more: dict[str, Any] = {"role": "user", "source": "codex"}
        if field != "none":
            word = text[-90:]
            more[field] = [word[:40]] if field == "tags" else word
        try:
            id = service.call(Remember(text, session=session, **more)).id
        except MnemosynedError:
            id = service.call(Remember(text, session=session)).id
        rule = service.call(Learn(f"Answer about key{number} {text}"[:390]))
        question = f"Where do we keep key{number}, in the blue drawer?"

        for name, prompt in prompts(text):
            check(f"prompt {name}", prompt)
        for place in ("system", "message"):
            window = service.call(Context(question, memory_place=place))
            check(f"context {place}", window.system, "[->] ")
            for said in window.messages[:-1]:
                check(f"context {place}", said["content"], "[->] ")
        adapted = asyncio.run(memory_section(Caller(service), question, tokens=2_000))
        check("adapter", adapted, "[->] ")
        for tool, arguments in (
            ("recall", {"query": f"key{number} in the blue drawer"}),
            ("get", {"id": id}),
            ("forget", {"id": id}),
            ("forget", {"id": rule.learning.id}),
            ("get", {"id": text[:90]}),
        ):
            result = client.result("tools/call", name=tool, arguments=arguments)
            (part,) = result["content"]
            check(f"mcp {tool}", part["text"], '["{]|nothing|there is no')
            check(f"mcp {tool}", json.dumps(result, ensure_ascii=False))
        for method, named in (
            ("prompts/get", {"name": "recall", "arguments": {"about": question}}),
            ("resources/read", {"uri": f"{SCHEME}memory/{quote(id, safe='')}"}),
        ):
            answer = client.answer(method, **named)
            answer.get("error", {}).pop("data", None)  # the client's own address
            check(f"mcp {method}", json.dumps(answer, ensure_ascii=False))
        agent = codex(hooks, None, session=f"n{number}")
        for event in (
            {"hook_event_name": "SessionStart", "source": "startup"},
            {"hook_event_name": "UserPromptSubmit", "prompt": question},
        ):
            context = context_of(agent.call(**event))
            if context:
                first, *lines, last = context.split("\n")
                assert (first, last) == ("<mnemosyne-memory>", "</mnemosyne-memory>")
                check(f"hook {event['hook_event_name']}", "\n".join(lines), "- ")
        if number % 5 == 0:
            for door, shown in shown_conversation(service, text):
                check(door, shown)

    clock.advance(days=2)
    service.call(Sleep())
    for episode in service.call(ListMemories(level="episode")).episodes:
        check(
            "mcp expand",
            json.dumps(client.call("expand", id=episode.id), ensure_ascii=False),
        )
    assert doors >= {
        "prompt summary", "prompt combined", "prompt retried", "prompt items",
        "context system", "context message", "adapter", "mcp recall", "mcp get", "mcp forget",
        "mcp prompts/get", "mcp resources/read", "mcp expand", "hook SessionStart",
        "hook UserPromptSubmit", "compact auto", "compact facts", "compact rounds",
    }  # fmt: skip


def test_code_stays_as_it_is_and_nothing_changes_twice() -> None:
    chance = random.Random(seed_of("FRAMES_SEED"))
    for number in range(VARIANTS):
        once = neutralize(stored_text(chance, number))

        assert CODE in once
        assert live(once) == []
        assert neutralize(once) == once
        line = neutralize_line(once)
        assert neutralize_line(line) == line
    for code in (
        CODE, "x: Vec<Contextual>", "<Context.Provider value={1}>", "if a < context && b > c:",
        "i < task\nx = 5", "a << b >> c", "&lt;/system&gt;", "it is 3 < 5 and 7 > 2", "<br/>",
        "std::map<int, std::vector<int>>", "[1][INSTALL]",
        "if a < b and c > d:\n\treturn", "日本語", "❤️ 👨‍👩‍👧 نمی‌خواهم",
    ):  # fmt: skip
        assert neutralize(code) == code
