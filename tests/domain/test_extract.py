from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from mnemosyned.domain.extract import CHARS_MAX, CHARS_MIN, extract
from mnemosyned.domain.memory import Memory

NINE = datetime(2026, 3, 3, 9, tzinfo=UTC)
RATIO = 1 / 3


def group(*said: str | tuple[str, str]) -> list[Memory]:
    """Memories a minute apart; a pair is (role, content)."""
    pairs = [one if isinstance(one, tuple) else ("", one) for one in said]
    return [
        Memory(id=str(at), content=content, role=role, created_at=NINE + timedelta(minutes=at))
        for at, (role, content) in zip(count(), pairs, strict=False)
    ]


def size(memories: Sequence[Memory]) -> int:
    return sum(len(memory.content) for memory in memories)


DEBUGGING = group(
    ("user", "The nightly backup failed again yesterday. The host is db-prod-3, see OPS-4127."),
    ("assistant", "I'll start by checking the logs of the backup service."),
    (
        "tool",
        (
            "$ journalctl -u backup.service --since yesterday\n"
            "Mar 02 02:00:01 db-prod-3 systemd[1]: Starting backup.service...\n"
            "Mar 02 02:00:03 db-prod-3 backup[8123]: INFO connecting to 10.4.2.17:5432\n"
            "Mar 02 02:00:04 db-prod-3 backup[8123]: INFO dump started\n"
            "Mar 02 02:13:44 db-prod-3 backup[8123]: ERROR could not write: No space left on device"
        ),
    ),
    ("assistant", "The dump failed because /var/backups is full. Let me check the disk usage."),
    ("tool", "Filesystem Size Used Avail Use% Mounted on\n/dev/sdb1 200G 200G 0 100% /var/backups"),
    ("user", "OK. Never delete dumps younger than 30 days, and always ask me about db-prod-1."),
    ("assistant", "Understood. I removed 29 dumps older than 30 days, which freed 131 GB."),
    ("user", "Great, thanks! Decision: we move to pgBackRest 2.51 in April. Maria owns that."),
    ("user", "Perfect, thank you so much. Talk to you tomorrow!"),
)

NOTES = group(
    "Anna prefers tea over coffee and is allergic to peanuts.",
    "We decided to use PostgreSQL because of partial indexes.",
    "It rained the whole morning, and nobody felt like going out for lunch at all.",
    "We decided to use PostgreSQL because of the partial indexes.",
    "Reading list: Thinking in Systems; The Mythical Man-Month; A Pattern Language.",
    "The talk was nice, people seemed happy, and the room was a little bit too warm.",
)


def test_the_whole_text_stays_within_the_ratio() -> None:
    for memories in (DEBUGGING, NOTES):
        assert len(extract(memories, ratio=RATIO).text) <= size(memories) * RATIO + 1


def test_more_than_half_of_it_is_sentences() -> None:
    kept = extract(DEBUGGING, ratio=RATIO)

    assert sum(map(len, kept.lines)) > len(kept.text) / 2


def test_instructions_and_decisions_come_before_logs_and_thanks() -> None:
    lines = "\n".join(extract(DEBUGGING, ratio=RATIO).lines)

    assert "Never delete dumps younger than 30 days" in lines
    assert "Decision: we move to pgBackRest 2.51 in April." in lines
    assert "thank" not in lines
    assert "INFO" not in lines


def test_what_was_said_twice_is_kept_once() -> None:
    lines = extract(NOTES, ratio=0.6).lines

    assert sum("PostgreSQL" in line for line in lines) == 1


def test_the_heading_tells_when_and_who() -> None:
    assert extract(DEBUGGING, ratio=RATIO).heading == "Tue 3 March 2026"


def test_the_speaker_is_named_where_it_changes_and_only_if_there_are_several() -> None:
    several = extract(DEBUGGING, ratio=RATIO).lines
    alone = extract([replace(memory, role="user") for memory in NOTES], ratio=0.6).lines

    assert several[0].startswith(("user: ", "assistant: "))
    assert not any(line.startswith("user: ") for line in alone)


def test_sentences_keep_their_order() -> None:
    lines = extract(DEBUGGING, ratio=0.6).lines
    everything = "\n".join(memory.content for memory in DEBUGGING)
    found = [everything.find(line[-20:]) for line in lines]

    assert len(lines) > 2
    assert -1 not in found
    assert found == sorted(found)


def test_keywords_are_words_of_the_sources_that_the_lines_lack() -> None:
    kept = extract(DEBUGGING, ratio=RATIO)
    everything = " ".join([*(memory.content for memory in DEBUGGING), "2 March 2026"])

    assert "131 GB" in kept.keywords
    for keyword in kept.keywords:
        assert all(word in everything for word in keyword.split())
        assert not any(keyword in line.split() for line in kept.lines)


def test_yesterday_is_resolved_where_it_was_said() -> None:
    memories = group("The backup of atlas failed yesterday.", "Nothing else happened. " * 20)
    early = [replace(memory, created_at=NINE.replace(hour=23)) for memory in memories]
    tokyo = timezone(timedelta(hours=9))

    assert "yesterday (2 March 2026)" in extract(early, ratio=RATIO).text
    assert "yesterday (3 March 2026)" in extract(early, ratio=RATIO, zone=tokyo).text


def test_an_important_memory_wins_over_its_equal() -> None:
    plain = "The {} service listens on its own port and restarts by itself after a crash."
    memories = group(*(plain.format(name) for name in ("alpha", "bravo", "delta", "gamma")))
    memories[2] = replace(memories[2], importance=1.0)

    assert "delta" in extract(memories, ratio=RATIO).lines[0]


def test_a_group_too_short_to_summarise_is_kept_as_far_as_it_fits() -> None:
    memories = group("The server is called atlas.")

    assert extract(memories, ratio=RATIO).text == "The server is called atlas."


def test_emoji_alone_are_kept_rather_than_nothing() -> None:
    assert extract(group("😀😀😀", "🎉"), ratio=RATIO).text.startswith("😀")


def test_nothing_but_white_space_gives_nothing() -> None:
    assert extract(group(" \n\t", ""), ratio=RATIO).text == ""


def test_one_huge_memory_is_cut_to_a_readable_size() -> None:
    kept = extract(group("The lantern number 7 burns in house Nightfall. " * 20_000), ratio=RATIO)

    assert 0 < len(kept.text) <= CHARS_MAX


def test_one_giant_line_without_a_space_is_cut() -> None:
    kept = extract(group("lorem%20ipsum" * 3_000), ratio=RATIO)

    assert 0 < len(kept.text) <= 13 * 3_000 * RATIO


def test_chinese_sentences_are_selected_whole() -> None:
    memories = group(
        "今天我们讨论了数据库迁移的计划。最终决定使用PostgreSQL 16。迁移时间定在4月12日晚上十点。",
        "王芳负责编写迁移脚本，李雷负责验证数据。如果失败，必须在三十分钟内回滚。大家都同意了。",
        "会议还讨论了夏季团建，大家想去杭州西湖。预算是五万元。没有做出最后的决定。以后再说吧。"
        * 4,
    )

    lines = extract(memories, ratio=RATIO).lines

    assert lines
    assert all(line.endswith(("。", "…")) for line in lines)


CONTENTS = st.lists(st.text() | st.text(alphabet="ab1. \n`\"'?。😀", max_size=600), min_size=1)


@given(CONTENTS, st.sampled_from(["", "user", "a:b\n"]))
def test_odd_content_never_raises_and_never_grows(contents: list[str], role: str) -> None:
    memories = group(*((role if at % 2 else "x", text) for at, text in enumerate(contents)))

    kept = extract(memories, ratio=RATIO)

    assert len(kept.text) <= max(size(memories) * RATIO, min(size(memories), CHARS_MIN))
    assert bool(kept.text) == any(content.strip() for content in contents)
    assert kept == extract(memories, ratio=RATIO)
