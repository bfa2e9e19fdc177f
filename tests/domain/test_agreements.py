"""What a person's answer makes of an agent's proposal."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.cases import each_case
from support.fakes import NOON

from mnemosyned.conversation.agreements import proposes, read_answer, state_decision
from mnemosyned.conversation.briefing import StatementKind, find_statements
from mnemosyned.memory.values import MemoryRecord

REDIS = (
    "I profiled the login. I suggest we store sessions in Redis instead of the database, "
    "with a TTL of one hour."
)
IN_REDIS = "store sessions in Redis instead of the database, with a TTL of one hour"
WAYS = """There are three ways to do it:

1. Put the version in the URL, such as `/v2/orders`
2. **Use an `Accept` header** with the version. It keeps the URLs.
3. Use a query parameter

Which one do you prefer?"""
INLINE = "Two ways: should we (a) keep the lock in Postgres or (b) move it to Redis?"
TWO = "I suggest we store sessions in Redis. I also suggest that we keep logs for 30 days."
LIST = "I suggest the following:\n1. store sessions in Redis\n2. keep logs for 30 days"
FLAGS = """Es gibt zwei Möglichkeiten:
Variante A: Wir halten die Flags in einer YAML-Datei.
Variante B: Wir nehmen Unleash.
Was ist dir lieber?"""


def turn(*texts: str) -> list[MemoryRecord]:
    """What a user and an agent say in turns, the newest first."""
    return [
        MemoryRecord(
            id=str(number),
            content=text,
            created_at=NOON + timedelta(minutes=number),
            session="s",
            role=("user", "assistant")[number % 2],
        )
        for number, text in enumerate(texts)
    ][::-1]


@each_case(("message", "answer", "told"), [
    (REDIS, "ok, let's do that", f"Agreed: {IN_REDIS}"),
    (REDIS, "Yes.", f"Agreed: {IN_REDIS}"),
    (REDIS, "Sounds good! Do it. Then look at the logout.", f"Agreed: {IN_REDIS}"),
    (REDIS, "ok, Redis then", f"Agreed: {IN_REDIS}"),
    (REDIS, "Redis it is", f"Agreed: {IN_REDIS}"),
    (f"{REDIS} It takes a day.\n\nShall I go ahead?", "yes please", f"Agreed: {IN_REDIS}"),
    ("My proposal: we use problem+json for all errors.", "go for it",
     "Agreed: use problem+json for all errors"),
    ("**Recommendation:** keep the lock in Postgres.", "agreed", "Agreed: keep the lock in Postgres"),
    ("How about we only update dependencies on Mondays?", "good idea",
     "Agreed: only update dependencies on Mondays"),
    ("Should we use Redis for the sessions?", "yes", "Agreed: use Redis for the sessions"),
    ("I suggest the following:\n- sessions in Redis\n- a TTL of one hour", "ok",
     "Agreed: the following; sessions in Redis; a TTL of one hour"),
    ("Ich schlage vor, dass wir die Rechnungen als PDF/A ablegen.", "machen wir",
     "Agreed: wir die Rechnungen als PDF/A ablegen"),
    ("Ich würde für die Rechnungen PDF/A nehmen.", "ja genau so",
     "Agreed: Ich würde für die Rechnungen PDF/A nehmen"),
    ("Propongo que guardemos los registros solo 30 días.", "vale",
     "Agreed: guardemos los registros solo 30 días"),
    ("Je propose de garder les journaux 30 jours.", "d'accord", "Agreed: garder les journaux 30 jours"),
    ("Propongo di usare Postgres per la coda.", "va bene, facciamo così", "Agreed: usare Postgres per la coda"),
    ("Sugiro usarmos OAuth2 para os parceiros.", "pode ser, vamos com isso",
     "Agreed: usarmos OAuth2 para os parceiros"),
    ("Предлагаю хешировать пароли через argon2id.", "хорошо, давай так",
     "Agreed: хешировать пароли через argon2id"),
    ("我建议把会话存到Redis。", "好的", "Agreed: 把会话存到Redis。"),
    ("要不要把超时设为30秒？", "好，就这样", "Agreed: 把超时设为30秒"),
    ("建议缓存有效期设为1小时。", "可以，但改成30分钟", "Agreed: 缓存有效期设为30分钟。"),
    ("方案A：锁放在 Postgres\n方案B：锁移到 Redis\n你选哪个？", "好的，就用 B", "Agreed: 锁移到 Redis"),
    ("1. 锁放在 Postgres\n2. 锁移到 Redis\n你倾向哪个方案？", "第二个", "Agreed: 锁移到 Redis"),
    ("我建议队列用 RabbitMQ。", "不用了，保持现状", "Refused: 队列用 RabbitMQ。 → 不用了，保持现状"),
    ("ログはLokiに送るのがよいと思います。", "いいですね、それで",
     "Agreed: ログはLokiに送るのがよいと思います。"),
    ("有効期限を1時間にすることをおすすめします。", "はい、ただし30分で",
     "Agreed: 有効期限を30分にすることをおすすめします。"),
    ("1. Postgresに置く\n2. Redisに移す\nどちらにしますか？", "2番でお願いします", "Agreed: Redisに移す"),
    ("세션을 Redis에 저장하는 것을 제안합니다.", "네, 그렇게 해 주세요",
     "Agreed: 세션을 Redis에 저장하는 것을 제안합니다"),
    ("セッションはRedisに保存することを提案します。", "はい、それでお願いします",
     "Agreed: セッションはRedisに保存することを提案します。"),
    (REDIS, "go ahead", f"Agreed: {IN_REDIS}"),
    (REDIS, "hm ok", f"Agreed: {IN_REDIS}"),
    (REDIS, "love it, lets do it", f"Agreed: {IN_REDIS}"),
    (REDIS, "perfect, we'll do it like that", f"Agreed: {IN_REDIS}"),
    ("I suggest we use UTC.\n\nWhat would change:\n- the API\n- the logs\n- the reports\n\nIs that ok?",
     "ya fine by me", "Agreed: use UTC"),
    ("My proposal: retry with backoff, at most 8 attempts.", "i agree, go ahead",
     "Agreed: retry with backoff, at most 8 attempts"),
    ("I suggest we install updates on Sundays.", "ok", "Agreed: install updates on Sundays"),
    ("Which one?\n- A) floats (today)\n- B) integer cents", "B please", "Agreed: integer cents"),
    # What a person changes wins.
    (REDIS, "hm ok but keep the old flag", f"Agreed: {IN_REDIS} → hm ok but keep the old flag"),
    (REDIS, "yes, but it has to be encrypted", f"Agreed: {IN_REDIS} → yes, but it has to be encrypted"),
    (REDIS, "ja aber nur verschlüsselt", f"Agreed: {IN_REDIS} → ja aber nur verschlüsselt"),
    (REDIS, "yes, but 30 minutes", f"Agreed: {IN_REDIS.replace('one hour', '30 minutes')}"),
    (REDIS, "ok, with a TTL of two hours", f"Agreed: {IN_REDIS.replace('one hour', 'two hours')}"),
    (REDIS, "yes, but only for the shop", f"Agreed: {IN_REDIS} → yes, but only for the shop"),
    ("I recommend running the export every 15 minutes.", "yes, but every 30 minutes",
     "Agreed: running the export every 30 minutes"),
    ("I suggest that cookies expire after 9 hours and links after 3 days.", "ok, but 4 days",
     "Agreed: cookies expire after 9 hours and links after 4 days"),
    ("I'd suggest a bucket per key with 100 requests per minute.", "sounds good, but make it 60",
     "Agreed: a bucket per key with 100 requests per minute → sounds good, but make it 60"),
    ("Je propose de réessayer l'envoi cinq fois au maximum.", "d'accord, mais trois fois au maximum",
     "Agreed: réessayer l'envoi trois fois au maximum"),
    ("I recommend a limit of 500 rows per page.", "make it 200",
     "Agreed: a limit of 500 rows per page → make it 200"),
    ("I recommend a limit of 500 rows per page.", "200 rows", "Agreed: a limit of 200 rows per page"),
    # One of several.
    (WAYS, "option 2", "Agreed: Use an `Accept` header with the version"),
    (WAYS, "let's go with the second one, please", "Agreed: Use an `Accept` header with the version"),
    (WAYS, "2, then look at the errors", "Agreed: Use an `Accept` header with the version"),
    (WAYS, "the first, but without the v",
     "Agreed: Put the version in the URL, such as `/v2/orders` → but without the v"),
    (FLAGS, "die erste", "Agreed: Wir halten die Flags in einer YAML-Datei"),
    ("Two ways to go:\n- keep Jest\n- move to Vitest\nWhich one?", "the second", "Agreed: move to Vitest"),
    ("**Option A** – keep Jest\n**Option B** – take Vitest\nWhich one?", "B it is", "Agreed: take Vitest"),
    (FLAGS, "B bitte", "Agreed: Wir nehmen Unleash"),
    (WAYS.replace("Which one do you prefer?", "I recommend option 3."), "ok", "Agreed: Use a query parameter"),
    (INLINE, "b", "Agreed: move it to Redis"),
    (INLINE, "the first please", "Agreed: keep the lock in Postgres"),
    (INLINE, "b, but with a TTL", "Agreed: move it to Redis → but with a TTL"),
    ("Which do you prefer: A) keep Jest, B) take Vitest, or C) use both?", "C", "Agreed: use both"),
    ("We can 1) poll every minute or 2) use a webhook. Which one?", "2", "Agreed: use a webhook"),
    ("Sollen wir a) YAML-Dateien halten oder b) Unleash nehmen?", "b", "Agreed: Unleash nehmen"),
    ("Préfères-tu (1) garder les journaux ou (2) les effacer ?", "la 2", "Agreed: les effacer"),
    ("¿Prefieres 1) usar S3 o 2) usar el disco?", "la primera", "Agreed: usar S3"),
    # Several proposals, each with its own answer.
    (TWO, "yes to the first, no to the second", "Agreed: store sessions in Redis"),
    (TWO, "No to the first. Yes to the second.", "Agreed: keep logs for 30 days"),
    (TWO, "1: ok, 2: no", "Agreed: store sessions in Redis"),
    (TWO, "the first one yes, the second later", "Agreed: store sessions in Redis"),
    (TWO, "just the second", "Agreed: keep logs for 30 days"),
    (TWO, "yes to both", "Agreed: store sessions in Redis; keep logs for 30 days"),
    (TWO, "no to 1, no to 2", "Refused: store sessions in Redis; keep logs for 30 days → no to 1, no to 2"),
    (LIST, "yes to 1, no to 2", "Agreed: store sessions in Redis"),
    ("Ich schlage vor, Redis zu nehmen. Außerdem schlage ich vor, die Logs zu behalten.",
     "ja zum ersten, nein zum zweiten", "Agreed: Redis zu nehmen"),
    ("Je propose de garder Redis. Je suggère de garder les journaux.",
     "oui pour le premier, non pour le second", "Agreed: garder Redis"),
    ("Sugiro usarmos Redis. Também sugiro guardarmos os logs.", "sim para o primeiro, não para o segundo",
     "Agreed: usarmos Redis"),
    # What is proposed, or what goes with it, is otherwise.
    (REDIS, "ok but redis gets 2 GB", f"Agreed: {IN_REDIS} → ok but redis gets 2 GB"),
    (REDIS, "ok but Redis gets 2 GB", f"Agreed: {IN_REDIS} → ok but Redis gets 2 GB"),
    (REDIS, "fine but admins stay in postgres", f"Agreed: {IN_REDIS} → fine but admins stay in postgres"),
    # Declined.
    (REDIS, "no, keep the database", f"Refused: {IN_REDIS} → no, keep the database"),
    (REDIS, "No thanks. It is one more service.", f"Refused: {IN_REDIS} → No thanks. It is one more service."),
    (REDIS, "let's do that later", f"Put off: {IN_REDIS} → let's do that later"),
    ("Je propose de réécrire le panier.", "plus tard", "Put off: réécrire le panier → plus tard"),
])  # fmt: skip
def test_a_proposal_is_decided_by_the_answer(
    message: str, answer: str, told: str
) -> None:
    read = read_answer(message, answer)

    assert read is not None
    assert read.text == told
    assert read.sentence in message or read.sentence in message.replace("\n", " ")


@each_case(("message", "answer"), [
    # Work of the moment.
    ("I suggest we run the whole test suite now.", "ok, run the tests"),
    ("I suggest we run the whole test suite now.", "yes"),
    ("I suggest restarting the container.", "ok, restart it"),
    ("Ich schlage vor, zuerst den Cache zu löschen.", "ok, mach das"),
    ("Je vous suggère de vérifier d'abord la version.", "d'accord"),
    ("Two steps are left. Which one first?\n1. Write the backfill\n2. Update the model", "2"),
    ("I'd suggest deleting the stale branch `feature/old`.", "ok"),
    ("要我跑一下测试吗？", "好"),
    ("テストを実行しましょうか？", "はい"),
    ("次はテストを実行するのがよいと思います。", "はい"),
    # An objection, or thanks.
    ("我建议日志发到 Loki。", "可以是可以，但是太贵了"),
    ("ログはLokiに送るのがよいと思います。", "はい、でも高すぎます"),
    ("ログはLokiに送るのがよいと思います。", "ありがとうございます"),
    # No proposal, or an answer to something else.
    ("ログを直しました。", "はい、お願いします"),
    ("日志修好了。", "好的"),
    ("The lexer is done. Shall I continue?", "yes"),
    ("I fixed the comparison in `dates.py`.", "ok great, thanks"),
    ("Do you want me to open the browser console?", "yes please"),
    (f"{REDIS} Which port does it use?", "ok"),
    (f"{REDIS} Any objections?", "no"),
    (f"{REDIS} I also read the logs. They are long. They say little. They rotate. They stay.", "ok"),
    (f"{REDIS} Actually, no, that won't work offline.", "ok"),
    # Work of the moment, or an event.
    ("Should we use sudo for this command?", "yes"),
    ("I suggest we order sushi tonight.", "yes lets do that"),
    ("Let's switch to the other branch.", "yes"),
    ("Let's take a five minute pause.", "ok"),
    ("Je suggère de commiter ces fichiers.", "ok"),
    ("Two approaches to find the bug:\n1. Bisect the commits\n2. Add logging\nWhich one?", "2"),
    ("Choose one of these options:\n1. Yes, overwrite\n2. No, keep both", "1"),
    ("Options:\n1) Ignore\n2) Retry\nWhich?", "1"),
    # An objection, or mockery.
    (REDIS, "ok but that's too expensive"),
    (REDIS, "sure but the boss wants them on disk"),
    (REDIS, "fine but Ann said no"),
    (REDIS, "nice, but no"),
    (REDIS, "yes, but we have no Redis"),
    (REDIS, "ja aber das ist zu teuer"),
    (REDIS, "oui mais c'est trop cher"),
    (REDIS, "sí pero no tenemos presupuesto"),
    (REDIS, "sì ma il cliente non vuole"),
    (REDIS, "sim, mas é muito caro"),
    (REDIS, "ok, but Tom has to decide"),
    (REDIS, "great idea... not"),
    (REDIS, "yeah right, redis again"),
    *((REDIS, f"ok but {what}") for what in (
        "ann said no", "ben hates redis", "redis crashed last week", "legal has not signed off",
        "ops doesn't like it", "redis is too slow", "postgres works fine", "memory is tight",
        "tom thinks it's slow", "nothing works",
        "Redis is slow", "docker uses it already", "security will complain", "redis broke twice",
    )),
    (REDIS, "ja aber anna sagt nein"),
    (REDIS, "d'accord mais paul dit non"),
    (REDIS, "vale pero ana dice que no"),
    (REDIS, "va bene ma redis costa troppo"),
    (REDIS, "ok mas ana disse que não"),
    (REDIS, "ok maar anna zegt nee"),
    # Options that are none, or other words behind a letter or number.
    (INLINE, "a lot of work either way"),
    (INLINE, "a or b, I don't care"),
    (INLINE, "not b"),
    (INLINE, "c"),
    (INLINE, "1"),
    (INLINE, "b, but only if it is cheap"),
    ("I changed (a) the lock in Postgres and (b) the cache in Redis.", "b"),
    ("The error is either (a) a stale lock or (b) a full disk.", "b"),
    ("Which one fails: (a) the staging server or (b) production?", "b"),
    ("Shall I (a) run the tests or (b) look at the log?", "a"),
    ("Step 1) keep the lock in Postgres, step 2) move it to Redis.", "2"),
    # Several proposals, and no answer to each.
    (TWO, "yes"),
    (TWO, "the first one is wrong"),
    (TWO, "not both"),
    (TWO, "both are too expensive"),
    (TWO, "yes to the third"),
    (TWO, "yes to the first if it is cheap, no to the second"),
    (TWO, "no to the first, maybe to the second"),
    (TWO, "yes to the first, but ann must decide the second"),
    (f"{TWO} And I propose to drop cron.", "both"),
    ("I suggest we run the tests. I also suggest that we keep logs.", "yes to the first, no to the second"),
    (REDIS, "yes to the first, no to the second"),
    (REDIS, "both"),
    # Doubtful.
    (REDIS, "ok, thanks"),
    (REDIS, "why one hour?"),
    (REDIS, "ok, and what about the carts?"),
    (REDIS, "ok. Run the tests"),
    (REDIS, "yes, but first run the tests"),
    (REDIS, "yes, but only if it is cheap"),
    (REDIS, "no problem, do it"),
    (REDIS, "ok, no Redis"),
    (REDIS, "Memcached it is"),
    (f"{REDIS} Otherwise, I'd use Memcached.", "ok"),
    ("If the traffic grows, I suggest we use a queue.", "ok"),
    ("I would suggest renaming `tmp`, but it's not blocking.", "ok"),
    ("I suggest you read the manual.", "ok"),
    (REDIS, "only 5 minutes left"),
    ("I would recommend against Redis here.", "ok"),
    ("The docs recommend a pool of 20 connections.", "ok"),
    (WAYS, "ok"),
    (WAYS, "option 7"),
    (WAYS, "2 days"),
    (WAYS.replace("ways", "steps").replace("Which one do you prefer?", ""), "2"),
])  # fmt: skip
def test_what_is_doubtful_decides_nothing(message: str, answer: str) -> None:
    assert read_answer(message, answer) is None


def test_an_agreement_is_a_decision_of_both_at_the_time_of_the_answer() -> None:
    memories = turn("Logins are slow?", REDIS, "ok, let's do that")

    (told,) = find_statements(memories)

    assert (told.kind, told.text) == (StatementKind.DECIDED, f"Agreed: {IN_REDIS}")
    assert (told.memory.id, told.answer_id) == ("1", "2")
    assert told.memory.role == "assistant and user"
    assert told.memory.created_at == memories[0].created_at


@pytest.mark.parametrize("place", [0, 1])
def test_an_agreement_with_a_superseded_line_is_none(place: int) -> None:
    memories = turn("Logins are slow?", REDIS, "ok, let's do that")
    memories[place] = replace(memories[place], superseded_at=NOON)

    assert not list(find_statements(memories))


def test_an_option_is_told_with_the_question() -> None:
    question = "How should we version the API?"

    (told,) = find_statements(turn(question, WAYS, "option 2"))

    assert told.text == f"{question} → Agreed: Use an `Accept` header with the version"


@each_case(("message", "answer", "told"), [
    ("The worker is slow. Let us rewrite it in Go.", "yes, let's do that",
     "The worker is slow → Agreed: rewrite it in Go"),
    ("The parser of dates is a mess. I suggest we replace it with `chrono`.", "no, keep it",
     "The parser of dates is a mess → Refused: replace it with `chrono` → no, keep it"),
    ("Der Worker ist zu langsam. Ich schlage vor, ihn in Go neu zu schreiben.", "machen wir",
     "Der Worker ist zu langsam → Agreed: ihn in Go neu zu schreiben"),
    ("Le worker est lent. Je propose de le réécrire en Go.", "d'accord",
     "Le worker est lent → Agreed: le réécrire en Go"),
    ("El proceso es lento. Propongo reescribirlo en Go.", "vale",
     "El proceso es lento → Agreed: reescribirlo en Go"),
    # The sentence before is on something else, or says nothing.
    ("The worker is slow. I suggest we move the queue to Redis.", "ok", "Agreed: move the queue to Redis"),
    ("How slow is it? I suggest we rewrite it in Go.", "ok", "Agreed: rewrite it in Go"),
])  # fmt: skip
def test_a_pronoun_is_told_with_the_sentence_before(
    message: str, answer: str, told: str
) -> None:
    statements = find_statements(turn("Hi", message, answer), with_declined=True)

    assert [each.text for each in statements] == [told]


@each_case(("message", "answer", "told"), [
    (TWO, "yes to the first, no to the second",
     "Agreed: store sessions in Redis. Refused: keep logs for 30 days"),
    (LIST, "no to 1, yes to 2", "Agreed: keep logs for 30 days. Refused: store sessions in Redis"),
    (TWO, "just the second", "Agreed: keep logs for 30 days"),
])  # fmt: skip
def test_the_other_proposal_is_told_as_refused_if_asked_for(
    message: str, answer: str, told: str
) -> None:
    memories = turn("Hi", message, answer)

    (decided,) = find_statements(memories)
    (asked,) = find_statements(memories, with_declined=True)

    assert decided.text == told.partition(". Refused")[0]
    assert asked.text == told


def test_proposals_may_be_numbered() -> None:
    message = "Two ideas. First, I suggest we use workspaces. Secondly, I propose we drop Node 18."

    read = read_answer(message, "no to the first, yes to the second")

    assert read is not None
    assert (read.text, read.refused) == (
        "Agreed: drop Node 18",
        "Refused: use workspaces",
    )


@each_case(("proposed", "decided"), [
    ("move the server to port 9191", "from now on we moved the server to port 9191"),
    ("switching to Vitest", "from now on we switched to Vitest"),
    ("Drop", "from now on we dropped"),
    ("den Server auf Port 9191 legen", "den Server auf Port 9191 legen"),
    ("a limit of 200 rows", "a limit of 200 rows"),
])  # fmt: skip
def test_what_is_agreed_is_read_as_decided(proposed: str, decided: str) -> None:
    assert state_decision(proposed) == decided


def test_what_is_declined_is_told_only_if_asked_for() -> None:
    memories = turn("Logins are slow?", REDIS, "no")

    assert not list(find_statements(memories))
    (told,) = find_statements(memories, with_declined=True)

    assert (told.kind, told.text) == (
        StatementKind.STATED,
        f"Refused: {IN_REDIS} → no",
    )


def test_a_finding_is_told_without_the_proposal_that_was_declined() -> None:
    cause = "The slowdown comes from the session lookup in the database."
    memories = turn("Logins are slow?", f"{cause} I suggest we use Redis.", "not now")

    assert [each.text for each in find_statements(memories)] == [
        f"Logins are slow? → {cause}"
    ]


def test_other_words_of_the_answer_are_told_for_themselves() -> None:
    decided = "We release on 4 May instead of 1 May."

    told = find_statements(turn("Hi", REDIS, f"ok, let's do that. {decided}"))

    assert [each.text for each in told] == [f"Agreed: {IN_REDIS}", decided]


def test_a_proposal_is_known_by_its_words() -> None:
    assert proposes("My proposal: we use Redis instead of the database.")
    assert not proposes("I moved the sessions to Redis.")
