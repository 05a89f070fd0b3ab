"""Names as laboratories spell them: to genes, alleles, the wild type, or one sentence on what is wrong.

A name of the organism always means its gene. Only other names are looked at twice: deletions (``ACH1Δ``,
``rad52Δ::kanMX``), alleles (``cdc48-3``, by the rules of the SGA screens), strains (``YAL001C_tsq508``),
proteins (``Rad52p``), two names of one gene (``SGS1 (YMR190C)``), and names that became dates (``1-Oct``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from wildtype.datasets.records import PerturbationKind
from wildtype.errors import AmbiguousGeneError, UnknownGeneError, shown
from wildtype.organism import GeneIndex
from wildtype.organism.units import JOINED, Units
from wildtype.sources.user_tables.guides import NO_GUIDES, SUFFIX, Guides, guide_stems
from wildtype.sources.user_tables.vocabulary import parse_kind
from wildtype.sources.yeast.screens.sga_strains import (
    DELETION_MARKS,
    ORF,
    SUPPRESSOR_TYPES,
    parse_allele,
    parse_strain,
)

HINTED = 20
"""Unknown names for which similar ones are looked up; that takes a while for each."""
WILD_TYPE = ("wt", "wildtype", "wild type", "wild-type", "wild_type", "+", "+/+")
"""Words for a mutant, or one side of a cross, in which no gene is perturbed; in upper or lower case."""
TOTALS = ("total", "totals", "sum", "mean", "average", "median", "sd", "stdev", "count", "n", "min", "max")
"""Words in the place of a gene that begin a line of totals below a table."""
NEUTRAL = ("HO", "YDL227C", "AAVS1", "CCR5", "ROSA26")
"""Genes and places that screens perturb in their controls."""
NO_CONTROLS = "none"
"""Setting of ``--controls`` that says of names like those of controls that they are none."""
UNKNOWN, AMBIGUOUS, CONTROL, GUIDE = (
    "unknown name", "ambiguous name", "name of a control", "name of a guide",
)  # fmt: skip
GUIDES, UNIT, KIND_BESIDE, ALLELE, PROTEIN, DELETED, STRAIN, DATE, TWO_NAMES = (
    "guides, taken for their genes",
    "units, named by their genes",
    "genes with their kind, as in tables of predictions",
    "alleles, taken for temperature-sensitive ones unless a column kind says otherwise",
    "proteins, taken for their genes",
    "deletions, by their mark",
    "strains of the deletion and temperature-sensitive collections",
    "dates that a spreadsheet program made of names of genes",
    "two names of one gene",
)
_CONTROL = re.compile(
    r"(neg(ative)?|nt|ntc|no[-_ ]?target|non[-_ ]?target(ing)?|safe([-_ ]?target(ing|s)?)?|ctrl|control|"
    r"neg(ative)?[-_ ]?(control|ctrl)|scr|scrambled?|mock|empty([-_ ]?vector)?|luciferase|e?gfp|lacz|"
    r"intergenic|aavs1|rosa26|no[-_ ]?(guide|perturbation)|"
    r"unperturbed)"
    r"([-_ ]?\d+)?",
    re.IGNORECASE,
)
_PROTEIN = re.compile(r"[A-Z][a-z]{2,3}\d+[a-z]?p")
_DELETED = re.compile(rf"(?P<gene>.+?)[-_ ]?(?:[{''.join(DELETION_MARKS)}]|delta|del|null)\d*", re.IGNORECASE)
_DELETED_BEFORE = re.compile(r"(?:Δ|∆|delta[-_ ])(?P<gene>.+)", re.IGNORECASE)
_DAMP = re.compile(r"(?P<gene>.+?)[-_ ]?damp", re.IGNORECASE)
_SUFFIX = re.compile(r"ts\w*|td|ph|\d+\w*|[a-z]\d+[a-z*]?", re.IGNORECASE)
_SURE_SUFFIX = re.compile(r"ts\d*|td|ph", re.IGNORECASE)
_TWICE = re.compile(r"(?P<first>[^\s()]+)\s*[(\[](?P<second>[^\s()\[\]]+)[)\]]")
_MONTHS = {
    "jan": "JAN", "feb": "FEB", "mar": "MAR MARCH MARC MARCHF", "apr": "APR", "may": "MAY", "jun": "JUN",
    "jul": "JUL", "aug": "AUG", "sep": "SEP SEPT SEPTIN", "oct": "OCT", "nov": "NOV", "dec": "DEC DELEC",
}  # fmt: skip
"""How names of genes begin that a spreadsheet program takes for a month."""
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*"
_DATES = (
    re.compile(rf"(?P<day>\d{{1,2}})[-/. ]+{_MONTH}([-/. ]+\d{{2,4}})?", re.IGNORECASE),
    re.compile(rf"{_MONTH}[-/. ]+(?P<day>\d{{1,2}})", re.IGNORECASE),
    re.compile(r"\d{4}-(?P<number>\d{2})-(?P<day>\d{2})([ T]00:00(:00)?)?"),
)


@dataclass(frozen=True)
class Found:
    """The gene that a name means, and what else the name says.

    Attributes
    ----------
    position : int
        In the gene index.
    kind : PerturbationKind or None
        What was done to it, where the spelling says so.
    allele : str
        Its allele; empty for deletions and where none is named.
    how : str
        By which rule the name was understood; empty for names of the organism.
    """

    position: int
    kind: PerturbationKind | None = None
    allele: str = ""
    how: str = ""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a name, in one sentence, and the kind of problem that this is."""

    message: str
    reason: str


class Spellings:
    """What names mean in an organism; equal names are looked up once.

    Parameters
    ----------
    index : GeneIndex
        The organism's genes.
    controls : sequence of str
        Names, or patterns such as ``safe*``, of what perturbs nothing; in upper or lower case. `NO_CONTROLS`
        alone says that there are none.
    guides : Guides
        Names of guides.
    units : Units, optional
        Tokens of the index that stand for several genes.
    """

    def __init__(
        self,
        index: GeneIndex,
        controls: Sequence[str] = (),
        guides: Guides = NO_GUIDES,
        units: Units | None = None,
    ) -> None:
        self.index, self.guides, self.units = index, guides, units
        self.no_controls = [name.casefold() for name in controls] == [NO_CONTROLS]
        self.controls = () if self.no_controls else tuple(pattern.casefold() for pattern in controls)
        self._current = {name.upper() for name in (*index.names, *index.standard.values())}
        self._known: dict[str, Found | Fault] = {}
        self._unknown = 0

    def is_current(self, name: str) -> bool:
        """Return whether a name is a systematic or standard one."""
        return name.upper() in self._current

    def is_nothing(self, name: str) -> bool:
        """Return whether a name is that of a declared control or of the wild type."""
        return self.is_control(name) or (name.casefold() in WILD_TYPE and not self.is_current(name))

    def is_control(self, name: str) -> bool:
        """Return whether a name, or the target of a guide of that name, is that of a declared control."""
        low = {name.casefold(), self.guides.target.get(name, name).casefold()}
        return any(fnmatchcase(one, pattern) for one in low for pattern in self.controls)

    def is_guide(self, name: str) -> bool:
        """Return whether a name is that of a declared guide."""
        if not self.guides.by_name:
            return name in self.guides.target
        return name not in self.index and any(stem in self.index for stem, _ in guide_stems(name))

    def is_total(self, name: str) -> bool:
        """Return whether a name begins a line of totals."""
        return name.casefold().rstrip(":") in TOTALS and name not in self.index

    def means(self, name: str) -> bool:
        """Return whether a name means something here: a gene in any spelling, a control, the wild type."""
        if self.is_nothing(name) or name in self.index or name in self.guides.target:
            return True
        if self._is_like_control(name):
            return True
        return self._spelled(name) is not None

    def _is_like_control(self, name: str) -> bool:
        return not self.no_controls and _CONTROL.fullmatch(name) is not None

    def unit_of(self, cell: str) -> int | None:
        """Return the unit whose genes a cell names; None if there is none."""
        if self.units is None:
            return None
        try:
            return self.units.find([name.strip() for name in cell.split(JOINED)])
        except (UnknownGeneError, AmbiguousGeneError):
            return None

    def find(self, name: str) -> Found | Fault:
        """Return what a name means, or what is wrong with it."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Found | Fault:
        target = self.guides.target.get(name)
        if target is not None and target != name:
            found = self.find(target)
            return replace(found, how=GUIDES) if isinstance(found, Found) else found
        if name not in self.index:
            if (spelled := self._spelled(name)) is not None:
                return spelled
            if self._is_like_control(name):
                message = f"{shown(name)} looks like a control: import with --controls {shown(name)} if it is"
                return Fault(f"{message} one, or with --controls {NO_CONTROLS} if nothing is", CONTROL)
            self._unknown += 1
            # The first unknown names get suggestions; a column of wrong identifiers must not take minutes.
            if self._unknown > HINTED:
                where = f"is not in organism {self.index.organism!r}; check the spelling"
                return Fault(f"{shown(name)} {where}", UNKNOWN)
        try:
            return Found(self.index.find(name))
        except UnknownGeneError as error:
            return Fault(str(error), UNKNOWN)
        except AmbiguousGeneError as error:
            return Fault(str(error), AMBIGUOUS)

    def _gene(self, name: str, kind: PerturbationKind | None, allele: str, how: str) -> Found | Fault | None:
        """Return the gene of a name within a name; None if the organism has none."""
        if name not in self.index:
            return None
        try:
            return Found(self.index.find(name), kind, allele, how)
        except AmbiguousGeneError as error:
            return Fault(str(error), AMBIGUOUS)

    def _spelled(self, name: str) -> Found | Fault | None:
        """Return what a name that the organism does not have means by the rules for spellings, else None."""
        return next((found for found in self._readings(name) if found is not None), None)

    def _readings(self, name: str) -> Iterator[Found | Fault | None]:
        deletion = PerturbationKind.DELETION
        if (unit := self.unit_of(name)) is not None:
            yield Found(unit, how=UNIT)
        yield self._guide(name)
        stated, colon, word = name.rpartition(":")
        if colon and word and (kind := parse_kind(word)) is not None:
            yield self._gene(stated, kind, "", KIND_BESIDE)
        strain = parse_strain(name)
        if strain is not None and len(strain.orfs) == 1 and strain.type not in SUPPRESSOR_TYPES:
            yield self._gene(strain.orfs[0], *parse_allele(name, strain.type), STRAIN)
        # A marker that stands in a gene's place, as in rad52Δ::kanMX or rad52::kanMX.
        bare, marker, _ = name.partition("::")
        if marker:
            yield self._gene(bare, deletion, "", DELETED)
        for form in (_DELETED, _DELETED_BEFORE):
            if found := form.fullmatch(bare):
                yield self._gene(found["gene"], deletion, "", DELETED)
        if found := _DAMP.fullmatch(bare):
            yield self._gene(found["gene"], *parse_allele(bare), ALLELE)
        if _PROTEIN.fullmatch(name):
            yield self._gene(name[:-1], None, "", PROTEIN)
        if found := _TWICE.fullmatch(name):
            yield self._same(found["first"], found["second"])
        yield self._date(name)
        yield self._allele(bare)

    def _same(self, first: str, second: str) -> Found | Fault | None:
        one, other = self._gene(first, None, "", TWO_NAMES), self._gene(second, None, "", TWO_NAMES)
        # A name in brackets that the organism lacks, or that is ambiguous, adds nothing to the other.
        known = [found for found in (one, other) if isinstance(found, Found)]
        if len({found.position for found in known}) > 1:
            return Fault(f"{shown(first)} and {shown(second)} are two genes: write one", AMBIGUOUS)
        return known[0] if known else one or other

    def _date(self, name: str) -> Found | Fault | None:
        found = next((match for form in _DATES if (match := form.fullmatch(name))), None)
        if found is None:
            return None
        groups = found.groupdict()
        months = list(_MONTHS.values())
        number = int(groups.get("number") or 0)
        if number > len(months):
            return None
        month = months[number - 1] if number else _MONTHS[groups["month"].lower()]
        meant = [f"{stem}{int(groups['day'])}" for stem in month.split()]
        named = [gene for gene in meant if gene in self.index]
        positions = {position for gene in named for position in self.index.find_each(gene)}
        if len(positions) == 1:
            return Found(positions.pop(), how=DATE)
        what = f"{shown(name)} is a date that a spreadsheet program may have made of a gene's name"
        if positions:
            return Fault(f"{what}: write which of {', '.join(named)} it was", AMBIGUOUS)
        return Fault(f"{what}, as in {meant[0]}, which this organism does not have: write the name", UNKNOWN)

    def _allele(self, name: str) -> Found | Fault | None:
        if ORF.fullmatch(name):  # YGR146C-A is a gene of its own, never an allele of YGR146C
            return None
        for at in (i for i in range(len(name) - 1, 0, -1) if name[i] in "-_"):
            gene, suffix = name[:at], name[at + 1 :]
            if gene not in self.index or not _SUFFIX.fullmatch(suffix):
                continue
            if suffix in self.index:
                return Fault(
                    f"{shown(name)} may be two genes, {gene} and {suffix}: write {gene};{suffix}", AMBIGUOUS
                )
            # Alleles that reduce a function are written in lower case; TP53-1 is as likely a guide.
            if gene.islower() or _SURE_SUFFIX.fullmatch(suffix):
                return self._gene(gene, *parse_allele(name), ALLELE)
            return Fault(
                f"{shown(name)} may be an allele of {gene} or one of several guides: write {name.lower()} "
                f"for an allele, and import with --guides {SUFFIX} for guides",
                GUIDE,
            )
        return None

    def _guide(self, name: str) -> Found | Fault | None:
        """Return the gene of a guide that is named after it."""
        for stem, sure in guide_stems(name):
            known = stem in self.index or self.unit_of(stem) is not None
            if known and self.guides.by_name:
                found = self.find(stem)
                return replace(found, how=GUIDES) if isinstance(found, Found) else found
            if known and sure and not self.guides:
                return Fault(
                    f"{shown(name)} looks like a guide against {stem}: import with --guides {SUFFIX} if "
                    f"guides are named after their genes, or with --guides and a table of guides and genes",
                    GUIDE,
                )
        return None
