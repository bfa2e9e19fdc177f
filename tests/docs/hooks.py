"""Changes to the HTML that MkDocs makes, for people who use a screen reader."""

from typing import Any


def on_page_content(html: str, **_: Any) -> str:  # noqa: ANN401 MkDocs hands in more
    """Make empty headings of tables ordinary cells."""
    return html.replace("<th></th>", "<td></td>")


def on_post_page(output: str, **_: Any) -> str:  # noqa: ANN401 MkDocs hands in more
    """Name the dialog of the search."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')
