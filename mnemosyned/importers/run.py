"""An import: reads the parts of a plan, hands the items to the daemon, keeps the position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mnemosyned.domain.exchange import Restored
from mnemosyned.importers.delivery import Delivery
from mnemosyned.importers.exact import ExactDelivery, Restorer
from mnemosyned.importers.importer import START, Bad, Group, Item, Record
from mnemosyned.importers.journal import Entry, Journal
from mnemosyned.importers.plan import Part, Plan
from mnemosyned.importers.report import ImportReport, Preview
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import RememberedMany

Progress = Callable[[int, ImportReport], object]
"""Called with the bytes read since the last call, and the counts so far."""


@dataclass(slots=True)
class ImportRun:
    """One pass over the parts of a plan."""

    caller: Caller
    restorer: Restorer
    """Takes the lines of exports."""
    plan: Plan
    journals: dict[str, Journal] = field(default_factory=dict)
    """By the path that was typed; none where nothing is to be kept."""
    progress: Progress = lambda _size, _report: None
    preview: Preview | None = None
    """Where given, the daemon checks every record and stores none."""
    report: ImportReport = field(default_factory=ImportReport)

    def run(self) -> ImportReport:
        """Import all parts. Raises errors that are not the fault of a record."""
        self.report.unknown_files = self.plan.unknown_files
        for problem in self.plan.unreadable:
            self.report.add_problem(problem)
        for part in self.plan.parts:
            self._run_part(part)
        for journal in self.journals.values():
            journal.delete()
        return self.report

    def _run_part(self, part: Part) -> None:
        journal = self.journals.get(str(part.source.root))
        entry = journal.entry(part.source) if journal else None
        reader = PartReader(self, part, journal, entry)
        reader.read()
        self.report.files += 1


class PartReader:
    """Reads one part, from where an earlier import stopped."""

    def __init__(
        self, run: ImportRun, part: Part, journal: Journal | None, entry: Entry | None
    ) -> None:
        self._run = run
        self._part = part
        self._journal = journal
        self._entry = entry
        self._bytes = entry.bytes if entry else 0
        self._delivery = Delivery(
            run.caller,
            on_answer=self._note_answer,
            on_refusal=run.report.add_problem,
            check_only=run.preview is not None,
        )

        self._exact = ExactDelivery(
            run.restorer,
            on_answer=self._note_restored,
            on_refusal=run.report.add_problem,
        )

    def read(self) -> None:
        """Read and send all records that are left."""
        run, source = self._run, self._part.source
        if self._entry:
            run.report.continued = True
            run.progress(self._bytes, run.report)
            if self._entry.done:
                return
        position = self._entry.position if self._entry else START
        for record in self._records(position):
            self._take(record)
        self._delivery.flush()
        self._exact.flush()
        if self._journal:
            self._journal.write(source, position, self._bytes, done=True)

    def _records(self, position: str) -> Iterator[Record]:
        """Yield the records; a source that cannot be read further ends with a bad one."""
        source = self._part.source
        try:
            yield from self._part.format.read(source, position)
        except OSError as error:
            yield Bad(source.name, f"cannot be read: {error.strerror or error}")

    def _take(self, record: Record) -> None:
        run = self._run
        self._bytes += record.size
        if isinstance(record, Bad):
            run.report.add_problem(record)
        elif isinstance(record, Item):
            self._delivery.add(record)
        elif run.preview:
            run.preview.add_group(record, self._part.format.name)
        else:
            self._exact.add(record)
        run.progress(record.size, run.report)

    def _note_answer(self, items: Sequence[Item], answer: RememberedMany) -> None:
        run = self._run
        if run.preview:
            run.preview.add(items, self._part.format.name)
            run.preview.add_learnings(answer)
            return
        stored = sum(memory.stored for memory in answer)
        run.report.stored += stored
        forgotten = sum(memory.forgotten for memory in answer)
        run.report.forgotten += forgotten
        run.report.known += len(answer) - stored - forgotten
        run.report.learned += answer.learned
        if self._journal:
            self._journal.write(self._part.source, items[-1].position, self._bytes)

    def _note_restored(self, groups: Sequence[Group], restored: Restored) -> None:
        self._run.report.add_restored(restored, groups[0].place)
        if self._journal:
            self._journal.write(self._part.source, groups[-1].position, self._bytes)
