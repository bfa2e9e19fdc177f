"""An edit: what it shows and keeps, and that everything made of the earlier words follows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from support.cases import each_case
from support.fakes import NOON, consolidate, memory, promotion
from support.leftovers import left_of
from support.services import Lab
from support.stores import TRIO, get_episode, get_memory

from mnemosyned.cli.commands.edit import changes_in, form_text
from mnemosyned.cli.output.show import render
from mnemosyned.errors import BatchChanged, InvalidRequest, SecretRefused, WordsPruned
from mnemosyned.memory.consolidation import GroupStatus
from mnemosyned.memory.edit import MemoryEdit
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Edited, EditMemory

T = TypeVar("T")


@pytest.fixture
def kettle(lab: Lab) -> str:
    """A memory that is edited."""
    lab.remember("The kettle is at 10.0.0.7", id="m", session="home", source="notes")
    return "m"


@pytest.fixture
def trio(lab: Lab) -> Episode:
    """Three memories and their episode."""
    lab.put(*TRIO)
    consolidate(lab.store, promotion("e", *TRIO))
    return get_episode(lab.store, "e")


@pytest.mark.parametrize("asleep", [False, True])
def test_recall_finds_new_words_alone(lab: Lab, kettle: str, *, asleep: bool) -> None:
    if asleep:
        lab.run_cycle(force=True)
    assert lab.found("samovar") == set()

    edited = lab.edit(kettle, text="The samovar is at 10.0.0.9")

    assert (edited.changed, edited.restored, edited.kept) == (1, 0, 0)
    assert (lab.found("samovar"), lab.found("kettle")) == ({kettle}, set())
    memory = lab.memory(kettle)
    assert memory.content == "The samovar is at 10.0.0.9"
    assert memory.tier is (Tier.ARCHIVE if asleep else Tier.WORKING)
    texts = [memory.content]
    texts += [lab.episode_of(kettle).content] if asleep else []
    totals = lab.store.maintenance.totals().values()
    assert sum(total.characters for total in totals) == sum(map(len, texts))
    lab.undo()
    assert (lab.found("samovar"), lab.found("kettle")) == (set(), {kettle})


def test_summary_and_exact_values_follow(lab: Lab, kettle: str) -> None:
    lab.run_cycle(force=True)
    lab.edit(kettle, text="The samovar has 4.5 litres")

    expanded = lab.expand(lab.episode_of(kettle).id)

    assert "samovar" in expanded.episode.content
    assert "kettle" not in expanded.episode.content
    assert [detail.value for detail in expanded.episode.details] == ["4.5"]
    (original,) = expanded.originals
    assert original.content == "The samovar has 4.5 litres"
    assert original.edited_at == NOON


def test_an_edit_that_changes_nothing_leaves_no_trace(lab: Lab, kettle: str) -> None:
    edited = lab.edit(kettle, text="The kettle is at 10.0.0.7", session="home")

    assert (edited.memories, edited.changed) == (1, 0)
    assert lab.get(kettle, history=True).revisions == []


def test_learnings_follow(lab: Lab) -> None:
    lab.remember("Always answer in French. Never use tabs.", id="m", role="user")
    lab.edit("m", text="Always answer in German. Never use tabs.")
    lab.edit("m", source="chat")

    learned = {(learning.text, learning.source) for learning in lab.learnings()}
    german = ("Always answer in German.", "chat")
    assert learned == {german, ("Never use tabs.", "chat")}


def test_the_rule_for_secrets_applies_to_new_words(lab: Lab, kettle: str) -> None:
    lab.change({"secrets": "refuse"})
    with pytest.raises(SecretRefused):
        lab.edit(kettle, text="the password is larch-4471")
    lab.change({"secrets": "mask"})

    assert lab.edit(kettle, text="the password is larch-4471").secrets == "masked"

    content = lab.memory(kettle).content
    assert content == "the password is [secret:password]"


def test_the_mask_of_a_secret_does_not_replace_it(lab: Lab) -> None:
    lab.remember("the password is larch-4471, ask Ada", id="m")
    masked = lab.get("m").memory
    assert masked

    with pytest.raises(InvalidRequest, match="the mask of a secret"):
        lab.edit("m", text=masked.content.replace("Ada", "Ben"))


@pytest.mark.parametrize(
    ("id", "changes"),
    [
        ("2", {"session": "elsewhere"}),
        ("3", {"created_at": NOON - timedelta(days=9)}),
        ("1", {"created_at": NOON - timedelta(hours=3, minutes=1)}),
    ],
)
@pytest.mark.usefixtures("trio")
def test_an_original_of_another_time_or_session_returns_to_working_memory(
    lab: Lab, id: str, changes: dict[str, Any]
) -> None:
    assert lab.edit(id, **changes).restored == 1

    memory = lab.memory(id)
    assert (memory.tier, memory.pinned) == (Tier.WORKING, False)


@pytest.mark.usefixtures("trio")
def test_a_time_within_its_episode_leaves_an_original_there(lab: Lab) -> None:
    within = NOON - timedelta(hours=2, minutes=30)

    edited = lab.edit("1", created_at=within)

    assert (edited.changed, edited.restored) == (1, 0)
    assert get_episode(lab.store, "e").covers_from == within
    assert [original.id for original in lab.store.memories.originals("e")] == [*"123"]


def test_a_session_is_renamed_with_its_summaries(lab: Lab, trio: Episode) -> None:
    lab.put(memory("4"))

    edited = lab.edit(of_session=trio.session, session="new", source="s")

    assert (edited.changed, edited.restored) == (4, 0)
    renamed = replace(trio, session="new", source="s")
    assert get_episode(lab.store, "e") == renamed
    assert lab.summarizer.calls == []
    assert {lab.memory(id).session for id in "1234"} == {"new"}


def test_with_pruned_originals_the_summary_stays(lab: Lab) -> None:
    lab.remember("The kettle", id="m")
    lab.run_cycle(force=True)
    lab.clock.advance(days=9)
    lab.prune(keep_days=1)

    with pytest.raises(WordsPruned):
        lab.edit("m", text="The samovar", session="away")
    assert lab.episode_of("m").session == "default"
    renamed = lab.edit("m", session="elsewhere")

    assert (renamed.changed, renamed.restored) == (1, 0)
    assert lab.episode_of("m").session == "elsewhere"


def test_a_file_read_again_knows_an_edited_memory(lab: Lab, kettle: str) -> None:
    lab.edit(kettle, text="The samovar")

    again = lab.remember("The kettle is at 10.0.0.7", id=kettle)

    assert not again.stored
    assert lab.memory(kettle).content == "The samovar"


@pytest.mark.usefixtures("trio")
@each_case(
    ("edit", "message"),
    [
        (EditMemory("e", text="x"), "is a summary"),
        (EditMemory("1"), "say what to change"),
        (EditMemory(["1", "2"], text="x"), "text is for one memory"),
        (EditMemory(query="ibex", importance=1), "importance is for one memory"),
        (EditMemory(session="x"), "say which memories"),
    ],
)
def test_an_unclear_edit_is_refused(lab: Lab, edit: EditMemory, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        lab.call(edit)


# An edit while other work is done: a sleep, the rewriting of summaries, another edit.


def test_an_edit_of_what_changed_meanwhile_is_refused(lab: Lab, kettle: str) -> None:
    lab.edit(kettle, text="The samovar")

    with pytest.raises(BatchChanged, match="nothing was done"):
        lab.edit(kettle, text="The pot", if_text="The kettle is at 10.0.0.7")
    lab.edit(kettle, text="The pot", if_text="The samovar")

    assert lab.memory(kettle).content == "The pot"


def test_an_edit_while_its_group_is_summarized_fails_the_group(lab: Lab) -> None:
    kettles = (memory(f"m{at}", f"the kettle {at} " * 40) for at in range(6))
    lab.put(*kettles)
    edits: list[Edited] = []

    def edit(_: object) -> None:
        if not edits:
            edits.append(lab.edit("m0", text="The samovar"))

    lab.summarizer.meanwhile = edit
    lab.run_cycle(force=True)

    assert edits
    assert lab.memory("m0").tier is Tier.WORKING
    lab.run_cycle(force=True)
    assert lab.memory("m0").tier is Tier.ARCHIVE
    assert "samovar" in lab.episode_of("m0").content


@pytest.mark.parametrize(
    ("changes", "tier"),
    [({"text": "The samovar " * 40}, Tier.ARCHIVE), ({"session": "c"}, Tier.WORKING)],
)
def test_an_edit_before_its_group_is_read_fails_no_group(
    lab: Lab, *, changes: dict[str, Any], tier: Tier
) -> None:
    for n in range(12):
        session = "ab"[n % 2]
        text = f"kettle {n // 2} " * 40
        lab.put(memory(f"{session}{n // 2}", text, session=session))
    later: list[str] = []

    def edit(memories: Sequence[MemoryRecord]) -> None:
        if not later:
            later.append("b0" if memories[0].session == "a" else "a0")
            lab.edit(later[0], **changes)

    lab.summarizer.meanwhile = edit
    lab.run_cycle(force=True)

    statuses = {entry.status for entry in lab.store.sleep.log(limit=100)}
    assert statuses == {GroupStatus.PROMOTED}
    assert lab.memory(later[0]).tier is tier
    assert lab.memory(later[0][0] + "1").tier is Tier.ARCHIVE


@pytest.mark.parametrize("of", [{"id": "m"}, {"of_source": "notes"}])
def test_two_edits_at_once_both_remain(
    lab: Lab, kettle: str, monkeypatch: pytest.MonkeyPatch, of: dict[str, Any]
) -> None:
    others = ["away"]

    def edit_after(read: Callable[[Any], T]) -> Callable[[Any], T]:
        def read_and_edit(id: Any) -> T:  # noqa: ANN401
            found = read(id)
            if others:
                lab.edit(kettle, session=others.pop(), importance=0.9)
            return found

        return read_and_edit

    with monkeypatch.context() as patched:
        for name in ("get", "existing"):
            read = getattr(lab.store.memories, name)
            patched.setattr(lab.store.memories, name, edit_after(read))
        lab.edit(**of, tags=["kitchen"])

    assert not others
    after = lab.memory(kettle)
    assert (after.session, after.importance, after.tags) == ("away", 0.9, ("kitchen",))


def test_a_name_given_during_a_rewriting_stays(
    store: SqliteStore, trio: Episode
) -> None:
    store.deletion.forget(["2", "3"])
    stale = store.rollups.next_stale()
    before = get_memory(store, "1")
    rename = MemoryEdit(before=before, after=replace(before, session="new"))
    store.changes.edit([rename], now=NOON)

    assert stale
    with pytest.raises(BatchChanged):
        store.rollups.rewrite(stale.token, stale.episode)

    assert get_episode(store, trio.id).session == "new"


def test_a_name_given_late_reaches_the_day(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.remember("The kettle", id="m", session="home")
    lab.clock.advance(days=40)
    composed = lab.store.rollups.index_terms
    names = ["away"]

    def rename_and_compose(ids: Sequence[str]) -> dict[str, str]:
        if names:
            lab.edit("m", session=names.pop())
        return composed(ids)

    monkeypatch.setattr(lab.store.rollups, "index_terms", rename_and_compose)
    lab.run_cycle(force=True)

    day = lab.episode_of("m").parent
    assert not names
    assert day
    assert get_episode(lab.store, day).session == "away"


# What a memory was before an edit: kept, shown, masked, forgotten and dropped.


@pytest.mark.parametrize("asleep", [False, True])
def test_revisions_come_latest_first(lab: Lab, kettle: str, *, asleep: bool) -> None:
    lab.edit(kettle, text="The samovar")
    if asleep:
        lab.run_cycle(force=True)
    lab.clock.advance(hours=1)
    lab.edit(kettle, role="user", importance=0.9)

    got = lab.get(kettle, history=True)

    assert [(each.changed_at, each.text) for each in got.revisions] == [
        (NOON + timedelta(hours=1), None),
        (NOON, "The kettle is at 10.0.0.7"),
    ]
    assert got.revisions[0].fields == {"role": "", "importance": 0.5}
    assert "   role: none\n   importance: 0.5\n" in render(got)
    assert lab.get(kettle).revisions == []


def test_forgetting_a_memory_takes_its_history_out_of_the_file(lab: Lab) -> None:
    lab.remember("the code is Zqxjv48213Kwyz", id="m")
    lab.run_cycle(force=True)
    lab.edit("m", text="the code is Wbvfk99071Pqrs")
    assert left_of(lab.store, "Zqxjv48213Kwyz")

    lab.forget("m")

    words = ("Zqxjv48213Kwyz", "Wbvfk99071Pqrs")
    assert left_of(lab.store, *words) == []


def test_the_history_of_many_is_dropped_by_a_filter(lab: Lab) -> None:
    for number in range(3):
        lab.remember(f"The wolpertinger {number}", id=f"{number}", session="s")
    for number in range(2):
        lab.edit(f"{number}", text=f"The samovar {number}")

    edited = lab.edit(of_session="s", drop_history=True)

    assert (edited.memories, edited.changed) == (3, 2)
    kept = [each for id in "012" for each in lab.store.changes.revisions(id)]
    assert {each.text for each in kept} == {None}
    assert left_of(lab.store, "wolpertinger 0") == []


def test_history_is_dropped_with_an_edit(lab: Lab) -> None:
    lab.remember("the code is Zqxjv48213Kwyz", id="m")

    lab.edit("m", text="there was a code", drop_history=True)

    assert left_of(lab.store, "Zqxjv48213Kwyz") == []
    assert [each.text for each in lab.get("m", history=True).revisions] == [None]


def test_a_name_that_only_the_history_has_is_found_to_be_forgotten(lab: Lab) -> None:
    lab.remember("Zelda brings the cake", id="m")
    lab.edit("m", text="somebody brings the cake")

    assert lab.forget(person="Zelda", dry_run=True).memories == 1
    assert lab.forget(query="Zelda", dry_run=True).memories == 0


def test_secrets_are_masked_in_the_history(lab: Lab) -> None:
    lab.remember("the password is larch-4471", id="m")
    lab.edit("m", text="the password is birch-9023")

    shown = lab.get("m", history=True)
    revealed = lab.get("m", history=True, reveal=True)

    assert "larch" not in str(shown)
    assert "birch" not in str(shown)
    assert revealed.revisions[0].text == "the password is larch-4471"


def test_pruning_takes_the_history_too(lab: Lab) -> None:
    lab.remember("The kettle", id="m")
    lab.edit("m", text="The samovar")
    lab.run_cycle(force=True)
    lab.clock.advance(days=9)
    lab.prune(keep_days=1)

    assert lab.store.changes.revisions("m") == []


@pytest.mark.thorough
def test_no_more_than_a_hundred_revisions_are_kept(lab: Lab, kettle: str) -> None:
    for number in range(103):
        lab.edit(kettle, text=f"number {number}")

    assert len(lab.store.changes.revisions(kettle)) == 100
    assert lab.get(kettle, history=True).revisions[0].text == "number 101"


# The form that an editor shows, and what is read from it.


KETTLE = memory(
    "m", "The kettle\n---\nis hot", session="home", tags=("a", "b"), created_at=NOON
)
FORM = form_text(KETTLE)
AWAY = FORM.replace("session: home", "Session :  away").replace("hot", "on")


@pytest.mark.parametrize(
    ("form", "changes"),
    [
        (FORM, {}),
        ("", {}),
        ("\n \n", {}),
        (FORM.partition("---\n")[0] + "---\n\n", {}),
        (AWAY, {"session": "away", "text": "The kettle\n---\nis on", "if_text": KETTLE.content}),
        (f"tags:\ntime: yesterday\n---\n{KETTLE.content}", {"tags": ("",), "created_at": "yesterday"}),
    ],
    ids=["left as it is", "emptied", "blank", "without a text", "changed", "emptied and left out"],
)  # fmt: skip
def test_what_differs_in_a_form_is_changed(form: str, changes: dict[str, Any]) -> None:
    assert changes_in(form, KETTLE) == changes


@each_case(
    ("edited", "message"),
    [("no rule at all", "is missing"), ("sesion: x\n---\ny", "no field 'sesion'")],
)
def test_what_cannot_be_read_is_said(edited: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        changes_in(edited, KETTLE)


def test_a_text_without_a_final_newline_is_the_same() -> None:
    late = memory("m", "ends here\n", created_at=NOON - timedelta(days=1))

    assert changes_in(form_text(late), late) == {}
