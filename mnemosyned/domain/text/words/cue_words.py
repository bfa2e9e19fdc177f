"""Cue words: they mark a sentence as a ruling, a value or a mere answer."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    lines = (line.split() for line in text.split(","))
    return frozenset((first, second) for first, second in lines)


RULING = 2.0
EVENT = 1.3
ACKNOWLEDGEMENT = 0.6
ECHO = 0.85

_RULINGS = _words(
    """
    decide decided decision decisions agreed chose chosen settled concluded approved rejected
    must mustn't required requires prefer prefers preferred preference
    preferences allergic policy rule instruction instructions convention deadline todo owns password
    entschieden beschlossen entscheidung muss müssen bevorzugt allergisch regel frist spätestens
    vereinbart ursache niemals passwort kennwort
    decidimos decidido decidió decisión acordado acordamos debe deben prefiere alérgico alérgica
    plazo contraseña nunca siempre
    décidé décision doit doivent préfère allergique délai toujours jamais
    アレルギー パスワード ルール
    """
)
"""Words of a ruling: a decision, an instruction, a preference."""

_EVENTS = _words(
    """
    choose picked accepted switched replaced resolved confirmed don't favorite favourite due plan
    plans planning planned schedule scheduled appointment meeting booked
    error failed fails failure fix fixed cause caused because bug broke broken crash crashed
    warning timeout exception root expires
    moved bought started joined adopted married born graduated hired launched released deployed
    merged shipped signed won received named called lives works remember note key token
    gebucht bestellt termin fehler behoben gekauft bezahlt
    reservado reservada pedido cita fallo causa comprado pagado
    réservé commandé rendez-vous erreur panne cause payé
    """
)
"""Words of an event: a plan, a failure, its cause, a change."""

ORDERS = frozenset(
    ("never", "always", "don't", "don’t", "do not", "avoid", "ensure", "no more")
)
"""Words of a ruling only at the start of a clause; "it never ran" is none."""

RULING_PAIRS = _pairs(
    "root cause,not before,no later,at most,i want,we take,we'll take,we use,for good,"
    "no earlier,not until,only if,please never,please always,"
    "nicht vor,ab sofort,bis spätestens,wir nehmen,ich möchte,"
    "no antes,más tardar,a partir,quiero que,pas avant,plus tard"
)
"""Pairs of adjacent words of a ruling."""

HAN_RULINGS = "決定|决定|必ず|必须|禁止|締切|締め切り|期限|截止|原因|暗証番号|予約番号|密码|过敏|決ま|決め"
"""Parts of words of a ruling in Chinese and Japanese."""

CUES = dict.fromkeys(_EVENTS, EVENT) | dict.fromkeys(_RULINGS, RULING)

ANSWERS = _words(
    """
    ok okay noted understood great thanks thank perfect good yes yeah yep no sure sorry fine cool
    nice done right exactly indeed wow haha hello hi hey welcome
    danke gut ja nein genau hallo super klar gerne
    gracias vale sí bueno perfecto hola claro
    merci oui non bonjour bien
    """
)
"""First words of a mere answer."""

REFERENCES = _words(
    """
    he she it they this that these those his her their
    er sie es das dies él ella eso esto il elle ils elles cela
    """
)
"""First words that refer to another sentence for its subject."""

LABELS = _words(
    """
    code codes password passphrase pin puk key token secret
    reservation booking confirmation order invoice receipt quote ticket contract policy
    account iban bic customer member membership licence license passport serial tracking reference
    ref phone tel telephone mobile extension room gate seat flight train platform locker plate
    version release build port host network ssid username login model part batch lot case
    total price rent fee cost deposit budget limit deadline
    rechnung bestellung buchung reservierung angebot vertrag konto zimmer gleis sitz flug tür
    passwort kennwort frist termin betrag miete kaution schlüssel zug
    reserva pedido factura clave contraseña código habitación puerta asiento vuelo cuenta
    presupuesto plazo importe precio alquiler teléfono billete
    réservation commande facture chambre siège compte devis loyer
    """
)
"""Labels of the exact value after them."""

LABEL_ENDINGS = (
    *("nummer", "nummern", "passwort", "kennwort", "frist", "-code", "-nr", "-pin"),
    *("番号", "密码", "号码", "コード", "パスワード", "暗号", "单号", "口令"),
)

SECRETS = _words(
    "code password passphrase pin passwort kennwort clave contraseña network ssid username login"
)
"""Labels whose value may be an ordinary word."""

CONNECTORS = _words(
    """
    is was number no nr is: under as the = ist lautet nummer es número núm est numéro
    """
)
"""Words between a label and its value."""

COPULAS = _words("is was = ist lautet es est")
"""Words before a value that let its label be farther away."""

TITLES = _words(
    "mr mrs ms dr prof herr frau señor señora sr sra don doña monsieur madame mme st sankt saint"
)

CURRENCIES = _words(
    """
    eur usd gbp chf jpy cny sek nok dkk pln czk huf aud cad euro euros dollar dollars pound pounds
    franken francs yen cents € $ £ ¥
    """
)

UNITS = CURRENCIES | _words(
    """
    km m cm mm mi ft kg g mg l ml cl dl ms s sec min mins h hr hrs hours minutes seconds days
    weeks months years kb mb gb tb kib mib gib kbit mbit gbit bytes hz khz mhz ghz kw kwh mwh
    mah px dpi percent °c °f % am pm uhr tage stunden minuten wochen monate jahre prozent días
    horas minutos semanas meses años jours heures
    """
)

CALENDAR = _words(
    """
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag
    lunes martes miércoles jueves viernes sábado domingo
    lundi mardi mercredi jeudi vendredi samedi dimanche
    January February March April May June July August September October November December
    Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
    Januar Jänner Februar März Mai Juni Juli Oktober Dezember
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    """
)
"""Months and days as they are capitalized; in lower case, "may" and "march" are other words."""

FOREIGN_COMMON = _words(
    """
    der das des dem den ein eine einen einem einer eines und oder aber nicht noch nur auch schon
    ist sind wird werden wurde wurden sein haben habe wir ihr ihre ihren sie er es ich mich mir dich
    dir uns euch für mit von vom zum zur bei nach aus auf über unter vor durch gegen ohne um im am
    ab bis seit wegen dass wenn weil als wie wo wer denn doch mal bitte kein keine keinen dieser
    diese dieses alle mehr sehr jetzt heute morgen gestern liebe lieber grüße kann können soll
    sollen muss müssen möchte hatte waren wäre gibt geht etwas wieder immer schön
    el la los las un una unos unas y o pero no ya muy más menos es son está están ser estar fue era
    de del al en con sin por para según entre hasta desde sobre que qué quien cuando donde como
    porque si se lo le les su sus mi mis tu tus nos nuestro nuestra este esta estos estas ese esa
    hay tiene tienen hoy mañana ayer también solo todo todos toda todas
    le les une et ou mais ne pas plus très est sont être avoir du au aux dans avec sans pour par sur
    sous entre depuis que qui quand où comment parce ce cette ces il elle nous vous ils elles je on
    son sa ses mon ma mes notre votre leur aussi tout tous toute toutes aujourd'hui demain hier
    two three four five six seven eight nine ten half twice once
    """
) - _words(
    "war hat die man son sin con mal y o on plus pour sobre dieses sale tu ma mon un de"
)
"""Stop words of other languages, and number words, without those with a meaning in English."""
