"""Words and prose: what made-up graphs are written with, and the texts made of it.

Owns the lists and how words become text, for whole columns at a time. A word that needs another
spelling in a key has it after a slash. The order matters: what is drawn with a skew favours the
words at the front, and changing a list changes every graph. Texts have no line breaks, so that
one line of a file is one row; they do have quotes, commas and letters beyond ASCII.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.generate.draws import Draws, Integers

_FEWEST, _MOST = 2, 8
"""Sentences of a body."""
_RARE_WORDS = 1_000_000


def _words(text: str) -> list[str]:
    return text.split()


FIRST_NAMES = _words("""
Ana Ben Chen Dana Elif Femi Grace Hugo Ines Jonas Kofi Lena Maya Noor Omar Priya Quentin Rosa
Sam Tariq Uma Vera Wen Yusuf Zoë/zoe Amélie/amelie Björn/bjorn Čeda/ceda Dolores Émile/emile
Farid Gül/gul Haruki Iván/ivan José/jose Katya Lars Mónica/monica Nils Oksana Pedro Rahul Sofia
Tomás/tomas Ursula Viktor Wanda Ximena Юрий/yuriy Søren/soren Łucja/lucja Ngozi Aiko Basil Clara
Dmitri Esther Fatima Georg Hana Isaac Julia Kwame Leila
""")

LAST_NAMES = _words("""
Adeyemi Bauer Castillo Diaz Eriksen Fischer Garcia Haddad Ito Jansen Kowalski Lindgren Moreau
Nakamura Okafor Petrov Quinn Rossi Santos Tanaka Umarov Vasquez Weber Xu Yilmaz Zhang Almeida
Brandt Chaudhry Dubois Ebert Fontaine Gruber Horvat Ivanova Jensen Kaya Lombardi Mbeki Novak
Olsen Pereira Rahman Schmidt Toure Vargas Wójcik/wojcik Müller/muller Núñez/nunez Šimić/simic
Åberg/aberg Çelik/celik O'Neil/oneil 李/li Öztürk/ozturk Peña/pena Abe Barros Cohen Duarte
Estrada Forsberg Goncharov Hughes Ibarra Joshi Kamara Larsen Mehta Nguyen Orlov Pak Reyes Sato
Traoré/traore Ueda Vidal Wolf Yang Zamora
""")

CITIES = _words("""
Lagos Porto Osaka Lyon Lima Oslo Pune Izmir Quito Turin Accra Basel Cork Dakar Essen Fez Ghent
Hanoi Ibadan Jaipur Krakow Leeds Malmö Nantes Odesa Perth Rosario Sfax Tartu Utrecht Valparaíso
Wellington Xalapa Yokohama Zagreb Antwerp Bursa Cali Durban Erfurt
""")

TAGS = _words("""
reader runner cook chess maps birds jazz trains tea gardens sailing choir pottery film cycling
languages radio bees astronomy climbing drums knitting swimming fossils theatre poetry rowing
cheese kites archery
""")

ROLES = _words("""
engineer analyst nurse driver editor accountant designer technician buyer planner chemist
teacher welder director lawyer gardener
""")

INDUSTRIES = _words("software finance health food transport energy media research")

COMPANY_WORDS = _words("""
Aurora Basalt Cedar Delta Ember Falcon Granite Harbor Indigo Juniper Kestrel Lantern Meridian
Nimbus Orchard Pioneer Quarry Ridge Summit Tundra Umber Vertex Willow Zephyr Anchor Beacon
Copper Drift Estuary Fathom Glacier Heron
""")

COMPANY_KINDS = _words("""
Works Systems Foods Logistics Labs Partners Press Motors Energy Bank Textiles Optics Freight
Clinics Studios Mills
""")

ADJECTIVES = _words("""
new small open quiet cold steady early local cheap hidden public careful double broken distant
early fresh narrow honest rapid useful seasonal coastal rural electric mutual uncertain ancient
borrowed brittle circular dusty fragile hollow luminous migratory nocturnal patient salty tidal
volcanic
""")

NOUNS = _words("""
market harbor grid supply bridge forecast contract station river library factory vaccine orchard
tunnel archive ferry turbine survey ledger canal reactor harvest satellite choir glacier granary
lighthouse meadow observatory quarry rail reservoir sensor shipyard tariff vineyard warehouse
windmill workshop aqueduct
""")

TITLE_OPENINGS = (
    "Notes on the",
    "A short history of the",
    "What we learned from the",
    "Against the",
    "Toward the",
    "The other",
    'The so-called "modern" and the',
    "Costs, risks, gains: the",
)

SUBJECTS = (
    "The committee",
    "A second team",
    "Every customer",
    "The review",
    "Our partner",
    "The city council",
    "A former engineer",
    "The night shift",
    "An independent audit",
    "The supplier",
    "Nobody in the room",
    "The first trial",
    "A reader's letter",
    "The ministry",
    "The insurance office",
    "A visiting crew",
)

VERBS = _words("""
described questioned approved measured rebuilt rejected praised inspected delayed replaced
simplified funded repaired ignored compared documented
""")

SENTENCE_ENDINGS = (
    "before winter.",
    "without a second opinion.",
    "in great detail.",
    "after the spring flood.",
    "at half the cost.",
    'as "a matter of course".',
    "on the café terrace.",
    "twice, and then once more.",
    "for the third year running.",
    "because the old one failed.",
    "during the night.",
    "against all advice.",
)


def shown(entries: list[str]) -> list[str]:
    """The words as people write them."""
    return [entry.partition("/")[0] for entry in entries]


def spelled(entries: list[str]) -> list[str]:
    """The words as keys write them."""
    return [(entry.partition("/")[2] or entry).lower() for entry in entries]


def joined(*parts: pa.Array | str, between: str = "") -> pa.Array:
    """The parts of every row as one text; null where one of them is."""
    return pc.binary_join_element_wise(*map(_literal, parts), between)


def _literal(part: pa.Array | str) -> pa.Array | pa.Scalar:
    return pa.scalar(part) if isinstance(part, str) else part


def picked(entries: Sequence[str], numbers: Integers) -> pa.Array:
    """The entries of a list that some numbers mean."""
    return pa.array(entries, pa.string()).take(pa.array(numbers))


class Prose:
    """What documents are called and what they say."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def topics(self, rows: Integers) -> tuple[pa.Array, pa.Array]:
        """The two words a document is about."""
        return (
            self._some("Document.adjective", rows, ADJECTIVES),
            self._some("Document.noun", rows, NOUNS),
        )

    def titles(self, rows: Integers) -> pa.Array:
        """What the documents are called."""
        openings = self._some("Document.opening", rows, TITLE_OPENINGS)
        return joined(openings, *self.topics(rows), between=" ")

    def bodies(self, rows: Integers) -> pa.Array:
        """What the documents say: a few sentences, and one number that is nearly theirs alone."""
        spread = _MOST - _FEWEST + 1
        counts = _FEWEST + self._draws.below("Document.sentences", rows, spread)
        ends = np.cumsum(counts)
        places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        sentences = self._sentences(np.repeat(rows, counts) * _MOST + places)
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        texts = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), sentences), " ")
        files = self._draws.below("Document.file", rows, _RARE_WORDS)
        return joined("File ", pa.array(files).cast(pa.string()), ". ", texts)

    def _sentences(self, rows: Integers) -> pa.Array:
        return joined(
            self._some("Sentence.subject", rows, SUBJECTS),
            self._some("Sentence.verb", rows, VERBS),
            "the",
            self._some("Sentence.adjective", rows, ADJECTIVES),
            self._some("Sentence.noun", rows, NOUNS),
            self._some("Sentence.ending", rows, SENTENCE_ENDINGS),
            between=" ",
        )

    def _some(self, name: str, rows: Integers, entries: Sequence[str]) -> pa.Array:
        return picked(entries, self._draws.skewed(name, rows, len(entries)))
