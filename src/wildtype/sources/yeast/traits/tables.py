"""Tables of single deletions × columns: the studies, their files and layout, read in one way by all users.

Growth screens and trait vectors become measurements (`read_measurements`); nine of the tables are condensed
to a feature block besides (`wildtype.sources.yeast.traits.single_deletions`).

Legend: m strains · c columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wildtype.datasets.measurements import Measurements
from wildtype.datasets.records import Publication
from wildtype.errors import SourceError
from wildtype.organism import GeneIndex
from wildtype.sources.publisher import Publisher, RemoteFile
from wildtype.sources.text import REMEDY, Collector, Header, Rows, ignore, match_genes, read_rows
from wildtype.sources.yeast.screens.parts import study_of
from wildtype.sources.yeast.traits.matrix import (
    Column,
    Mutants,
    measure,
    readable,
    sift,
    told_apart,
    without_gene,
)

MISSING = ("", "NA", "NaN", "nan")
_HOST = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Study:
    """One table: its publisher (of a single file), what it measures, and its layout.

    The columns from the ellipsis of `key` on are the numbers; the first one of all names the deleted gene.
    """

    publisher: Publisher
    use: str
    separator: str = "\t"
    key: Header = ("orf", ...)

    @property
    def name(self) -> str:
        """Key of the study."""
        return self.publisher.name

    @property
    def remote(self) -> RemoteFile:
        """The file."""
        return self.publisher.files[0]

    @property
    def file(self) -> str:
        """Name of the file as compressed for a folder of publishers' files."""
        return f"{self.remote.name}.gz"

    @property
    def source(self) -> str:
        """Phenotype source, ``study:use``; features made from it are refused as input for it."""
        return f"{self.name}:{self.use}"


def _phenome(
    name: str,
    use: str,
    file: str,
    path: str,
    commit: str,
    title: str,
    citation: str,
    published: Mapping[str, int],
    *notes: str,
) -> Study:
    """Return a study as Yeast Phenome gives it out: one file below a folder named by PubMed number."""
    pubmed, original = path.split("/")
    remote = RemoteFile(
        file, (f"{_HOST}/yeastphenome/yp-data/{commit}/Datasets/{path}",), aliases=(original,)
    )
    return Study(
        Publisher(
            name,
            title,
            Publication(citation=citation, pubmed=pubmed),
            "CC BY 4.0 (Yeast Phenome); terms of the article not confirmed",
            (remote,),
            published,
            ("as compiled by Yeast Phenome (yeastphenome.org)", *notes),
        ),
        use,
    )


BRESLOW = _phenome(
    "breslow2008",
    "growth",
    "phenotype_growth_breslow2008.tsv",
    "18622397/breslow_weissman_2008_value.txt",
    "4b73307f232a7e131a396a25ab1dd8c927bad5e3",
    "Growth rates of haploid deletions in competition",
    "Breslow et al. 2008, Nat Methods 5:711",
    {"strains": 4157},
)
DEUTSCHBAUER = _phenome(
    "deutschbauer2005",
    "growth",
    "phenotype_growth_deutschbauer2005.tsv",
    "15716499/deutschbauer_giaever_2005_value.txt",
    "f89ed040c0b51210e1e7215b08def4ea4209b792",
    "Fitness of heterozygous and homozygous deletions in two media",
    "Deutschbauer et al. 2005, Genetics 169:1915",
    {"strains": 5866},
)
QIAN = _phenome(
    "qian2012",
    "growth",
    "phenotype_growth_qian2012.tsv",
    "23103169/qian_zhang_2012_value.txt",
    "478dfb27ca26c937f1a0a69d9b11de4c13a8ec2c",
    "Fitness of homozygous deletions in six media",
    "Qian et al. 2012, Cell Reports 2:1399",
    {"strains": 4403},
    "the media OAK and ETH are named as in the file",
)
STEINMETZ = _phenome(
    "steinmetz2002",
    "growth",
    "phenotype_growth_steinmetz2002.tsv",
    "12134146/steinmetz_davis_2002_value.txt",
    "d4f92be0c552704352edd91cfc48997a87fc0a81",
    "Growth of heterozygous and homozygous deletions in eight media",
    "Steinmetz et al. 2002, Nat Genet 31:400",
    {"strains": 5823, "screens": 16},
    "the unit is not stated in the file",
)
GIAEVER = _phenome(
    "giaever2002",
    "growth",
    "phenotype_growth_giaever2002.tsv",
    "12140549/giaever_johnston_2002_value.txt",
    "20747a7b1e41f24010b29cc4f253dac3f3bbb76e",
    "Growth and cell shape of homozygous deletions",
    "Giaever et al. 2002, Nature 418:387",
    {"strains": 4732, "screens": 22},
    "the unit is not stated in the file, and columns differ in scale; the column of plain YPD is 0 for most",
)
COSTANZO2021 = _phenome(
    "costanzo2021",
    "growth",
    "phenotype_growth14cond_costanzo2021.tsv",
    "33958448/costanzo_andrews_2021_value.txt",
    "c52cd2964b5a37d498dabfcc1b40ed83bfe6d0dc",
    "Effect of single deletions on growth in 14 conditions",
    "Costanzo et al. 2021, Science 372:eabf8424",
    {"strains": 3614, "conditions": 14},
)
VIZEACOUMAR = _phenome(
    "vizeacoumar2010",
    "morphology",
    "phenotype_morphology_vizeacoumar2010.tsv",
    "20065090/vizeacoumar_andrews_2010_value.txt",
    "69f7ad507a3b76836b5bf67eb7b1669bd7fe4f5d",
    "Cell, nuclear and spindle morphology of deletions",
    "Vizeacoumar et al. 2010, J Cell Biol 188:69",
    {"strains": 4245, "traits": 90},
)
MATTIAZZI = _phenome(
    "mattiazzi2020",
    "morphology",
    "phenotype_morphology_mattiazzi2020.tsv",
    "32064787/mattiazzi_usaj_andrews_2020_value.txt",
    "4ceb9ef454414511e56442f8a63013e77a437b25",
    "Penetrance of morphology phenotypes of endocytic compartments",
    "Mattiazzi Usaj et al. 2020, Mol Syst Biol 16:e9243",
    {"strains": 4580, "traits": 17},
)
JORGENSEN = _phenome(
    "jorgensen2002",
    "cell_size",
    "phenotype_cellsize_jorgensen2002.tsv",
    "12089449/jorgensen_tyers_2002_value.txt",
    "d58ca04a9d42e7cb4848d6c38f1c474f8aed1b6c",
    "Cell size of deletions, selected strains only",
    "Jorgensen et al. 2002, Science 297:395",
    {"strains": 441},
)
MULLEDER = Study(
    Publisher(
        "mulleder2016",
        "Amino acids in deletions, z-scores",
        Publication(citation="Mülleder et al. 2016, Cell 167:553"),
        "not confirmed",
        (
            RemoteFile(
                "phenotype_metabolome_mulleder2016_zscores.csv",
                (
                    f"{_HOST}/saezlab/yeast_phospho/c4a677ff52798ae38df4151fbcc3e9be21c5245d/data/"
                    "Mulleder_2016_metabolomics_zscores.csv",
                ),
                aliases=("Mulleder_2016_metabolomics_zscores.csv",),
            ),
        ),
        {"strains": 4678, "traits": 19},
        ("z-scores as kept by saezlab/yeast_phospho, not the publisher's own table",),
    ),
    "amino_acids",
    ",",
    ("ORF", "gene", ...),
)


def read_table(folder: str | Path, study: Study) -> tuple[Rows, NDArray[np.float64]]:
    """Return the rows of a study's table and its numbers [m, c] (NaN: not measured).

    Raises
    ------
    SourceError
        If the file is missing, damaged, or has an entry that is neither a number nor missing.
    """
    rows = read_rows(
        study.remote.require(folder),
        separator=study.separator,
        header=study.key,
        quoted=study.separator == ",",
    )
    start = len(study.key) - 1
    columns = [rows.numbers(i, missing=MISSING) for i in range(start, len(rows.header))]
    return rows, np.stack(columns, axis=1)


def column_of(rows: Rows, name: str) -> int:
    """Return the position of a column; raises ``SourceError`` if there is none of that name."""
    if name not in rows.header:
        raise SourceError(
            f"{rows.path}, line 1: received the columns {', '.join(rows.header)[:60]!r}, expected one named "
            f"{name!r} among them; {REMEDY}"
        )
    return rows.header.index(name)


def read_measurements(
    folder: str | Path,
    genes: GeneIndex,
    study: Study,
    column: Callable[[str, str], Column],
    collect: Collector = ignore,
) -> Measurements:
    """Return one measurement per number of a study's table.

    Parameters
    ----------
    folder : path
        Holds the file.
    genes : GeneIndex
        The organism's genes.
    study : Study
        Which table.
    column : callable
        From a column heading and its place in the file to what the column is.
    collect : callable, optional
        Called with what became of the entries of the table.

    Raises
    ------
    SourceError
        If the file is missing, damaged, or not in the published layout.
    """
    rows, value = read_table(folder, study)
    headings = rows.header[len(study.key) - 1 :]
    names = rows.text(0)
    readable(rows.path, (*headings, *names))
    columns = [column(heading, f"{rows.path}, line 1") for heading in headings]
    matched = match_genes(names, genes)
    value, reading = sift(
        rows.path, "measurements", value, rows=without_gene(matched), renamed=matched.renamed
    )
    collect(reading)
    mutants = Mutants.single(matched.position, told_apart(matched.position, names))
    return measure(study_of(study.publisher, [rows.path]), genes, mutants, columns, value)
