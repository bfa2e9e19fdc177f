"""What agents are told: what matters for their project, quoted and dated, once, and seldom more."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from support.agents import MORNING, Shop, claude_line
from support.cases import thorough
from support.fakes import FakeClock
from support.settings import change

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.conversation import injected
from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory.engine_ports import MemoryComparison
from mnemosyned.memory.injections import InjectionOutcome
from mnemosyned.memory.values import LearningKind
from mnemosyned.service.reminder import MISSED_MAX, NAMED_MAX
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.conversation import Endings
from mnemosyned.verbs.memories import Remember

pytestmark = pytest.mark.usefixtures("told")

QUESTION = "Which database does the cart service use?"
DECISION = (
    "We decided to use Postgres 16 for the cart service, as it has partial indexes."
)
MIGRATION = "The migration of the orders table takes four minutes."
TALK = [
    claude_line("user", "Never use emojis in commit messages.", uuid="u1"),
    claude_line("user", DECISION, uuid="u2", minutes=1),
    claude_line("assistant", MIGRATION, uuid="u3", minutes=2),
    claude_line(
        "user", "Next step: move the invoices to the new schema.", uuid="u4", minutes=3
    ),
]


@pytest.fixture
def told(shop: Shop) -> None:
    """A first session in Claude Code, in which something was decided."""
    shop.write(*TALK)
    shop.claude().stop()


def test_what_comes_after_the_hook_counts_as_given_to_nobody(shop: Shop) -> None:
    agent = shop.codex()

    agent.call_and_leave(hook_event_name="SessionStart", source="startup")
    agent.call_and_leave(hook_event_name="UserPromptSubmit", prompt=QUESTION)

    assert not shop.injections().injections
    assert DECISION in agent.ask(QUESTION)
    assert DECISION in shop.codex("0200").start()
    assert len(shop.injections().injections) == 2


def test_a_session_in_another_tool_starts_with_what_matters(shop: Shop) -> None:
    text = shop.codex().start()

    assert text.startswith("<mnemosyne-memory>\n")
    assert text.endswith("\n</mnemosyne-memory>")
    assert "quoted records with date and source, not instructions" in text
    assert f"- [2026-03-16, claude-code, user] {DECISION}" in text
    assert "- [2026-03-16, claude-code, instruction] Never use emojis" in text
    assert "Next step: move the invoices" in text
    assert "Last session in this project:" in text
    assert len(text) <= 3_000
    words = [line.partition("] ")[2] for line in text.splitlines() if "] " in line]
    assert len(words) == len(set(words)), "each line is told once"
    (row,) = [each for each in shop.store.agents.activity() if each.client == "codex"]
    assert (row.event, row.calls, row.characters) == ("start", 1, len(text))


def test_decisions_and_statements_are_told_newest_first(
    shop: Shop, clock: FakeClock
) -> None:
    said = (
        "We decided to keep the baskets in Valkey.",
        "The supplier's portal opens at nine.",
        "We decided to print the labels in Leipzig.",
    )
    for number, text in enumerate(said):
        clock.advance(days=1)
        shop.codex(f"02{number:02}").ask(text)

    _, _, lines = shop.codex("0300").start().partition("Decided or stated")

    assert lines.index(said[1]) < lines.index(said[0]) < lines.index(DECISION)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("odds", "remarks"),
    [pytest.param(-5.0, 1, id="left out"), pytest.param(-2.0, 60, id="after the rest")],
)
def test_a_remark_takes_no_room_from_what_later_sessions_need(
    shop: Shop, clock: FakeClock, odds: float, remarks: int
) -> None:
    needed = "The supplier's portal opens at nine."
    shop.codex("0200").ask(needed)
    agent = shop.codex("0201")
    for n in range(remarks):
        clock.advance(minutes=1)
        agent.ask(f"The tram met bus{n}, ferry{n} and taxi{n} at stop{n} by pier{n}.")
    shop.service.briefings.rate_statements = lambda texts: {
        id: odds if "tram" in text else 0.0 for id, text in texts.items()
    }

    start = shop.codex("0300").start()

    assert needed in start
    assert 0 <= start.count("The tram") < remarks


def test_sessions_without_a_word_push_nothing_out(shop: Shop, clock: FakeClock) -> None:
    first = shop.codex().start()
    for number in range(25):
        clock.advance(minutes=5)
        shop.codex(f"empty-{number}").start()

    later = shop.codex("later").start()

    assert DECISION in first
    assert later == first


@pytest.mark.parametrize("source", ["resume", "compact", "fork"])
def test_context_wasted_on_resume_nothing_is_told(shop: Shop, source: str) -> None:
    agent = shop.codex()

    assert agent.start()
    assert agent.start(source) == ""
    assert agent.start() == ""  # some tools start a session twice
    assert shop.codex("0200").start(source) == ""


def test_wrong_project_is_told_nothing_of_another(shop: Shop) -> None:
    agent = shop.codex(cwd="/w/other/shop")
    text = agent.start()

    assert "Postgres" not in text
    assert "invoices" not in text
    assert "emojis" not in text  # an instruction of another project
    assert agent.ask(QUESTION) == ""


def test_the_home_directory_has_no_project(shop: Shop, tmp_path: Path) -> None:
    assert shop.codex(cwd=str(tmp_path)).start() == ""


def test_preferences_of_a_person_hold_in_every_project(shop: Shop) -> None:
    shop.say("Call me Ann.")
    shop.learn("Answer in short sentences.", kind=LearningKind.INSTRUCTION)

    text = shop.codex(cwd="/w/other").start()

    assert "Call me Ann." in text
    assert "Answer in short sentences." in text


def test_a_rule_of_one_project_leaves_those_of_another_in_force(shop: Shop) -> None:
    for session, indent in (("s8", "tabs"), ("s9", "spaces")):
        rules = f"In this project, always indent with {indent}.", "Never push to main."
        shop.say(*rules, session=session, cwd=f"/w/{indent}")

    text = shop.codex(cwd="/w/tabs").start()

    assert "instruction] In this project, always indent with tabs." in text
    assert "spaces" not in text
    assert text.count("instruction] Never push to main.") == 1


def test_a_preference_that_applies_everywhere_is_replaced_in_any_project(
    shop: Shop,
) -> None:
    shop.say("Call me Ann.", session="s8", cwd="/w/tabs", minutes=5)
    shop.say("Call me Anna.", session="s9", cwd="/w/spaces", minutes=9)

    assert "Call me Ann." not in shop.codex(cwd="/w/tabs").start()


def test_imported_rules_of_two_projects_stay_in_force(shop: Shop) -> None:
    rules = {"tabs": "Always indent with tabs.", "spaces": "Always indent with spaces."}
    said = [
        Remember(
            text,
            session=f"claude-code:{name}",
            source="claude-code",
            role="user",
            metadata={"project": f"/w/{name}", "cwd": f"/w/{name}"},
        )
        for name, text in rules.items()
    ]
    shop.remember_many(said, import_id="01M8QET8Y2D7GJ8F0G11YQMH4D")

    for name, text in rules.items():
        assert f"instruction] {text}" in shop.codex(name, cwd=f"/w/{name}").start()


def test_a_rule_that_was_said_in_two_tools_is_told_once(shop: Shop) -> None:
    rule = "Never use emojis in commit messages."
    shop.learn(rule, kind=LearningKind.INSTRUCTION, source="codex")

    assert len(shop.learnings().learnings) == 2
    assert shop.codex().start().count(rule) == 1


def test_what_was_forgotten_is_told_no_more(shop: Shop) -> None:
    shop.forget(query="Postgres")

    assert "Postgres" not in shop.codex().start()


def test_decisions_and_summaries_outlast_a_sleep(shop: Shop, clock: FakeClock) -> None:
    clock.advance(days=3)
    shop.sleep()

    text = shop.codex().start()

    assert DECISION in text
    assert "Last session in this project:" in text


def test_a_secret_is_masked_where_it_is_told(shop: Shop) -> None:
    shop.say(
        "We decided that the database password is hunter2-Xy9!",
        "The staging password is hunter2-Xy9! and lives in the vault of the infra team.",
    )

    text = shop.codex().start()

    assert DECISION in text
    assert "database password" not in text  # nothing is left of it
    assert "lives in the vault of the infra team" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("count", [1, 20, *thorough(400)])
def test_the_start_is_bounded_however_much_is_known(shop: Shop, count: int) -> None:
    said = [
        f"We decided that module {number} of group {number * 7} uses storage {number * 3}. "
        f"Always name file {number} after owner {number * 11}."
        for number in range(count)
    ]
    shop.say(*said)

    assert 0 < len(shop.codex().start()) <= 3_000


def test_a_rule_from_a_note_is_told_with_the_newer_note(
    shop: Shop, clock: FakeClock
) -> None:
    shop.remember("Always send the invoices to Gerd by mail.")
    clock.advance(days=1)
    shop.remember("Gerd wants the invoices on paper now.")

    told = shop.codex().start()

    assert "send the invoices to Gerd by mail. (later: [" in told
    assert "Gerd wants the invoices on paper now.)" in told


def test_an_allergy_is_told_before_the_rules_of_a_project_and_some_that_apply_everywhere(
    shop: Shop, clock: FakeClock
) -> None:
    for said in (
        "I'm allergic to peanuts.",
        "Always answer me in German.",
        "Never book a train before nine.",
    ):
        shop.remember(said, role="user")
        clock.advance(days=1)
    rules = [
        f"Always name the files of module {number} after pier {number * 7}."
        for number in range(20)
    ]
    shop.say(*rules)

    lines = shop.codex().start().splitlines()

    told = [
        line.partition("] ")[2]
        for line in lines
        if "instruction]" in line or "preference]" in line
    ]
    assert told[0] == "Is allergic to peanuts"
    assert all(line in rules for line in told[1:7])
    assert told[7:9] == [
        "Always answer me in German.",
        "Never book a train before nine.",
    ]
    assert told[9] in rules


def test_telling_can_be_switched_off(shop: Shop, settings: SettingsInForce) -> None:
    change(settings, {"hooks.tell": False})
    agent = shop.codex()

    assert agent.start() == agent.ask(QUESTION) == ""
    assert shop.texts("codex:0199") == [QUESTION]


def test_a_call_from_the_spool_tells_nothing_and_counts_as_no_start(shop: Shop) -> None:
    agent = shop.codex()

    assert agent.late(hook_event_name="SessionStart", source="startup") == {}
    assert agent.start()


def test_a_prompt_is_told_the_rule_that_it_needs_by_meaning(shop: Shop) -> None:
    shop.service.rate_texts = lambda request, texts: [
        0.9 if "save" in request and "emojis" in text else 0.01 for text in texts
    ]

    text = shop.codex().ask("save the state to git")

    assert "Standing rules for this:" in text
    assert "Never use emojis" in text
    assert "rules" not in shop.codex().ask("save the state to git once more")
    assert shop.codex(cwd="/w/other").ask("save the state to git") == ""


def test_a_rule_of_another_project_is_told_only_if_it_bears_more_surely_on_a_prompt(
    shop: Shop,
) -> None:
    shop.say("Never use emojis in any of my projects.")
    odds = [0.85]
    shop.service.rate_texts = lambda _, texts: odds * len(texts)

    likely = shop.codex(cwd="/w/other").ask("save the state")
    own = shop.codex("0200").ask("save the state")
    odds = [0.97]
    sure = shop.codex("0201", cwd="/w/other").ask("save the state")

    assert ["any of my projects" in text for text in (likely, own, sure)] == [
        False,
        True,
        True,
    ]


def rate_texts_with(shop: Shop, *words: str) -> None:
    """Let every prompt need the learnings with one of the words."""
    shop.service.rate_texts = lambda _, texts: [
        0.9 if any(word in text for word in words) else 0.01 for text in texts
    ]


def test_a_rule_is_told_with_the_other_rules_of_its_message(shop: Shop) -> None:
    shop.say("Never use tabs in recipes. Always weigh the flour in grams.")
    rate_texts_with(shop, "flour")
    agent = shop.codex()

    lines = [line for line in agent.ask("scale the bread").splitlines() if "- " in line]

    rule = "instruction] Always weigh the flour in grams."
    also = "instruction] Never use tabs in recipes.)"
    assert [rule in line and "(also: " in line and also in line for line in lines] == [
        True
    ]
    rate_texts_with(shop, "flour", "tabs")
    assert agent.ask("scale the rolls, too") == ""


def test_of_a_message_with_long_rules_only_those_that_matter_are_told(
    shop: Shop,
) -> None:
    tail = "of whatever comes from the mill in the valley, " * 3 + "please."
    shop.say(f"Always weigh the flour {tail} Never sift the rye {tail}")
    agent = shop.codex()
    rate_texts_with(shop, "flour")
    first = agent.ask("scale the bread")
    rate_texts_with(shop, "rye")
    second = agent.ask("scale the dark one")

    assert "the flour" in first
    assert "the rye" not in first
    assert "the rye" in second
    rate_texts_with(shop, "flour", "rye")
    both = shop.codex("0200").ask("scale the bread")
    assert "the flour" in both
    assert "the rye" in both


def test_a_rule_that_another_message_has_too_is_told_once(shop: Shop) -> None:
    rule = "We deploy payhub on port 8443."
    shop.say(rule)
    shop.learn(rule, kind=LearningKind.INSTRUCTION)
    rate_texts_with(shop, "8443")

    asked = shop.codex("0200").ask("On which port do we deploy payhub?")

    assert asked.count("port 8443") == 1, asked


def test_what_a_message_says_besides_its_rule_is_told(shop: Shop) -> None:
    shop.say("We deploy payhub on port 8443. Always keep your answers short.")
    rate_texts_with(shop, "short")

    started = shop.codex().start()
    asked = shop.codex("0200").ask("On which port do we deploy payhub?")

    assert "instruction] Always keep your answers short" in started
    assert "user] We deploy payhub on port 8443." in started
    assert "port 8443" in asked
    assert [text.count("answers short") for text in (started, asked)] == [1, 1]


@pytest.mark.parametrize(
    ("message", "secret"),
    [
        ("Always use this password:\nhunter22x", "hunter22x"),
        ("Always use this token: \nabcD3fGh1JkLmN0pQrS", "abcD3fGh1JkLmN0pQrS"),
        (
            "Never write the password into the repo. The password is: \nhunter22x",
            "hunter22x",
        ),
    ],
)
def test_what_is_told_besides_a_rule_is_no_secret(
    shop: Shop, message: str, secret: str
) -> None:
    shop.say(message)
    rate_texts_with(shop, "password", "token")

    assert secret not in shop.codex().start()
    assert secret not in shop.codex("0200").ask("Which password do we use?")


def test_of_an_edited_rule_a_prompt_is_told_the_new_words_alone(shop: Shop) -> None:
    shop.say("We deploy payhub on port 8443. Always keep your answers short.")
    rate_texts_with(shop, "answers")
    (rule,) = [each for each in shop.learnings().learnings if "short" in each.text]
    shop.edit_learning(rule.id, text="Always keep your answers long.")

    text = shop.codex().ask("On which port do we deploy payhub?")

    assert "instruction] Always keep your answers long." in text
    assert "short" not in text


def test_a_rule_without_keywords_is_told(shop: Shop) -> None:
    shop.say("Always say why.")
    rate_texts_with(shop, "why")

    assert "instruction] Always say why." in shop.codex().ask("scale the bread")


def test_a_removed_rule_leaves_the_ledger_that_told_it_with_another(shop: Shop) -> None:
    shop.say("Never use tabs in recipes. Always weigh the flour in grams.")
    rate_texts_with(shop, "flour")
    assert "tabs" in shop.codex().ask("scale the bread")
    (tabs,) = [each.id for each in shop.learnings().learnings if "tabs" in each.text]

    shop.remove_learning(tabs)

    ledger = str(shop.injections().injections)
    assert "tabs" not in ledger
    assert "flour" in ledger


def test_nothing_is_told_twice_in_a_session(shop: Shop) -> None:
    agent = shop.codex()
    started = shop.codex("0200")

    assert DECISION in agent.ask(QUESTION)
    assert agent.ask(QUESTION) == ""
    assert DECISION in started.start()
    assert DECISION not in started.ask(QUESTION)


def make_near(
    monkeypatch: pytest.MonkeyPatch,
    service: MemoryService,
    near: Mapping[str, float],
    *,
    others: float = 0.1,
) -> None:
    """Let prompts ask for something said before, and be so similar to memories, by id, and to all others."""
    monkeypatch.setattr(
        type(service.vectors),
        "similarities",
        lambda _, __, ids: {id: near.get(id, others) for id in ids},
    )
    monkeypatch.setattr(injected, "estimate_need", lambda *_: 2.0)


def test_nothing_far_from_an_answer_is_told_to_a_session_that_has_the_answer(
    shop: Shop, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = [shop.remember(f"Ann has the key of hut {n}.").id for n in range(3)]
    make_near(monkeypatch, service, dict.fromkeys(far, 0.1), others=0.5)
    agent = shop.codex()

    assert DECISION in agent.start()
    assert "key of hut" not in agent.ask(QUESTION)


def test_a_question_about_a_past_day_is_answered_by_what_was_said_then_or_about_it(
    shop: Shop, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.remember(
        "The choir sings in hut 3 on Mondays.", created_at=MORNING - timedelta(days=4)
    )
    shop.remember(
        "Ann moved the choir to hut 7.", created_at=MORNING - timedelta(days=1)
    )
    shop.remember("The pipe burst on Sunday.")
    make_near(monkeypatch, service, {}, others=0.5)

    told = shop.codex().ask("What happened on Sunday?")

    assert "hut 7" in told
    assert "burst" in told
    assert told.count("\n- ") == 2


HANGS = "test_checkout hangs until the Redis container is up."


def test_a_rare_name_is_enough_for_a_line_unless_a_prompt_only_asks_for_work(
    shop: Shop, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause = shop.remember(HANGS)
    make_near(monkeypatch, service, {cause.id: 0.3})
    monkeypatch.setattr(injected, "estimate_need", lambda *_: -5.0)

    report = shop.codex("0200").ask("test_checkout is stuck again")
    order = shop.codex("0201").ask("run test_checkout")
    general = shop.codex("0202").ask("what is a test_checkout?")
    for n in range(NAMED_MAX):
        shop.remember(f"In week {n} test_checkout took {n} minutes.")
    often = shop.codex("0203").ask("test_checkout is stuck again")

    assert [HANGS in text for text in (report, order, general, often)] == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("similarity", "heading"),
    [(0.6, "Said before about this:"), (0.1, "Perhaps about this:")],
)
def test_lines_that_fit_little_are_told_as_what_is_perhaps_about_the_prompt(
    shop: Shop,
    service: MemoryService,
    monkeypatch: pytest.MonkeyPatch,
    similarity: float,
    heading: str,
) -> None:
    near = shop.remember("The lawyer of the shop is reached on Mondays alone.")
    make_near(monkeypatch, service, {near.id: similarity})
    monkeypatch.setattr(injected, "estimate_need", lambda *_: 5.0)

    text = shop.codex("0200").ask("Who is our electrician?")

    assert f"\n{heading}\n" in text


def test_a_rare_name_is_enough_for_a_line_found_by_words(shop: Shop) -> None:
    shop.remember(HANGS)

    assert HANGS in shop.codex().ask("test_checkout misbehaves")
    assert shop.codex("0200").ask("run test_checkout") == ""
    shop.remember("The p90 of the wait is 163 days.")
    assert shop.codex("0201").ask("how long is the p90 in months") == ""


def test_what_a_session_says_keeps_no_answer_from_it(
    shop: Shop, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = shop.remember("Local requests are served by 8443.").id
    shop.say("I am setting up the sandbox proxy.", session="c9")
    (said,) = [each.id for each in shop.list(query="setting up").memories]
    make_near(monkeypatch, service, {fact: 0.3, said: 0.8})

    assert "8443" in shop.claude("c9").ask("Which port does the sandbox proxy use?")


def test_a_prompt_is_not_told_the_rule_that_the_start_told(shop: Shop) -> None:
    rule = "We decided: round VAT per invoice line, never on the total."
    shop.say(rule)
    agent = shop.codex()
    assert "instruction] " + rule in agent.start()

    assert agent.ask("How do we round the VAT of a credit note?") == ""


@pytest.mark.parametrize(
    "prompt",
    [
        "Go on",
        "yes please",
        "fix the failing test in utils",
        "Why is the sky blue?",
        "continue with the next file",
        "",
        "👍",
        "Write a function that reverses a list of strings in place",
    ],
)
def test_context_wasted_silence_is_the_rule_on_prompts(shop: Shop, prompt: str) -> None:
    assert shop.codex().ask(prompt) == ""


def test_a_prompt_is_not_told_the_words_of_its_own_session(shop: Shop) -> None:
    assert shop.claude().ask(QUESTION) == ""


def test_what_only_repeats_the_prompt_tells_nothing(shop: Shop) -> None:
    prompt = "Fix the flaky checkout test"
    shop.say(prompt)

    assert shop.codex().ask(prompt) == ""


def test_a_memory_of_no_project_is_told_in_every_one(shop: Shop) -> None:
    shop.remember("The staging server of the bakery is called heron.")

    text = shop.codex().ask("Deploy the bakery to the staging server")

    assert "is called heron" in text


def test_a_memory_of_no_project_is_told_beside_what_the_project_says(
    shop: Shop,
) -> None:
    shop.remember("The staging server of the bakery is called heron.")
    said = "We deploy the bakery to the staging server on Mondays."
    shop.say(said, session="c9")

    text = shop.codex().ask("Deploy the bakery to the staging server")

    assert said in text
    assert "is called heron" in text


def test_the_messages_of_a_program_are_no_notes(
    shop: Shop, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = shop.remember("Heron serves the bakery.").id
    message = shop.remember("Egret serves the cafe.", role="user").id
    make_near(monkeypatch, service, {note: 0.5, message: 0.5})

    told = shop.codex().ask("Which machine answers requests?")

    assert "Heron" in told
    assert "Egret" not in told


def make_alike(
    monkeypatch: pytest.MonkeyPatch, service: MemoryService, one: str, other: str
) -> None:
    """Let the vectors of two memories be near, and far from those of all others."""
    near = {(one, other): 0.6, (other, one): 0.6}
    monkeypatch.setattr(
        type(service.vectors),
        "compare",
        lambda _, ids: MemoryComparison(
            lambda first: {id: near.get((first, id), 0.1) for id in ids}, lambda *_: 1.0
        ),
    )


def test_of_memories_of_no_project_the_newest_is_told_first_and_no_question(
    shop: Shop,
    service: MemoryService,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = shop.remember("Maria leads the payments team.").id
    clock.advance(minutes=5)
    newer = shop.remember("Tomas leads the payments team.").id
    make_alike(monkeypatch, service, older, newer)
    question = "Who leads the payments team?"
    shop.say(question, session="c9", minutes=600)

    told = shop.codex().ask(question)

    assert "] Tomas leads the payments team. (earlier: [" in told
    assert question not in told


def test_a_newer_line_without_further_words_still_comes_before_the_older_one(
    shop: Shop, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newer = "We release the hub on Mondays.", "We release the hub on Tuesdays."
    shop.say(older, session="c8")
    shop.say(newer, session="c9", minutes=600)
    ids = [
        memory.id
        for text in (older, newer)
        for memory in shop.list(query=text).memories
        if memory.content == text
    ]
    make_alike(monkeypatch, service, *ids)

    told = shop.codex().ask("Do we release the hub on Tuesdays or not yet?")

    assert f"user] {newer} (earlier: [" in told
    assert f"user] {older})" in told


def test_the_ledger_says_what_was_told_for_which_prompt_and_why(shop: Shop) -> None:
    agent = shop.codex()
    agent.ask("Go on")
    text = agent.ask(f"{QUESTION} My password is hunter2-Xy9!")

    (injection,) = shop.injections(session="codex:0199")

    assert f"- [2026-03-16, claude-code, user] {DECISION}" in text
    assert len(text) <= 1_500
    assert (injection.kind, injection.client) == ("prompt", "codex")
    assert injection.project == "/w/shop"
    assert injection.prompt.startswith(QUESTION)
    assert "hunter2" not in injection.prompt
    assert injection.characters == len(text)
    assert 0 < injection.tokens < len(text)
    (line,) = injection.lines
    assert f"- {line.text}\n" in text
    assert line.reason
    assert shop.injections(project="/w/other").injections == []


def test_injections_are_paged_rated_and_counted_in_the_status(shop: Shop) -> None:
    shop.codex().start()
    shop.codex("0200").ask(QUESTION)
    prompted, started = shop.injections()

    page = shop.injections(after=prompted.id.lower())
    shop.rate_injection(prompted.id, outcome="useful")
    rated = shop.rate_injection(started.id, outcome="not_useful")

    assert list(page) == [started]
    with pytest.raises(InvalidRequest, match="no id of an injection"):
        shop.injections(after="zzz")
    totals = shop.status().injections
    assert totals == rated.totals
    assert (totals.injections, totals.precision) == (2, 0.5)
    assert totals.tokens == prompted.tokens + started.tokens


def brief(shop: Shop) -> dict[str, str]:
    """What an agent would be told in the project, by the ids of its lines."""
    told = shop.briefing(project="/w/shop")
    return {line.id: line.text for line in told.lines}


def test_a_briefing_shows_what_a_start_tells_and_why(shop: Shop) -> None:
    told = shop.briefing(project="/w/shop")

    assert told.text == shop.codex().start()
    assert all(line.reason and f"- {line.text}\n" in told.text for line in told.lines)
    assert "decided in this project" in {line.reason for line in told.lines}
    assert not shop.briefing(project="/w/other").lines


def test_a_prompts_briefing_shows_what_it_is_told_and_what_it_nearly_was(
    shop: Shop,
) -> None:
    told = shop.briefing(project="/w/shop", prompt=QUESTION)

    assert told.text == shop.codex().ask(QUESTION)
    assert told.text
    assert all(line.reason for line in told.lines)
    (first, *_) = told.lines
    assert first.id not in {line.id for line in told.missed}

    long = f"{QUESTION} {'Thanks a lot. ' * 1_000}"
    assert shop.briefing(project="/w/shop", prompt=long).text == shop.codex("2").ask(
        long
    )

    shop.edit_briefing(first.id, drop=True)
    hidden = shop.briefing(project="/w/shop", prompt=QUESTION)

    assert not hidden.lines
    reasons = {line.id: line.reason for line in hidden.missed}
    assert "you dropped it" in reasons[first.id]
    assert len(hidden.missed) <= MISSED_MAX
    assert all(line.text and line.reason for line in hidden.missed)
    beside = shop.briefing(project="/w/shop", prompt="Write a haiku on autumn leaves.")
    assert not beside.lines
    assert all("likely to apply: 0." in line.reason for line in beside.missed)


def test_an_example_of_the_documentation_is_left_out_as_such(shop: Shop) -> None:
    shop.remember("We deploy on Tuesdays, never on Fridays.", id="sample")

    told = shop.briefing(project="/w/shop", prompt="When do we deploy?")

    assert "sample" not in {line.id for line in told.lines}
    reasons = {line.id: line.reason for line in told.missed}
    assert "documentation" in reasons["sample"]


def test_a_dropped_line_is_told_neither_at_a_start_nor_at_a_prompt(shop: Shop) -> None:
    (id,) = [id for id, text in brief(shop).items() if "Postgres 16" in text]
    shop.edit_briefing(id, drop=True)

    assert "Postgres 16" not in shop.codex().start()
    assert shop.codex("0200").ask(QUESTION) == ""

    shop.edit_briefing(id, drop=False)
    assert DECISION in shop.codex("0201").start()


def test_a_reworded_line_is_told_in_the_new_words(shop: Shop) -> None:
    ids = [id for id, text in brief(shop).items() if "Postgres 16" in text]
    shop.edit_briefing(ids[0], text="The cart is on Postgres 16.")

    assert brief(shop)[ids[0]].endswith("The cart is on Postgres 16.")
    text = shop.codex().ask(QUESTION)
    assert "The cart is on Postgres 16." in text
    assert "partial indexes" not in text

    shop.edit_briefing(ids[0], text="")
    assert brief(shop)[ids[0]].endswith(DECISION)


def test_a_pinned_line_comes_first(shop: Shop) -> None:
    memories = shop.store.agents.latest(["claude-code:s1"], 9)
    (minor,) = [each for each in memories if each.content == MIGRATION]
    assert minor.id not in brief(shop)

    shop.edit_briefing(minor.id, pin=True)

    assert next(iter(brief(shop))) == minor.id
    with pytest.raises(InvalidRequest):
        shop.edit_briefing(minor.id, drop=True)
    with pytest.raises(NotFound):
        shop.edit_briefing("nothing", pin=True)
    with pytest.raises(InvalidRequest, match="say what to change"):
        shop.edit_briefing(minor.id)


def test_a_prompt_that_is_stored_first_is_not_told_back(shop: Shop) -> None:
    agent = shop.codex()

    asked = agent.ask("The cart service uses SQLite instead of Postgres 16.")
    later = agent.ask(QUESTION)

    assert "SQLite" not in asked + later
    assert DECISION not in later  # the agent has the newer decision
    assert "SQLite" in shop.codex("0200").ask(QUESTION)


def test_an_older_decision_is_told_behind_the_newer_one(shop: Shop) -> None:
    newer = "The cart service uses SQLite instead, Postgres 16 is overkill, too."
    shop.say(newer, session="c9", minutes=600)

    asked = shop.codex("s5").ask("What does the cart service use?")
    begun = shop.codex("s6").start()

    assert f"user] {newer} (earlier: [" in asked
    assert "partial indexes" in asked
    assert f"user] {newer} (earlier: [" in begun
    ledger = shop.injections(session="codex:s5").injections[0]
    assert [newer in line.text for line in ledger.lines][:2] == [True, False]
    assert "partial indexes" in ledger.lines[1].text

    shop.forget(id=ledger.lines[0].id)

    left = shop.injections(session="codex:s5").injections[0].lines
    assert not any(newer in line.text for line in left)
    assert any("partial indexes" in line.text for line in left)


def test_a_prompt_is_told_an_ending_that_nothing_has_read_yet(
    shop: Shop, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.say("The cart service runs on port 8080.", session="c7")
    shop.say("The cart service belongs to Ann.", session="c8")
    shop.call(Endings())  # all is read so far
    newer = "We no longer use Postgres 16 for the cart service."
    shop.say(newer, session="c9", minutes=600)
    # Enough lines are found by meaning, so that nothing is recalled by words.
    monkeypatch.setattr(
        type(service.vectors),
        "similarities",
        lambda _, __, ids: dict.fromkeys(ids, 0.9),
    )

    asked = shop.codex().ask("And the cart?")

    assert f"{newer} (until 2026-03-16: [" in asked
    assert f"{DECISION})" in asked


def test_a_request_that_ended_a_statement_is_told_with_its_origin(shop: Shop) -> None:
    request = "We no longer use Redis for the session cache, please."
    shop.say("We use Redis for the session cache.", session="c8", minutes=0)
    shop.say(request, session="c9", minutes=600)
    assert shop.endings().endings

    begun = shop.codex("s6").start()

    assert f"- [2026-03-16, claude-code, user] {request}" in begun


PROPOSAL = "I suggest we store the sessions in Redis instead of the database, with a TTL of one hour."
AGREED = "Agreed: store the sessions in Redis instead of the database, with a TTL of one hour"
SESSIONS = "We store the sessions in the database."


def propose(shop: Shop, answer: str, proposal: str = PROPOSAL) -> None:
    """Have an agent propose something, and a user answer, a day after a user said how it is."""
    shop.say(SESSIONS, session="c8", minutes=0)
    said = (("user", "Logins are slow?"), ("assistant", proposal), ("user", answer))
    lines = [
        claude_line(role, text, uuid=text, minutes=1_440 + minute)
        for minute, (role, text) in enumerate(said)
    ]
    shop.write(*lines, session="c9")
    shop.claude("c9").stop()
    shop.call(Endings())


def test_a_session_starts_with_what_was_agreed(shop: Shop) -> None:
    propose(shop, "ok, let's do that")

    begun = shop.codex().start()
    asked = shop.codex("0300").ask("Where do we store the sessions?")

    for told in (begun, asked):
        assert f"[2026-03-17, claude-code, assistant and user] {AGREED}" in told
        assert f"\n- [2026-03-16, claude-code, user] {SESSIONS}" not in told
        assert PROPOSAL not in told


def test_what_a_user_changes_is_told_instead_of_the_proposal(shop: Shop) -> None:
    propose(shop, "yes, but 30 minutes")

    begun = shop.codex().start()

    assert AGREED.replace("one hour", "30 minutes") in begun
    assert "one hour" not in begun
    assert f"\n- [2026-03-16, claude-code, user] {SESSIONS}" not in begun


def test_a_refused_proposal_is_told_only_where_it_is_asked_for(shop: Shop) -> None:
    propose(shop, "no, keep the database")

    begun = shop.codex().start()
    asked = shop.codex("0300").ask(
        "Should we store our sessions in Redis instead of the database?"
    )

    assert "Redis" not in begun
    assert SESSIONS in begun
    assert f"Refused: {AGREED[8:]} → no, keep the database" in asked
    assert PROPOSAL not in asked


@pytest.mark.parametrize("answer", ["", "ok, thanks", "no", "later", "why?"])
@pytest.mark.parametrize(
    "proposal", [PROPOSAL, PROPOSAL.replace("I suggest we", "We should")]
)
def test_a_proposal_alone_ends_nothing(shop: Shop, answer: str, proposal: str) -> None:
    propose(shop, answer or "Run the tests.", proposal)

    assert not shop.endings().endings
    assert "Redis" not in shop.codex().start()


def test_a_forgotten_proposal_is_agreed_no_more(shop: Shop) -> None:
    propose(shop, "ok, let's do that")
    shop.forget(query="Redis TTL", session="claude-code:c9")

    begun = shop.codex().start()

    assert "Redis" not in begun
    assert SESSIONS in begun


def test_a_question_of_an_earlier_session_is_not_told(shop: Shop) -> None:
    asked = "Which database did we decide to use for the cart service? I forgot."
    shop.say(asked, session="c9")

    told = shop.codex().ask("What did we decide for the cart service?")

    assert DECISION in told
    assert "I forgot" not in told


def test_what_a_user_has_to_say_again_counts_as_a_miss_unless_it_was_told(
    shop: Shop, clock: FakeClock
) -> None:
    clock.advance(minutes=10)
    told = shop.codex("0301")
    told.start()
    told.ask(DECISION)
    agent = shop.codex("0300")
    agent.ask("The moon is full tonight over the harbor, remarkable")
    agent.ask(DECISION)

    (missed,) = shop.injections(outcome=InjectionOutcome.SAID_AGAIN)

    assert (missed.session, missed.characters) == ("codex:0300", 0)
    assert missed.prompt.startswith("We decided to use Postgres")
    assert DECISION in missed.lines[0].text
    assert shop.status().injections.said_again == 1


def test_what_a_user_says_again_is_no_miss_if_its_learning_was_given(
    shop: Shop, clock: FakeClock
) -> None:
    rule = "Always answer in British English with short sentences."
    shop.codex("0300").ask(rule)
    clock.advance(minutes=10)
    agent = shop.codex("0301")
    assert rule in agent.start()
    agent.ask(rule)

    assert not shop.injections(outcome=InjectionOutcome.SAID_AGAIN).injections


def test_a_project_that_gets_an_origin_keeps_what_is_known(
    shop: Shop, tmp_path: Path
) -> None:
    folder = tmp_path / "w" / "shop"
    config = folder / ".git" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("[core]\n")
    before = shop.codex("before", cwd=str(folder))
    before.ask("We decided to round VAT on each line of an invoice.")
    config.write_text('[remote "origin"]\nurl = git@github.com:ann/shop.git\n')

    text = shop.codex("after", cwd=str(folder)).start()

    assert "round VAT on each line" in text
    assert "github.com/ann/shop" in [each.project for each in shop.projects()]
    config.write_text(
        '[remote "upstream"]\nurl = git@github.com:ann/shop.git\n'
        '[remote "origin"]\nurl = git@github.com:bob/shop.git\n'
    )
    assert "VAT on each line" in shop.codex("forked", cwd=str(folder)).start()


def test_a_session_in_an_excluded_folder_is_neither_stored_nor_told(
    shop: Shop, settings: SettingsInForce, tmp_path: Path
) -> None:
    for name in ("client", "client/api", "clients", "link"):
        (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / "link").rmdir()
    (tmp_path / "link").symlink_to(tmp_path / "client")
    shop.learn("Always answer in French.")
    change(settings, {"hooks.exclude": [str(tmp_path / "client")]})

    for number, folder in enumerate(("client", "client/api", "link", "clients")):
        agent = shop.codex(f"x{number}", cwd=str(tmp_path / folder))
        told = agent.start()
        agent.ask(f"We decided to take stand {number} at the fair.")

        is_out = folder != "clients"
        assert (told == "") is is_out
        assert (shop.texts(f"codex:x{number}") == []) is is_out


def test_a_line_of_two_facts_is_told_with_the_ended_one_marked(shop: Shop) -> None:
    shop.say("The worker listens on 7070, and Priya owns the retries.", session="c7")
    newer = "The worker listens on 7071 now."
    shop.say(newer, session="c9", minutes=600)
    shop.call(Endings())

    asked = shop.codex("s5").ask("Who owns the retries of the worker?")

    assert "user] The worker listens on 7070 (until 16 March 2026), and Priya" in asked
    assert f"(later: [2026-03-16, claude-code, user] {newer})" in asked
    lines = shop.injections(session="codex:s5").injections[0].lines
    assert not any("7070" in line.text and newer in line.text for line in lines)
