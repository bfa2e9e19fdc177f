"""Names that wait until they are due."""

from mnemosyned.importers.capture import DueQueue


def test_a_name_that_is_due_is_not_put_off_by_a_later_call() -> None:
    queue = DueQueue(8)

    queue.put("session")
    queue.put("session", after_s=60.0)

    assert queue.take(0.0) == "session"


def test_a_name_with_a_latest_time_is_put_off_until_then() -> None:
    queue = DueQueue(8)

    queue.put("file", after_s=0.0, at_most_s=60.0)
    queue.put("file", after_s=60.0, at_most_s=60.0)

    assert queue.take(0.0) == ""
