"""The English language."""

from __future__ import annotations

from mnemosyned.text.languages.language import Language, OrderWords

ENGLISH = Language(
    code="en",
    stop_words="""
        the and of to is was were with that this for have has had are be been they
        she he his her their from not will would about which who at on it by as an
        or but you we
    """,
    continuations="""
        ahead step steps proceed continue resume carry keep start begin ready sure
        fine great perfect nice cool awesome agreed correct exactly right yep yup nope
        done finish ship do redo retry next
    """,
    months=(
        "january jan",
        "february feb",
        "march mar",
        "april apr",
        "may",
        "june jun",
        "july jul",
        "august aug",
        "september sep sept",
        "october oct",
        "november nov",
        "december dec",
    ),
    months_capitalized=True,
    weekdays=(
        "monday mon",
        "tuesday tue tues",
        "wednesday wed",
        "thursday thu thurs",
        "friday fri",
        "saturday sat",
        "sunday sun",
    ),
    counts=(
        "one a an",
        "two couple",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    order=OrderWords(
        latest="last|latest|newest|most recent",
        earliest="first|earliest|oldest",
        current="now|still|currently|these days|nowadays|at the moment|meanwhile",
        ahead=(
            "is|are|am|will|shall|can|should|must|do|does|has to|have to|going to|planned|plans?"
            "|scheduled|coming|upcoming|what['’]s|who['’]s|when['’]s|where['’]s"
        ),
        soon="tomorrow next",
        past=(
            "did|was|were|had|ago|said|told|met|saw|bought|went|got|made|took|came|gave|wrote|sent"
            "|left|found|lost|ate|ran|(?!planned|scheduled|booked|invited|supposed|needed|expected"
            r"|arranged|agreed)\w+[^\We]ed|typically|usually|normally|generally|often"
        ),
    ),
    backward_heads="""
        he she it they this that these those there his her hers its their theirs him them
        he's she's it's they're that's there's he'd she'd it'd they'd he'll she'll it'll they'll
        they've that'd that'll there'd there're because or nor which whose whereas otherwise
        therefore thus hence instead too himself herself itself themselves
    """,
    connectives="and but so then also",
    openers="""
        well oh ah aw yeah yes yep yup no nope ok okay wow hey hi haha anyway anyways
        actually honestly plus now right sure absolutely definitely totally exactly
        lol hmm um uh btw basically hello gosh man thanks cool nice great sorry good agreed
    """,
    courtesies="""
        hi hey hello morning thanks thank bye goodbye welcome congrats congratulations cheers
        goodnight sorry yay wow cool nice awesome great perfect ok okay sure noted understood
        good happy
    """,
)
