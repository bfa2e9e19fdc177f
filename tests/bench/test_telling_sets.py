"""The projects of `make bench-telling` ask for what was said, in other words than it was said in."""

from datetime import UTC, datetime
from functools import cache
from statistics import median

import pytest
from bench.bench_telling import find_untimely, live_half
from bench.telling import (
    HALVES,
    SETS,
    EndedFact,
    Entry,
    Project,
    Session,
    facts_told_only_as_older,
    has_key,
    kind_of,
    load_half,
    tells_rule,
)
from support.cases import each_case

from mnemosyned.text.tokens import COMMONPLACE_KINDS, tokenize

AUTHORS = SETS.parent / "authors"


@cache
def every_project() -> list[Project]:
    return [project for half in HALVES for project in load_half(half)]


@cache
def reworded_projects() -> list[Project]:
    """Projects whose prompts are in other words and languages; the lives ask as their author did."""
    return [
        project for half in HALVES if half != "lives" for project in load_half(half)
    ]


def content_stems(text: str) -> frozenset[str]:
    return frozenset(
        token.stem for token in tokenize(text) if token.kind not in COMMONPLACE_KINDS
    )


def stating_message(project: Project, id: str) -> str:
    stated = (e for e in project.entries() if id in e.fact or id in e.rule)
    return next(entry.user or entry.agent or entry.note for entry in stated)


def word_share(prompt: Entry, project: Project) -> float:
    """The share of a prompt's content words that are in the words of what it needs."""
    stated = " ".join(stating_message(project, id) for id in prompt.needs)
    asked = content_stems(prompt.ask)
    return len(asked & content_stems(stated)) / max(1, len(asked))


@each_case("project", every_project)
def test_every_fact_is_stated_with_its_keys_before_it_is_needed_or_ended(
    project: Project,
) -> None:
    stated: set[str] = set()
    moments = [session.start for session in project.session]

    for entry in project.entries():
        said = entry.user or entry.agent or entry.note
        assert bool(said) + bool(entry.tool) + bool(entry.ask) == 1
        assert not stated & (entry.fact.keys() | entry.rule.keys())
        assert {*entry.needs, *entry.ends} <= stated, entry
        keys = [
            *entry.fact.values(),
            *(c for rule in entry.rule.values() for c in rule),
        ]
        assert all(has_key(said, alternatives) for alternatives in keys), entry
        stated |= entry.fact.keys() | entry.rule.keys()
    assert moments == sorted(moments)


@each_case("project", every_project)
def test_no_prompt_gives_its_own_answer(project: Project) -> None:
    facts = project.facts()

    answered = [
        prompt.ask
        for prompt in project.prompts()
        if any(has_key(prompt.ask, facts[id]) for id in prompt.needs if id in facts)
    ]

    assert answered == []


@each_case("project", reworded_projects)
def test_prompts_have_few_words_of_what_they_need(project: Project) -> None:
    shares = [
        word_share(prompt, project)
        for prompt in project.prompts()
        if kind_of(prompt, project) == "fact" and prompt.lang == "en"
    ]

    assert median(shares) < 0.5
    assert 0 in shares


FACT = EndedFact("port", datetime(2026, 3, 2, tzinfo=UTC), ("8080",), ("9090",))


@each_case(
    ("line", "is_untimely"),
    [
        ("- [2026-03-01] the proxy listens on 8080", True),
        ("- [2026-03-01] the proxy listens on 8080 (until 2 March, then 9090)", False),
        ("- [2026-03-02] the proxy moved from 8080 to 9090", False),
        ("- [2026-03-02] the proxy listens on 18080", False),
    ],
)
def test_an_ended_fact_is_told_as_in_force_without_a_mark_of_its_end(
    line: str, *, is_untimely: bool
) -> None:
    assert FACT.is_told_as_in_force(line) == is_untimely


MOVED = Project(
    name="proxy",
    directory="/w/proxy",
    about="a proxy",
    session=[
        Session(
            start=datetime(2026, 3, 1, tzinfo=UTC),
            messages=[
                Entry(user="it listens on 8080", fact={"port": ("8080",)}),
                Entry(user="Mila reviews", fact={"reviewer": ("Mila",)}),
                Entry(user="Two spaces.", rule={"indent": (("two spaces",),)}),
                Entry(user="now 9090", fact={"new": ("9090",)}, ends=("port",)),
            ],
        )
    ],
)


@each_case(
    ("lines", "found"),
    [
        (["- [d] logs rotate (earlier: [d] Mila reviews)"], {"reviewer"}),
        (["- [d] logs (until 2026-03-01: [d] Mila reviews)"], {"reviewer"}),
        (["- [d] logs (earlier: [d] Two spaces.)"], {"indent"}),
        (["- [d] logs (earlier: [d] Mila reviews)", "- [d] Mila reviews"], set()),
        (["- [d] Mila reviews (later: [d] logs rotate)"], set()),
        (["- [d] now 9090 (earlier: [d] it listens on 8080)"], set()),
        (["- [d] now 9090 (earlier: [d] 8080, Mila reviews)"], set()),
    ],
)
def test_a_fact_in_force_is_told_only_as_an_older_one(
    lines: list[str], found: set[str]
) -> None:
    told_at = datetime(2026, 3, 2, tzinfo=UTC)

    assert facts_told_only_as_older(MOVED, told_at, lines) == found
    assert facts_told_only_as_older(MOVED, MOVED.session[0].start, lines) == set()


def test_a_rule_is_told_with_all_of_its_clauses() -> None:
    clauses = (("short", "brief"), ("no emoji",))

    assert tells_rule(["Be brief.", "No  Emoji, please"], clauses)
    assert not tells_rule(["Be brief."], clauses)


def test_the_set_is_as_large_and_as_mixed_as_its_figures_need() -> None:
    prompts = [
        (kind_of(prompt, project), prompt.lang)
        for project in reworded_projects()
        for prompt in project.prompts()
    ]
    kinds = [kind for kind, _ in prompts]
    others = sum(lang != "en" for _, lang in prompts)

    names = [project.name for project in every_project()]
    assert len({*names}) == len(names) >= 5
    assert kinds.count("fact") >= 150
    assert kinds.count("nothing") >= 100
    assert kinds.count("rule") >= 40
    assert others >= len(prompts) / 4


@pytest.mark.thorough
def test_a_project_is_lived_through_the_hooks_and_asked_at_its_moments() -> None:
    decided = "We decided that the cart service keeps its orders in Postgres 16."
    project = Project(
        name="shop",
        directory="/w/shop",
        about="a shop",
        session=[
            Session(
                start=datetime(2026, 3, 2, 9, tzinfo=UTC),
                messages=[
                    Entry(user=decided, fact={"db": ("Postgres 16",)}),
                    Entry(agent="The migration of the orders takes four minutes."),
                ],
            ),
            Session(
                start=datetime(2026, 3, 4, 9, tzinfo=UTC),
                messages=[
                    Entry(
                        ask="Where does the cart service keep orders?", needs=("db",)
                    ),
                    Entry(ask="yes please"),
                    Entry(user="No, MySQL.", fact={"new": ("MySQL",)}, ends=("db",)),
                ],
            ),
            Session(
                start=datetime(2026, 3, 5, 9, tzinfo=UTC),
                messages=[Entry(user="Tell me about cart service orders again")],
            ),
        ],
    )

    life = live_half([project], settings={"embedding.encoder": "none"})
    needy, needless = life.asked
    untimely = find_untimely([project], life)

    assert needy.is_told_by(needy.hook)
    assert needy.is_told_by(needy.start)
    assert needy.is_told_by(*needy.recalled)
    assert needless.hook == ""
    assert len(life.start_tokens) == 3
    assert life.start_tokens[0] == 0
    assert {fact.id for _, fact, _ in untimely} <= {"db"}
    assert all(told.told_at.day > 4 for told, _, _ in untimely)


def test_each_line_of_an_author_has_a_sign_and_each_rule_is_in_its_message() -> None:
    wrong = []
    for path in sorted(AUTHORS.glob("*_[prs]*.txt")):
        signs = "?+-" if path.stem.endswith("_prompts") else "+-"
        for line in path.read_text("utf-8").splitlines()[1:]:
            is_right = line[0] in signs and line[1] == " "
            if path.stem.endswith("_rules"):
                message, arrow, rules = line[2:].partition(" => ")
                is_stated = all(rule in message for rule in rules.split(" || "))
                is_right &= bool(arrow) == (line[0] == "+") and is_stated
            if not is_right:
                wrong.append(f"{path.stem}: {line}")

    assert wrong == []


def test_each_question_of_an_author_needs_a_statement_of_that_author() -> None:
    for path in AUTHORS.glob("*_questions.txt"):
        statements = path.with_stem(path.stem.replace("_questions", "_statements"))
        stated = statements.read_text("utf-8").splitlines()
        pairs = [
            line.partition(" => ") for line in path.read_text("utf-8").splitlines()[1:]
        ]

        wrong = [pair for pair in pairs if not pair[0] or f"+ {pair[2]}" not in stated]

        assert wrong == []
        assert len(pairs) >= 100
