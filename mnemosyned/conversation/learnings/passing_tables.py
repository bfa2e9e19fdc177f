"""Tables of preferences said in passing, one per language: English, German, Dutch, Swedish.

A rule is a kind, a pattern and the form it is held in: `states: i prefer => Prefers`. The pattern
stands at the start of a clause, in lower case; the form is followed by the words up to the
clause's end. `asks` is a constraint, `inside` one that may stand anywhere. In a form, `{v}` is
the pattern's verb in the third person, any other name a group of the match. Indented lines
continue a line; `<name>` is replaced by the part of that name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PassingTable:
    """The words of one language by which a preference is told from what resembles it."""

    hints: str
    """Words of which a text needs one for a rule to match, as a test proves."""
    rules: str
    parts: str = ""
    """Parts that several rules share, by name."""
    conjunctions: str
    """Words that join two clauses, or the items of a list."""
    leads: str
    """Words before a statement: "honestly"."""
    reasons: str
    """Words that end the clause: "because"."""
    starters: str
    """Words that begin another clause after a comma or a conjunction: "I", "can", "what"."""
    negations: str
    """Words that go on after a comma: "not"."""
    guards: str
    """Words before a statement that make it another's, a past or an assumed one."""
    unclear: str
    """Beginnings of what is preferred that do not stand alone: "the second", "this one"."""
    once: str
    """Words of a single occasion: "today", "this week"."""
    third_person: tuple[tuple[str, str], ...] = ()
    """Endings of the first person, and those of the third; the first that matches is replaced."""
    own_words: tuple[tuple[str, str], ...] = ()
    """Words of the speaker, and those of a third person: "my", "their"."""


ENGLISH = PassingTable(
    hints="d love to|d want to|would love to|would want to|"
    "don't want it|value|prioriti|rank|i put|i try to|to avoid|i stay|i steer|i keep|i only"
    "|nothing too|not too|preferably|ideally|"
    "prefer|rather |fan of|friend of|lover of|believer |i'm more|i am more|fed up|sick of|"
    "tired of|wary of|partial to|happiest with|not big on|not keen on|not into|hate |loathe|"
    "detest|despise|dislike|like it |love it |appreciate it |enjoy it |can't stand|"
    "cannot stand|i don't |i do not |t want |not want |i never |i usually |i normally |"
    "i generally |i always |i typically |i mostly |i mainly |i almost |i nearly |i tend |"
    "favor|favour|avoid|shun|lean toward|lean more toward|gravitate |i like|i love|i want|"
    "i need |i take |i really|i personally|ly want|enjoy |d like|opt for|stick to|stick with|"
    "go for|go with|i choose|i pick|i use|i reach|i also|would like|always|in general|"
    "every time|from now on|from here on|, not |, never |in every|in all|in each|in any|"
    "only please|only, please|learn best|work best|think best|focus best|sleep best|"
    "i wish you|what i |default|go-to|no |keep |without |in plain|in simple|in easy|"
    "in everyday|in layman",
    parts=r"""
en_adv: (?:really|much|generally|usually|definitely|personally|strongly|always|also|still|honestly
    |actually|normally|mostly|just|far|typically|mainly|quite|very much|absolutely|clearly)
en_how: (?:really|generally|usually|personally|also|always|normally|typically)
en_use: (?:go|use|work|pick|choose|reach|stick|write|take|fly|travel|order|drink|eat|cook|read|start
    |keep|put|run|deploy|build|test|buy|wear|sleep|stay|book|leave|avoid|prefer|develop|commit)
en_manner: (?:language|jargon|fluff|words|wording|buzzwords?|filler|formality|formalities|boilerplate
    |comments?|explanations?|dependenc(?:y|ies)|librar(?:y|ies)|frameworks?|plugins?|animations?|emojis?
    |adjectives|adverbs|slang|prose|detail|details|theory|marketing|magic|abstractions?|ceremony
    |small talk|pleasantries|repetition|decoration|styling|colou?rs|ads|tracking|javascript|text
    |exclamation marks|bullet points|footnotes|hype|clich[eé]s|drama|sugar|technical terms)
en_form: (?:short|shorter|brief|concise|terse|simple|simpler|small|lean|light|lightweight|minimal|plain
    |formal|informal|casual|friendly|neutral|professional|clean|flat|consistent|readable|explicit|pure
    |tight|tidy|to the point|compact|dry|black|strong|weak|hot|cold|spicy|mild|rare|dark|quiet|private
    |local|offline|sorted|alphabetical|typed|in (?:english|german|french|lower ?case|upper ?case)
    |to a minimum|to the minimum|(?:under|below|within|at most|down to|to|no (?:longer|larger|more
    |bigger) than) (?:\d[\d.,]*|one|two|three|four|five|six|ten|a (?:page|hundred))(?: ?-?(?:kb|kib|mb|mib
    |gb|ms|words?|lines?|characters|chars|columns|pages?|sentences?|paragraphs?|tokens|points?|bullets?
    |items|slides|dependencies|files))\b)
en_things: (?:code|answers?|repl(?:y|ies)|responses?|texts?|functions?|classes|methods|names?|comments
    |commits?|commit messages|tests?|examples?|sentences?|paragraphs?|summar(?:y|ies)|emails?|e-mails?
    |mails?|letters?|reports?|slides?|tables?|charts?|dates|times|prices|numbers|units|lists?
    |explanations?|queries|keywords|variables|files|modules|layout|tone|style|wording|docs
    |documentation|readme|logs|errors|error messages|headings|titles|design|pages?)
en_no: (?!problem|worr|rush|hurry|need|idea|more (?:questions|time)|pressure|offen[cs]e|thank|doubt
    |way\b|clue|one\b|matter|luck|such|longer|wonder|sweat|news|change|difference|reason|point|big deal
    |kidding|chance|exceptions? (?:is|are|was)|\w+ (?:is|are|was|were|has|have|can|found)\b)
""",
    rules=r"""
states: i (?P<a>(?:<en_adv> )*)prefer (?!not to (?:say|talk|answer|think|discuss|get|go into)) => {a}prefers
states: i(?:'d| would) (?P<a>(?:<en_adv> )*)prefer (?:it (?=if|when|that))?(?!not to (?:say|talk
    |answer|think|discuss|get|go into)|you\b|if you\b|that you\b) => would {a}prefer
states: i(?:'d| would) (?:<en_adv> )*rather (?:have |see )?(?=[^,;]*\b(?:than|over|instead of)\b
    |(?:not )?(?:use|keep|avoid|write|work|rely|depend|install|add|stick|run|build|pull)\b
    |(?:have|see) (?!you|it|that|them)) => would rather
states: (?:i'm|i am|i've never been) (?P<a>(?:<en_adv> )?)(?P<n>not |no |never )(?:<en_adv> )?(?P<f>(?:a |an
     )?
    (?:big |huge |great |particular )?(?:fan|friend|lover) of) => is {a}{n}{f}
states: (?P<n>not (?:really )?a (?:big |huge |great )?fan of) => {n}
states: (?:i'm|i am) (?P<f>(?:<en_adv> )?an? (?:big |huge |great )?(?:(?:fan|friend|lover)
     of|believer in)) (?!yours?\b|you\b) => is {f}
states: (?:i'm|i am) (?P<f>more of an?|more an?) (?=[\w -]+ (?:person|guy|girl|type|fan|user)) => is {f}
states: (?:i'm|i am) (?P<f>fed up with|sick of|wary of|partial to|happiest with|not big on
    |not keen on|not into) => is {f}
states: i (?:<en_adv> )*(?P<v>hate|loathe|detest|despise|dislike|love|like|appreciate|enjoy) it
     (?P<w>(?:better
    |more |most )?)(?=when\b|if\b) => {v} it {w}
states: i (?:<en_adv> )*(?P<v>hate|loathe|detest|despise|dislike) (?!to\b|not\b|myself|mondays) => {v}
states: i (?:<en_adv> )*can(?:'t|not) stand (?!up|here|still|on|it anymore|for) => can't stand
states: i (?:don't|do not) (?P<a>(?:really |particularly |much |actually )?)(?P<b>like|enjoy|care for|trust
    |eat|drink)(?P<w>(?: it (?=when|if))?) ?(?!to say|how (?:it|this|that)|the (?:look|sound|idea) of (?:this
    |that|it)) => doesn't {a}{b}{w}
states: i (?:also |really |still )?(?:don't|do not) (?:really |necessarily |particularly )?want (?P<u>(?:to
     (?:use|see|rely on|depend on|install
    |maintain|add|have) )?)(?!to\b|you\b|anything|anyone|people|much|trouble|a (?:fight|scene)|any (?:trouble
    |problems)) => doesn't want {u}
states: i (?:don't|do not) want (?P<q>it|this|the [\w-]+|my [\w-]+|anything) to (?=sound|look|feel|read|be
    |depend)\b => doesn't want {q} to
states: i(?:'d| would) (?:like|love|want) to (?=(?:use|work|write|keep|build|have|see) [^;]*\b(?:rather than
    |instead of|over|to a minimum)\b|avoid\b|stick (?:to|with)\b) => would like to
states: i (?:don't|do not) (?P<b>use|buy|wear) (?=[^,;]+ (?:for|in|on|at)\b) => doesn't {b}
states: i (?P<v>value|prioriti[sz]e|rank|put) (?=[^,;]+ (?:over|above|before)\b) => {v}
states: i (?P<v>try|like) to (?P<q>avoid|stay away from|keep) => {v} to {q}
states: i (?P<v>stay|steer|keep) (?P<q>away|clear) (?:from|of) => {v} {q} of
states: i only (?P<v>use|eat|drink|buy|read|wear|write) => only {v}
states: i never (?P<v>use|eat|drink|buy|read|wear|install|fly|touch) => never {v}
states: i (?P<a>usually|normally|generally|always|typically|mostly|mainly|almost always|nearly always)
     (?P<v><en_use>)
     (?!this|that|it\b|the same|forget|to\b) => {a} {v}
states: i tend to (?P<u><en_use>|favou?r|like) => tends to {u}
states: i (?:<en_adv> )*(?P<v>favou?r|avoid|shun) => {v}
states: i (?:<en_adv> )*(?P<v>lean|gravitate) (?P<w>(?:more )?towards?) => {v} {w}
states: i (?:<en_how> )?(?P<v>go for|go with|opt for|stick to|stick with|choose|pick|take|use|reach for)
     (?=[^;]*(?:\b(?:over|instead of|rather than)\b|, not\b)) => {v}
states: i (?:<en_how> )?(?P<v>like|love|enjoy) (?=(?!it\b)[^,;]*\b(?:more than|better than|a lot better
    |way better|much better than|over)\b) => {v}
states: i (?:<en_how> )?(?P<v>like|want|need|take) (?=(?:my|our|your|all|all my|the|every|each|all the)
     (?:[\w-]+ ){1,3}
    <en_form>\b) => {v}
states: i (?P<v>want) (?=(?:your |the |my |all )?(?:<en_things>) (?:in|as|with|without|to be|sorted|formatted
    |written|kept)\b) => {v}
states: i (?:<en_how> )?(?P<v>like) (?!it\b|how|that|this|the|to|your?\b|when|what|where|him|her|them|
    being|having)(?=[\w -]*s\b (?:which|that|with|without|and no)\b|(?:subcommands|flags|diffs|[\w-]+ and
    [\w-]+ ){1,2}) => {v}
states: i(?:'d| would) like (?=(?:the |your |my |all )?<en_things> (?:(?:to be |kept )?<en_form>|\w+ed|in|as
    |without|with)\b) => would like
states: i (?:<en_how> )?(?P<v>like|love) (?=(?!your|this|these|those|that|the )(?:[\w-]+ ){0,2}[\w-]+s\b(?:,|
     and i\b)) => {v}
states: i (?P<v>learn|work|think|focus|sleep) best => {v} best
states: i wish (?P<w>you'd|you would) => wishes {w}
states: what i (?:<en_adv> )*(?:like|love|want|prefer|enjoy)(?: most| best)?(?: here| there)? is (?!that|how
    |the) => likes
states: what i (?:<en_adv> )*(?:can't stand|hate|dislike|don't like|loathe)(?: most)? is (?!that|how) =>
     dislikes
states: my (?P<f>(?:favou?rite|preferred|default|go-to)(?: (?!part|thing|memory
    |moment|scene|bit|season|character|episode|line|quote|time|pastime|one)[\w.+#-]+){1,4}? (?:is|are|has
     always
    been)) (?!that|how|not) => {f}
asks: (?P<q>nothing|not) too (?=\w+(?: or \w+)?(?:,|\.|$)) => {q} too
asks: please,? (?:absolutely |really )?no <en_no>(?!\w+ to\b) => no
asks: (?:and |but )?no (?=<en_no>[^,.;:!?]{2,60},? (?:please|pls)\b) => no
asks: no <en_no>(?=[\w -]{2,40}(?: whatsoever|,? ever| in (?:your|my) )\b) => no
asks: (?:please )?(?P<q>give|show|send|write|use|tell|answer|reply|put|start|end|format) (?=[^,.;:!?]{3,80}
     (?:always|in general
    |every time|from now on|from here on|by default)\b) => {q}
asks: (?:please )?(?P<q>give|show|send) me (?=[^,.;:!?]{3,60}, (?:not|never|no) ) => {q} me
asks: (?:please )?use (?=[^.;:!?]{3,60} in (?:every|all|each|any)\b) => use
asks: (?P<q>(?!\d|one|two|three)[\w+#.-]+(?: [\w+#.-]+){0,5} only,? please)\b => {q}
inside: \bplease [^.;:!?]*?, (?:and )?no <en_no> => no
asks: (?:please |let's |always )*keep (?=(?:it|them|things|everything|this|dependencies|<en_things>
    |(?:the|your|my|all|our|each|every) (?:[\w-]+ ){1,4}|[\w-]+ )(?: ?(?:as )?<en_form>)) => keep
asks: (?:please |let's )*(?:try to )?avoid (?!the\b|it\b|this\b|that\b|\w+ing (?:the|him|her|this)\b) => avoid
inside: (?:using|with|in|as|via|by) (?P<x>(?:(?!\b(?:using|with|in|as|via)\b)[^,.;:!?]){3,60}),? (?:just
     )?(?:like
    |as|the way) i (?:usually |always |normally )?(?:prefer|like)(?: (?:it|them|best|most))?(?! to)\b =>
     prefers {x}
inside: \b(?P<w>preferably|ideally),? (?=(?:without|with|in|using|no|not|something|written) ) => {w}
inside: without (?P<w>too (?:much|many)|all the|a lot of|unnecessary|excessive|overly|(?:any )?fancy)
    (?=[\w -]*\b<en_manner>\b) => without {w}
inside: (?:write|draft|explain|describe|tell|give|make|compose|prepare|put|phrase|word|answer)\b[^.;:!?]*
     without
     (?P<w>(?:any |too much |too many |all the |)(?=(?:[\w-]+ ){0,2}<en_manner>\b)) => without {w}
inside: (?:explain|tell|describe|write|answer|say|put|summari[sz]e|give|walk|please)\b[^.;:!?]* in
     (?P<w>plain|simple
    |easy|everyday|layman's) (?=english|words|language|terms|german|french) => in {w}
inside: in (?P<w>plain|simple|easy|everyday|layman's) (?=(?:english|words|language|terms)(?:
     only)?,? (?:please
    |pls)\b) => in {w}
""",
    conjunctions="and|or|but|so|also|plus|because|since|as|though|although|while|then|yet",
    leads=r"please|honestly|personally|actually|generally|also|note that|know that|and|but|so|well"
    r"|frankly|in general|as a rule|usually|mind you|by the way|btw|hmm?|oh|ha|ok(?:ay)?"
    r"|(?:for|in|on|at|with|as for|about) (?:[\w'-]+ ){0,3}[\w'-]+(?=,? (?:i|i'd|i'm|please|no|keep"
    r"|my|avoid)\b)"
    r"|(?:can|could|would|will) you|make sure to|try to|remember to|as always|as usual"
    r"|when(?:ever)? i (?:[\w'-]+ ){0,3}[\w'-]+(?=,? i\b)|thanks"
    r"|like i said|as you know|to be honest|tbh|fyi|one thing|just|because|since",
    reasons=r"because|since|as (?:i|it|they|we|that|this)\b|so that|so\b(?= (?:i|we|it|that|please|could|can"
    r"|would|how|what))|though|although|but|whereas|cause|cuz|unless|which (?:is|are|means|makes)|please|pls"
    r"|thanks|by the way|btw|anyway|as well|too\b(?! \w)|if that|when you (?:plan|do)\b|after (?:all)\b",
    starters=r"i|i'm|i'd|i've|i'll|we|we're|you|they|they're|it|it's|he|she|this|that|that's|there|can|could"
    r"|would|will|shall|should|do|does|did|is|are|has|have|what|what's|how|who|where|when|why|which|whose"
    r"|please|let's|so|thanks|ok|okay|anyway|too|my|our|tell|show|give|make|see|skip|help|write|put"
    r"|leave|just|then|now|versioning|the \w+ (?:is|are|was|has)|our \w+|nothing|one thing",
    negations="not|never|no|without|only",
    guards=r"\b(?:said|says|wrote|writes|asked|told|tells|quote|quoted|motto|reads|claims?|answered|replied"
    r"|suppose|imagine|pretend|used to|back then|in the past|translate|translation)\b|\bif$",
    unclear=r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|not to$|to$|it|this|that|them|those|these|him|her"
    r"|us|me|you|yours?|either|neither|both|none"
    r"|what|how"
    r"|where|who|any of|one of|some of|all of (?:this|that|it)|the (?:first|second|third|fourth|latter"
    r"|former|last|other|new|old|one|ones|same|look|idea|sound|fact|way (?:it|this|that))|option [\w]"
    r"|to (?:see"
    r"|admit|say|think|believe|be)\b(?! able)|a (?:second|third|moment|minute)|mondays?|so|too|as well|my"
    r" (?:job|life|boss|body|ex|mother|father|brother|sister|neighbou?r)|seeing|being|waking|more|"
    r"(?:an? )?appointment|this one)\b(?! when\b| if\b)",
    once=r"\b(?:today|tonight|tomorrow|yesterday|this (?:week|time|evening|morning|afternoon|weekend|year"
    r"|month|one|ticket|summer|winter|once)|next (?:week|month|time|year|\w+day)|right now|for now|for once"
    r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|at the moment|yet|again|any ?more|just now|lately"
    r"|last (?:week|night|year|month|time)|the (?:appointment|slot))\b|\b(?<!keep )(?:this|that|it|them)$",
    third_person=(
        (r"^have\b", "has"),
        (r"^do\b", "does"),
        (r"^(\w*(?:s|sh|ch|x|o|z))\b", r"\1es"),
        (r"^(\w*[^aeiou\W])y\b", r"\1ies"),
        (r"^(\w+)", r"\1s"),
    ),
    own_words=(
        ("i am", "they are"),
        ("i'm", "they're"),
        ("i've", "they've"),
        ("i'd", "they'd"),
        ("i'll", "they'll"),
        ("i", "they"),
        ("my", "their"),
        ("mine", "theirs"),
        ("myself", "themselves"),
        ("me", "them"),
    ),
)


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
