"""Whatever happens to a table of this room, it is read with every entry counted, or refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from tests.sources.yeast.test_damage import damage
from tests.sources.yeast.traits.test_deleteome import table as deleteome_table
from tests.sources.yeast.traits.test_messner2023 import TEXT, metadata
from tests.sources.yeast.traits.test_phenome import MORPHOLOGY
from wildtype.datasets.reading import ReadReport
from wildtype.errors import SourceError
from wildtype.sources.yeast.genes.sgd import read_genes
from wildtype.sources.yeast.traits import calmorph, deleteome, messner2023, phenome
from wildtype.sources.yeast.traits.phenome import MULLEDER, VIZEACOUMAR

CALMORPH = "ORF\tC11-1_A\tACVC11-1_A\nyal001c\t1\t0.5\nyal002w\t2\t0.25\n"
TEXTS = {
    VIZEACOUMAR.file: MORPHOLOGY,
    MULLEDER.file: 'ORF,gene,alanine,aspartate\nYAL002W,VPS8,3.4,2.4\nYBR208C,"DUR1,2",-1.0,-2.1\n',
    f"{calmorph.MUTANTS.name}.gz": CALMORPH,
    f"{calmorph.WILD_TYPES.name}.gz": CALMORPH.replace("ORF", "NAME"),
    f"{deleteome.DELETEOME.name}.gz": deleteome_table(),
    f"{messner2023.MATRIX.name}.gz": TEXT,
    f"{messner2023.METADATA.name}.gz": metadata(),
    "UP000002311_559292.fasta.gz": ">sp|P00001|A_YEAST One OS=Yeast OX=559292 GN=EFB1 PE=1 SV=1\nMA\n",
}
READERS = [
    phenome.READERS["vizeacoumar2010"], phenome.READERS["mulleder2016"], calmorph.read, calmorph.read,
    deleteome.read, messner2023.read, messner2023.read,
]  # fmt: skip
CASES = list(zip(list(TEXTS)[:-1], READERS, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("file", "reader"), CASES, ids=[file for file, _ in CASES])
def test_every_mutated_file_is_read_or_refused(
    shared_small, file: str, reader: Callable[..., object]
) -> None:
    genes = read_genes(shared_small.path)[0]
    before = {path.name: path.read_bytes() for path in shared_small.path.iterdir()}
    for name, text in TEXTS.items():
        shared_small.write(name, text)
    reader(shared_small.path, genes)  # the file is good to begin with

    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    @given(damage())
    def check(change: Callable[[str], bytes]) -> None:
        shared_small.write(file, change(TEXTS[file]))
        readings: list[ReadReport] = []
        try:
            found = reader(shared_small.path, genes, collect=readings.append)
        except SourceError as error:
            assert any(name.removesuffix(".gz") in str(error) for name in TEXTS)  # noqa: PT017
        else:
            assert all(r.rows == r.kept + sum(r.dropped.values()) for r in readings)
            assert len(found) == sum(r.kept for r in readings if r.use.startswith("measurements"))

    try:
        check()
    finally:
        for name in TEXTS:
            (shared_small.path / name).unlink()
        for name, content in before.items():
            (shared_small.path / name).write_bytes(content)


@pytest.mark.parametrize(
    ("file", "old", "reader"),
    [
        (VIZEACOUMAR.file, "cell area", phenome.READERS["vizeacoumar2010"]),
        (MULLEDER.file, "alanine", phenome.READERS["mulleder2016"]),
        (f"{calmorph.MUTANTS.name}.gz", "yal001c", calmorph.read),
        (f"{calmorph.WILD_TYPES.name}.gz", "yal001c", calmorph.read),
        (f"{deleteome.DELETEOME.name}.gz", "A_1", deleteome.read),
        (f"{messner2023.MATRIX.name}.gz", "P00001,", messner2023.read),
    ],
)
def test_control_characters_in_names_are_refused(
    small, file: str, old: str, reader: Callable[..., object]
) -> None:
    genes = read_genes(small.path)[0]
    for name, text in TEXTS.items():
        small.write(name, text)
    small.write(file, TEXTS[file].replace(old, f"x\x02{old}", 1))
    with pytest.raises(SourceError, match=r"received .*x02.*expected printable text"):
        reader(small.path, genes)
