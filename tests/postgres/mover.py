"""A process that moves a memory in small parts, and tells of each on standard output."""

import sys
from collections.abc import Sequence

from mnemosyned.assembly.stores import open_store
from mnemosyned.cli.maintenance.databases import parse_location
from mnemosyned.memory.exchange import AnyRecord, RestoreReport
from mnemosyned.service import exchange as moves
from mnemosyned.service.exchange import Moving


def main(source: str, target: str) -> None:
    moves.BATCH_RECORDS = 20
    with (
        open_store(parse_location(source)) as old,
        open_store(parse_location(target)) as new,
    ):
        exchange = new.exchange
        restore = exchange.restore

        def told(records: Sequence[AnyRecord]) -> RestoreReport:
            print("part", flush=True)
            return restore(records)

        exchange.restore = told  # type: ignore[assignment, method-assign]
        Moving(old.exchange, exchange).deliver(lambda _amount, _moved: None)
        print("end", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
