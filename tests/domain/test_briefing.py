"""Which sentences of a project a briefing tells."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hypothesis import given, strategies as st
from support.cases import each_case
from support.fakes import NOON, said_by_users

from mnemosyned.conversation import briefing
from mnemosyned.conversation.briefing import (
    StatementKind,
    drop_repetitions,
    find_statements,
    is_sample,
    leave_out_rules,
)
from mnemosyned.memory.values import MemoryRecord

DOCS = Path(__file__).parents[2]


def said(*texts: str, role: str = "user") -> list[MemoryRecord]:
    """Memories of one session, the newest first, as they were said one after the other."""
    return said_by_users(*texts, role=role)[::-1]


def statements(*texts: str, role: str = "user") -> list[str]:
    return [each.text for each in find_statements(said(*texts, role=role))]


def test_a_proposal_is_a_decision_unless_it_is_work_of_the_moment() -> None:
    decided = "let's begin with the Fauré and keep the Rutter for the end"

    assert statements(decided, "let's add a test for the parser of the mail") == [
        decided
    ]


def test_sentences_that_say_little_alone_are_a_statement_together() -> None:
    left = "Marta left us. Yusuf takes over the kitchen"

    assert statements(left, "Ok. Do it") == [left]


@each_case(("text", "kind"), [
    ("ok decision: we drop Redis streams, events go into Postgres", "decided"),
    ("klarna is cut for the launch, we start with cards only", "decided"),
    ("Ab sofort benutzen wir uv statt pip", "decided"),
    ("a partir de hoy usamos pnpm en todos los paquetes", "decided"),
    ("still open: the fee column is empty for rows before 2024", "open"),
    ("One open point: the size of the pool is in the code", "open"),
    ("Open: the health check of the worker is missing", "open"),
    ("TODO: write the runbook for an outage", "open"),
    ("Noch offen: die Übersetzung der Rechnungen", "open"),
    ("Die Migration der Bestellungen muss noch geprüft werden", "open"),
    ("Il faut encore migrer la base des clients", "open"),
    ("Quedan por traducir las facturas de Oporto", "open"),
    ("Todavía hay que migrar la base de clientes", "open"),
    ("Dobbiamo ancora migrare il database dei clienti", "open"),
    ("Resta da scrivere la documentazione del listino", "open"),
    ("Ainda temos que migrar a base de clientes", "open"),
    ("the redis box fell over last night and we lost forty events", "grave"),
    ("Der Server ist heute Nacht abgestürzt", "grave"),
    ("our person at adyen is Wouter, mail is useless", "stated"),
    ("Change of plan: the deploy on Tuesdays goes to Marek", "stated"),
    ("Update: the webhook of the bank listens on port 9090", "decided"),
    ("Go-live slips to 1 February, as Stockpilot is late", "decided"),
    ("run 17 crashed once at step 31,000, gradient checkpointing fixed it", "grave"),
    ("run 3 with learning rate 0.003 gave .79", "stated"),
    ("Search is done by Meilisearch, in a container of its own", "stated"),
    ("Set the retries of the webhook to five", "stated"),
    ("put the retention of clicks to 5 days and grow the disk", "stated"),
    ("merge window moves: from december it's mon and wed 14-16", "stated"),
    ("Wen is sick, I have the pager till Monday 9:00", "stated"),
])  # fmt: skip
def test_a_statement_has_its_kind(text: str, kind: str) -> None:
    (statement,) = find_statements(said(text))

    assert (statement.kind, statement.text) == (StatementKind(kind), text)


@each_case("text", [
    "which database does the cart service use for its orders",
    "how many chairs do we have to rent for the party",
    "und wann kommt die neue Küche aus dem Lager",
    "what is 2+2", "who's on call in the week of the launch", "und was ist 2+2",
    "thx. coffee", "yes do that", "which port does the proxy use?",
    "write a script that prints the ten largest files", "write tests for the parser that has bugs",
    "move the tests to the other folder",
    "add a rule to the firewall config", "write the retention policy page",
    "set up the deploy of the staging server with the key in Vault",
    "summary of what is missing for the launch please", "test_merge_twice failed in CI again",
    "12 tests passed, the suite is green",
    "i had a horrible call with the bank today, they make me so tired",
    "maybe we could offer payouts in crypto one day", "the admin password is hunter2-Xy9!",
    "The password is hunter2-Xy9! I did not write it down anywhere.",
    "Ada decided: we deploy on Tuesdays, never on Fridays",
    "la contraseña del pdf de B es Riu-Ter*2025", "le mot de passe du wifi est Soleil-2019",
    # What a store masked is as little news as the secret itself.
    "the db password is [secret:password]", "INC-889. cause?", "141", "whats the size of the pool",
    "was heißt headset auf deutsch", "quante pastiglie prende adesso la mattina",
    "me duele la cabeza, hasta mañana", "schönes Wochenende euch allen, bis Montag dann",
    "d'accord, à demain !", "bom trabalho e bom fim de semana", "noté, merci pour ton aide",
])  # fmt: skip
def test_what_says_nothing_to_a_later_session_is_left_out(text: str) -> None:
    assert statements(text) == []


@each_case(("message", "rule", "rest"), [
    ("never log the recipient's address. legal insists", "never log the recipient's address.", ""),
    ("no blame. migrations need two reviewers from now on", "migrations need two reviewers from now on", ""),
    ("never use floats. the rates come from the ECB at 16:15", "never use floats.",
     "the rates come from the ECB at 16:15"),
])  # fmt: skip
def test_the_rest_of_a_message_beside_its_rule_says_something_alone(
    message: str, rule: str, rest: str
) -> None:
    assert leave_out_rules([rule], message, message) == rest


def test_of_agents_only_failures_and_open_tasks_are_told() -> None:
    failed, rule = "The worker crashed at 02:14.", "We must always use tabs here."
    open = "The migration of the orders table is still open."
    missing = "The import of the old orders is not written yet."
    noted = "I left a note about the discounts in `TODO.md` for you."
    cafe = "The bakery in Main Street is open now, the others close at noon."

    said = (rule, failed, open, missing, noted, cafe)
    assert statements(*said, role="assistant") == [missing, open, failed]


@each_case(("text", "told"), [
    ("when the pager rings at night, we call Ben at once", None),
    ("Dr. Weiss is at 555-0142. Open mornings only, closed on Wednesdays.", None),
    # A secret leaves the place where it is kept; it is masked where it is shown.
    ("the staging password is hunter2-Xy9 and lives in the vault of the infra team", None),
    ("thanks! We ship on Tuesdays only, never from the 20th on. can you note that?",
     "We ship on Tuesdays only, never from the 20th on."),
    # Pasted lines go on up to an empty line, and a list is not pasted.
    ("the crash of the swim app\n0  App  0x104a1c2f4 Lap.end(at:) + 3\nmain\n\nWe skip pools below 20 m.",
     "the crash of the swim app We skip pools below 20 m."),
    ("the diff of the sync engine looks fine\n--- a/Sync.swift\n+++ b/Sync.swift\n-  let laps = 4 of 9",
     "the diff of the sync engine looks fine"),
    ('transfers time out since 07:40\nlevel=error ts=2026-11-11T07:41Z msg="failed"\nERROR import: no <Cube>',
     "transfers time out since 07:40"),
    ("our new ports are:\n- Redis on 6380\n- cart={API} on 8443", "- Redis on 6380 - cart={API} on 8443"),
])  # fmt: skip
def test_only_telling_sentences_are_told(text: str, told: str | None) -> None:
    assert statements(text) == [told or text]


BRANCHES = "Before I push: how do you name branches here?"
SLUG = "team-ticket-slug, e.g. pay-1182-rounding"
FLAG = "the flag is ledger_v2, on for merchant 12 only"


@each_case(("question", "reply", "statement"), [
    (BRANCHES, SLUG, f"{BRANCHES} → {SLUG}"),
    ("Shall we go on?", FLAG, FLAG),
])  # fmt: skip
def test_a_short_reply_follows_its_question_unless_that_asks_for_yes_or_no(
    question: str, reply: str, statement: str
) -> None:
    asked = said(question, reply)
    asked[1] = replace(asked[1], role="assistant")

    (found,) = find_statements(asked)

    assert found.text == statement


PROXY = "the proxy listens on port 8443 now"


def test_what_is_done_is_told_in_however_few_words() -> None:
    done = ["those tests are fixed now", "got the raincoat", "der Test ist behoben"]

    assert statements(*done, "that's done", "it's fixed now") == done[::-1]


def test_a_statement_follows_no_question_without_content() -> None:
    answer = "We name each branch after its ticket in Jira"
    memories = [
        *said("What would you like to work on?", role="assistant"),
        *said(answer),
    ]

    assert [each.text for each in find_statements(memories[::-1])] == [answer]


def test_a_newer_statement_hides_an_older_one_in_the_same_words() -> None:
    branches = "branches are named after the ticket and the team"
    found = find_statements(said(PROXY, branches, PROXY.replace("8", "9", 1)))

    assert [each.memory.id for each in drop_repetitions(list(found))] == ["m2", "m1"]


def test_of_readings_only_the_newest_is_told() -> None:
    newest, pulse = "glucose 137", "pulse 61"

    found = find_statements(said("glucose 159", pulse, "glucose 148", newest))

    assert [each.text for each in drop_repetitions(list(found))] == [newest, pulse]


@given(
    st.lists(st.frozensets(st.sampled_from("abcdefghij"), max_size=8), max_size=25),
    st.lists(st.frozensets(st.sampled_from("abcdefghij"), max_size=4), max_size=3),
)
def test_repetitions_are_those_found_by_comparing_all(
    keywords: list[frozenset[str]], known: list[frozenset[str]]
) -> None:
    (plain,) = find_statements(said("We decided to drop Redis."))
    statements = [replace(plain, keywords=words) for words in keywords]

    seen, expected = list(known), []
    for each in statements:
        if not any(
            len(each.keywords & other)
            >= briefing.SAME_SHARE * max(1, len(each.keywords))
            for other in seen
        ):
            seen.append(each.keywords)
            expected.append(each)
    assert list(drop_repetitions(statements, known=known)) == expected


def test_a_superseded_memory_is_not_told() -> None:
    (old,) = said(PROXY)

    assert not list(find_statements([replace(old, superseded_at=NOON)]))


def test_long_messages_are_told_by_their_weightiest_sentences() -> None:
    text = " ".join(f"The module number {n} has its own folder." for n in range(20))
    (told,) = statements(f"{text} We decided to drop Redis. {text}")

    assert "We decided to drop Redis." in told
    assert len(told) <= briefing.STATEMENT_CHARS_MAX


def test_samples_are_lines_of_the_documentation() -> None:
    pages = [DOCS / "README.md", *(DOCS / "docs").glob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages).lower()

    for sample in briefing._NAMES["samples"]:  # noqa: SLF001
        assert sample.rstrip(".").lower() in text
        assert is_sample(sample.upper())


def turn(said: str, *answers: str, session: str = "s") -> list[MemoryRecord]:
    """What a user said and an agent answered in a session, the newest first."""
    roles = ["user", *["assistant"] * len(answers)]
    return [
        MemoryRecord(
            id=f"{session}-{number}",
            content=text,
            created_at=NOON + timedelta(minutes=number),
            session=session,
            role=role,
        )
        for number, (role, text) in enumerate(zip(roles, (said, *answers), strict=True))
    ][::-1]


SLOW = "the Svelte build takes 3 minutes in CI"
TWILIO = "decision: we go with Twilio until the launch in May"
CAUSE = "I found the reason: the CI installs Playwright's browsers on every build."


@each_case(("said", "answers", "told"), [
    (SLOW, [CAUSE], [f"{SLOW} → {CAUSE}"]),
    ("why is the build slow?", ["Let me look.", CAUSE], [f"why is the build slow? → {CAUSE}"]),
    ("Il plante depuis ce matin.", ["Le plantage vient du nouveau modèle Excel."],
     ["Il plante depuis ce matin. → Le plantage vient du nouveau modèle Excel."]),
    ("grid search results?", ["The best run reaches a precision of 0.597."],
     ["grid search results? → The best run reaches a precision of 0.597."]),
    # Not the answer to a decision, nor to what was said before another answer.
    (TWILIO, [CAUSE], [CAUSE, TWILIO]),
    (SLOW, ["I wired the webhook.", CAUSE], [CAUSE, SLOW]),
    ("add a button to the page", ["I added the button."], []),
])  # fmt: skip
def test_what_an_agent_found_out_is_told_with_what_it_answers(
    said: str, answers: list[str], told: list[str]
) -> None:
    assert [each.text for each in find_statements(turn(said, *answers))] == told


def test_a_finding_answers_nobody_in_another_session() -> None:
    memories = [*turn("ok", CAUSE, session="other")[:1], *turn(SLOW)]

    assert [each.text for each in find_statements(memories)] == [CAUSE, SLOW]


@each_case(("text", "is_told"), [
    ("デプロイは木曜日に変えた。", True),
    ("検索にはElasticsearchを使っている。", True),
    ("缓存放在 Redis 里。", True),
    ("给华信公司的陈经理打电话道歉了。", True),
    ("데이터베이스는 MySQL입니다.", True),
    ("ログインのバグを直してください。", False),
    ("READMEに使い方を追加して。", False),
    ("テストはすべて通りました。", False),
    ("絶対にネットワークの問題だと思います。", False),
    ("帮我修一下登录的 bug。", False),
    ("把这个变量改名为 userName", False),
    ("所有测试都通过了。", False),
])  # fmt: skip
def test_a_short_statement_without_spaces_is_told_and_a_request_is_not(
    text: str, *, is_told: bool
) -> None:
    assert bool(statements(text)) == is_told
