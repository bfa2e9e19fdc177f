"""Preferences said in passing in English."""

from __future__ import annotations

from mnemosyned.domain.learnings.passing.table import PassingTable

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
