"""Why a configuration file is left as it is."""

from __future__ import annotations


class Unreadable(Exception):
    """The text is not in its format; the message says where."""


class NotEditable(Exception):
    """The text has a form in which our part cannot be written safely."""
