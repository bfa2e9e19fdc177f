"""Mail, calendars and address books, made up in their real shape."""

from __future__ import annotations

from pathlib import Path

from support.import_samples import NINE, Expected, Sample


def mbox(folder: Path) -> Path:
    path = folder / "Inbox.mbox"
    path.write_bytes(
        b"From 1@xxx Mon Mar 16 09:00:00 +0000 2026\r\n"
        b"Message-ID: <1@example.org>\r\nDate: Mon, 16 Mar 2026 10:00:00 +0100\r\n"
        b"From: =?utf-8?q?Ann_B=C3=A4cker?= <ann@example.org>\r\nTo: bob@example.org\r\n"
        b"Subject: Re: Ferry\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: multipart/mixed; boundary=x\r\n\r\n"
        b"--x\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: quoted-printable\r\n\r\n"
        b"It leaves at 7:40, gr=C3=BCn.\r\n>From then on it is free.\r\n\r\n> When?\r\n> Bob\r\n"
        b"--x\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        b"JVBERi0=\r\n--x--\r\n\r\n"
        b"From 2@xxx Mon Mar 16 09:00:00 +0000 2026\r\n"
        b"From: shop@example.org\r\nSubject: Offer\r\nDate: never\r\nContent-Type: text/html\r\n\r\n"
        b"<html><head><style>p {}</style></head><body><p>Tents <b>half</b> price</p></body></html>\r\n"
        b"\r\nFrom 3@xxx Mon Mar 16 09:00:00 +0000 2026\r\nX-Empty: 1\r\n\r\n\r\n"
    )
    return path


def calendar(folder: Path) -> Path:
    path = folder / "home.ics"
    zone = (
        "BEGIN:VTIMEZONE\r\nTZID:Somewhere\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n"
        "TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
    )
    event = (
        "BEGIN:VEVENT\r\nUID:1@x\r\nDTSTAMP:20260301T000000Z\r\n"
        "DTSTART;TZID=Europe/Berlin:20260316T100000\r\nDTEND;TZID=Europe/Berlin:20260316T110000\r\n"
        "SUMMARY:Zahnarzt\r\nLOCATION:Hauptstr. 1\r\nDESCRIPTION:Karte\\, bit\r\n te\r\n"
        "ATTENDEE;CN=Bob:mailto:bob@example.org\r\nRRULE:FREQ=YEARLY\r\n"
        "BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT15M\r\nEND:VALARM\r\nEND:VEVENT\r\n"
    )
    coming = (
        "BEGIN:VEVENT\r\nUID:2@x\r\nDTSTAMP:20260316T090000Z\r\nDTSTART;VALUE=DATE:21000101\r\n"
        "SUMMARY:Party\r\nEND:VEVENT\r\n"
    )
    path.write_bytes(
        f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{zone}{event}{coming}BEGIN:VEVENT\r\nUID:3".encode()
    )
    return path


def contacts(folder: Path) -> Path:
    path = folder / "people.vcf"
    path.write_bytes(
        b"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:1\r\nN:B\xc3\xa4cker;Ann;;;\r\nFN:Ann B\xc3\xa4cker\r\n"
        b"ORG:Shop;IT\r\nitem1.EMAIL;TYPE=work:ann@example.org\r\nBDAY:1980-03-16\r\n"
        b"REV:2026-03-16T09:00:00Z\r\nEND:VCARD\r\n"
        b"BEGIN:VCARD\r\nVERSION:2.1\r\n"
        b"N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;Bob\r\n"
        b"FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Bob M=C3=BCller\r\nEND:VCARD\r\n"
        b"BEGIN:VCARD\r\nVERSION:3.0\r\nEND:VCARD\r\n"
    )
    return path


PERSONAL = [
    Sample(
        "mbox",
        mbox,
        [
            Expected(
                "Re: Ferry\n\nIt leaves at 7:40, grün.\nFrom then on it is free.",
                "mail:Ferry",
                "mail",
                "Ann Bäcker",
                "2026-03-16T10:00:00+01:00",
            ),
            Expected(
                "Offer\n\nTents half price", "mail:Offer", "mail", "shop@example.org"
            ),
        ],
        bad=1,
    ),
    Sample(
        "calendar",
        calendar,
        [
            Expected(
                "Zahnarzt\n2026-03-16 10:00 to 11:00 Europe/Berlin\nPlace: Hauptstr. 1\nWith: Bob\n"
                "Repeats: FREQ=YEARLY\n\nKarte, bitte",
                "calendar:home",
                "calendar",
                "",
                "2026-03-16T10:00:00+01:00",
            ),
            Expected("Party\n2100-01-01", "calendar:home", "calendar", "", NINE),
        ],
        bad=1,
    ),
    Sample(
        "contacts",
        contacts,
        [
            Expected(
                "Ann Bäcker\nCompany: Shop, IT\nMail: ann@example.org\nBirthday: 1980-03-16",
                "contacts",
                "contacts",
                "",
                NINE,
            ),
            Expected("Bob Müller", "contacts", "contacts"),
        ],
        bad=1,
    ),
]
