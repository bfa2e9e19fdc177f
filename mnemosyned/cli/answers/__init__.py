"""Answers on standard output: forms, records, pager, and which module renders which result."""
