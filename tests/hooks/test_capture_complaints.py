"""Capture against what users of other memories complain about, by name."""

from threading import Thread

from support.agents import SAID, TALK, Agent, Shop, captured, cursor_line, write_lines


def test_double_storing_two_tools_that_run_the_same_hook_file(shop: Shop) -> None:
    place = ".cursor/projects/w-shop/agent-transcripts/c1/c1.jsonl"
    path = write_lines(shop.home / place, [cursor_line("user", "Sort by date")])
    fields = {
        "conversation_id": "c1",
        "session_id": "c1",
        "transcript_path": str(path),
        "cursor_version": "2.0",
    }
    Agent(shop.hooks, fields).call(hook_event_name="stop")
    Agent(shop.hooks, fields, {"CLAUDE_PROJECT_DIR": "/w/shop"}).stop()

    assert shop.texts("cursor:c1") == ["Sort by date"]


def test_double_storing_by_calls_at_the_same_time(shop: Shop) -> None:
    facts = [f"Fact {number}" for number in range(40)]
    shop.say(*facts)
    threads = [Thread(target=shop.claude().stop) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shop.hooks.capture.drain()

    assert shop.texts() == facts


def test_silent_capture_failure_is_counted_and_named(shop: Shop) -> None:
    shop.claude().stop()  # no transcript, no words

    assert shop.activity().failures == 1
    assert "no transcript there" in shop.activity().failure


def test_the_end_of_a_session_without_a_word_is_no_failure(shop: Shop) -> None:
    shop.claude().call(hook_event_name="SessionEnd")

    assert (shop.activity().calls, shop.activity().failures) == (1, 0)


def test_a_call_without_a_conversation_is_counted_as_a_failure(shop: Shop) -> None:
    assert Agent(shop.hooks, {}).stop(prompt="x") == {}

    assert shop.activity().failure == "the call names no conversation"


def test_what_was_forgotten_stays_so_when_its_transcript_is_read_again(
    shop: Shop,
) -> None:
    shop.write(*TALK)
    shop.claude().stop()
    shop.forget(id=captured(shop.store, "claude-code:s1")[0].id)

    shop.write(*TALK, session="s2")
    shop.claude("s2").stop()
    shop.store.agents.save_position("claude-code:s1", 0, "")
    shop.claude().stop()

    assert shop.texts("claude-code:s1", "claude-code:s2") == SAID[1:]


def test_what_was_forgotten_stays_so_when_messages_get_other_ids(shop: Shop) -> None:
    """As when a tool writes the transcript again after a fork or a resume."""
    shop.write(*TALK)
    shop.claude().stop()
    shop.forget(id=captured(shop.store, "claude-code:s1")[0].id)

    shop.transcript.unlink()
    shop.write(*({**line, "uuid": f"new-{line['uuid']}"} for line in TALK))
    shop.claude().stop()

    assert shop.texts() == SAID[1:]


def test_a_subagents_stop_stores_nothing(shop: Shop) -> None:
    shop.write(*TALK)
    stop = {"hook_event_name": "SubagentStop", "last_assistant_message": "Done"}

    assert (shop.claude().call(**stop), shop.texts()) == ({}, [])


def test_context_wasted_a_store_without_memories_tells_nothing(shop: Shop) -> None:
    start = {"hook_event_name": "SessionStart", "source": "startup"}

    assert shop.codex().call(**start) == {}
