"""Whatever happens to a publisher's file, it is read with every row accounted for, or refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from tests.sources.yeast.genes.test_coordinates import ROWS
from tests.sources.yeast.genes.test_sequences import PROTEINS
from tests.sources.yeast.genes.test_sgd import LIST, TABLE
from tests.sources.yeast.genes.test_uniprot import HEADERS, MAPPING
from tests.sources.yeast.graphs.mutations import mutations
from wildtype.errors import SourceError
from wildtype.sources.yeast.genes import coordinates, sequences, sgd, uniprot

GFF = "saccharomyces_cerevisiae.gff"
READERS: dict[str, tuple[str, Callable]] = {
    "sga_chrom_coordinates_150617.tsv": (ROWS, coordinates.read_sga_coordinates),
    "sgd_id_to_systematic_name.lst": (LIST, sgd.read_sgd_ids),
    "SGDgeneNames.tsv": (TABLE, sgd.read_standard_names),
    "orf_trans_all.fasta": (PROTEINS, sequences.read_proteins),
    "UP000002311_559292.fasta": (HEADERS, uniprot.read_accessions),
    "YEAST_559292_idmapping.dat": (MAPPING, uniprot.read_accessions),
    GFF: ("", coordinates.read_gff_coordinates),
}


@pytest.mark.parametrize("file", READERS)
def test_a_changed_file_is_read_or_refused(small, genes, gff: str, file: str) -> None:
    original, reader = READERS[file]
    original = original or gff
    small.write(file, original)
    reader(small.path, genes)  # the file is good to begin with

    @settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
    @given(mutations())
    def check(change: Callable[[str], bytes]) -> None:
        small.write(file, change(original))
        message, rows, told = str(small.path), 0, 0
        try:
            reading = reader(small.path, genes)[1]
            rows, told = reading.rows, reading.kept + sum(reading.dropped.values())
        except SourceError as error:
            message = str(error)
        assert str(small.path) in message
        assert rows == told

    check()


@pytest.mark.parametrize("file", READERS)
def test_a_file_cut_short_in_transfer_is_refused(small, genes, gff: str, file: str) -> None:
    text, reader = READERS[file]
    small.write(file, text or gff)
    path = small.path / file
    original = path.read_bytes()
    for cut in (1, len(original) // 2, len(original) - 1):
        path.write_bytes(original[:cut])
        with pytest.raises(SourceError, match=file.replace(".", r"\.")):
            reader(small.path, genes)
