"""`mnem owner export`: all of one owner's rows in the database, as two files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from getpass import getuser
from itertools import chain
from pathlib import Path

import click
import msgspec

from mnemosyned.assembly.stores import open_audit, open_audit_table, open_owned_stores
from mnemosyned.cli.commands.backup import check_target, open_whole_file
from mnemosyned.cli.options import json_option, refuse_url
from mnemosyned.cli.output.show import say_result
from mnemosyned.cli.output.terminal import count_of
from mnemosyned.config.loading import config_file, load_config
from mnemosyned.errors import StorageFailed
from mnemosyned.memory.exchange import KIND_NAMES
from mnemosyned.service.audit import parse_line
from mnemosyned.service.exchange import ExchangeService
from mnemosyned.service.service import SystemClock
from mnemosyned.verbs.exchange import FOOTER, KINDS, Export, Footer, parse_line_kind
from mnemosyned.verbs.request import decoder_of

ACCOUNT = ".account.jsonl"


@click.command("export")
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace files that exist.")
@json_option()
def export_owner(name: str, file: Path, *, force: bool) -> None:
    """Write everything that the database has of an owner to FILE and FILE.account.jsonl.

    `mnem import` reads FILE: memories, summaries, learnings and what belongs to them. The other
    file has data that an import leaves out: texts given to agents, memories that can be restored,
    followed folders, tokens without their secrets, memberships of groups, and lines of the audit
    log.
    """
    refuse_url(click.get_current_context())
    account = file.with_name(file.name + ACCOUNT)
    for path in (file, account):
        check_target(path, force=force)
    config = load_config(config_file())
    with (
        open_owned_stores(config.location) as stores,
        open_audit_table(config.location) as table,
        open_audit(config, user=getuser()) as log,
    ):
        number = stores.owners.number(name)
        owner = next(each for each in stores.owners.owners() if each.number == number)
        store = stores.store(number)
        exchange = ExchangeService(
            store=store.exchange,
            clock=SystemClock(),
            database=name,
            file=None,
            schema_version=store.schema_version,
            postpone_cycles=lambda _: None,
            on_restored=lambda: None,
        )
        footer, digest = _write_chunks(file, exchange.export(Export()))
        if parse_line_kind(footer).record != FOOTER:
            raise StorageFailed(f"the export is not whole: {footer.decode()}")
        records = Counter(decoder_of(Footer).decode(footer).counts)

        def account_lines() -> Iterator[bytes]:
            """Yield the lines of what an export leaves out, and count them."""
            things = [
                ("owner", owner),
                *(("token", t) for t in stores.owners.tokens(name)),
                *(
                    ("membership", each)
                    for each in stores.owners.memberships()
                    if name in (each.group, each.member)
                ),
            ]
            with store.exchange.everything() as (_, everything):
                further = ((KIND_NAMES[type(each)], each) for each in everything)
                for kind, thing in chain(things, further):
                    if kind in (*KINDS, "vector", "clock"):
                        continue
                    records[kind] += 1
                    line = msgspec.json.encode(thing)
                    yield b'{"record":"%s",%s\n' % (kind.encode(), line[1:])
            for *_, line in table.read():
                entry = parse_line(line)
                if entry and number in (entry.owner, entry.about):
                    records["audit"] += 1
                    yield f'{{"record":"audit",{line[1:]}\n'.encode()

        _, account_digest = _write_chunks(account, account_lines())
        if log:
            log.note_change("owner_export", number)
    receipt = {
        "owner": name,
        "at": datetime.now(UTC),
        "sha256": {str(file): digest, str(account): account_digest},
        "records": records,
    }
    parts = [
        count_of(records["memory"], "memory"),
        count_of(records["episode"], "summary"),
    ]
    text = f"{name}: {', '.join(parts)}; {count_of(records.total(), 'line')} in {file} and {account}"
    say_result(receipt, text)


def save_receipt(path: Path, result: object) -> None:
    """Write a result as JSON with the present time, and the SHA-256 of the text before it."""
    said = {"at": datetime.now(UTC), **msgspec.to_builtins(result)}
    lines = msgspec.json.format(msgspec.json.encode(said)).removesuffix(b"\n}")
    digest = hashlib.sha256(lines).hexdigest().encode()
    with open_whole_file(path) as file:
        file.write(b'%s,\n  "sha256": "%s"\n}\n' % (lines, digest))


def _write_chunks(path: Path, chunks: Iterable[bytes]) -> tuple[bytes, str]:
    """Write chunks of lines to a file; return the last chunk and the file's SHA-256."""
    digest, last = hashlib.sha256(), b""
    with open_whole_file(path) as written:
        for chunk in filter(None, chunks):
            written.write(chunk)
            digest.update(chunk)
            last = chunk
    return last, digest.hexdigest()
