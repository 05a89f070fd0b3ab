"""Whatever happens to a publisher's file, it is read or refused with a SourceError, never anything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wildtype.errors import SourceError
from wildtype.organism import Organism
from wildtype.sources.yeast import build_organism
from wildtype.sources.yeast.genes.abundance import PAXDB, read_abundance
from wildtype.sources.yeast.genes.sequences import CODING, read_sequence_blocks
from wildtype.sources.yeast.genes.sgd import ESSENTIAL, FEATURES, read_essential, read_genes
from wildtype.sources.yeast.graphs.gene_ontology import GO, read_go_process
from wildtype.sources.yeast.graphs.pair_lists import IREFINDEX, read_physical
from wildtype.sources.yeast.graphs.regulation import BOTH, DOCUMENTED, read_documented, read_regulatory
from wildtype.sources.yeast.graphs.string import NODES_91, PAIRS, read_string
from wildtype.sources.yeast.screens import costanzo2010, costanzo2016
from wildtype.sources.yeast.screens.costanzo2010 import STRINGENT
from wildtype.sources.yeast.screens.costanzo2016 import FILES
from wildtype.sources.yeast.screens.single_fitness import FITNESS
from wildtype.sources.yeast.traits.single_deletions import STUDIES, Study, phenotype_block, read_study

Reader = Callable[[object, Organism], object]


def study(which: Study) -> Reader:
    return lambda path, organism: phenotype_block([read_study(path, which, organism.genes)])


READERS: dict[str, Reader] = {
    FEATURES: lambda path, organism: read_genes(path),
    ESSENTIAL: lambda path, organism: read_essential(path, organism.genes),
    IREFINDEX: lambda path, organism: read_physical(path, organism.genes),
    BOTH: lambda path, organism: read_regulatory(path, organism.genes),
    DOCUMENTED: lambda path, organism: read_documented(path, organism.genes),
    PAIRS: lambda path, organism: read_string(path, organism.genes),
    NODES_91: lambda path, organism: read_string(path, organism.genes, "9.1"),
    "string_v9.1_fusion.tsv.gz": lambda path, organism: read_string(path, organism.genes, "9.1"),
    GO: lambda path, organism: read_go_process(path, organism.genes),
    CODING: lambda path, organism: read_sequence_blocks(path, organism.genes),
    PAXDB: lambda path, organism: read_abundance(path, organism.genes),
    STUDIES[1].file: study(STUDIES[1]),
    STUDIES[-1].file: study(STUDIES[-1]),
    STRINGENT: lambda path, organism: costanzo2010.read(path, organism.genes),
    FILES[0]: lambda path, organism: costanzo2016.read_dcell(path, organism.genes),
    FITNESS: lambda path, organism: list(costanzo2016.read(path, organism.genes)),
}
TOKENS = [
    "", "NaN", "-1", "1e308", "1e29", "1e-320", "0", "2", "YAL001C", "DOUBLE", "\t", ",", " ", '"', "\n", "#",
    ">", "\r", "\0", "é", "x" * 70, "1_0", "inf",
]  # fmt: skip


@st.composite
def damage(draw: st.DrawFn) -> Callable[[str], bytes]:
    """A few small changes to a text."""
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["insert", "delete", "replace", "drop line", "repeat line", "cell", "byte"]),
                st.floats(0, 1, exclude_max=True),
                st.sampled_from(TOKENS),
                st.integers(1, 6),
            ),
            min_size=1,
            max_size=4,
        )
    )

    def change(text: str) -> bytes:
        raw = b""
        for kind, where, token, length in steps:
            at = int(where * (len(text) + 1))
            lines = text.split("\n")
            line = min(int(where * len(lines)), len(lines) - 1)
            if kind == "insert":
                text = text[:at] + token + text[at:]
            elif kind == "delete":
                text = text[:at] + text[at + length :]
            elif kind == "replace":
                text = text[:at] + token + text[at + length :]
            elif kind == "drop line":
                text = "\n".join(lines[:line] + lines[line + 1 :])
            elif kind == "repeat line":
                text = "\n".join(lines[: line + 1] + lines[line:])
            elif kind == "cell":
                cells = lines[line].split("\t")
                cells[length % len(cells)] = token
                text = "\n".join([*lines[:line], "\t".join(cells), *lines[line + 1 :]])
            else:
                raw = b"\xff\xfe"
        return text.encode("utf-8") + raw

    return change


@pytest.mark.slow
@pytest.mark.parametrize("file", READERS)
def test_every_mutated_file_is_read_or_refused(shared_small, file: str) -> None:
    organism = build_organism(shared_small.path)
    original = (shared_small.path / file).read_bytes()
    READERS[file](shared_small.path, organism)  # the file is good to begin with

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(damage())
    def check(change: Callable[[str], bytes]) -> None:
        text = change(shared_small.text(file))
        shared_small.write(file, text)
        try:
            READERS[file](shared_small.path, organism)
            named = True
        except SourceError as error:
            places = (str(shared_small.path), file, "the phenotype tables")
            named = any(place in str(error) for place in places)
        finally:
            (shared_small.path / file).write_bytes(original)
        assert named

    check()


@pytest.mark.parametrize("file", READERS)
def test_a_file_cut_short_in_transfer_is_refused(shared_small, file: str) -> None:
    path = shared_small.path / file
    organism, original = build_organism(shared_small.path), path.read_bytes()
    try:
        for cut in (0, 1, len(original) // 2, len(original) - 1):
            path.write_bytes(original[:cut])
            with pytest.raises(SourceError, match=file.replace(".", r"\.")):
                READERS[file](shared_small.path, organism)
    finally:
        path.write_bytes(original)
