"""`organism.yaml`: the files of an organism, what each of them is, and what is to be made of them.

Paths are relative to the YAML, so that an organism is a folder that can be moved, versioned and shared. What
a part leaves out is guessed from its file, and the guess is printed and kept on the card.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from wildtype.characters import name_fault, visible
from wildtype.errors import ConfigError, did_you_mean, reason_of, shown

YAML = "organism.yaml"
Column = str | int
"""A column by its name, or by its position from 1 where the file has no header."""
Of = Literal["genes", "units"]
"""What a file names, where the organism has units."""


class Part(BaseModel):
    """A mapping of the description: keys that are not known are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @model_validator(mode="after")
    def _seen(self) -> Self:
        for value in vars(self).values():
            # Descriptions may span lines.
            if isinstance(value, str) and visible(value) != value:
                raise ValueError(name_fault(value))
        return self


class GeneColumns(Part):
    """Columns of a table of genes; those that are left out are found by their usual names."""

    name: Column = ""
    standard: Column = ""
    aliases: Column = ""
    description: Column = ""
    essential: Column = ""
    chromosome: Column = ""
    start: Column = ""
    end: Column = ""
    strand: Column = ""
    dubious: Column = ""


class GeneFile(Part):
    """A file of genes: a table, GFF3, or a plain list of one name per line."""

    path: str
    format: Literal["table", "gff3", "list"]
    columns: GeneColumns = GeneColumns()
    separator: str = ""
    sheet: str = ""
    alias_separator: str = ""
    type: str = "gene"
    """Feature type of a GFF3 file."""
    of: Of = "genes"
    source: str = ""


class NamesFrom(Part):
    """A table of which some columns name genes, such as one of measurements."""

    path: str
    columns: list[Column]
    leave_out: list[str] = []
    separator: str = ""
    name_separator: str = ""
    """Between the genes of one cell; empty: a cell is one gene."""
    header: bool | None = None


NamesOf = Annotated[
    Annotated[Literal["relations", "gene_sets", "features", "sequences", "units"], Tag("key")]
    | Annotated[NamesFrom, Tag("file")],
    Discriminator(lambda given: "file" if isinstance(given, dict | NamesFrom) else "key"),
]
"""The files of a part of the description, or a file that is no part of it."""


class Genes(Part):
    """Where the genes come from: files, the names in other files, or both."""

    files: list[GeneFile] = []
    names_from: list[NamesOf] = []

    @model_validator(mode="after")
    def _some(self) -> Genes:
        if not self.files and not self.names_from:
            raise ValueError("expected files, names_from or both: say where the genes are named")
        return self


class PublishersPart(Part):
    """Files of publishers, which readers of this package know by their names: an organism to build upon."""

    readers: Literal["yeast"]
    folder: str = "."
    string: str = ""
    """Version of STRING; empty: the first of 11.5, 12.0, 11.0 and 9.1 that the folder has."""
    relations: list[str] = []
    """Gene graphs beyond the usual ones."""
    metabolism: bool = True


class Units(Part):
    """A table that maps units that are not single genes (operons, guides, dsRNA) to their genes."""

    path: str
    unit: Column
    genes: Column
    separator: str = ","
    """Between the genes of one cell."""


class Relation_(Part):
    """What all relations have in common."""

    name: str
    path: str
    of: Of = "genes"
    source: str = ""
    version: str = ""
    note: str = ""


class Edges(Relation_):
    """An edge list."""

    format: Literal["edges"]
    columns: Annotated[list[Column], Field(min_length=2, max_length=2)] | None = None
    weight: Column = ""
    directed: bool = False
    header: bool | None = None
    separator: str = ""


class String(Relation_):
    """Links of STRING, of any taxon: a relation ``<name>_<channel>`` for every channel."""

    format: Literal["string"]
    aliases: str | list[str] = ""
    """Files of names: STRING's protein.aliases, protein.info, or both."""
    channels: list[str] = []
    """Columns of the file; empty: all but text mining and the combined score, which is the relation
    ``<name>`` and is read by default where there is no other."""
    cutoff: Annotated[int, Field(ge=0, le=1000)] = 0


class Biogrid(Relation_):
    """BioGRID's tab3 format: physical rows become the relation."""

    format: Literal["biogrid"]
    taxon: int | None = None


class GeneSetsPart(Part):
    """What all gene sets have in common."""

    name: str
    path: str
    made: Annotated[list[Literal["features", "relation"]], Field(alias="as", min_length=1)] = ["features"]
    smallest: Annotated[int, Field(ge=1)] = 3
    largest: Annotated[int, Field(ge=1)] = 300
    source: str = ""
    version: str = ""

    @model_validator(mode="after")
    def _sizes(self) -> GeneSetsPart:
        if self.smallest > self.largest:
            raise ValueError(f"smallest {self.smallest} exceeds largest {self.largest}: exchange them")
        return self


class Gmt(GeneSetsPart):
    """A GMT file: a line per set, its name, a description, and its genes, separated by tabs."""

    format: Literal["gmt"]


class Complexes(GeneSetsPart):
    """A table with a row per set, and its members in one cell."""

    format: Literal["complexes"]
    set: Column = ""
    members: Column = ""
    member_separator: str = ""
    separator: str = ""
    sheet: str = ""


class Terms(GeneSetsPart):
    """A table with a row per pair of gene and term."""

    format: Literal["table"]
    gene: Column = ""
    term: Column = ""
    separator: str = ""
    sheet: str = ""


class Gaf(GeneSetsPart):
    """Gene Ontology annotations (GAF) with their ontology (OBO); rows with NOT are always left out."""

    format: Literal["gaf"]
    ontology: str
    aspect: Literal["P", "F", "C", ""] = ""
    leave_out_evidence: list[str] = ["IGI"]
    taxon: int | None = None


class FeaturesPart(Part):
    """Vectors by gene name: CSV, TSV, Parquet, NPZ, or the ``var`` of an .h5ad file."""

    name: str
    path: str
    columns: list[str] = []
    """Columns to take; empty: all of them, in .h5ad those of numbers."""
    of: Of = "genes"
    source: str = ""
    note: str = ""
    measured: list[str] = []
    """Phenotype sources that the values were computed from, as costanzo2016:fitness: no input for these."""
    comparable: bool = True
    """Whether a column means the same in every organism; components of a decomposition do not."""


class SequencesPart(Part):
    """A FASTA file of proteins or coding sequences."""

    path: str
    source: str = ""


class MetabolismPart(Part):
    """A genome-scale model: SBML, JSON or YAML."""

    path: str
    source: str = ""


RelationPart = Annotated[Edges | String | Biogrid, Field(discriminator="format")]
SetsPart = Annotated[Gmt | Complexes | Terms | Gaf, Field(discriminator="format")]
AnyPart = (
    Edges | String | Biogrid | Gmt | Complexes | Terms | Gaf | FeaturesPart | SequencesPart | MetabolismPart
)


class Description(Part):
    """An organism as ``organism.yaml`` describes it."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]
    description: str = ""
    publishers: PublishersPart | None = None
    genes: Genes = Field(default_factory=Genes.model_construct)
    units: Units | None = None
    relations: list[RelationPart] = []
    gene_sets: list[SetsPart] = []
    features: list[FeaturesPart] = []
    sequences: list[SequencesPart] = []
    metabolism: MetabolismPart | None = None
    derive_features: bool = True
    """Whether degrees and places in gene graphs, essential genes, and the metabolism become features, too."""

    @field_validator("relations", "gene_sets", "features")
    @classmethod
    def _unique(cls, parts: Sequence[Any]) -> Sequence[Any]:
        names = [part.name for part in parts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the name {twice!r} is given twice: rename one")
        return parts

    @model_validator(mode="after")
    def _one_list_of_genes(self) -> Description:
        listed = bool(self.genes.names_from) or any(file.of == "genes" for file in self.genes.files)
        if self.publishers is None and not listed:
            raise ValueError("key 'genes' is missing: say where the genes are named")
        if self.publishers is not None and listed:
            raise ValueError("genes and publishers both list the genes: keep one")
        if self.publishers is not None and self.publishers.metabolism and self.metabolism is not None:
            raise ValueError("there are two metabolisms: say publishers.metabolism: false, or remove one")
        return self

    @model_validator(mode="after")
    def _of_units(self) -> Description:
        if self.units is None and any(getattr(part, "of", "") == "units" for part in self._all()):
            raise ValueError("a part is of units, and there are none: give units a table, or remove it")
        return self

    def _all(self) -> Iterator[Part]:
        yield from self.genes.files
        yield from (part for _, part in self.parts())

    def parts(self) -> Iterator[tuple[str, AnyPart]]:
        """Yield every part that a reader of its format reads, with the key that it stands under."""
        for key in ("relations", "gene_sets", "features", "sequences"):
            yield from ((key, part) for part in getattr(self, key))
        if self.metabolism is not None:
            yield "metabolism", self.metabolism


def guess_format(key: str, path: str) -> str:
    """Return the format of a file of genes, of a relation or of gene sets, by its name."""
    name = path.lower().removesuffix(".gz")
    if key == "genes":
        if name.endswith((".gff", ".gff3")):
            return "gff3"
        return "list" if name.endswith((".txt", ".list")) else "table"
    if key == "relations":
        if "protein.links" in name or "protein.physical.links" in name:
            return "string"
        return "biogrid" if ".tab3" in name else "edges"
    if name.endswith((".gaf", ".gpad")) or name.startswith("gene_association"):
        return "gaf"
    if name.endswith(".gmt"):
        return "gmt"
    return "complexes" if "complex" in name else "table"


def from_plain(plain: Any, where: str) -> Description:
    """Return the description that plain values give; formats that are left out are guessed from names.

    Raises
    ------
    ConfigError
        Naming the first key that is missing, not known or of another type, and the nearest known key.
    """
    if not isinstance(plain, dict):
        raise ConfigError(f"{where} is no mapping of keys to values: see `wildtype organism template`")
    try:
        return Description.model_validate(_with_formats(plain))
    except ValidationError as error:
        problems = "; ".join(dict.fromkeys(_sentence(one) for one in error.errors()))
        raise ConfigError(f"{where}: {problems}") from None


def _with_formats(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the same with the format of every part that has none guessed from the name of its file."""

    def filled(key: str, parts: Any) -> Any:
        if not isinstance(parts, list):
            return parts
        return [
            {"format": guess_format(key, str(part.get("path", ""))), **part}
            if isinstance(part, dict)
            else part
            for part in parts
        ]

    out = {
        key: filled(key, parts) if key in ("relations", "gene_sets") else parts
        for key, parts in plain.items()
    }
    genes = out.get("genes")
    if isinstance(genes, dict) and "files" in genes:
        out["genes"] = genes | {"files": filled("genes", genes["files"])}
    return out


def _sentence(error: Any) -> str:
    """Return one of pydantic's errors as part of a sentence."""
    place = [str(step + 1) if isinstance(step, int) else step for step in error["loc"]]
    # The tag of a union is no key of the file.
    place = [step for step in place if step not in _TAGS]
    where = ".".join(place) or "the whole"
    if error["type"] == "extra_forbidden":
        hint = did_you_mean(place[-1], sorted(_KEYS), "see `wildtype organism template`", count=1)
        return f"key {where!r} is not known; {hint}"
    if error["type"] == "missing":
        return f"key {where!r} is missing"
    if error["type"] == "union_tag_invalid":
        return (
            f"{where}.format is {shown(error['ctx']['tag'])}, expected one of {error['ctx']['expected_tags']}"
        )
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":
        return f"{where}: {message}" if place else message
    return f"{where} is {shown(error['input'])}: {message[0].lower()}{message[1:]}"


_TAGS = {"edges", "string", "biogrid", "gmt", "complexes", "table", "gaf", "key", "file"}
_MODELS = (GeneColumns, GeneFile, NamesFrom, Genes, PublishersPart, Units, Edges, String, Biogrid, Gmt,
           Complexes, Terms, Gaf)  # fmt: skip
_KEYS = {
    field.alias or name
    for model in (*_MODELS, FeaturesPart, SequencesPart, MetabolismPart, Description)
    for name, field in model.model_fields.items()
}


def read_description(path: str | Path) -> Description:
    """Read an ``organism.yaml``.

    Raises
    ------
    ConfigError
        If it is missing, no YAML, names a key twice, or does not describe an organism.
    """
    import yaml

    from wildtype.yaml_files import read_yaml

    try:
        plain = read_yaml(path)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(
            f"{str(path)!r} cannot be read as the description of an organism ({reason_of(error)}): see "
            f"`wildtype organism template`"
        ) from error
    return from_plain(plain, str(path))


def text_of_built_in(organism: str) -> str:
    """Return the description of an organism that is built from publishers' files, as it is kept.

    Raises
    ------
    ConfigError
        If there is no such organism.
    """
    file = files("wildtype.sources") / organism / YAML
    if not organism.isidentifier() or not file.is_file():
        raise ConfigError(
            f"there is no description of {organism!r}: only yeast is built from "
            f"files; `wildtype organism export {organism} FOLDER` writes any organism as files"
        )
    return file.read_text(encoding="utf-8")


def built_in(organism: str, *, name: str = "", string: str = "") -> Description:
    """Return the same as a description, with another name or version of STRING if they are given."""
    import yaml

    plain = yaml.safe_load(text_of_built_in(organism))
    plain["publishers"] |= {"string": string} if string else {}
    return from_plain(plain | ({"name": name} if name else {}), f"{organism}/{YAML}")


def to_plain(description: Description) -> dict[str, Any]:
    """Return what differs from the defaults in plain values; formats are written in full."""
    plain: dict[str, Any] = description.model_dump(by_alias=True, exclude_defaults=True)
    return plain


def as_yaml(description: Description) -> str:
    """Return the text of an ``organism.yaml``."""
    import yaml

    return yaml.safe_dump(to_plain(description), allow_unicode=True, sort_keys=False, width=110)
