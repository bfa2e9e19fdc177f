"""Tables of preferences said in passing in French, Spanish, Italian, Portuguese, Polish and Russian."""

from __future__ import annotations

from mnemosyned.conversation.learnings.passing_tables import PassingTable

FRENCH = PassingTable(
    hints="tendance|horreur|si possible|"
    "préf|j'aime|n'aime|je déteste|je supporte|je fuis|je hais|je abhorre|je évite|"
    "je privilégie|je favorise|j'évite|ne supporte|ne suis|je suis plutôt|fan d|adepte|"
    "amateur|amatrice|friand|d'habitude|normalement|général|habituellement|toujours|plutôt|"
    "jamais|pas d|ne veux|favorit|prédilection|évite|garde |gardez|reste |restez |sans |en bon fr|"
    "en termes|en langage|en mots|avec des mots",
    rules=r"""
states: (?:moi,? )?je (?P<a>(?:\w+ment )?)préfère (?!ne pas|que (?:tu|vous)|pas en) => {a}préfère
states: je préf[èé]rerais (?!ne pas|que (?:tu|vous)|pas en) => préférerait
states: j'aime (?P<w>mieux|(?:beaucoup |bien )?quand|que (?=mon|ma|mes|les)) => aime {w}
states: j'aimerais mieux => aimerait mieux
states: je n'aime (?P<w>pas(?: du tout| trop| beaucoup)?|guère)(?: quand (?:tu|vous)(?=\b))? (?!trop ça|ça\b)
     => n'aime {w}
states: je (?P<v>déteste|supporte mal|fuis|hais|abhorre|évite|privilégie|favorise) => {v}
states: j'évite => évite
states: je ne supporte pas => ne supporte pas
states: je ne suis (?P<w>pas (?:très |vraiment |un grand |une grande )?(?:fan|adepte|amateur|friand)e? (?:de
    |des|du|d')) => n'est {w}
states: je suis (?P<w>(?:plutôt |un grand |une grande |très )(?:fan|adepte|amateur|amatrice|friande?) (?:de
    |des|du)) => est {w}
states: je suis plutôt (?=(?:du genre|tabs|\w+ que)\b) => est plutôt
states: (?P<a>d'habitude|normalement|en général|généralement|habituellement),? (?:j'|je )(?P<v>utilise|prends
    |choisis|travaille|voyage
    |mange|bois|achète|opte|passe|pars) => {a} {v}
states: (?:j'|je )(?P<v>utilise|prends|choisis|travaille|voyage|mange|bois|achète|opte) (?P<a>d'habitude
    |normalement|en général
    |généralement|toujours|habituellement|plutôt) => {v} {a}
states: j'ai (?P<w>tendance à|une (?:nette )?préférence pour|horreur) => a {w}
states: plutôt (?=[^,;]* que? ) => plutôt
inside: \b(?P<w>de préférence|si possible sans) => {w}
states: je n'utilise jamais => n'utilise jamais
states: je ne (?P<v>mange|bois|prends) (?P<w>jamais|pas de) => ne {v} {w}
states: je ne veux (?P<w>pas de|aucune?) => ne veut {w}
states: m(?:on|a|es) (?P<f>[\w-]+ (?:préférée?s?|favorite?s?|de prédilection),? (?:est|sont|c'est|reste)) =>
     {f}
asks: pas (?P<w>de |d')(?!souci|problème|panique|quoi|chance|idée)(?=[^,.;:!?]{2,50},? (?:s'il (?:te|vous)
    |stp|svp|merci)\b) => pas {w}
asks: (?:s'il (?:te|vous) plaît,? |stp |svp |merci,? )pas (?P<w>de |d') => pas {w}
asks: (?P<v>évite|évitez) (?!le\b|ça) => {v}
asks: (?P<v>garde|gardez|reste|restez) (?=[^,;]*\b(?:court|courte|courtes|simple|simples|concis|bref|sobre
    |(?:moins de|sous) \d+ ?(?:ko|mo
    |mots|lignes|pages))\b) => {v}
inside: sans (?P<w>(?:trop d(?:e )?'?|toutes ces|tous ces|fioritures|jargon|blabla|chichis)) ?(?!problème
    |souci) => sans {w}
inside: (?P<w>en (?:bon français|termes simples|langage simple|mots simples)|avec des mots simples) => {w}
""",
    conjunctions="et|ou|mais|car|parce que|puisque|donc|alors",
    leads=r"franchement|honnêtement|en général|d'ailleurs|au fait|et|mais|donc|alors|merci|personnellement"
    r"|perso|s'il te plaît",
    reasons=r"parce qu\w*|car|puisqu\w*|comme (?:je|il|elle)\b|mais|donc|alors|bien que|afin|s'il (?:te|vous)"
    r"|stp|svp|merci",
    starters=r"je|j'\w+|tu|il|elle|on|nous|vous|ils|elles|ça|c'est|est-ce|peux|pouvez|pourrais|pourriez"
    r"|comment|que|qu'\w+|quel|quelle|quels"
    r"|quelles|où|qui|pourquoi|combien|donc|alors|montre|écris|fais|mon|ma|mes|merci",
    negations="pas|jamais|sans|ni|seulement",
    guards=r"\b(?:dit|disait|disent|écrit|écrivait|avant|autrefois|traduis|demandé|suppose)\b|\bsi$",
    unclear=r"(?:ce (?:que|qui)|cette idée|ça|cela|ceci|celui|celle|ceux|celles|la (?:première|deuxième"
    r"|seconde|troisième|dernière|nouvelle|tête)|le (?:premier|deuxième|second"
    r"|troisième|dernier)|l'autre|lui|elle|eux|toi|vous|ne pas|pas en parler|trop ça|en parler)\b",
    once=r"\b(?:aujourd'hui|demain|ce (?:soir|matin|week-end|mois)|cette (?:semaine|fois|année)|maintenant"
    r"|pour l'instant|(?:lundi|mardi|mercredi"
    r"|jeudi|vendredi|samedi|dimanche) (?:prochain|cette)|la semaine prochaine)\b",
    third_person=(
        (r"^(pren)ds", r"\1d"),
        (r"^(boi|choisi|fui|par|hai)s\b", r"\1t"),
        (r"^(\w+)", r"\1"),
    ),
)

SPANISH = PassingTable(
    hints="preferen|me decanto|me inclino|preferibl|a ser posible|si es posible|"
    "prefier|preferir|me gust|me encant|no me |odio|detesto|evit|no soporto|aborrezco|no soy|soy |"
    "normalmente|generalmente|por lo general|habitualmente|siempre|suelo|nunca|no quiero|"
    "favorit|preferid|sin |nada de|por favor|manten|mantén|en palabras|en lenguaje|en cristiano|"
    "con palabras",
    rules=r"""
states: (?:yo )?(?P<a>(?:siempre |normalmente |generalmente )?)prefiero (?!no (?:hablar|decir)|que me) =>
     {a}prefiere
states: (?:yo )?preferiría (?!no (?:hablar|decir)) => preferiría
states: (?P<n>no )?me (?P<w>gusta|gustan|encanta) (?P<q>más |mucho más |que |cuando |tener (?:el|la|los|las)
     )(?!saber) => {n}le {w} {q}
states: no me (?P<w>gusta|gustan|convence|convencen)(?P<q>(?: nada| mucho| demasiado)?) (?!cómo|el aspecto|tu
    |nada\b) => no le {w}{q}
states: (?:yo )?(?P<v>odio|detesto|evito|no soporto|aborrezco) => {v}
states: (?:yo )?no soy (?P<w>(?:muy |un gran |una gran )?(?:fan|amigo|amiga|partidario|partidaria|devoto)
     (?:de|del)) => no es {w}
states: (?:yo )?soy (?P<w>(?:muy |más |un gran |una gran )(?:fan|de|partidario|partidaria|amigo|amiga) (?:de
    |del)?) ?(?!aquí) => es {w}
states: (?P<a>normalmente|generalmente|por lo general|habitualmente|casi siempre|siempre),? (?:yo )?(?P<v>uso
    |utilizo|elijo|trabajo|viajo|como
    |bebo|compro|tomo|opto|escribo|voy) (?!con retraso) => {a} {v}
states: (?:yo )?(?P<v>uso|utilizo|elijo|viajo|trabajo|compro|escribo) (?P<a>normalmente|siempre|casi siempre
    |generalmente)
     => {v} {a}
states: suelo (?=(?:usar|utilizar|elegir|trabajar|viajar|comer|beber|comprar|tomar|optar|escribir|ir
    |preferir)\b) => suele
states: (?:yo )?(?P<q>tengo preferencia|me decanto|me inclino) por => prefiere
states: (?:yo )?soy más de (?=\w) => es más de
inside: \b(?P<w>preferiblemente|de preferencia|a ser posible sin|si es posible sin) => {w}
states: nunca (?P<v>uso|utilizo|como|bebo|compro) => nunca {v}
states: no quiero (?=(?:ningún|ninguna|nada de|dependencias|frameworks|animaciones|anuncios|[\w]+s (?:en
    |de))\b) => no quiere
states: mi(?:s)? (?P<f>[\w-]+ (?:favorit|preferid)[oa]s? (?:es|son)) => {f}
asks: (?P<w>sin|nada de) (?!la\b|el\b|los\b|las\b|embargo|problema|prisa|duda|más\b)(?=[^,.;:!?]{2,50},? por
     favor\b) => {w}
asks: por favor,? (?P<w>nada de|sin|no más) => {w}
asks: evita (?!la\b|el\b) => evita
asks: (?P<v>mantén|mantenlo|mantenga|mantenlos) (?=[^;]*\b(?:corto|corta|cortos|cortas|breve|breves|simple
    |sencillo|sencilla|por debajo de \d+)\b) => {v}
inside: sin (?P<w>demasiad[oa]s?|tant[oa]s?|muchas?|muchos?|excesiv[oa]s?|rodeos|florituras|tecnicismos)
     (?!problema|suerte|éxito) => sin {w}
inside: (?P<w>en (?:palabras sencillas|lenguaje sencillo|lenguaje claro|cristiano)|con palabras sencillas) =>
     {w}
""",
    conjunctions="y|e|o|pero|porque|así que|ya que|pues",
    leads=r"la verdad|sinceramente|en general|además|por cierto|y|pero|pues|gracias|personalmente|a mí"
    r"|bueno|por favor",
    reasons=r"porque|ya que|puesto que|pues|pero|aunque|así que|para que|por favor|gracias|que (?:distraen"
    r"|la mantengo|tengo)",
    starters=r"yo|tú|él|ella|nosotros|ellos|ellas|usted|esto|eso|¿\w*|puedes|podrías|cómo|qué|cuál|cuáles"
    r"|dónde|quién|por qué|cuándo|así|que|me|te"
    r"|muéstrame|escribe|haz|mi|gracias|hay",
    negations="no|nunca|sin|solo|sólo",
    guards=r"\b(?:dice|dijo|decía|dicen|escribió|antes|traduce|preguntó|supón)\b|\bsi$",
    unclear=r"(?:eso|esto|ese|esa|este|esta|lo|el (?:primero|segundo|tercero|otro|último)|la (?:primera"
    r"|segunda|tercera|otra|última)|ir\b|no"
    r" (?:hablar|decir|ir)|quedarme|saber|que (?:no|nos)|cuando llueve)\b",
    once=r"\b(?:hoy|mañana (?!s)|esta (?:semana|noche|vez|tarde)|este (?:mes|fin)|ahora|por ahora"
    r"|el (?:lunes|martes|miércoles|jueves|viernes"
    r"|sábado|domingo)|la próxima|la semana que viene)\b",
    third_person=(
        (
            r"^(no )?(soport|odi|detest|evit|us|utiliz|trabaj|viaj|compr|tom|opt)o\b",
            r"\1\2a",
        ),
        (r"^elijo", "elige"),
        (r"^aborrezco", "aborrece"),
        (r"^voy", "va"),
        (r"^(\w+)o\b", r"\1e"),
    ),
)

ITALIAN = PassingTable(
    hints="tendo a|di preferenza|se possibile|"
    "preferi|mi piac|odio|detesto|evit|non |sono |di solito|normalmente|in genere|"
    "generalmente|di norma|sempre|niente|senza|per favore|tieni|mantieni|in parole|"
    "con parole|in un ling",
    rules=r"""
states: (?:io )?(?P<a>(?:di solito |sempre |generalmente |in genere )?)preferisco (?!non (?:parlar|dir)|che
     tu) => {a}preferisce
states: (?:io )?preferirei (?!non (?:parlar|dir)|che tu) => preferirebbe
states: (?P<n>non )?mi (?P<w>piace|piacciono) (?P<q>di più |molto di più |che |quando |avere (?:il|la|i|le
    |gli) )(?!sapere|piove) => {n}gli {w} {q}
states: non mi (?P<w>piace|piacciono)(?P<q>(?: affatto| molto| per niente)?) (?!come|l'aspetto|affatto\b) =>
     non gli {w}{q}
states: (?:io )?(?P<v>odio|detesto|evito) => {v}
states: non sopporto => non sopporta
states: (?:io )?non sono (?P<w>(?:proprio |molto )?(?:un|una)? ?(?:grande |gran )?(?:fan|amante
    |appassionat[oa]) (?:di|degli|dei|del|della|delle)) => non è {w}
states: (?:io )?sono (?P<w>(?:un|una) (?:grande |gran )?(?:fan|amante) (?:di|degli|dei|del|della|delle)) => è
     {w}
states: (?P<a>di solito|normalmente|in genere|generalmente|di norma|quasi sempre|sempre),? (?:io )?(?P<v>uso
    |utilizzo|scelgo|lavoro|viaggio|mangio
    |bevo|compro|prendo|scrivo|vado) => {a} {v}
states: (?P<v>uso|utilizzo|scelgo|prendo|mangio|bevo|viaggio|lavoro|compro|scrivo) (?P<a>di solito
    |normalmente|in genere|sempre|quasi
     sempre) => {v} {a}
states: (?:io )?tendo a => tende a
inside: \b(?P<w>preferibilmente|di preferenza|se possibile senza) => {w}
states: non (?P<v>uso|utilizzo|mangio|bevo) mai => non {v} mai
states: non voglio (?=(?:nessun\w*|alcun\w*|dipendenze|framework|animazioni|pubblicità|[\w]+i (?:nel|nella
    |in))\b) => non vuole
states: (?:il|la|i|le) mi(?:o|a|ei|e) (?P<f>[\w-]+ preferit[oaie] (?:è|sono)) => {f}
asks: (?P<w>niente|senza) (?!di grave|la\b|il\b|l'|paura|panico|problemi|fretta)(?=[^,.;:!?]{2,50},? (?:per
     favore|per piacere|grazie)\b) => {w}
asks: per favore,? (?P<w>niente|senza|nessun\w*) => {w}
asks: evita (?!il\b|la\b|l') => evita
asks: (?P<v>tieni|mantieni|tienilo) (?=[^;]*\b(?:cort[oaie]|brev[ei]|semplic[ei]|sotto (?:i |le )?\d+)\b) =>
     {v}
inside: senza (?P<w>tropp[oaie]|tant[oaie]|inutili|giri di parole|fronzoli|tecnicismi) (?!problem|fortuna
    |success) => senza {w}
inside: (?P<w>in parole (?:semplici|povere)|con parole semplici|in un linguaggio semplice) => {w}
""",
    conjunctions="e|ed|o|ma|perché|quindi|poiché|siccome",
    leads=r"sinceramente|onestamente|in generale|tra l'altro|inoltre|e|ma|quindi|grazie|personalmente"
    r"|a proposito|per favore",
    reasons="perché|poiché|siccome|ma|anche se|quindi|così|dato che|per favore|per piacere|grazie",
    starters=r"io|tu|lui|lei|noi|voi|loro|questo|mi|puoi|potresti|come|cosa|che|quale|quali|dove|chi|quando"
    r"|quante|quanti|esiste|c'è|è|quindi|mostrami"
    r"|scrivi|fai|mio|mia|grazie",
    negations="non|mai|senza|solo|niente",
    guards=r"\b(?:dice|disse|diceva|dicono|scrisse|prima|traduci|chiese|supponi)\b|\bse$",
    unclear=r"(?:questo|questa|quello|quella|il (?:primo|secondo|terzo|altro)|l'altr[oa]|la (?:prima|seconda"
    r"|terza)|venire|non (?:parlarne|dire"
    r"|venire)|restare|sapere)\b",
    once=r"\b(?:oggi|domani|stasera|questa (?:settimana|volta|sera)|questo (?:mese|fine)|adesso|ora"
    r"|per ora|(?:lunedì|martedì|mercoledì|giovedì|venerdì"
    r"|sabato|domenica) (?:prossim|questa))\b",
    third_person=(
        (r"^(us|utilizz|lavor|viaggi|compr|odi|detest|evit)o\b", r"\1a"),
        (r"^(mang)io\b", r"\1ia"),
        (r"^scelgo", "sceglie"),
        (r"^vado", "va"),
        (r"^(\w+)o\b", r"\1e"),
    ),
)

PORTUGUESE = PassingTable(
    hints="tendo a|preferên|preferencial|se possível|"
    "prefiro|preferi|gosto|odeio|detesto|evit|suporto|não |sou |normalmente|geralmente|em geral|"
    "habitualmente|sempre|costumo|nunca|favorit|predilet|sem |nada de|por favor|manten|"
    "mantém|em palavras|em linguagem|em bom|com palavras",
    rules=r"""
states: (?:eu )?(?P<a>(?:sempre |normalmente |geralmente )?)prefiro (?!não (?:falar|dizer)|que (?:você|tu
    |me)) => {a}prefere
states: (?:eu )?prefer(?:ir)?ia (?!não (?:falar|dizer)) => preferia
states: (?:eu )?gosto (?P<w>(?:muito )?mais de|quando|que (?:o|a|os|as)\b) (?!chove|você) => gosta {w}
states: (?:eu )?não gosto (?P<w>(?:nada |muito )?(?:de|do|da|dos|das|quando|que)) (?!como|disso) => não gosta
     {w}
states: (?:eu )?(?P<v>odeio|detesto|evito|não suporto) => {v}
states: (?:eu )?não sou (?P<w>(?:muito |um grande |uma grande |lá muito )?(?:fã|adepto|adepta|apreciador
    |amigo) (?:de|do|da|dos|das)) => não é {w}
states: (?:eu )?sou (?P<w>(?:muito |um grande |uma grande |mais )(?:fã|adepto|adepta) (?:de|do|da|dos|das))
     => é {w}
states: (?P<a>normalmente|geralmente|em geral|habitualmente|quase sempre|costumo|sempre),? (?:eu )?(?P<v>uso
    |utilizo|escolho|trabalho|viajo|como|bebo
    |compro|opto|escrevo|vou) => {a} {v}
states: (?:eu )?(?P<v>uso|utilizo|escolho|viajo|trabalho|compro|escrevo) (?P<a>normalmente|geralmente|sempre
    |quase
     sempre) => {v} {a}
states: (?:eu )?costumo (?=(?:usar|utilizar|escolher|trabalhar|viajar|comer|beber|comprar|optar|ir
    |preferir)\b) => costuma
states: (?:eu )?tendo a => tende a
inside: \b(?P<w>de preferência|preferencialmente|se possível sem) => {w}
states: (?:eu )?nunca (?P<v>uso|utilizo|como|bebo|compro) => nunca {v}
states: (?:eu )?não quero (?=(?:nenhum\w*|dependências|frameworks|animações|anúncios|[\w]+s (?:no|na|em))\b)
     => não quer
states: (?:o |a |os |as )?(?:meu|minha|meus|minhas) (?P<f>[\w-]+ (?:favorit|preferid|predilet)[oa]s? (?:é
    |são)) => {f}
asks: (?P<w>sem|nada de) (?!a\b|o\b|problema|pressa|dúvida)(?=[^,.;:!?]{2,50},? por favor\b) => {w}
asks: por favor,? (?P<w>nada de|sem|nenhum\w*) => {w}
asks: (?P<v>evite|evita) (?!o\b|a\b) => {v}
asks: (?P<v>mantenha|mantém|mantenha-o) (?=[^;]*\b(?:curt[oa]s?|brev[ei]s?|simples|abaixo de \d+)\b) => {v}
inside: sem (?P<w>muit[oa]s?|demasiad[oa]s?|tant[oa]s?|floreados|rodeios|jargão) (?!problema|sorte|sucesso)
     => sem {w}
inside: (?P<w>em (?:palavras simples|linguagem simples|bom português)|com palavras simples) => {w}
""",
    conjunctions="e|ou|mas|porque|então|pois|já que",
    leads=r"sinceramente|honestamente|em geral|aliás|e|mas|então|obrigad[oa]|pessoalmente|por sinal"
    r"|por favor",
    reasons="porque|pois|já que|visto que|mas|embora|então|por favor|para que|obrigad[oa]",
    starters=r"eu|tu|você|ele|ela|nós|eles|elas|isso|isto|pode|podes|poderia|como|que|qual|quais|onde|quem"
    r"|por que|porque|quantos|existe|há|é|então"
    r"|mostre|mostra|escreva|faça|meu|minha|obrigad[oa]",
    negations="não|nunca|sem|só|apenas|nada",
    guards=r"\b(?:diz|disse|dizia|dizem|escreveu|antes|traduza|perguntou|suponha)\b|\bse$",
    unclear=r"(?:que (?:o|a)\b|isso|isto|esse|essa|este|esta|o (?:primeiro|segundo|terceiro|outro)"
    r"|a (?:primeira|segunda|terceira|outra)|ir\b|não (?:falar|dizer"
    r"|ir)|ficar|saber|você|ti)\b",
    once=r"\b(?:hoje|amanhã|esta (?:semana|noite|vez)|este (?:mês|fim)|desta vez|agora|por agora"
    r"|na (?:segunda|terça|quarta|quinta|sexta) (?:que|esta)"
    r"|no (?:sábado|domingo)|na próxima)\b",
    third_person=(
        (r"^odeio", "odeia"),
        (r"^(não )?(us|utiliz|trabalh|viaj|compr|opt|detest|evit|suport)o\b", r"\1\2a"),
        (r"^vou", "vai"),
        (r"^(\w+)o\b", r"\1e"),
    ),
)


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
