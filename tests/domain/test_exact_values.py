"""Exact values are found word for word, in whatever language stands around them."""

from itertools import pairwise

from hypothesis import given, strategies as st
from support.cases import each_case, read_cases

from mnemosyned.text.details import DetailKind
from mnemosyned.text.exact_values import DETAILS_MAX, extract_details
from mnemosyned.text.secrets.masking import find_secrets, mask_metadata, mask_secrets

CASES = read_cases("exact_values")
D = DetailKind
PAT = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
SLACK = "xoxb" + "-123456789012-abcdefGHIJKL"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
SEED = "army van defense carry jealous true garbage claim echo media make crunch"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"


def found(text: str) -> list[tuple[str, str]]:
    return [(detail.kind.value, detail.value) for detail in extract_details(text)]


@each_case(("text", "expected"), [
    ("Nothing exact in here, not even this.", []),
    ("Release on 2026-03-17", [("date", "2026-03-17")]),
    ("at 2026-03-17T10:30:00Z.", [("date", "2026-03-17T10:30:00Z")]),
    ("on 17.03.2026 or 3/17/2026", [("date", "17.03.2026"), ("date", "3/17/2026")]),
    ("March 17, 2026; 3rd of May", [("date", "March 17, 2026"), ("date", "3rd of May")]),
    ("May 2026 may come, marching on", [("date", "May 2026")]),
    ("am 17. März 2026 um 14:30 Uhr", [("date", "17. März 2026"), ("time", "14:30")]),
    ("le 5 février 2026", [("date", "5 février 2026")]),
    ("el 9 de abril de 2026", [("date", "9 de abril de 2026")]),
    ("7 мая 2023 года", [("date", "7 мая 2023")]),
    ("på 12 mars", [("date", "12 mars")]),
    ("会議は2026年3月17日14:30です", [("date", "2026年3月17日"), ("time", "14:30")]),
    ("call at 7pm", [("time", "7pm")]),
    ("keep 42.", [("number", "42")]),
    ("-40 and +3 and 10-20", [("number", n) for n in ("-40", "+3", "10", "20")]),
    ("1,250 or 1.250.000 or 0.75", [("number", n) for n in ("1,250", "1.250.000", "0.75")]),
    ("15% or 3,5 % at 95 °C", [("number", n) for n in ("15%", "3,5 %", "95 °C")]),
    ("12.5 GB in 3 parts", [("number", "12.5 GB"), ("number", "3")]),
    ("16GB on the 3rd try", [("number", "16GB"), ("number", "3rd")]),
    ("mail bob.smith@example.co.uk.", [("email", "bob.smith@example.co.uk")]),
    ("連絡先はbob@example.comまで", [("email", "bob@example.com")]),
    ("see (https://a.b/42/c?x=1).", [("url", "https://a.b/42/c?x=1")]),
    ("詳細は「https://a.b/c」。", [("url", "https://a.b/c")]),
    ("$12.50 or 1,890 euros", [("money", "$12.50"), ("money", "1,890 euros")]),
    ("1.890 € oder CHF 20", [("money", "1.890 €"), ("money", "CHF 20")]),
    ("予算は5万円です", [("money", "5万円")]),
    ("40 minutes, 500ms, 2 Wochen", [("duration", d) for d in ("40 minutes", "500ms", "2 Wochen")]),
    ("3,5 Stunden, 30分", [("duration", "3,5 Stunden"), ("duration", "30分")]),
    ("/etc/hosts and ~/x.txt", [("path", "/etc/hosts"), ("path", "~/x.txt")]),
    ("src/app/main.py and C:\\Users\\x", [("path", "src/app/main.py"), ("path", "C:\\Users\\x")]),
    ("and/or 24/7", [("number", "24"), ("number", "7")]),
    ("v2 and 1.2.3-rc.1 and 2.0rc1", [("version", v) for v in ("v2", "1.2.3-rc.1", "2.0rc1")]),
    ("commit 3f786850, deadbee1", [("hash", "3f786850"), ("hash", "deadbee1")]),
    ("PROJ-123 x86-64 camelCase", [("identifier", i) for i in ("PROJ-123", "x86-64", "camelCase")]),
    ("get_user() --max=5 a.b_c", [("identifier", i) for i in ("get_user()", "--max=5", "a.b_c")]),
    ("on 10.0.0.1:8080", [("identifier", "10.0.0.1:8080")]),
    ("e.g. this. Next, i.e. that", []),
    ('{"port": 8080, "wait": "30s"}', [("number", "8080"), ("duration", "30s")]),
    ("500 for A, 500 for B", [("number", "500")]),
    ("和/或, 读/写/删", []),
    ("~/文档/第2章", [("path", "~/文档/第2章")]),
    ("/home/用户/文件.txt", [("path", "/home/用户/文件.txt")]),
    ("https://ja.wikipedia.org/wiki/日本", [("url", "https://ja.wikipedia.org/wiki/日本")]),
    ("2026年3月に3時間", [("date", "2026年3月"), ("duration", "3時間")]),
])  # fmt: skip
def test_values_are_found(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


@each_case(("value", "kind"), [
    ("v1.2.3", D.VERSION),
    ("1.2.3", D.VERSION),
    ("E1234", D.IDENTIFIER),
    ("ABC-123", D.IDENTIFIER),
    ("foo_bar", D.IDENTIFIER),
    ("os.path.join", D.IDENTIFIER),
    ("get_user()", D.IDENTIFIER),
    ("std::vector", D.IDENTIFIER),
    ("--dry-run", D.IDENTIFIER),
    ("10.0.0.5:8080", D.IDENTIFIER),
    ("550e8400-e29b-41d4-a716-446655440000", D.IDENTIFIER),
    ("5f3a9c1b2d4e6f70", D.HASH),
    ("deadbeef1234567", D.HASH),
    ("/etc/nginx/nginx.conf", D.PATH),
    ("src/app/main.py", D.PATH),
    ("~/notes/a.md", D.PATH),
    ("https://example.com/a", D.URL),
    ("bob@example.com", D.EMAIL),
    ("2026-05-03", D.DATE),
    ("14:30", D.TIME),
    ("12ms", D.DURATION),
    ("3 hours", D.DURATION),
    ("500 EUR", D.MONEY),
    ("$500", D.MONEY),
    ("16GB", D.NUMBER),
    ("42%", D.NUMBER),
])  # fmt: skip
@each_case("around", ["请看{}吧", "これは{}です", "이건 {}입니다", "คือ{}ครับ"])
def test_a_value_ends_where_a_script_without_spaces_begins(
    value: str, kind: DetailKind, around: str
) -> None:
    assert (kind.value, value) in found(around.format(value))


@each_case(("text", "kind", "value"), [
    ("the staging key is sk-test-51HAbCdEfGhIjKlMnOp use it", D.API_KEY, "sk-test-51HAbCdEfGhIjKlMnOp"),
    (f"use {AWS} there", D.AWS_KEY, AWS),
    (f"push with {PAT}.", D.GITHUB_TOKEN, PAT),
    (f"bot {SLACK}", D.SLACK_TOKEN, SLACK),
    (f"Authorization: Bearer {JWT}", D.JWT, JWT),
    ("Authorization: Bearer abcdef1234567890ABCD", D.TOKEN, "abcdef1234567890ABCD"),
    (f"key file:\n{PEM}\nend", D.PRIVATE_KEY, PEM),
    ("password: hunter2, then enter", D.PASSWORD, "hunter2"),
    ("PASSWORD=correct-horse", D.PASSWORD, "correct-horse"),
    ("the password is “tr0ub4dor&3”.", D.PASSWORD, "tr0ub4dor&3"),
    ("password: opensesame", D.PASSWORD, "opensesame"),
    ("Das Passwort lautet geheim42.", D.PASSWORD, "geheim42"),
    ("la contraseña es gato1234", D.PASSWORD, "gato1234"),
    ("mot de passe : chat1234", D.PASSWORD, "chat1234"),
    ("le code wifi est soleil-2019-Lyon", D.PASSWORD, "soleil-2019-Lyon"),
    ("la clave del portal es 7uYh-22kp", D.PASSWORD, "7uYh-22kp"),
    ("パスワードはneko1234", D.PASSWORD, "neko1234"),
    ("密码：mima1234", D.PASSWORD, "mima1234"),
    ("пароль: kot12345", D.PASSWORD, "kot12345"),
    ('api_key = "Zk39fkdlsKDJ38fkdls"', D.API_KEY, "Zk39fkdlsKDJ38fkdls"),
    ("the access token is q8Zk39fkdl", D.TOKEN, "q8Zk39fkdl"),
    ("AWS secret access key: wJalrXUtnFEMI/K7MDENG/bPxRfiCY", D.API_KEY, "wJalrXUtnFEMI/K7MDENG/bPxRfiCY"),
    ("postgres://app:s3cr3tpw@db.example/x", D.PASSWORD, "s3cr3tpw"),
    ("The alarm code at the office is 258071#, it beeps.", D.ACCESS_CODE, "258071#"),
    ("Recovery code: 7f3a9-b2c41", D.LOGIN_CODE, "7f3a9-b2c41"),
    (f"The wallet: {SEED}", D.SEED_PHRASE, SEED),
    ("Cookie: sessionid=38afes7a8b2c4d6e8f0a; theme=dark", D.COOKIE, "38afes7a8b2c4d6e8f0a"),
    ("https://a.example/x?se=2024&sig=u7Wq2ZkP9mT4vB8xR1", D.SIGNATURE, "u7Wq2ZkP9mT4vB8xR1"),
    ("My Visa is 4111 1111 1111 1111, exp 09/27", D.CARD_NUMBER, "4111 1111 1111 1111"),
    ("Wire it to GB29 NWBK 6016 1331 9268 19 by Friday", D.IBAN, "GB29 NWBK 6016 1331 9268 19"),
    ("My SSN is 219-09-9999.", D.SSN, "219-09-9999"),
    ("O meu CPF é 529.982.247-25", D.SSN, "529.982.247-25"),
    ("Meine Steuer-IdNr.: 86 095 742 719", D.SSN, "86 095 742 719"),
    ("mi DNI es 12345678Z", D.SSN, "12345678Z"),
    ("Il codice fiscale è RSSMRA85T10A562S.", D.SSN, "RSSMRA85T10A562S"),
    ("mijn BSN is 111222333", D.SSN, "111222333"),
    ("mój PESEL to 44051401359", D.SSN, "44051401359"),
    ("My National Insurance number is AB 12 34 56 C", D.SSN, "AB 12 34 56 C"),
])  # fmt: skip
def test_secrets_are_found_and_masked(text: str, kind: DetailKind, value: str) -> None:
    first = extract_details(text)[0]

    assert (first.kind, first.value, first.sensitive) == (kind, value, True)
    assert mask_secrets(text) == text.replace(value, f"[secret:{kind.value}]")
    assert mask_secrets(mask_secrets(text)) == mask_secrets(text)
    noted = extract_details(text)
    assert not any(value in mask_secrets(detail.value, noted) for detail in noted)


@each_case("text", CASES["text_without_secrets_is_not_masked"])
def test_text_without_secrets_is_not_masked(text: str) -> None:
    assert find_secrets(text) == []
    assert mask_secrets(text) == text


def test_a_secret_is_masked_wherever_it_is_and_its_url_kept() -> None:
    text = "password: hunter22; later hunter22 failed"
    noted = extract_details(text)
    url = extract_details("see https://u:pw123456@a.b/c")

    assert "hunter22" not in mask_secrets(text)
    worked = mask_secrets("then hunter22 worked", noted)
    assert worked == "then [secret:password] worked"
    assert ("url", "https://u:pw123456@a.b/c") in [(n.kind.value, n.value) for n in url]
    masked = [mask_secrets(detail.value) for detail in url]
    assert "https://u:[secret:password]@a.b/c" in masked


def test_the_name_of_a_field_tells_what_its_value_is() -> None:
    given = {"password": "hunter22", "n": 1, "deep": [{"note": f"with {AWS}"}]}
    shown = {
        "password": "[secret:password]",
        "n": 1,
        "deep": [{"note": "with [secret:aws_key]"}],
    }

    assert mask_metadata({**given, "plain": "tea"}) == {**shown, "plain": "tea"}


def test_a_table_gives_no_more_than_its_share() -> None:
    assert len(extract_details(" ".join(map(str, range(10_000))))) == DETAILS_MAX


@given(st.text(alphabet=st.sampled_from("aA1_-./:@ ,%$é会=\n'\"(key)pasword")))
def test_every_value_stands_in_its_text_once(text: str) -> None:
    noted = extract_details(text)

    assert all(detail.value in text for detail in noted)
    assert len({(detail.kind, detail.value) for detail in noted}) == len(noted)


@given(st.text())
def test_secrets_stand_in_order_and_apart(text: str) -> None:
    assert all(one.stop <= other.start for one, other in pairwise(find_secrets(text)))
