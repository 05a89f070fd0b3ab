"""Features of genes from their sequences: codons and amino acids, and what follows from counting them.

Everything is a function of counts, so that a genome costs a few products of matrices.

Legend: s sequences · 64 codons in the order TTT, TTC, TTA … of the genetic-code tables · 20 amino acids in
the order of their letters · n genes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wildtype.errors import SourceError
from wildtype.organism.components import leading_vectors, spread
from wildtype.organism.features import Basis, FeatureBlock
from wildtype.organism.genes import GeneIndex

BASES = "TCAG"
CODONS = tuple(a + b + c for a in BASES for b in BASES for c in BASES)
STANDARD_CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
SENSE = np.array([aa != "*" for aa in STANDARD_CODE])
SENSE_CODONS = tuple(codon for codon, aa in zip(CODONS, STANDARD_CODE, strict=True) if aa != "*")
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
STOP = "*"
UNSURE = "UOBZJX"
"""Two rare amino acids and four ambiguity codes, which are not counted."""

# Kyte & Doolittle 1982, J Mol Biol 157:105
HYDROPATHY = {
    "A": 1.8, "C": 2.5, "D": -3.5, "E": -3.5, "F": 2.8, "G": -0.4, "H": -3.2, "I": 4.5, "K": -3.9,
    "L": 3.8, "M": 1.9, "N": -3.5, "P": -1.6, "Q": -3.5, "R": -4.5, "S": -0.8, "T": -0.7, "V": 4.2,
    "W": -0.9, "Y": -1.3,
}  # fmt: skip
# Average masses in dalton of residues, that is without water (IUPAC atomic weights)
MASS = {
    "A": 71.0788, "C": 103.1388, "D": 115.0886, "E": 129.1155, "F": 147.1766, "G": 57.0519, "H": 137.1411,
    "I": 113.1594, "K": 128.1741, "L": 113.1594, "M": 131.1926, "N": 114.1038, "P": 97.1167, "Q": 128.1307,
    "R": 156.1875, "S": 87.0782, "T": 101.1051, "V": 99.1326, "W": 186.2132, "Y": 163.1760,
}  # fmt: skip
WATER = 18.0153
# pK of side chains (Bjellqvist et al. 1993, Electrophoresis 14:1023; 1994, 15:529)
BASIC = {"K": 10.0, "R": 12.0, "H": 5.98}
ACIDIC = {"D": 4.05, "E": 4.45, "C": 9.0, "Y": 10.0}
N_TERMINUS, C_TERMINUS = 7.5, 3.55
NEUTRAL = 7.0

PROTEIN_COLUMNS = (*(f"fraction_{aa}" for aa in AMINO_ACIDS), "log10_length")
PROPERTY_COLUMNS = (
    "hydropathy", "net_charge", "isoelectric_point", "log10_mass", "aromaticity", "aliphatic_index",
    "foldedness", "charged", "complexity",
)  # fmt: skip
BIAS_COLUMNS = ("gc", "gc3", "effective_codons")

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def count_codons(sequence: str, *, what: str = "the coding sequence", remedy: str = "correct it") -> Counts:
    """Return the codons in reading frame, int64 [64]; codons with an ambiguous letter are not counted.

    Raises
    ------
    SourceError
        On a letter other than those of DNA, of either case; ``what`` and ``remedy`` go into the message.
    """
    code = np.full(256, 255, np.uint8)
    for value, base in enumerate(BASES):
        code[ord(base)] = value
    code[ord("U")] = code[ord("T")]
    for ambiguous in "NRYKMSW":
        code[ord(ambiguous)] = 4
    bases = code[np.frombuffer(sequence.upper().encode("ascii", "replace"), np.uint8)]
    if (bases == 255).any():
        raise SourceError(f"{what} has a letter other than A, C, G, T, N; {remedy}")
    triplets = bases[: bases.size // 3 * 3].reshape(-1, 3).astype(np.int64)
    clear = (triplets < 4).all(1)
    return np.bincount(triplets[clear] @ np.array([16, 4, 1]), minlength=64)


def residues_of_codons(codons: Counts) -> Counts:
    """Return counts of amino acids [s, 20] from counts of codons [s, 64], by the standard genetic code."""
    letters = np.array(list(STANDARD_CODE))
    return np.stack([codons[:, letters == aa].sum(1) for aa in AMINO_ACIDS], axis=1)


def count_residues(sequences: Sequence[str]) -> Counts:
    """Return counts [s, 20] of the twenty amino acids in sequences of one-letter codes."""
    counts = [[sequence.count(aa) for aa in AMINO_ACIDS] for sequence in sequences]
    return np.array(counts, dtype=np.int64).reshape(-1, len(AMINO_ACIDS))


def composition(residues: Counts, length: NDArray[np.int64]) -> Floats:
    """Return fractions of the twenty amino acids and log10 of the length [s, 21]."""
    return np.column_stack([residues / residues.sum(1, keepdims=True), np.log10(length)])


def properties(residues: Counts) -> Floats:
    """Return physico-chemical descriptors [s, 9] of proteins from counts of amino acids [s, 20].

    ========================  ==============================================================================
    ``hydropathy``            mean over residues (Kyte & Doolittle 1982, J Mol Biol 157:105)
    ``net_charge``            per residue, at pH 7 (Henderson–Hasselbalch)
    ``isoelectric_point``     pH without net charge (pK of Bjellqvist et al. 1993, Electrophoresis 14:1023)
    ``log10_mass``            average mass in dalton
    ``aromaticity``           share of F, W and Y (Lobry & Gautier 1994, Nucleic Acids Res 22:3174)
    ``aliphatic_index``       volume of aliphatic side chains, higher in stable proteins (Ikai 1980, J
                              Biochem 88:1895)
    ``foldedness``            distance from the border of natively unfolded proteins, which lie below 0
                              (Uversky, Gillespie & Fink 2000, Proteins 41:415; Prilusky et al. 2005,
                              Bioinformatics 21:3435)
    ``charged``               share of D, E, K and R
    ``complexity``            entropy of the composition in bits (Wootton & Federhen 1993, Comput Chem 17:149)
    ========================  ==============================================================================
    """
    share = residues / residues.sum(1, keepdims=True)
    length = residues.sum(1).astype(np.float64)

    def total(letters: str) -> Floats:
        return np.asarray(share[:, [AMINO_ACIDS.index(aa) for aa in letters]].sum(1))

    hydropathy = share @ np.array([HYDROPATHY[aa] for aa in AMINO_ACIDS])
    mass = residues @ np.array([MASS[aa] for aa in AMINO_ACIDS]) + WATER
    charge = net_charge(residues, np.full(len(residues), NEUTRAL)) / length
    share_of = dict(zip(AMINO_ACIDS, share.T, strict=True))
    aliphatic = 100 * (share_of["A"] + 2.9 * share_of["V"] + 3.9 * (share_of["I"] + share_of["L"]))
    imbalance = np.abs(total("KR") - total("DE"))
    entropy = -np.where(share > 0, share * np.log2(np.where(share > 0, share, 1.0)), 0.0).sum(1)
    return np.column_stack(
        [
            hydropathy,
            charge,
            isoelectric_point(residues),
            np.log10(mass),
            total("FWY"),
            aliphatic,
            2.785 * (hydropathy + 4.5) / 9 - imbalance - 1.151,
            total("DEKR"),
            entropy,
        ]
    )


def net_charge(residues: Counts, ph: Floats) -> Floats:
    """Return the net charge [s] of proteins, each at its own pH [s]."""
    at = {aa: residues[:, i] for i, aa in enumerate(AMINO_ACIDS)}
    positive = 1 / (1 + 10 ** (ph - N_TERMINUS))
    negative = 1 / (1 + 10 ** (C_TERMINUS - ph))
    for aa, pk in BASIC.items():
        positive = positive + at[aa] / (1 + 10 ** (ph - pk))
    for aa, pk in ACIDIC.items():
        negative = negative + at[aa] / (1 + 10 ** (pk - ph))
    return np.asarray(positive - negative)


def isoelectric_point(residues: Counts) -> Floats:
    """Return the pH [s] at which proteins have no net charge, to 1e-6; charge falls with pH."""
    low, high = np.zeros(len(residues)), np.full(len(residues), 14.0)
    # Bisection: 14 / 2²⁴ is below 1e-6.
    for _ in range(24):
        middle = (low + high) / 2
        positive = net_charge(residues, middle) > 0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return np.asarray((low + high) / 2)


def codon_bias(codons: Counts) -> Floats:
    """Return G+C of all and of third positions, and the effective number of codons [s, 3].

    The last lies between 20 (one codon per amino acid) and 61 (Wright 1990, Gene 87:23); amino acids that a
    gene uses less than twice take the mean homozygosity of their degeneracy class, and isoleucine, the only
    one of three codons, that of the classes beside it.
    """
    letters = np.array(list(STANDARD_CODE))
    sense = codons * SENSE
    length = np.maximum(sense.sum(1), 1)
    strong = np.array([[base in "GC" for base in codon] for codon in CODONS], dtype=np.float64)
    gc, third = sense @ strong.mean(1) / length, sense @ strong[:, 2] / length
    # F = (n Σp² − 1) / (n − 1) per amino acid; Nc = 2 + 9/F₂ + 1/F₃ + 5/F₄ + 3/F₆ (Wright 1990).
    homozygosity: dict[int, list[Floats]] = {}
    for aa in AMINO_ACIDS:
        used = codons[:, letters == aa].astype(np.float64)
        count = used.sum(1)
        enough = count > 1
        square = ((used / np.maximum(count, 1)[:, None]) ** 2).sum(1)
        f = (count * square - 1) / np.maximum(count - 1, 1)
        homozygosity.setdefault(used.shape[1], []).append(np.where(enough & (f > 0), f, np.nan))
    mean = {}
    for degeneracy, values in homozygosity.items():
        known = np.isfinite(values)
        total = np.where(known, values, 0.0).sum(0)
        mean[degeneracy] = np.where(known.any(0), total / np.maximum(known.sum(0), 1), np.nan)
    mean[3] = np.where(np.isfinite(mean[3]), mean[3], (mean[2] + mean[4]) / 2)
    effective = sum(
        len(values) / mean[degeneracy] if degeneracy > 1 else len(values)
        for degeneracy, values in homozygosity.items()
    )
    return np.column_stack([gc, third, np.minimum(effective, 61.0)])


def coding_blocks(
    codons: Counts, genes: NDArray[np.int64], n: int, *, source: str = "", count: int = 24, what: str = ""
) -> list[FeatureBlock]:
    """Return ``codon_usage`` [n, 24], ``codon_bias`` [n, 3], ``protein`` [n, 21] and ``protein_properties``
    [n, 9].

    Codon usage is the leading principal components of the relative frequencies of the 61 sense codons. The
    standard code is used throughout.

    Parameters
    ----------
    codons : int64 [s, 64]
        At least one sense codon in every row.
    genes : int64 [s]
        Positions of the rows; other genes are NaN.
    n : int
        Number of genes.
    source : str
        Of the blocks.
    count : int
        Components of codon usage.
    what : str
        Names the sequences in messages.

    Raises
    ------
    SourceError
        If all genes use codons alike.
    """
    frequency = codon_frequencies(codons)
    mean = frequency.mean(0)
    loadings = leading_vectors(frequency - mean, count, what or "the coding sequences")
    scores = (frequency - mean) @ loadings
    residues = residues_of_codons(codons)
    note = "translated by the standard genetic code"
    usage = FeatureBlock(
        "codon_usage",
        spread(scores, genes, n),
        tuple(f"component{i + 1}" for i in range(scores.shape[1])),
        source,
        note="61 sense codons, standard genetic code",
        comparable=False,
        basis=Basis(SENSE_CODONS, mean, loadings),
    )
    bias_note = "standard genetic code; highly expressed genes are biased"
    return [
        usage,
        FeatureBlock(
            "codon_bias", spread(codon_bias(codons), genes, n), BIAS_COLUMNS, source, note=bias_note
        ),
        *_protein_blocks(residues, residues.sum(1), genes, n, source, note),
    ]


def _protein_blocks(
    residues: Counts, length: Counts, genes: Counts, n: int, source: str, note: str = ""
) -> list[FeatureBlock]:
    return [
        FeatureBlock(name, spread(values, genes, n), columns, source, note=note)
        for name, columns, values in (
            ("protein", PROTEIN_COLUMNS, composition(residues, length)),
            ("protein_properties", PROPERTY_COLUMNS, properties(residues)),
        )
    ]


def codon_frequencies(codons: Counts) -> Floats:
    """Return relative frequencies [s, 61] of the sense codons."""
    sense = codons[:, SENSE]
    return np.asarray(sense / sense.sum(1, keepdims=True))


def protein_blocks(sequences: Sequence[str], *, source: str = "") -> list[FeatureBlock]:
    """Return ``protein`` [n, 21] and ``protein_properties`` [n, 9] of n sequences; an empty one is NaN."""
    residues = count_residues(sequences)
    there = np.flatnonzero(residues.sum(1))
    length = np.array([len(sequences[i]) for i in there.tolist()], dtype=np.int64)
    return _protein_blocks(residues[there], length, there, len(sequences), source)


def blocks_of_sequences(
    sequences: Mapping[str, str], genes: GeneIndex, *, source: str = ""
) -> list[FeatureBlock]:
    """Return the blocks of ``coding_blocks``, or of ``protein_blocks``, for sequences by gene name.

    Raises
    ------
    SourceError
        If a text is not a sequence, coding sequences and proteins are mixed, or all use codons alike.
    UnknownGeneError, AmbiguousGeneError, GeneSetError
        If a name is unknown or ambiguous, or a gene is named twice.
    """
    positions = genes.find_all(sequences)
    genes.find_set(sequences, what="the table of sequences")
    described = {
        name: describe_sequence(text, what=f"the sequence of {name!r}") for name, text in sequences.items()
    }
    coding = [name for name, blocks in described.items() if "codon_usage" in blocks]
    texts = {name: "".join(text.split()).upper() for name, text in sequences.items()}
    if not coding:
        laid_out = [""] * len(genes)
        for position, text in zip(positions.tolist(), texts.values(), strict=True):
            laid_out[position] = text.removesuffix(STOP)
        return protein_blocks(laid_out, source=source)
    if len(coding) < len(described):
        other = next(name for name in described if name not in coding)
        raise SourceError(
            f"{coding[0]!r} has a coding sequence and {other!r} a protein: give one type for all genes"
        )
    codons = np.stack([count_codons(text) for text in texts.values()])
    return coding_blocks(codons, positions, len(genes), source=source)


def describe_sequence(sequence: str, *, what: str = "the sequence") -> dict[str, Mapping[str, float]]:
    """Return the features of one gene's sequence, by block and column; codon usage by codon.

    A sequence of only A, C, G, T, U and N is a coding sequence, read in frame and translated; any
    other is a protein in one-letter code, which leaves out what needs codons.

    Raises
    ------
    SourceError
        If it is empty, has an unknown letter or an early stop, or its length is not a multiple of three.
    """
    text = "".join(sequence.split()).upper()
    if not text:
        raise SourceError(f"{what} is empty: give a coding sequence or a protein")
    out: dict[str, Mapping[str, float]] = {}
    if set(text) <= set("ACGTUN"):
        if len(text) % 3:
            raise SourceError(f"{what} has {len(text)} bases, which is not a multiple of three: correct it")
        body = text.replace("U", "T")
        letters = dict(zip(CODONS, STANDARD_CODE, strict=True))
        amino = [letters.get(body[i : i + 3], "X") for i in range(0, len(body), 3)]
        if STOP in amino[:-1]:
            at = amino.index(STOP) + 1
            raise SourceError(f"{what} has a stop at codon {at} of {len(amino)}: correct it, or its frame")
        codons = count_codons(text, what=what)[None]
        residues = residues_of_codons(codons)
        length = residues.sum(1)
        if residues.any():
            frequencies = codon_frequencies(codons)[0]
            out["codon_usage"] = dict(zip(SENSE_CODONS, frequencies.tolist(), strict=True))
            out["codon_bias"] = dict(zip(BIAS_COLUMNS, codon_bias(codons)[0].tolist(), strict=True))
    else:
        text = text.removesuffix(STOP)
        unknown = set(text) - set(AMINO_ACIDS + UNSURE)
        if unknown:
            raise SourceError(f"{what} has the letter {min(unknown)!r}, not an amino acid: correct it")
        residues, length = count_residues([text]), np.array([len(text)])
    if not residues.any():
        raise SourceError(f"{what} has no unambiguous amino acid: give the complete sequence")
    protein = composition(residues, length)[0].tolist()
    out["protein"] = dict(zip(PROTEIN_COLUMNS, protein, strict=True))
    out["protein_properties"] = dict(zip(PROPERTY_COLUMNS, properties(residues)[0].tolist(), strict=True))
    return out
