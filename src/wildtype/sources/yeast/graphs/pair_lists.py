"""Gene graphs that come as plain lists of pairs of ORFs: protein interactions and co-expression.

One row of the table below is one file; all are read the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wildtype.datasets.reading import ReadReport
from wildtype.datasets.records import Publication
from wildtype.errors import DatasetError
from wildtype.organism import GeneIndex, Relation
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import match_genes, read_rows
from wildtype.sources.yeast.names import match_pairs


@dataclass(frozen=True)
class PairList:
    """A file of one pair per line, without header.

    Attributes
    ----------
    relation : str
        Name of the relation it becomes.
    file : str
        Name of the file.
    separator : str
        Between the fields.
    weighted : bool
        Whether a third field is the weight.
    publisher : Publisher
        Where it comes from: one file, which others prepared from the publication.
    note : str
        What the weight means, what a reader must know.
    """

    relation: str
    file: str
    separator: str
    weighted: bool
    publisher: Publisher
    note: str = ""


def _list(
    relation: str,
    file: str,
    separator: str,
    *,
    weight: str = "",
    title: str,
    publication: Publication,
    licence: str = "not stated",
    rows: int,
    place: str,
    url: str = "",
) -> PairList:
    """Return a list as ``place`` (path in a repository, its name) has it; ``weight``: what that means."""
    path, _, repository = place.partition(" of ")
    remote = RemoteFile(
        file,
        (url,) if url else (),
        aliases=(path.rpartition("/")[2],),
        gated="" if url else f"take {path} of the repository {repository}",
    )
    publisher = Publisher(
        relation.replace("_", "-"),
        title,
        publication,
        licence,
        (remote,),
        {"rows": rows},
        (f"prepared by others: {place}", *((f"weight: {weight}",) if weight else ())),
    )
    return PairList(relation, file, separator, bool(weight), publisher, f"weight: {weight}" if weight else "")


KROGAN = Publication(
    citation="Krogan et al. 2006, Global landscape of protein complexes in the yeast Saccharomyces "
    "cerevisiae, Nature 440:637"
)
LISTS = (
    _list(
        "coexpression_hu2007", "coexpression_hu2007_bionic.txt", " ", rows=14_826,
        weight="correlation of expression over deletion strains, cut near 0.73; no input for targets that "
        "are expression profiles of the same deletions",
        title="Co-expression over deletions of transcription factors",
        publication=Publication(
            citation="Hu, Killion and Iyer 2007, Genetic reconstruction of a functional transcriptional "
            "regulatory network, Nat Genet 39:683",
            doi="10.1038/ng2012",
        ),
        place="bionic/inputs/Hu-2007.txt of bowang-lab/BIONIC",
        url="https://raw.githubusercontent.com/bowang-lab/BIONIC/"
        "c01cdae28c09fa77f2196c5fcbc3f059ba527208/bionic/inputs/Hu-2007.txt",
    ),
    _list(
        "ppi_dip", "ppi_dip_2017.csv", ",", rows=22_496,
        title="DIP: database of interacting proteins, release of 2017-02-05, mapped to ORFs",
        publication=Publication(
            citation="Salwinski et al. 2004, The database of interacting proteins: 2004 update, "
            "Nucleic Acids Res 32:D449"
        ),
        licence="CC BY-ND 3.0, not confirmed",
        place="data/preprocessed/dip_ppin.csv of avancayetano/cs199-bioinformatics",
    ),
    _list(
        "ppi_bim", "ppi_biogrid_intact_mint_yong.txt", " ", rows=48_286,
        weight="reliability of the pair as the list gives it, 0.5 to 1",
        title="Union of BioGRID, IntAct and MINT physical interactions",
        publication=Publication(
            citation="Yong et al. 2012, Supervised maximum-likelihood weighting of composite protein "
            "networks for complex prediction, BMC Syst Biol 6 Suppl 2:S13"
        ),
        licence="BioGRID MIT, IntAct and MINT CC BY 4.0, not confirmed",
        place="data/Yeast/Integrated/BIM.txt of YSHebron/scl-bioinfo",
    ),
    _list(
        "ppi_collins2007", "ppi_collins2007.txt", "\t", rows=9_074,
        weight="derived from the purification enrichment score",
        title="Consolidated affinity purifications",
        publication=Publication(
            citation="Collins et al. 2007, Toward a comprehensive atlas of the physical interactome of "
            "Saccharomyces cerevisiae, Mol Cell Proteomics 6:439",
            doi="10.1074/mcp.M600381-MCP200",
        ),
        place="data/Yeast/Collins/Collins.txt of YSHebron/scl-bioinfo",
    ),
    _list(
        "ppi_gavin2006", "ppi_gavin2006.txt", " ", rows=7_669, weight="socio-affinity index, rescaled",
        title="Affinity purifications, genome-wide",
        publication=Publication(
            citation="Gavin et al. 2006, Proteome survey reveals modularity of the yeast cell machinery, "
            "Nature 440:631"
        ),
        place="data/Yeast/Gavin/Gavin.txt of YSHebron/scl-bioinfo",
    ),
    _list(
        "ppi_krogan2006_core", "ppi_krogan2006_core.txt", "\t", rows=7_123,
        weight="probability of interaction",
        title="Affinity purifications, core set", publication=KROGAN,
        place="data/Yeast/KroganCore/KroganCore.txt of YSHebron/scl-bioinfo",
    ),
    _list(
        "ppi_krogan2006_extended", "ppi_krogan2006_extended.txt", "\t", rows=14_317,
        weight="probability of interaction",
        title="Affinity purifications, extended set", publication=KROGAN,
        place="data/Yeast/KroganExt/KroganExt.txt of YSHebron/scl-bioinfo",
    ),
    _list(
        "ppi_krogan2006_bionic", "ppi_krogan2006_bionic.txt", " ", rows=7_075,
        title="Affinity purifications, as prepared for BIONIC", publication=KROGAN,
        place="bionic/inputs/Krogan-2006.txt of bowang-lab/BIONIC",
    ),
)  # fmt: skip
"""Every list."""
PUBLISHERS = tuple(item.publisher for item in LISTS)


def read_pair_list(folder: str | Path, genes: GeneIndex, relation: str) -> tuple[Relation, ReadReport]:
    """Return one undirected relation of ``LISTS``; a pair in both orders is one edge, with its larger weight.

    Raises
    ------
    DatasetError
        If there is no such list.
    SourceError
        If the file is missing, damaged, or has a weight that is not positive.
    """
    known = {item.relation: item for item in LISTS}
    if relation not in known:
        raise DatasetError(f"there is no list of pairs {relation!r}; known lists: {', '.join(known)}")
    item = known[relation]
    path = item.publisher.files[0].require(folder)
    rows = read_rows(path, separator=item.separator, fields=3 if item.weighted else 2)
    weights = None
    if item.weighted:
        weights = rows.numbers(2).astype(np.float32)
        rows.refuse(2, weights <= 0, "a weight above 0")
    first, second = match_genes(rows.text(0), genes), match_genes(rows.text(1), genes)
    kept, dropped, renamed = match_pairs(first, second)
    out = Relation.from_edges(
        relation,
        first.position[kept],
        second.position[kept],
        len(genes),
        None if weights is None else weights[kept],
        directed=False,
        source=item.publisher.title,
        note=item.note,
        dropped=dropped,
    )
    return out, ReadReport(path.name, relation, len(rows), out.edges, out.dropped, renamed)
