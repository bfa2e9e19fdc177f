"""Supersession: which memory of a chain a newer one takes the place of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from mnemosyned.domain.errors import InvalidRequest, NotFound

HISTORY_MAX = 100
"""How far a chain of memories that superseded each other is followed."""

Position = tuple[int, int | None]
"""Where a memory is kept, and where its episode is, if it has one."""


def latest_in_chain(
    old: str,
    new: str,
    *,
    position_of: Callable[[str], Position | None],
    successor_of: Callable[[int], Position | None],
) -> tuple[Position, int] | None:
    """Return the memory that is to be superseded in the place of `old`, and where `new` is kept.

    None where it is superseded by it already. Raises `NotFound` and `InvalidRequest`.
    """
    position, newer = position_of(old), position_of(new)
    if position is None:
        raise NotFound(f"no memory has the id {old!r}", field="supersedes")
    if newer is None:
        raise NotFound(f"no memory has the id {new!r}", field="id")
    for _ in range(HISTORY_MAX):
        if position[0] == newer[0]:  # the same call again
            return None
        successor = successor_of(position[0])
        if successor is None:
            return position, newer[0]
        position = successor
    raise InvalidRequest(
        f"{old} was superseded over {HISTORY_MAX} times; forget it first",
        field="supersedes",
    )


def in_force_again(
    successors: Mapping[int, int | None], gone: Collection[int]
) -> frozenset[int]:
    """Return the superseded memories that nothing supersedes once some others are gone.

    `successors` has all that the others supersede, and those of them that are superseded.
    """
    again = set()
    for older, successor in successors.items():
        newer = successor
        while newer is not None and newer in gone and newer in successors:
            newer = successors[newer]
        if newer in gone and older not in gone:
            again.add(older)
    return frozenset(again)
