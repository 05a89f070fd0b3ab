"""BioGRID of any organism; the files are written by hand in the published layouts, tab3 and tab2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.sources.user_organisms.files import names_of, read, refused, write
from wildtype.organism import GeneIndex, Organism
from wildtype.sources.biogrid import HEADER, TAB2
from wildtype.sources.user_organisms.description import Biogrid
from wildtype.sources.user_tables.table import read_table

GENES = GeneIndex(
    ["FBgn1", "FBgn2", "FBgn3", "FBgn4"], {"FBgn1": "rl", "FBgn2": "Dsor1", "FBgn3": "phl"},
    {"FBgn4": ["31221"], "FBgn2": ["CG15793"]}, organism="fly",
)  # fmt: skip
ROWS = (
    ("FBgn1", "rl", "FBgn2", "Dsor1", "Two-hybrid", "physical", "7227", "7227", "-"),
    ("-", "rl", "CG15793", "MEK", "Affinity Capture-MS", "physical", "7227", "7227", "-"),
    ("-", "phl", "other", "nameless", "Affinity Capture-MS", "physical", "7227", "7227", "-"),
    ("-", "Phl", "-", "dMEK", "Affinity Capture-MS", "physical", "7227", "7227", "-"),
    ("FBgn1", "rl", "FBgn1", "rl", "Two-hybrid", "physical", "7227", "7227", "-"),
    ("FBgn1", "rl", "FBgn3", "phl", "Affinity Capture-RNA", "physical", "7227", "7227", "-"),
    ("FBgn1", "rl", "x", "MAPK1", "Two-hybrid", "physical", "7227", "9606", "-"),
    ("FBgn1", "rl", "FBgn3", "phl", "Negative Genetic", "genetic", "7227", "7227", "-0.42"),
    ("FBgn1", "rl", "FBgn2", "Dsor1", "Synthetic Lethality", "genetic", "7227", "7227", "-"),
    ("FBgn1", "rl", "unknown", "unknown", "Positive Genetic", "genetic", "7227", "7227", "1.5"),
)


def biogrid(header: tuple[str, ...] = HEADER, rows: tuple = ROWS) -> str:
    organism, study = ("Organism ID", "Publication Source") if header is HEADER else ("Organism", "Pubmed ID")
    lines = ["\t".join(header)]
    for a, name_a, b, name_b, system, kind, taxon_a, taxon_b, score in rows:
        cells = dict.fromkeys(header, "-") | {
            "Systematic Name Interactor A": a, "Systematic Name Interactor B": b,
            "Official Symbol Interactor A": name_a, "Official Symbol Interactor B": name_b,
            "Synonyms Interactor B": "zzz|Dsor1" if name_b == "dMEK" else "-",
            "Experimental System": system, "Experimental System Type": kind, "Author": "Horn T (2011)",
            study: "PUBMED:1", f"{organism} Interactor A": taxon_a, f"{organism} Interactor B": taxon_b,
            "Score": score,
        }  # fmt: skip
        lines.append("\t".join(cells.values()))
    return "\n".join(lines) + "\n"


def part(folder: Path, text: str, **options: object) -> Biogrid:
    name = write(folder, "BIOGRID-ORGANISM-Fly-4.4.230.tab3.txt.gz", text)
    return Biogrid(name="physical", path=name, format="biogrid", **options)


@pytest.mark.parametrize("header", [HEADER, TAB2])
def test_physical_rows_are_a_relation(tmp_path: Path, header: tuple[str, ...]) -> None:
    found = read("relations", part(tmp_path, biogrid(header), taxon=7227), tmp_path, GENES)
    (relation,), (card,) = found.relations, found.cards
    assert (relation.name, relation.directed, relation.weighted) == ("physical", False, False)
    assert (relation.source, relation.version) == ("BioGRID", "4.4.230")
    # FBgn1-FBgn2 twice, by symbol and alias; phl-dMEK, whose synonym is Dsor1
    assert np.argwhere(relation.adjacency.toarray()).tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert (card.rows, card.used) == (10, 2)
    assert card.dropped == {
        "partner of another organism": 1,
        "genetic interaction, offered as a measurement": 3,
        "protein and RNA": 1,
        "unknown gene": 1,
        "self-loop": 1,
        "duplicate": 1,
    }
    assert card.note == "2 genetic interactions can be written as measurements, 1 more have no two genes"


def test_genetic_rows_are_offered_as_tables(tmp_path: Path) -> None:
    tables = read("relations", part(tmp_path, biogrid(), taxon=7227), tmp_path, GENES).measurements
    assert {name: frame.to_dict("records") for name, frame in tables.items()} == {
        "physical_genetic_scores.csv": [
            {"genes": "FBgn1;FBgn3", "phenotype": "Negative Genetic", "value": -0.42,
             "study": "Horn T (2011), PUBMED:1"}
        ],
        "physical_genetic_calls.csv": [
            {"genes": "FBgn1;FBgn2", "phenotype": "Synthetic Lethality reported", "value": 1.0,
             "study": "Horn T (2011), PUBMED:1"}
        ],
    }  # fmt: skip


def test_offered_tables_are_read_by_data_import(tmp_path: Path) -> None:
    tables = read("relations", part(tmp_path, biogrid(), taxon=7227), tmp_path, GENES).measurements
    for name, frame in tables.items():
        assert isinstance(frame, pd.DataFrame)
        frame.to_csv(tmp_path / name, index=False)
        back = read_table(tmp_path / name, Organism("fly", GENES))
        assert back.value.tolist() == frame["value"].tolist()
        assert [one.name for one in back.phenotypes] == frame["phenotype"].tolist()
        assert back.offsets.tolist() == [0, 2]


def test_the_only_taxon_needs_no_name_and_several_do(tmp_path: Path) -> None:
    only = part(tmp_path, biogrid(rows=ROWS[:5]))
    assert read("relations", only, tmp_path, GENES).cards[0].note == "taxon 7227, of most rows"
    assert names_of("relations", only, tmp_path) == [
        "CG15793",
        "FBgn1",
        "FBgn2",
        "Phl",
        "dMEK",
        "other",
        "phl",
        "rl",
    ]
    human = (*ROWS, *[("x", "A", "y", "B", "Two-hybrid", "physical", "9606", "9606", "-")] * 5)
    several = part(tmp_path, biogrid(rows=human))
    line = refused("relations", several, tmp_path, GENES)
    assert "several taxa (7227 (9 rows), 9606 (5 rows)): name one as taxon" in line
    line = refused("relations", part(tmp_path, biogrid(rows=human), taxon=10090), tmp_path, GENES)
    assert "no row is within taxon 10090: the file has rows within 7227 (9 rows)" in line


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Experimental System Type", "Type", "line 1: received the header"),
        ("\tgenetic\t", "\tother\t", "line 9: received 'other', expected physical or genetic"),
        ("\tTwo-hybrid\t", "\t", "line 2: received 36 fields, expected 37"),
    ],
)
def test_damage_names_the_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    line = refused("relations", part(tmp_path, biogrid().replace(old, new, 1)), tmp_path, GENES)
    assert message in line
    assert line.startswith("BIOGRID-ORGANISM-Fly")


def test_a_file_without_a_known_gene_names_the_first(tmp_path: Path) -> None:
    other = GeneIndex(["a", "b"], organism="other")
    line = refused("relations", part(tmp_path, biogrid(), taxon=7227), tmp_path, other)
    assert "names no gene of organism 'other' (its first names: FBgn1, rl, phl" in line
