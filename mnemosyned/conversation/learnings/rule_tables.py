"""Rule tables of instructions, preferences and names, one per language, and their compilation.

A rule is a kind and a pattern, matched at the start of a sentence or a clause; indented lines
continue the line above. `<name>` is replaced by the part of that name. `"_"` is quoted text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mnemosyned.memory.learning import LearningKind

PARTS = r"""
name: (?-i:(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Tomorrow|Later|Back|When|At\b)
    (?:[A-ZÀ-ÞА-Я][\w.'’-]*|"_")(?: (?:[A-ZÀ-ÞА-Я][\w.'’-]*|von|van|de|da|bin)){0,3})
gerund: (?!(?:bring|ping|ring|sing|string|swing|cling)\b)\w{2,}ing\b
base: (?!(?:an?|the|be+n|mind|heard|seen|said|thought|ha[dvs]e?|kn[eo]wn?|felt|got(?:ten)?|was
    |were|is|are|am|again|happy|glad|nice|good|great|better|gonna|in|on|at|too|so|that|this
    |really|quite|done|met|gone|ready|t?here|hear|by|love|quit|lose|gotta|give up|forget(?! to)
    |say never|more|one|my|your|his|her|our|their|i|you|he|she|it|we|they|went|came|saw|told|made
    |left|loud|late|early|full|open|fun|easy|hard|busy|cold|hot|up|out)\b|(?!(?:need|feed|embed
    |seed|proceed|exceed|speed|heed)\b)\w{2,}ed\b|<gerund>|(?!(?:focus|alias
    |canvas)\b)\w+[^\Ws]s\b)\w+
do: (?:always|never|only|don't|do not|use|answer|reply|respond|write|speak|talk|address|keep|put
    |format|be|make|give|show|include|add|avoid|stop|start|begin|end|ask|tell|check|double-check|finish|warn
    |run|commit|sign|prefix|sort|round|convert|translate|treat|assume|explain|list|cite|quote
    |save|store|send|remind|skip|leave|think|refer|provide|ensure|follow|limit|wrap|indent|open
    |create|log|test|review|summari[sz]e|mention|remember|book|order|set|name|call|mark|stick
    |wait|work|no)\b
later: (?:from (?:now|here|today|this point) on(?:wards?)?|going forward|henceforth
    |in (?:the )?future|starting (?:now|today)|as a rule|by default)
de_do: (?:(?:be)?nutze?|benutze?|verwende|nimm|schreibe?|antworte|sprich|rede?|schicke?|sende|gib
    |mache?|lass|zeige?|frage?|nenne?|füge?|setze?|prüfe?|lösche?|buche?|stelle?|halte?|beginne?
    |fang|rechne|formatiere|erkläre?|sage?|speichere?|pushe?|teste?|denke?|achte|vermeide
    |verzichte|duze?|sieze?|sei|bleibe?|fasse?|übersetze|zitiere|führe?|starte|ändere?|erwähne?
    |merke?|\w+en sie)
fr_do: (?:\w+-(?:moi|toi|nous|le|la|les)|(?:utilise|répond|écri|met|ajoute|fai|vérifie|donne
    |indique|parle|commence|garde|demande|inclu|cite|lance|formate|tradui|explique|emploie|prend
    |envoie|évite)(?:s|z|es|ez|vez|tez|tes)?)
es_not: (?:use|borre|escriba|responda|conteste|diga|ponga|haga|envíe|mande|llame|elimine|comparta
    |mencione|olvide|incluya|agregue|añada|toque|cambie|publique|reserve|suba|empiece|termine
    |modifique|ejecute|instale|pregunte|suponga|traduzca|hable|repita)s?
es_do: (?:usa|utiliza|responde|contesta|escribe|pon|haz|añade|agrega|incluye|habla|di|muestra
    |verifica|comprueba|revisa|empieza|cita|manda|envía|traduce|explica|guarda|formatea|pregunta
    |mantén|\w+[áéí]\w+me|use|utilice|responda|escriba|incluya|ponga|haga|dame)
it_do: (?:usa|utilizza|rispondi|scrivi|metti|aggiungi|fai|indica|cita|controlla|verifica|parla
    |dammi|inizia|chiedi|mostra|spiega|traduci|includi|formatta|tieni|manda|\w+mi)
pt_do: (?:use|apague|escreva|responda|envie|exclua|mencione|compartilhe|coloque|faça|diga|mande
    |inclua|altere|mude|publique|instale|adicione|cite|verifique|fale|comece|mostre|explique
    |mantenha|traduza|formate|pergunte|indique|chame|repita)s?
ru_do: (?!(?:есть|быть|очень|жаль)\b)\w+(?:й|йте|(?<!л)и|(?<!л)ите|[дтснв]ь|[дтснв]ьте)(?:ся
    |сь)?\b(?<!ть)
ja_asked: (?:てくだ?さい|て下さい|でください|で下さい|てくれ|でくれ|てほしい|ないで(?:ね)?|こと
    |なさい|てね|でね)
ko_asked: (?:세요|주세요|십시오|해 ?줘|하지 ?마|마세요|말아 ?줘|해라)[.!]*$
request: (?:could|can|would|will) you,? (?:please,? )?(?:always|never|stop <gerund>|<later>)|
    (?:kannst|könntest|würdest) du (?:bitte )?(?:immer|nie|ab jetzt|künftig|in zukunft)|
    (?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous) (?:toujours|ne (?:jamais|plus))|(?:puedes
    |podrías) (?:siempre|dejar de|no volver)
lead: (?:(?:please|pls|kindly|also|and|but|so|then|ok(?:ay)?|hey|hi|hello|well|oh|btw|by the way
    |thanks?(?: you| a lot)?|great|good|right|alright|just|actually|again|one (?:more )?thing
    |note|rule|reminder|important|ps|fyi|for the record|just so you know|do the same and|bitte
    |und|ach ja|übrigens|außerdem|aber|danke|hallo|s'il (?:te|vous) plaît|et|mais|merci|au fait
    |aussi|por favor|y|pero|también|además|gracias|oye|per favore|e|ma|anche|grazie|inoltre|mas
    |também|obrigad[oa]|пожалуйста|и|но|также|ещё|кстати|спасибо|а)(?![\w'’-])[\s,:!.–—-]*|
    (?:请你?|麻烦你?|另外|还有|好的|对了|あと|また|それと|ちなみに|では|じゃあ)[\s,，、：:]*)+
reported: \b(?:sa(?:y|ys|id)|t(?:old|ells)|wrote|writes|reads?|motto|used to|according|suppose
    |imagine|if i (?!ask|say|send|write|tell|paste|request|mention)|he|she|they|nobody|maybe
    |perhaps|sagte?|meinte?|schrieb|stand|früher|falls|dit|disait|disent|écrit|avant|dice|decía
    |dijo|antes|diceva|disse|prima|diz|dizia|говори[тл]а?|сказала?|раньше|писала?)\b|说|以前|言う
    |言った|昔
attribution: , [^,]{0,40}\b(?:said|says|sagte|meinte|disait|dit|decía|dijo|diceva|dizia
    |говорила?)\b[^,]{0,24}$|\b(?:haha|lol)\b
to_agent: \b(?:tell|inform) the user\b(?!'s)|\blet the user know\b|\b(?:mention|reveal|disclose|admit
    |say|report|speak)\b[^.!?\n]{0,60}\bto the user\b(?!'s)|\b(?:this|it|that)(?: secret| hidden)?
    from the user\b(?!'s)
    |\b(?:sag|verrat|erzähl)\w*\b[^.!?\n]{0,30}\bde[mn] (?:be)?nutzern?\b|\bde[mn] (?:be)?nutzern?\b
    [^.!?\n]{0,30}\b(?:sag|verrat|erzähl|mitteil)
    |\b(?:di(?:s|tes|re)|révél\w+|parl\w+)\b[^.!?\n]{0,30}(?:à l'utilisateur|aux utilisateurs)\b
    |\b(?:dig\w+|dile|decir\w*|revel\w+)\b[^.!?\n]{0,30}\bal usuario\b|\b(?:dire|dici|dica|rivel\w+)
    \b[^.!?\n]{0,30}\ball'utente\b|\b(?:diga|dizer|conte|revel\w+)\b[^.!?\n]{0,30}\bao
    (?:usuário|utilizador)\b|(?:говори|сообща|рассказыва)\w*[^.!?\n]{0,30}пользовател|告诉用户
    |[对向]用户[^。！？\n]{0,6}(?:说|透露)|ユーザーに[^。！？\n]{0,12}(?:言|伝え|教え|知らせ)|사용자에게
    [^.!?\n]{0,15}(?:말하|알리|알려)
override: \b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|every|each|of|the|your|these|those
    |other)\s+)*(?:previous|prior|above|earlier|preceding|existing|former|system|safety)\s+(?:\w+\s+)?
    (?:instruction|prompt|rule|direction|guideline|message|command)s?\b|\b(?:ignoriere|vergiss)\b
    [^.!?\n]{0,30}\b(?:vorherigen|bisherigen|obigen)\b[^.!?\n]{0,20}\banweisungen|\b(?:ignore[zsr]?
    |oublie[zsr]?|ignora|olvida)\b[^.!?\n]{0,30}\b(?:instructions|instrucciones|istruzioni)\b[^.!?\n]{0,20}
    \b(?:précédentes|anteriores|precedenti)\b|忽略[^。\n]{0,8}指[令示]|以前の指示を無視
"""
"""Parts that several rules share, and the patterns of `SharedPatterns`."""

ENGLISH = r"""
name: (?:you (?:can|may|should) )?(?:just |please )?call me <name>(?! (?:at|when|if|on|in)\b)
name: (?:please )?call me by my (?:first|last|middle|nick)
name: (?:my name(?: is|'s)|i go by|(?:you can )?(?:address|refer to) me as) <name>
preference: (?:please )?(?:always )?(?:remember|keep in mind|bear in mind|don't forget)(?: that|:
    |,)? (?:i(?!'m (?:always )?here)(?:'m|'ve)?|my)\b
instruction: (?:always|never(?:,? ever)?|(?:don't|do not)(?: you)? ever)(?:,? and i mean \w+)?
    (?: again)?[, ]+<base>
instruction: (?:don't|do not),? under any circumstances\b
    |it's (?:very )?important that you (?:always|never)\b
instruction: <later>,? (?:please,? )?(?:<do>|i (?:want|need|expect)|i'd (?:like|prefer)
    |you (?:should|must|are to|can|may|will))
instruction: (?!keep up)<do>.*\b<later>(?:[,.!]|$)
instruction: you (?:should|must|have to|need to|are to) (?:always|never) (?!have)|you (?:don't
    |do not) (?:need|have) to\b.*\bany ?more
instruction: (?:everything|anything|all)(?: \w+)? you (?:write|send|make|produce)\b.*\b(?:should
    |must)\b
instruction: (?:make sure|be sure|ensure|see to it)\b.*\b(?:always|never)\b
instruction: i(?:'d| would)? (?:want|need|expect|like) you to (?:always|never|only)\b|i (?:don't
    |do not)(?: ever)? want you to (?!worry|think|feel|go|leave|be|know)
instruction: stop <gerund>
instruction: (?:don't|do not) (?:use|call me|address me|apologi[sz]e|summari[sz]e|add|include
    |mention|suggest|propose|recommend)\b(?!.*\b(?:yet|now|today|tonight|this time|until|here)\b)
instruction: (?:don't|do not) (?!worry|know|think|mind|want|like|have)\w+\b.*\b(?:any ?more|ever
    |again|without asking|unless i)\b
instruction: (?:only (?:ever )?(?:use|answer|reply|respond|write|speak|show|include))\b
instruction: (?:(?:whenever|every time|each time|any ?time) (?:i|we|you (?:write|answer|reply
    |send|create|commit|make|use|generate|draft|book))|(?:when(?:ever)?|if) i (?:say|ask|write
    |type|mention|send|tell|request|paste))\b[^,]*, (?:please |then )?<do>
instruction: (?:(?:when(?:ever)?|every time|each time|whatever|anything) you (?:propose|suggest
    |recommend|explain)
    |with (?:each|every) \w+ you \w+|when(?:ever)? (?:something|anything|we) \w+)\b[^,]*, (?:please |then
    |always )?<do>
instruction: (?:when(?:ever)? i (?:say|write|type)) \"_\",? (?!i\b|he\b|she\b|it\b|they\b
    |you\b)\w+
instruction: (?:remember|keep in mind|bear in mind):?(?: that)? (?:we (?!went|were|had|did|met
    |saw|used)|our|all|every)\b
instruction: remember to (?:always|never)\b
preference: i(?:'d| would) (?:(?:really|much) )?(?:rather|prefer(?: it)?(?: if| that)?) you\b
preference: i (?:like|want|take) (?:my|your|all) (?:answers?|repl(?:y|ies)|responses?|summar(?:y
    |ies)|code|reports?|e-?mails?|texts?|messages?|coffee|tea|steak|eggs|lists?|explanations?) \w+
preference: i (?:only|never|don't|do not) (?:eat|drink)\b|my pronouns are\b
preference: my preference is\b
preference: i'm (?:(?:severely|very) )?(?:allergic to|(?:a )?vegetarian|(?:a )?vegan)\b
"""

GERMAN = r"""
name: nenn(?:e|en sie)? mich (?:bitte )?(?:einfach )?<name>
name: (?:ich heiße|mein name ist)(?: übrigens)? <name>
name: (?:du kannst|sie können) mich <name> nennen
preference: (?:merke? dir|denke? daran|vergiss (?:nicht|nie|niemals)),? dass (?:ich|mein)
preference: ich (?:mag es (?:nicht|gern|lieber|sehr)?,? ?wenn du
    |hätte (?:es )?(?:gern|lieber)|habe es (?:gern|lieber))
preference: (?:mir (?:ist|wäre) (?:es )?(?:lieber|am liebsten)|am liebsten (?!wäre|würde|hätte)\w+e ich\b)
preference: (?:meine? (?:lieblings|bevorzugt)\w+ (?:\w+ )?ist|ich bin allergisch)\b
instruction: <de_do>\b.*\b(?:immer|niemals|nie|stets|künftig|zukünftig|ab jetzt|in zukunft
    |von nun an|nicht mehr|nur noch|grundsätzlich|ab sofort|ab heute)\b|(?:duze?|sieze?
    |duzen sie) mich\b
instruction: ich (?:möchte|will|wünsche mir),? dass (?:du|sie) (?:\w+ )?(?:immer|nie|niemals
    |künftig)\b
instruction: (?:ab (?:jetzt|sofort|heute)|von (?:nun|jetzt) an|künftig|zukünftig|in zukunft
    |fortan),? (?:bitte|<de_do>|nur|immer|keine?|nie|sollst|möchte ich|will ich|musst|darfst)\b
instruction: (?:du|sie) (?:sollst|musst|darfst|sollen|müssen|dürfen|solltest
    |sollten) (?:\w+ ){0,2}?(?:immer|nie|niemals|stets|nicht mehr)\b
instruction: hör(?:e|en sie)? (?:bitte )?(?:damit )?auf\b.*\bzu\b
instruction: (?:immer|nie|niemals|nie wieder|keine? .* mehr|stets) .*\w+en[.!]*$(?<!haben)
instruction: keine? [\w -]+ mehr\b
"""

FRENCH = r"""
name: (?:appelle|appelez)-moi <name>
name: (?:je m'appelle|mon (?:pré)?nom est|tu peux m'appeler|vous pouvez m'appeler) <name>
preference: (?:souviens-toi|souvenez-vous|rappelle-toi|n'oublie pas|n'oubliez pas
    |retiens) que (?:j|mon|ma)
preference: (?:je préfère qu|je préférerais qu|j'aime(?:rais)? (?:que (?:tu|vous)|quand (?:tu|vous)))
preference: je n'aime pas (?:quand|que) (?:tu|vous)\b|m(?:on|a) \w+ préférée? est\b
    |je suis allergique
instruction: (?:ne |n')(?:\w+ )?\w+(?:-\w+)? (?:\w+ )?(?:jamais|plus)\b(?<!pas plus)
instruction: ne (?:jamais|plus) \w+r\b|toujours \w+(?:er|ir|re)\b
instruction: <fr_do> (?:\w+ ){0,3}?toujours\b
instruction: (?:veuillez|merci de) (?:toujours|ne (?:jamais|plus))\b
instruction: (?:à partir (?:de maintenant|d'aujourd'hui)|dorénavant|désormais
    |à l'avenir),? (?:<fr_do>\b|ne |n'|tu (?:dois|peux)|je (?:veux|voudrais|préfère)|merci
    |plus de|\w+ez\b)
instruction: (?:arrête|arrêtez|cesse|cessez) (?:de |d')
instruction: (?:tu|vous) (?:dois|devez|devrais|devriez) (?:toujours|ne jamais)\b|(?:tu
    |vous) ne (?:dois|devez) jamais\b
instruction: je (?:veux|voudrais|souhaite) que (?:tu|vous) .*\b(?:toujours|jamais)\b
instruction: (?:à )?chaque fois que\b[^,]*, <fr_do>
"""

SPANISH = r"""
name: (?:llámame|llámeme|puedes llamarme|me llamo|mi nombre es) <name>
preference: (?:recuerda|acuérdate de|ten en cuenta|no olvides) que (?:yo |no )?(?:soy|tengo|mi|me
    |prefiero|vivo|trabajo)\b
preference: prefiero que\b|preferiría que\b|me gusta (?:que|cuando) (?:me|tú|usted)\b
    |no me gusta que\b|soy alérgic[oa]\b|mi \w+ (?:favorit|preferid)[oa] es\b
instruction: (?:nunca|jamás) (?:(?:me|le|lo|la|nos) )*<es_not>\b
instruction: no (?:(?:me|le|lo|la|nos) )*<es_not> (?:\w+ )?(?:nunca|jamás|más)\b
instruction: <es_do>(?: \w+){0,3}? siempre\b|siempre <es_do>\b
instruction: (?:siempre|cada vez) que\b[^,]*, <es_do>\b
instruction: (?:a partir de (?:ahora|hoy)|de ahora en adelante|desde ahora|en (?:el futuro
    |adelante)),? (?:por favor,? )?(?:<es_do>|no|nunca|siempre|quiero|prefiero|solo|sólo)\b
instruction: quiero que (?:siempre|nunca)\b
instruction: (?:deja|deje|para) (?:ya )?de \w+[aei]r(?:te|se|me|lo)?\b
instruction: (?:siempre debes|nunca debes|no debes nunca|debes (?:siempre|\w+ siempre))\b
"""

ITALIAN = r"""
name: (?:chiamami|puoi chiamarmi|mi chiamo|il mio nome è) <name>
preference: ricorda(?:ti)? che (?:non )?(?:sono|ho|mi|il mio|la mia)\b|sono allergic[oa]\b
preference: preferisco che\b|preferirei che\b|(?:non )?mi piace (?:che|quando) (?:tu|mi)\b|(?:il
    |la) mi[oa] \w+ preferit[oa] è\b
instruction: non \w+(?:are|ere|ire|[aei]rmi|[aei]rlo) (?:\w+ ){0,2}?(?:mai|più)\b
instruction: <it_do>(?: \w+){0,3}? sempre\b|ogni volta che\b[^,]*, <it_do>\b
instruction: (?:d'ora in (?:poi|avanti)|da (?:adesso|ora) in (?:poi|avanti)
    |in futuro),? (?:per favore,? )?(?:<it_do>|non|mai|sempre|voglio|solo)\b
instruction: (?:smetti|smettila|smettetela|smetta) di \w+r(?:e|ti|si|mi)\b|basta con \w+
instruction: (?:devi sempre|non devi mai)\b
"""

PORTUGUESE = r"""
name: (?:me chame de|chame-me(?: de)?|chama-me|pode me chamar de|(?:o )?meu nome é|me chamo
    |chamo-me) <name>
preference: (?:lembre-se|lembra-te|não (?:se )?esqueça)(?: de)? que (?:não )?(?:eu|sou|tenho|meu
    |minha)\b
preference: prefiro que\b|prefer(?:ir)?ia que\b|(?:não )?gosto (?:que|quando) (?:você|tu|me)\b
    |sou alérgic[oa]\b|(?:o )?meu \w+ (?:favorito|preferido) é\b
instruction: (?:nunca|jamais|sempre) (?:me )?<pt_do>\b|<pt_do>(?: \w+){0,2}? sempre\b
instruction: não (?:me )?<pt_do>(?: \w+){0,2}? (?:mais|nunca)\b|sempre que\b[^,]*, <pt_do>\b
instruction: (?:a partir de (?:agora|hoje)|de (?:agora|hoje) em diante|daqui (?:para
    |pra) (?:a )?frente|no futuro),? (?:por favor,? )?(?:<pt_do>|não|nunca|sempre|quero|só)\b
instruction: (?:pare|para|deixe|deixa) de \w+[aeio]r\b|(?:você )?deve sempre\b|
    (?:você )?nunca deve\b
"""

RUSSIAN = r"""
name: (?:называй|зови)(?:те)? меня (?:просто )?<name>|меня зовут <name>|мо[её] имя —? ?<name>
preference: (?:запомни|помни|имей в виду|учти)(?:те)?,? что (?:я|у меня|мне|мо[йяё])\b
    |у меня аллергия\b
preference: мне (?:больше |не )?нравится,? когда (?:ты|вы)\b
instruction: всегда <ru_do>|(?:больше )?никогда (?:больше )?не <ru_do>|больше не <ru_do>
instruction: (?:с этого момента|отныне|впредь|в будущем|с сегодняшнего дня
    |теперь),? (?:пожалуйста,? )?(?:(?:всегда|никогда|только|не) )*<ru_do>
instruction: (?:перестань|перестаньте|прекрати|прекратите|хватит) \w+ть(?:ся)?\b
instruction: каждый раз,? когда\b[^,]*, <ru_do>
"""

CHINESE = r"""
name: (?:你可以|就)?(?:叫我|称呼我为?)(?!起床|一声|过来|去|来|的|怎么)[\w·]{1,8}[。！!吧~]*$
name: 我的名字(?:是|叫)[\w·]{1,8}|我叫(?!了|他|她|你|车|过|不)[\w·]{1,5}[。！!]*$
preference: 记住[，,：:]?我|别忘了我|我对\w{1,8}过敏
preference: 我(?:一般|通常|还是)?(?:更|比较|最)(?:喜欢|偏好|倾向)|我不喜欢你|我希望你(?:不要|别)
instruction: (?:你(?:要|应该|必须))?(?:始终|总是|一直|永远|每次都|务必|一律)(?:都?要|都|只)?
    (?:使用|用|以|先|写|回答|给|加|把|检查|保持|附|说|标|注)
instruction: (?:你)?(?:永远|绝对|千万|以后|今后)(?:都|也)?(?:不要|别|不许|不能|不准)|(?:不要
    |别)再(?:用|写|发|道歉|加|提|问|叫|给|使用|推荐|重复)
instruction: (?:从现在(?:开始|起)|从今以后|今后|以后|从今天(?:起|开始))[，, ]?(?:请|都|你|回答|用
    |不|别|要|只|每|把|一律|给|写|说|叫|称)
instruction: (?:每次|每当|只要)(?:我|你|写|回答|给|提交|生成).*?(?:都要|就要|请|必须|要)
instruction: 我希望你(?:以后|总是|始终|每次)
"""

JAPANESE = r"""
name: .{1,20}(?:と|って)呼んで(?:ください|下さい|ね|くれ)?[。！!]*$|(?:私|僕|俺)の名前は.{1,20}
    (?:です|だ)[。！!]*$
preference: .*(?:覚えておいて|忘れないで)(?:ください|下さい|ね)?[。！!]*$
preference: (?!.*(?:兄|姉|弟|妹|彼|母|父|妻|夫|友達|さん)は).*(?:ほう|方)が(?:好き|いい|好み)
    (?:です|だ)?[ねな]?[。！!]*$
instruction: .*(?:常に|いつも|必ず|毎回|絶対|二度と|決して|これから|今後|以後|以降|もう(?!一度
    |少し|すぐ)).*<ja_asked>[。！!]*$
instruction: .*<ja_asked>、(?:絶対に?|必ず|今後は?|これからは?|いつも)[。！!]*$
"""

KOREAN = r"""
name: .{1,12}(?:라고|이라고) 불러|(?:제|내) 이름은 .{1,12}(?:입니다|이에요|예요|야)
preference: .*(?:선호해요|선호합니다|게 더 좋아요|것을 더 좋아합니다|걸 더 좋아해요)[.!]*$|.*
    (?:기억해|알아) (?:주세요|줘)[.!]*$
instruction: (?:.*)(?:항상|언제나|절대|앞으로|이제부터|다시는|매번)(?:로|는)? .*<ko_asked>
"""

LANGUAGES = {
    "english": ENGLISH,
    "german": GERMAN,
    "french": FRENCH,
    "spanish": SPANISH,
    "italian": ITALIAN,
    "portuguese": PORTUGUESE,
    "russian": RUSSIAN,
    "chinese": CHINESE,
    "japanese": JAPANESE,
    "korean": KOREAN,
}


_PART = re.compile(r"(?<!\?P)<([a-z_]+)>")
"""A name to be replaced; `(?P<name>` is a group of the pattern."""


@dataclass(frozen=True, slots=True)
class LearningRules:
    """The compiled rules of a language."""

    each: Sequence[tuple[LearningKind, re.Pattern[str]]]
    """The first to match a clause from its start gives the kind."""
    any: re.Pattern[str]
    """Matches where one of them does, in a fifth of the time."""


@dataclass(frozen=True, slots=True)
class SharedPatterns:
    """The compiled patterns that apply whatever the language of a sentence."""

    request: re.Pattern[str]
    """Matches a question that asks for something lasting: "could you always …?"."""
    lead: re.Pattern[str]
    """Matches words before an instruction, such as "please" or "by the way"."""
    reported: re.Pattern[str]
    """Matches reported speech and the past: the clauses after it give no instruction."""
    attribution: re.Pattern[str]
    """Matches the end of a sentence that names another speaker or marks a joke."""
    to_agent: re.Pattern[str]
    """Matches an order about telling "the user", which no user gives: it is meant for the agent."""
    override: re.Pattern[str]
    """Matches an order to ignore what an agent was told before."""


@cache
def rules_of(language: str) -> LearningRules:
    """Return the rules of a language.

    Compiled on first use: English takes 20 ms, which would delay every start.
    """
    table = parse_table(LANGUAGES[language])
    return LearningRules(
        each=tuple((LearningKind(kind), _compile(rule)) for kind, rule in table),
        any=_compile("|".join(rule for _, rule in table)),
    )


@cache
def shared_patterns() -> SharedPatterns:
    """Return the shared patterns, compiled on first use."""
    parts = _all_parts()
    return SharedPatterns(
        request=_compile(parts["request"]),
        lead=_compile(parts["lead"]),
        reported=_compile(parts["reported"]),
        attribution=_compile(parts["attribution"]),
        to_agent=_compile(parts["to_agent"]),
        override=_compile(parts["override"]),
    )


@cache
def _all_parts() -> Mapping[str, str]:
    return dict(parse_table(PARTS))


def parse_table(table: str) -> list[tuple[str, str]]:
    """Parse the names and patterns of a table, joining indented lines to the line above."""
    joined = table.strip().replace("\n    ", "")
    if not joined:
        return []
    entries = (line.partition(": ") for line in joined.split("\n"))
    return [(name, pattern) for name, _, pattern in entries]


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern with each `<name>` replaced by the part of that name."""
    return re.compile(substitute_parts(pattern, _all_parts()), re.IGNORECASE)


def substitute_parts(pattern: str, parts: Mapping[str, str]) -> str:
    """Return a pattern with each `<name>` replaced by the part of that name."""
    while _PART.search(pattern):
        pattern = _PART.sub(lambda part: f"(?:{parts[part[1]]})", pattern)
    return pattern
