"""Preferences said in passing in German, Dutch and Swedish."""

from __future__ import annotations

from mnemosyned.domain.learnings.passing.table import PassingTable

GERMAN = PassingTable(
    hints="ich finde|ich versuche|ich bemühe|ich verzichte|bitte ohne|bitte nur|bitte möglichst"
    "|am besten ohne|möglichst|vorzugsweise|"
    "bevorzug|mag ich|ich ziehe|vorzug|lieber|am liebsten|gern|normalerweise|meist|"
    "üblicherweise|gewöhnlich|generell|grundsätzlich|immer|in der regel| nie|ich vermeide|"
    "ich meide|ich verabscheue|fan vo|freund vo|freundin vo|anhänger vo|mag es|hasse|"
    "liebe es|kann es nicht|ich mag|ich kann|kein|ich will|ich möchte|ich brauche|wert auf|"
    "ich halte|ich stehe|mir gef|liebling|standard|halt|ohne |in einfach|in verständlich|"
    "gut deutsch|wie ich es|wie immer|wie gewohnt|eigentlich|ehrlich gesagt|persönlich|"
    "prinzipiell|nichts mit",
    parts=r"""
de_no: (?!sorge|problem|ahnung|zeit|eile|angst|frage|lust|stress|chance|rolle|ursache|hektik|\w+ haben)
de_adv: (?:normalerweise|meistens|meist|üblicherweise|gewöhnlich|generell|grundsätzlich|immer|eigentlich
    |ehrlich gesagt|persönlich|in der regel|prinzipiell)
""",
    rules=r"""
states: (?:ich )?(?:<de_adv> )?bevorzuge (?!ich\b) => bevorzugt
states: ich (?P<v>ziehe) (?=[^,;]* vor\b) => zieht
states: ich (?P<a>(?:<de_adv> )?)gebe (?=[^,;]*den vorzug) => gibt
states: ich würde (?P<w>(?:\w+ )?(?:lieber|am liebsten)) (?!nicht\b|darüber) => würde {w}
states: ich hätte (?P<w>(?:es )?lieber|am liebsten) => hätte {w}
states: ich hätte gern(?:e)? (?=[^,;]*(?:ohne|statt|in|als)\b (?!tag)) => hätte gern
states: (?:ich )?(?P<v>(?!würde|wäre|habe|hätte|möchte|sollte|könnte|komme|rede|spreche|bleibe)\w+e|mag|esse)
     (?P<a>(?:<de_adv> )?)
    (?P<w>lieber|am liebsten|ungern|nur ungern|nicht so gern|nicht gern) (?!nicht) => {v} {a}{w}
states: am liebsten (?P<v>(?!wäre|würde|hätte|habe)\w+e|mag|esse) ich => {v} am liebsten
states: lieber (?P<v>\w+e|mag) ich (?=[^;]* als ) => {v} lieber
states: (?P<a><de_adv>) (?P<v>nehme|nutze|benutze|verwende|arbeite|schreibe|fahre|reise|esse|trinke|koche
    |baue|setze
    |greife|wähle|kaufe|buche|vermeide) ich => {v} {a}
states: ich (?P<v>nehme|nutze|benutze|verwende|arbeite|schreibe|fahre|reise|esse|trinke|koche|baue|setze
    |greife
    |wähle|kaufe|buche|vermeide) (?P<a>normalerweise|meistens|meist|üblicherweise|gewöhnlich|generell
    |grundsätzlich|immer|in der regel|nie|niemals) => {v} {a}
states: (?P<q>(?:beim|im|zum|für|bei|auf) (?:\w+ ){1,3}?)(?P<v>nehme|nutze|benutze|verwende|arbeite|schreibe
    |fahre
    |esse|trinke|wähle|kaufe) ich (?P<a>normalerweise|meistens|meist|üblicherweise|grundsätzlich|immer|lieber
    |am liebsten) => {v} {q}{a}
states: ich (?P<v>vermeide|meide|verabscheue) => {v}
states: ich finde es (?P<q>(?:\w+ )?\w+),? (?=wenn\b|dass\b) => findet es {q},
states: ich finde (?=[^,;]* \w+er als\b) => findet
states: ich (?:versuche|bemühe mich), (?=[^,;]* zu vermeiden) => versucht,
states: ich verzichte (?P<q>gerne?|lieber|möglichst) auf => verzichtet {q} auf
states: lieber (?!nicht\b|ich\b|\w+e ich)(?=[^,;]* (?:als|statt) ) => lieber
states: (?P<x>[\w+# -]{3,30}) (?:ist|sind) mir (?P<q>lieber(?: als [^,;.:!?]+)?|am liebsten)\b => {x} {q}
states: ich bin (?P<f>(?:wirklich |echt |eher )?(?:kein|ein)(?:e)? (?:großer |großes |echter |absoluter
     )?(?:fan
    |freund|freundin|anhänger) (?:von|vom)) => ist {f}
states: ich (?P<w>mag es(?: gar| überhaupt)?(?: nicht)?|hasse es|liebe es|kann es nicht (?:leiden
    |ausstehen)),?
    (?=wenn|dass) => {w},
states: ich mag (?=(?:\w+ )?(?:keine[nr]?)\b) => mag
states: ich mag (?=[^;]* (?:nicht|gar nicht|lieber als|mehr als)\b) => mag
states: ich (?:hasse|verabscheue) => hasst
states: ich (?P<f>kann) (?=[^,;]* nicht (?:leiden|ausstehen|ab)\b) => kann
states: ich (?:will|möchte|brauche) (?=keine[nr]?\b|nichts mit) => will
states: ich (?:will|möchte|hätte gern) (?=(?:die|den|das|alle|meine) [\w -]+ (?:kurz|knapp|einfach|sortiert
    |auf deutsch|auf
    englisch|in \w+|ohne [\w -]+|groß|klein)\b) => will
states: ich lege (?:großen |viel )?wert auf => legt wert auf
states: ich halte (?=(?:wenig|nicht viel|nichts|nicht so viel) von) => hält
states: ich stehe (?=(?:mehr |eher |total )?auf\b) => steht
states: mir (?:ist|sind|wäre|wären) (?P<x>[^,;.:!?]+ (?:lieber(?: als [^,;.:!?]+)?|am liebsten)) => {x}
states: (?P<x>(?!das|dich|ihn|sie)[\w-]+(?: [\w-]+){0,3}?) mag ich (?P<w>nicht (?:besonders|so|sonderlich)
    |gar nicht|nicht
    |überhaupt nicht)\b => mag {x} {w}
states: mir gefällt es (?P<w>nicht |besser |),? (?=wenn) => gefällt es {w},
states: mir gefallen (?=[^,;]* (?:besser|nicht)\b) => gefallen
states: meine? (?P<f>(?:lieblings\w+|bevorzugte[rs]? \w+|standard\w+) (?:ist|sind)) => {f}
asks: bitte (?P<w>keine[nr]?) <de_no> => {w}
asks: bitte (?P<w>ohne|nur|möglichst) (?!mich|ihn|sie\b|kurz warten)(?=[a-zäöüß][\w-]+) => {w}
inside: \b(?P<w>am besten ohne|möglichst ohne|vorzugsweise) => {w}
asks: (?:\w+ \w+ \w+ )?bitte (?P<w>keine[nr]?) <de_no> => {w}
asks: (?P<w>keine[nr]?) <de_no>(?=[^,.;:!?]{2,50},? bitte\b) => {w}
asks: (?:für \w+ \w+ )(?:bitte )?(?P<w>keine[nr]?) <de_no>(?=[^.;:!?]*\bbitte\b|\w+) => {w}
asks: halte? (?=[^,;]*\b(?:kurz|knapp|einfach|schlicht|klein|sachlich|(?:unter|bei) (?:höchstens )?\d+ ?(?:kb
    |mb
    |wörtern|zeilen|seiten|zeichen|sätzen))\b) => halte
inside: ohne (?P<w>(?:(?:zu |allzu |so )?viele?n? |unnötige[ns]? |große[ns]? |jeden |irgendwelche |lange
     ))(?=(?:\w+ )?
    (?:floskeln|worte|wörter|fachbegriffe|fachchinesisch|drumherum|schnickschnack|schnörkel|geschwafel|gerede
    |fremdwörter|text|theorie|erklärungen?|abhängigkeiten|frameworks?|animationen|emojis|kommentare
    |einleitung(?:en)?
    |höflichkeitsfloskeln|anglizismen|marketing|pathos)\b) => ohne {w}
inside: (?:erkläre?|schreibe?|beschreibe?|sage?|antworte|formuliere?|bitte)\b[^.;:!?]* (?P<w>in (?:einfachen
    worten|einfacher sprache|verständlichem deutsch)|auf gut deutsch|ohne fach\w+) => {w}
inside: (?:mit|in|als) (?P<x>(?:(?!\b(?:mit|in)\b)[^,.;:!?]){3,60}),? (?:so )?wie (?:ich es (?:mag|bevorzuge
    |gern habe)
    |immer|gewohnt) => bevorzugt {x}
""",
    conjunctions="und|oder|aber|denn|weil|also|da|sondern",
    leads=r"bitte|ehrlich gesagt|übrigens|also|und|aber|generell|grundsätzlich|im allgemeinen|persönlich"
    r"|danke|ach ja|außerdem|naja|ja|nein|ich glaube|wie gesagt",
    reasons=r"weil|da (?:ich|es|sie|wir)\b|denn|obwohl|damit|sodass|so dass|also (?:wie|was|kann|könn|bitte"
    r"|nimm|leg|warum|kurz|mach|bau|dann|womit)\w*|aber|während|bitte|danke",
    starters=r"ich|du|wir|ihr|sie|er|es|das|die\b(?= lenk)|kannst|könntest|würdest|wie|was|wo|wer|warum|wann"
    r"|welche[rsnm]?"
    r"|gibt|hast|ist|sind|also|bitte|so|schreib|zeig|mach|schau|danke|mein|meine|weshalb|wozu|soll|sollte",
    negations="nicht|kein|keine|nie|ohne|nur",
    guards=r"\b(?:sagte?|meinte?|schrieb|stand|früher|damals|falls|fragte|behauptet|übersetze?|angenommen)\b"
    r"|\bwenn$",
    unclear=r"(?:es|das|dies\w*|ihn|ihr|euch|dich|dir|sie|die (?:erste|zweite|dritte|letzte|andere|neue|alte"
    r"|beiden)\w*"
    r"|den (?:ersten|zweiten|anderen)|das (?:erste|zweite|andere)|beides?|nicht darüber"
    r"|nicht (?:mehr )?(?:reden"
    r"|sagen)|so|auch|zu(?:m|r)? (?:dir|hause))\b(?!,? (?:wenn|dass))",
    once=r"\b(?:heute|(?<!am )(?<!jeden )morgen|diese (?:woche|mal)|diesmal|dieses mal|gerade|jetzt"
    r"|nächste[rsn]? \w+|am (?:mon|diens"
    r"|donners|frei|sams|sonn)tag|am mittwoch|heuer|vorerst|momentan|zweite variante|gestern)\b",
    third_person=(
        (r"^nehme", "nimmt"),
        (r"^lese", "liest"),
        (r"^esse", "isst"),
        (r"^gebe", "gibt"),
        (r"^sehe", "sieht"),
        (r"^(f|schl)(?:a)(hr|f)e", r"\1ä\2t"),
        (r"^trage", "trägt"),
        (r"^laufe", "läuft"),
        (r"^halte", "hält"),
        (r"^spreche", "spricht"),
        (r"^treffe", "trifft"),
        (r"^habe", "hat"),
        (r"^(\w+[dt])e\b", r"\1et"),
        (r"^(\w+)e\b", r"\1t"),
    ),
)

DUTCH = PassingTable(
    hints="liefst zonder|"
    "bij voorkeur|"
    "voorkeur|prefereer|liever|het liefst|niet graag|meestal|normaal|doorgaans|altijd|"
    "gewoonlijk|nooit|mijd|fan van|liefhebber|voorstander|haat|vind het|kan er niet|"
    "hou ervan|hekel aan|ik hou|ik wil|favoriet|geliefde|vaste|lieveling|standaard|geen |"
    "houd|hou het|hou de|hou alles|hou je|zonder |in gewo|in begrijp|in simpel|in eenvoudig|"
    "in duidelijke",
    rules=r"""
states: ik (?:\w+ )?geef (?:meestal |altijd |sterk )?de voorkeur aan => geeft de voorkeur aan
states: ik prefereer => prefereert
states: ik heb (?P<w>(?:veel )?liever|het liefst) (?!niet over) => heeft {w}
states: ik (?P<v>(?!kom|praat|zeg|blijf|zou|wil)\w+) (?P<w>(?:meestal |veel )?(?:liever|het liefst|niet
     graag)) (?!niet) => {v} {w}
states: (?:het liefst|liever) (?P<v>\w+) ik => {v} het liefst
states: ik (?:wil|zou) (?P<w>(?:graag )?liever|het liefst) (?!niet (?:over|zeggen)|weten) => wil {w}
states: (?P<a>meestal|normaal|doorgaans|altijd|gewoonlijk|normaal gesproken) (?P<v>gebruik|neem|werk|kies
    |schrijf|reis|eet|drink
    |koop|ga) ik => {v} {a}
states: ik (?P<v>gebruik|neem|werk|kies|schrijf|reis|eet|drink|koop|ga) (?P<a>meestal|normaal|doorgaans
    |altijd|gewoonlijk
    |nooit) => {v} {a}
states: ik (?P<v>vermijd|mijd) => {v}
states: ik ben (?P<f>(?:echt |niet zo'n )?(?:geen |een )?(?:grote? |echte )?(?:fan|liefhebber|voorstander)
     van) => is {f}
states: ik (?P<w>haat het|vind het (?:fijn|prettig|vervelend|irritant|niet fijn)|kan er niet tegen|hou
     ervan),? (?=als|wanneer
    |dat) => {w}
states: ik (?:haat|heb een hekel aan) => haat
states: ik houd? (?P<w>(?:echt |helemaal |absoluut |eigenlijk )?(?:niet|meer) (?:zo )?van) (?!je|jou) =>
     houdt {w}
states: liever geen (?!idee) => liever geen
inside: \b(?P<w>bij voorkeur|het liefst zonder|liefst zonder) => {w}
states: ik wil (?=geen\b) => wil
states: mijn (?P<f>(?:favoriete|geliefde|vaste|voorkeurs)\w* [\w-]+ (?:is|zijn)) => {f}
states: mijn (?P<f>(?:lievelings|standaard)\w+ (?:is|zijn)) => {f}
asks: (?:graag|alsjeblieft|a\.?u\.?b\.?|liefst) geen (?!probleem|idee|haast|zorgen) => geen
asks: geen (?!probleem|idee|haast|zorgen)(?=[^,.;:!?]{2,50},? (?:graag|alsjeblieft|a\.?u\.?b)\b) => geen
asks: (?P<q>houd|hou (?:het|de|alles|je)) (?=[^,;]*\b(?:kort|eenvoudig|simpel|klein|zakelijk|onder (?:de
     )?\d+ ?(?:kb|mb|woorden|regels|pagina))
    \b) => {q}
inside: zonder (?P<w>(?:al )?te veel|te veel|al die|onnodige|overbodige) => zonder {w}
inside: (?P<w>in (?:gewoon|begrijpelijk|simpel|eenvoudig) nederlands|in (?:eenvoudige|gewone|simpele
    |duidelijke) (?:taal|woorden)) => {w}
""",
    conjunctions="en|of|maar|want|omdat|dus",
    leads=r"eerlijk gezegd|trouwens|dus|en|maar|alsjeblieft|over het algemeen|persoonlijk|bedankt|overigens",
    reasons="omdat|want|aangezien|hoewel|maar|dus|zodat|graag|alsjeblieft|terwijl",
    starters=r"ik|je|jij|we|wij|ze|zij|hij|het|dat|die|kun|kan|zou|hoe|wat|waar|wie|waarom|welke|bestaat|is"
    r"|zijn|dus|bouw"
    r"|schrijf|maak|laat|mijn|wil|bedankt|graag",
    negations="niet|geen|nooit|zonder|alleen",
    guards=r"\b(?:zei|zegt|schreef|vroeger|stond|vroeg|vertaal|stel)\b|\bals$",
    unclear=r"(?:wat|het|dit|dat|deze|die|hem|haar|jou|de (?:eerste|tweede|derde|laatste|andere)|er|ze|zo|ook"
    r"|niet over)\b(?! als)",
    once=r"\b(?:vandaag|morgen|vanavond|deze (?:week|keer)|dit keer|nu|volgende \w+|op (?:maan|dins|woens"
    r"|donder|vrij|zater|zon)dag"
    r"|even)\b",
    third_person=(
        (r"^(eet|vermijd|mijd|zit)\b", r"\1"),
        (r"^(ga)\b", "gaat"),
        (r"^(hou)\b", "houdt"),
        (r"^heb\b", "heeft"),
        (r"^(\w+t)\b", r"\1"),
        (r"^(\w+)\b", r"\1t"),
    ),
)

SWEDISH = PassingTable(
    hints="gärna utan|"
    "föredra|hellre|helst|ogärna|brukar|normalt|oftast|vanligtvis|för det mesta|alltid|"
    "aldrig|undvik|fan av|vän av|anhängare|hatar|avskyr|ogillar|gillar|tål inte|älskar|"
    "inte om|less på|trött på|bättre än|mer än|favorit|inte ha|vill ha|inga |inget |ingen |"
    "håll|utan |på enkel|på vanlig|på begriplig|enkla ord",
    rules=r"""
states: (?:jag )?(?P<a>(?:alltid |normalt |oftast |klart )?)föredrar (?!du\b|ni\b|att inte (?:prata|säga)) =>
     {a}föredrar
states: jag skulle (?P<w>(?:hellre|helst)) (?!inte (?:prata|säga)) => skulle {w}
states: jag vill (?P<w>(?:hellre|helst|ha (?=(?:mina|alla|koden)\b)|inte ha)) => vill {w}
states: (?:jag )?(?P<v>(?!kommer|pratar|skulle|vill|stannar|går)\w+) (?P<w>hellre|helst|ogärna) (?!inte) =>
     {v} {w}
states: (?P<w>helst|hellre) (?P<v>(?!vill)\w+r) jag => {v} {w}
states: jag brukar (?=(?:använda|ta|välja|köra|skriva|resa|äta|dricka|köpa|jobba|gå|åka|undvika)\b) => brukar
states: (?P<a>normalt|oftast|vanligtvis|för det mesta) (?P<v>använder|tar|väljer|kör|skriver|reser|äter
    |dricker|jobbar) jag
    => {v} {a}
states: jag (?P<v>använder|tar|väljer|kör|skriver|reser|äter|dricker|jobbar|köper) (?P<a>normalt|oftast
    |vanligtvis|alltid
    |aldrig) => {v} {a}
states: jag undviker => undviker
states: jag är (?P<f>(?:inget|ingen|inte något|inte ett|ett|en) (?:stort |stor )?(?:fan|vän|anhängare) av) =>
     är {f}
states: jag (?P<w>hatar|avskyr|gillar|älskar|gillar inte|tål inte)(?: det)? (?=när|att folk) => {w}
states: jag (?P<w>hatar|avskyr|ogillar|tål inte|gillar (?:verkligen |egentligen )?inte|tycker (?:verkligen
     )?inte om|är less på|är trött på) => {w}
states: jag (?P<w>gillar|tycker) (?=[^,;]* (?:bättre|mer) än) => {w}
states: min(?:a)? (?P<f>favorit\w+(?: \w+)? är) => {f}
states: mitt (?P<f>favorit\w+(?: \w+)? är) => {f}
states: jag vill inte ha => vill inte ha
inside: \b(?P<w>helst utan|gärna utan|helst inga) => {w}
asks: (?:snälla,? |helst )(?P<w>inga|inget|ingen) (?!fara|problem|stress|brådska) => {w}
asks: (?P<w>inga|inget|ingen) (?!fara|problem|stress|brådska|aning)(?=[^,.;:!?]{2,50},? (?:tack|snälla)\b) =>
     {w}
asks: håll (?=[^,;]*\b(?:kort|korta|kortfattat|enkel|enkelt|enkla|litet|liten|under \d+ ?(?:kb|mb|ord|rader
    |sidor|tecken))\b) => håll
inside: utan (?P<w>(?:en massa|för många|för mycket|onödig[at]?|alltför många|massor av)) => utan {w}
inside: (?P<w>på (?:enkel|vanlig|begriplig) svenska|med enkla ord) => {w}
""",
    conjunctions="och|eller|men|för|eftersom|så",
    leads=r"ärligt talat|förresten|så|och|men|snälla|tack|i allmänhet|personligen|generellt",
    reasons="eftersom|därför att|för att|då jag|fast|även om|men|så|tack|snälla|medan",
    starters=r"jag|du|vi|ni|de|han|hon|det|den|kan|kunde|skulle|hur|vad|var|vem|varför|vilken|vilket|vilka"
    r"|finns|är|så|skriv|gör"
    r"|visa|min|mitt|tack|snälla",
    negations="inte|inga|inget|aldrig|utan|bara",
    guards=r"\b(?:sa|säger|skrev|förr|tidigare|stod|frågade|översätt|anta)\b|\bom$",
    unclear=r"(?:det|den|de|detta|denna|dem|honom|henne|dig|den (?:första|andra|tredje|sista)|så|också"
    r"|inte om)\b(?! när)",
    once=r"\b(?:idag|i dag|imorgon|i morgon|ikväll|i kväll|den här (?:veckan|gången)|just nu|nu|nästa \w+"
    r"|på (?:mån|tis|ons|tors|fre|lör"
    r"|sön)dag)\b",
)
