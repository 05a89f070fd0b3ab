"""What the fuzz runs have found: every case is one damage that once gave no plain sentence, or lost a row."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable

import pytest

from tests.sources.fuzz.harness import outcome
from tests.sources.fuzz.mutations import packed_like, unpacked
from tests.sources.fuzz.readers import Shelf, hold_to_small_sizes

LONG = b"x" * 10_240
Change = Callable[[bytes], bytes]


def put(old: bytes, new: bytes) -> Change:
    """Replace the first place of a text, which must be there."""

    def change(content: bytes) -> bytes:
        assert old in content
        return content.replace(old, new, 1)

    return change


FOUND: dict[str, tuple[str, str, Change, str]] = {
    "two columns of numbers with names of ten thousand letters": (
        "own table", "my.csv", put(b",value,sd", b"," + LONG + b",y" + LONG),
        "several columns of numbers",
    ),
    "two columns of genes": (
        "own table", "my.csv", put(b"genes,kind", b"genes,genes"), "several columns 'genes'"
    ),
    "pyarrow explains in two lines": (
        "pinned split", "pinned.parquet", lambda content: content[:40] + b"\x0f" * 9 + content[49:],
        "is not a complete pinned split",
    ),
    "libsbml explains in five lines": (
        "metabolism: imm904", "iMM904.xml", put(b"<model", b"<modle"), "cannot be parsed as a metabolic model"
    ),
    "a text of no model that names itself so": (
        "metabolism: imm904", "iMM904.xml", lambda content: b"no such thing", "holds no <sbml> element"
    ),
    "a model that unpacks to more than any": (
        "metabolism: yeast-gem", "yeast-GEM.yml", lambda content: gzip.compress(content + b"#" * (4 << 20)),
        "it holds more than",
    ),
    "an amino acid without a name": (
        "measured mutants: mulleder2016", "phenotype_metabolome_mulleder2016_zscores.csv.gz",
        put(b"alanine,", b","), "received a column without a name",
    ),
    "a heading of ten thousand letters": (
        "measured mutants: breslow2008", "phenotype_growth_breslow2008.tsv.gz", put(b"| growth", LONG),
        "received the heading 'h",
    ),
    "a mark of a terminal in the name of an allele": (
        "measured mutants: tau-sga", "strain_orf_common_allele_160425.txt",
        put(b"ssa1-supp2", b"s\x1bsa1-supp2"), "a name without hidden characters",
    ),
    "a mark of a terminal for a list of alleles": (
        "measured mutants: kuzmin2018-calls", "kuzmin2018_significant_trigenic_and_digenic_orf.tsv.gz",
        lambda content: re.sub(rb"(?<=\n)\w+\t\w+", b"digenic\t\x1b[31m", content, count=1),
        "line 2: received .*, expected a name without hidden characters",
    ),
    "an invisible blank in the name of an allele of a large table": (
        "measured mutants: costanzo2016", "SGA_NxN.txt", put(b"tfc3-g349e", "t\u200bfc3-g349e".encode()),
        "expected a name without hidden characters",
    ),
    "an invisible blank in the name of a reaction": (
        "metabolism: imm904", "iMM904.json", lambda content: re.sub(rb'"R0"', '"\u200bR0"'.encode(), content),
        "iMM904.json.*holds the hidden character",
    ),
    "a node that stands twice numbers all that follow anew": (
        "gene graphs: string 9.1", "string_v9.1_yeast_genes.txt.gz", put(b"YAL001C\n", b"YAL001C\n" * 2),
        "line 3: received 'YAL001C', expected every node once",
    ),
    "a genome whose rows of one gene lie on two sequences": (
        "genes: accessions", "saccharomyces_cerevisiae.gff",
        put(b"chrI\tSGD\tCDS\t151097", b"\x01\tSGD\tCDS\t151097"),
        r"'YAL001C' on '.x01', expected it on 'chrI'",
    ),
    "a block of features that lost a name of a column": (
        "organism", "organism.json", lambda content: re.sub(rb'"a",\s*"b"', b'"a"', content),
        "organism at .* is damaged",
    ),
    "a column that is not used and would colour the terminal": (
        "own table", "my.csv", put(b",condition", b",\x1b[31m"),
        r"a column whose name '.x1b\[31m' holds the hidden character .x1b"
    ),
    "a tab that the reader of quotes repeats": (
        "gene graphs: regulatory_gold_standard", "regulatory_gold_standard_inferelator.tsv",
        put(b'"\t"', b'" "'), "expected balanced double quotes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FOUND)
def test_it_is_refused_in_one_sentence(
    what: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_to_small_sizes(monkeypatch)
    reader, file, change, message = FOUND[what]
    case = next(c for c in Shelf(tmp_path_factory.mktemp("found")).cases(reader) if c.file == file)
    before = case.path.read_bytes()
    refused = outcome(case, packed_like(before, change(unpacked(before)))).message
    assert re.search(message, refused)
