"""The words the bench corpus is made of; plain lists, so that every run draws the same text."""

from __future__ import annotations


def words(text: str) -> list[str]:
    return text.split()


def phrases(text: str) -> list[str]:
    return [phrase.replace("-", " ") for phrase in text.split()]


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def pairs(text: str) -> list[tuple[str, str]]:
    return [
        (base, past) for base, _, past in (pair.partition("/") for pair in text.split())
    ]


FIRST_NAMES = words("""
Adaeze Agnes Aiko Alma Amir Anika Anselm Aoife Arturo Astrid Bastian Beatriz Benedikt Birgit
Bruno Calla Camille Casimir Chiara Cosima Dario Delphine Dmitri Edda Eilidh Elias Emeka Enzo
Esther Farid Femi Fiona Florian Frieda Gaspard Greta Guadalupe Hakim Hana Hedwig Henrik Ibrahim
Ines Ingrid Isolde Ivo Jadwiga Jasper Joaquim Jonna Josefa Kaito Kamala Katarina Kenji Klara
Kofi Lars Leonie Lidia Linus Lorenzo Lucia Ludmila Magnus Malika Marisol Marta Matteo Mihail
Mirela Naima Nadia Nikolai Noor Odette Olaf Oluwaseun Oscar Paloma Pavel Petra Philippa Qadir
Quentin Rafaela Ragnhild Ramon Renata Rosalind Ruben Sabine Salma Sanjay Selma Severin Signe
Soren Stella Sunniva Svetlana Tamsin Tariq Teodor Thandiwe Tobias Ulrike Umberto Valentina Viggo
Wanda Wilhelm Xenia Yara Yusuf Zofia
""")

LAST_NAMES = words("""
Abernathy Achterberg Adeyemi Albrecht Almeida Andrade Aranda Ashworth Bakshi Balogun Barreto
Baumann Bellweather Bergstrom Bianchi Blackwood Bonnard Borges Brandvold Brightwell Calderon
Castellano Chandrasekar Cheung Chukwu Clerval Corrigan Cravens Dahlgren Danjuma Delacroix
Demirci Dietrich Domingues Drabek Dunleavy Eastman Eberhardt Eklund Emerson Engelbrecht Escobar
Fairweather Falkner Farrugia Feldmann Fernandes Fitzroy Fontaine Fujimoto Gallagher Garrido
Gerhardt Giordano Goldberg Gorecki Grimaldi Gustafsson Haddad Halvorsen Hargreaves Hashimoto
Heikkinen Hernandez Hoffmann Holloway Hrabal Huxley Ibarra Iglesias Ilyin Ishikawa Ivanova
Jablonski Jacobsen Janssen Jimenez Johansson Kaczmarek Kapoor Karlsson Keller Kimura Kowalczyk
Kristensen Kumar Lachance Lagerlof Lambert Laurent Leclerc Lindqvist Lombardi Lundgren Macarthy
Mancini Marchetti Markovic Mbeki McAllister Mehrotra Mendoza Meridew Mikkelsen Moreau Morimoto
Mukherjee Nakagawa Navarro Nguyen Nilsson Nordstrom Novotny Nwosu Okafor Oliveira Olsson
Ortega Ostrowski Palmgren Papadakis Pellegrini Penhaligon Petrov Pfeiffer Popescu Quintero Rahman
Rasmussen Reinhardt Ricci Rodrigues Rosenthal Rossi Sadowski Salazar Sandoval Santoro Schreiber
Sedgwick Shimizu Silvestri Sjoberg Solberg Sorensen Stavros Steinmetz Strand Suzuki Szymanski
Takeda Tanaka Thackeray Thornbury Tikhonov Tolstaya Trevisan Ueda Underhill Valdez Vandermeer
Varga Vasquez Venkataraman Vestergaard Villanueva Vogel Waldron Watanabe Weatherby Wentworth
Wieczorek Winterbourne Wojcik Yamamoto Yilmaz Zabala Zimmermann
""")

# (base form, past form): a question asks with the base, the memory tells with the past.
VERBS = pairs("""
adjust/adjusted archive/archived assemble/assembled auction/auctioned borrow/borrowed
calibrate/calibrated catalog/catalogd clean/cleaned collect/collected copy/copied
deliver/delivered dismantle/dismantled donate/donated engrave/engraved examine/examined
exchange/exchanged export/exported fetch/fetched frame/framed import/imported insure/insured
inspect/inspected install/installed label/labelled locate/located measure/measured move/moved
order/ordered paint/painted patch/patched photograph/photographed polish/polished
postpone/postponed publish/published purchase/purchased rebuild/rebuilt recover/recovered
refund/refunded rename/renamed repair/repaired replace/replaced reserve/reserved
restore/restored return/returned scan/scanned sell/sold ship/shipped sketch/sketched
store/stored tune/tuned translate/translated varnish/varnished weigh/weighed wrap/wrapped
""")

ADJECTIVES = words("""
amber ancient antique azure bamboo battered blue brass bronze carved ceramic chipped cobalt
copper coral cracked crimson crooked crystal curved damp dented dusty ebony electric embroidered
enamel engraved faded feathered felt fluted folding forged fragile frosted furry gilded glazed
granite green hollow inflatable iron ivory jade knitted lacquered leather linen lopsided magnetic
marble maroon mechanical mossy narrow nickel oak ochre opaque orange padded painted paper pearl
pewter pink plaid plastic porcelain portable purple quilted rattan rusty sandstone scarlet
scratched silent silver slate spotted square steel striped tall tartan tin tiny turquoise velvet
violet walnut waxed white wicker wooden woollen yellow
""")

NOUNS = words("""
accordion almanac anvil apron armchair atlas backpack badge balcony banjo barometer basket beacon
bellows bench binder birdcage blanket blender bookcase bracelet bucket cabinet calculator camera
candlestick canoe canvas caravan carpet cello chandelier chessboard chisel clarinet clock compass
cooker cradle crane cupboard curtain decanter dictionary doorbell drawer drum dynamo easel
engine envelope fiddle flask flute fountain freezer furnace gate generator globe goblet gramophone
guitar gutter hammock harp harness hatch heater helmet hinge hourglass inkwell jacket jigsaw jug
kayak kettle keyboard kiln kite lamp lantern lathe lectern lens lighthouse locket loom lute magnet
mandolin map mattress medal metronome microscope mirror monocle mosaic motor mural needle notebook
oar oboe oven padlock paddle parasol pendulum piano pillow pipette plough postcard press printer
prism projector pump puppet quill quilt rack radiator radio raft ramp ratchet receiver relay
rudder saddle sail saxophone scale scanner screen sculpture shelf shield signpost sledge sofa
speaker spindle stapler statue stove suitcase sundial tablecloth tapestry telescope tent terminal
thermometer tractor trailer tram tripod trombone trumpet turbine typewriter umbrella urn valve
vase viola violin wagon wardrobe wheel whistle windmill workbench wreath xylophone yacht zither
""")

PLACES = phrases("""
at-the-harbour-office at-the-railway-depot at-the-night-market at-the-old-brewery at-pier-nine
at-the-north-gate at-the-bus-garage at-the-public-library at-the-town-archive at-the-dairy
at-the-swimming-hall at-the-observatory at-the-cattle-fair at-the-ferry-landing at-the-mill
behind-the-bakery behind-the-chapel behind-the-cinema behind-the-pharmacy behind-the-school
beside-the-aqueduct beside-the-canal-lock beside-the-orchard beside-the-quarry beside-the-weir
in-the-attic in-the-basement in-the-boat-house in-the-botanical-garden in-the-cable-tunnel
in-the-cellar in-the-clinic in-the-clock-tower in-the-conference-wing in-the-courtyard
in-the-east-wing in-the-glass-house in-the-guest-room in-the-gymnasium in-the-machine-hall
in-the-mail-room in-the-music-school in-the-post-office in-the-print-shop in-the-roof-garden
in-the-server-room in-the-tea-house in-the-theatre in-the-vineyard in-the-waiting-room
near-the-drawbridge near-the-fish-market near-the-glacier-hut near-the-lagoon near-the-monument
near-the-radio-mast near-the-stadium near-the-tollbooth near-the-viaduct near-the-windbreak
""")

EVENTS = phrases("""
the-annual-audit the-autumn-storm the-budget-review the-choir-rehearsal the-code-freeze
the-data-migration the-dress-rehearsal the-early-frost the-election the-fire-drill the-flood
the-garden-party the-harvest the-heat-wave the-holiday-rush the-insurance-claim the-jury-visit
the-kick-off-call the-landlord's-letter the-long-outage the-marathon the-merger the-night-shift
the-open-day the-parents'-evening the-power-cut the-press-visit the-product-launch the-regatta
the-retrospective the-road-works the-safety-check the-school-trip the-second-interview
the-security-review the-solstice the-spring-cleaning the-stock-take the-supplier-strike
the-tax-return the-thesis-defence the-train-delay the-trade-fair the-water-leak the-wedding
""")

MONTHS = words("""
January February March April May June July August September October November December
""")

SYLLABLES = words("""
ba bel bor cal cor da del dor el en fal fen gar hal hel in ka kel lan lor ma mar mel nal nor or
pel ra ren sa sel tal tan ter tor ul va ver vi win
""")

# Letters no word above is built from in this way: a question of these matches nothing.
NONSENSE_SYLLABLES = words("zquo xiv wubb qyz vrox jhup zwik kzot gyxx phqua")

# Words of the sentences themselves, each in 5 to 25 % of the memories.
TALK = words("""
agreed came confirmed details end filed first invoice listed look nobody notes one paid record
reference remember ticket time told until wait
""")

HOSTS = words("docs wiki tracker files status calendar shop maps lab media")
SOURCES = ["editor", "terminal", "mail", "browser", "calendar"]
