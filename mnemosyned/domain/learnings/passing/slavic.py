"""Preferences said in passing in Polish and Russian."""

from __future__ import annotations

from mnemosyned.domain.learnings.passing.table import PassingTable

POLISH = PassingTable(
    hints="moim|moją|najlepiej bez|w miarę|"
    "wolę|wolał|preferuj|lubię|nie znoszę|nienawidzę|nie cierpię|unikam|toleruj|fanem|fanką|"
    "zwolenni|miłośnik|zwykle|zazwyczaj|przeważnie|normalnie|najczęściej|z reguły|"
    "najchętniej|zawsze|nigdy|nie chcę|ulubion|preferowan|proszę|bez |żadnych|unikaj|prostym|"
    "po ludzku",
    rules=r"""
states: (?:ja )?(?:zdecydowanie |zwykle |zawsze )?wolę (?!o tym|nie mówić) => woli
states: (?:ja )?(?P<w>wolał)(?:bym|abym) (?!o tym|nie mówić) => wolałby
states: (?:ja )?wolałabym (?!o tym|nie mówić) => wolałaby
states: preferuję => preferuje
states: (?:ja )?nie lubię (?!o tym|gdy pada) => nie lubi
states: (?:ja )?lubię,? (?=gdy|kiedy|jak (?:ktoś|kod)|mieć|[^,;]* bardziej (?:niż|od)) => lubi,
states: (?:ja )?(?P<w>nie znoszę|nienawidzę|nie cierpię|unikam|nie toleruję) => {w}
states: (?:ja )?nie jestem (?P<w>(?:wielkim |wielką )?(?:fanem|fanką|zwolennikiem|zwolenniczką|miłośnikiem))
     => nie jest {w}
states: (?:ja )?jestem (?P<w>(?:wielkim |wielką )(?:fanem|fanką|zwolennikiem|zwolenniczką)) => jest {w}
states: (?P<a>zwykle|zazwyczaj|przeważnie|normalnie|najczęściej|z reguły|najchętniej|zawsze),? (?:ja
     )?(?P<v>używam|wybieram|pracuję|jem|piję|kupuję
    |podróżuję|piszę|jeżdżę|gotuję|czytam|korzystam|biorę) => {a} {v}
states: nigdy nie (?P<v>używam|jem|piję|kupuję) => nigdy nie {v}
states: (?:ja )?nie chcę (?=(?:żadn\w+|zależności|frameworków|animacji|reklam)\b) => nie chce
states: (?:moim|moją) (?P<f>(?:ulubion|preferowan)\w+ [\w-]+ jest) => {f}
inside: \b(?P<w>najlepiej bez|najchętniej bez|w miarę możliwości bez) => {w}
states: (?:mój|moja|moje) (?P<f>(?:ulubion|preferowan)\w+ [\w-]+ (?:to|jest)) => {f}
asks: bez (?!tej|tego|problemu|obaw|sensu|pośpiechu)(?=[^,.;:!?]{2,50},? proszę\b) => bez
asks: (?:proszę,? )(?:bez|żadnych) => bez
asks: (?:proszę )?unikaj (?!tego) => unikaj
inside: bez (?P<w>zbędn\w+|niepotrzebn\w+|zbyt wielu|nadmiern\w+|nadmiaru) => bez {w}
inside: (?P<w>prostym językiem|prostymi słowami|po ludzku) => {w}
""",
    conjunctions="i|oraz|a|ale|lub|bo|więc|ponieważ",
    leads=r"szczerze mówiąc|naprawdę|bardzo|swoją drogą|i|a|ale|więc|dzięki|ogólnie|osobiście|proszę"
    r"|generalnie",
    reasons="bo|ponieważ|gdyż|ale|chociaż|więc|żeby|proszę|dzięki",
    starters=r"ja|ty|on|ona|my|oni|to|czy|jak|co|gdzie|kto|kiedy|dlaczego|czemu|jaką|jaka|jaki|jakie|ile|który"
    r"|która|pomożesz|możesz|przepisz|napisz|pokaż"
    r"|więc|proszę|mój|moja|dzięki",
    negations="nie|bez|tylko|nigdy|niż",
    guards=r"\b(?:powiedział|powiedziała|mówi|napisał|kiedyś|dawniej|przetłumacz|zapytał)\b|\bjeśli$",
    unclear=r"(?:to|ten|tę|ta|te|go|ją|jej|ich|tego|tę drugą|pierwsz\w+|drug\w+|trzeci\w+|przyjść|zostać"
    r"|nie (?:mówić|iść))\b",
    once=r"\b(?:dzisiaj|dziś|jutro|tym razem|w tym (?:tygodniu|miesiącu)|teraz|na razie|w (?:poniedziałek"
    r"|wtorek|środę|czwartek|piątek|sobotę|niedzielę))\b",
    third_person=(
        (r"^nie znoszę", "nie znosi"),
        (r"^nienawidzę", "nienawidzi"),
        (r"^nie cierpię", "nie cierpi"),
        (r"^jeżdżę", "jeździ"),
        (r"^jem\b", "je"),
        (r"^biorę", "bierze"),
        (r"^(.*)am\b", r"\1a"),
        (r"^(.*)ę\b", r"\1e"),
    ),
)

RUSSIAN = PassingTable(
    hints="желательно|лучше без|по возможности|стараюсь|"
    "предпо|больше |нравится|нравятся|хотелось|хочется|не |терпеть|ненавижу|люблю|фанат|"
    "поклонник|поклонница|любитель|сторонник|обычно|как правило|чаще|в основном|всегда|"
    "никогда|избега|любим|пожалуйста|без |никаких|простым|человеческим",
    rules=r"""
states: (?:я )?(?P<a>(?:обычно |всегда |больше )?)предпочитаю (?!(?:об этом )?не (?:говорить|думать)|об этом)
     => {a}предпочитает
states: (?:я )?(?:бы )?предпоч[её]л(?P<w>а?)(?: бы)? (?!(?:об этом )?не (?:говорить|думать)|об этом) =>
     предпочёл{w} бы
states: (?:мне )(?P<w>(?:гораздо |намного )?больше (?:нравится|нравятся)|больше по душе) => {w}
states: мне (?P<w>(?:совсем |очень |вообще |особо )?не (?:нравится|нравятся)|нравится),? (?!как|что|это|твой
    |когда идёт) => {w}
states: (?:мне )?(?P<w>хотелось бы|хочется) (?=[^,;]*\b(?:без|только)\b) => {w}
states: (?:я )?(?P<a>(?:очень |совсем )?)не (?P<v>люблю|перевариваю|выношу|терплю) (?!это) => {a}не {v}
states: (?:я )?терпеть не могу => терпеть не может
states: (?:я )?ненавижу (?!тебя|себя) => ненавидит
states: (?:я )?люблю,? (?=когда (?!идёт)|[^,;]* больше,? чем) => любит
states: (?:я )?(?P<w>не (?:большой |большая )?(?:фанат|фанатка|поклонник|поклонница|любитель|сторонник)) =>
     {w}
states: (?:я )?(?P<w>(?:большой|большая) (?:фанат|фанатка|поклонник|поклонница|любитель|сторонник)) => {w}
states: (?P<a>обычно|как правило|чаще всего|в основном|всегда) (?:я )?(?P<v>использую|беру|выбираю|работаю
    |езжу|ем|пью|покупаю|пишу) => {a} {v}
states: я (?P<a>обычно|как правило|чаще всего|в основном|всегда|никогда не) (?P<v>использую|беру|выбираю
    |работаю|езжу|ем|пью|покупаю|пишу) => {a} {v}
inside: \b(?P<w>желательно без|лучше без|по возможности без) => {w}
states: (?:я )?(?P<w>стараюсь) (?=избегать|не ) => старается
states: (?:я )?избегаю => избегает
states: (?:я )?не хочу (?=(?:никаких|зависимостей|фреймворков|анимаци[ий]|рекламы)\b) => не хочет
states: (?:мой|моя|мо[её]|мои) (?P<f>любим\w+ [\w-]+ ?(?:—|-|это)) => {f}
asks: (?P<w>без|никаких) (?!этого|этой|проблем|паники)(?=[^,.;:!?]{2,50},? пожалуйста\b) => {w}
asks: пожалуйста,? (?P<w>без|никаких) => {w}
asks: избегай(?:те)? (?!этого) => избегай
inside: без (?P<w>лишн\w+|излишн\w+|ненужн\w+|особых) (?!проблем|усил) => без {w}
inside: (?P<w>прост(?:ым языком|ыми словами)|человеческим языком) => {w}
""",
    conjunctions="и|или|а|но|потому что|поэтому|так что|так как",
    leads=r"честно говоря|кстати|и|а|но|поэтому|вообще|спасибо|лично|в общем|пожалуйста",
    reasons="потому что|так как|поскольку|поэтому|но|хотя|чтобы|так что|пожалуйста|спасибо",
    starters=r"я|ты|он|она|мы|они|вы|это|можешь|поможешь|посмотришь|как|что|где|кто|почему|какой|какое|какая"
    r"|сколько|есть|существует|поэтому|так|мне|мой|моя"
    r"|спасибо|покажи|напиши|придётся",
    negations="не|без|только|никогда|чем|а не",
    guards=r"\b(?:говори[тл]а?|сказал|сказала|писала?|раньше|прежде|переведи|спросил)\b|\bесли$",
    unclear=r"(?:что|это|этот|эта|эту|его|её|их|перв\w+|втор\w+|треть\w+|последн\w+|так|об этом|тебя|вас"
    r"|не (?:говорить|думать))\b",
    once=r"\b(?:сегодня|завтра|сейчас|на этой неделе|в этот раз|пока|во? (?:понедельник|вторник|среду"
    r"|четверг|пятницу|субботу|воскресенье))\b",
    third_person=(
        (r"^люблю", "любит"),
        (r"^терплю", "терпит"),
        (r"^выношу", "выносит"),
        (r"^езжу", "ездит"),
        (r"^ем\b", "ест"),
        (r"^пью", "пьёт"),
        (r"^беру", "берёт"),
        (r"^пишу", "пишет"),
        (r"^(\w+)ю\b", r"\1ет"),
    ),
)
