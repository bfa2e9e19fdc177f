"""Summaries of records that are no prose: a module for each kind, one function for all."""

from mnemosyned.domain.summary.records.lines import RecordLine, RecordSummary
from mnemosyned.domain.summary.records.summarize import summarize_records

__all__ = ["RecordLine", "RecordSummary", "summarize_records"]
