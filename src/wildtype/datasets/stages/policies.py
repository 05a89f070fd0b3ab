"""The choices that turn measurements into a dataset, each by a name that the dataset's card lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from wildtype.errors import ConfigError

POLICIES: Mapping[str, Mapping[str, str]] = {
    "studies": {
        "pooled": "one phenotype name is one phenotype, whichever study measured it",
        "apart": "a phenotype of each study by itself, named study:phenotype",
    },
    "sd": {
        "given": "the standard deviation over replicates as published",
        "derived": "as published, else the standard error times the root of the number of replicates",
    },
    "environments": {
        "apart": "every environment is a separate condition",
        "pooled": "environments are pooled: measurements in several count as replicates",
        "one": "the rows of one environment only",
    },
    "suppressors": {
        "drop": "rows of a strain with a suppressor mutation are left out",
        "ignore": "a suppressor mutation is not represented; the rest of its strain is",
    },
    "kinds": {
        "by effect": "deletion is absent; reduced expression, temperature-sensitive and other alleles are "
        "reduced; overexpression is overexpressed; addition is added"
    },
    "genes": {"known": "rows with a gene outside the organism are left out, foreign genes included"},
    "repeated genes": {
        "drop": "rows in which one gene is perturbed twice (two alleles, both strains of one gene) are left "
        "out"
    },
    "fewest genes": {
        "drop": "rows of fewer perturbed genes than their phenotype is defined for are left out"
    },
    "listed again": {
        "once": "repeated entries of one mutant in one condition with equal value and sd are one row, "
        "whatever its replicate label",
        "once per replicate": "repeated entries of one mutant in one condition with equal value, sd and "
        "replicate label are one row",
        "every": "every entry counts, also one that repeats the number of another",
    },
    "replicates": {
        "mean": "different numbers for one mutant in one condition become their mean; sd is the root of the "
        "mean known sd² plus the variance between them",
        "inverse variance": "they become their mean weighted by 1/sd², sd is 1/√Σ(1/sd²); an sd below a "
        "tenth of the phenotype's median counts as that tenth; rows without sd are left out of a mean in "
        "which another row has one, and count alike (sd unknown) where none has",
        "mean and sd": "they become their mean, and sd is that of the numbers themselves (over n - 1), "
        "whatever sd they were given with",
        "apart": "every number is a separate row",
    },
    "alleles": {
        "averaged": "one row per gene set, kinds and doses: the mean over alleles; sd is the root of the "
        "mean known sd² plus the variance between alleles",
        "apart": "one row per set of alleles: a gene set can occur several times",
    },
    "essential": {
        "keep": "nothing is added for genes whose deletion is lethal",
        "fitness 0": "an essential gene without a measured deletion gets fitness 0 in the reference "
        "condition: assumed, not measured",
    },
}
"""Every choice: its name, and what each of its settings means."""


@dataclass(frozen=True)
class Policies:
    """One setting per choice of ``POLICIES``; blanks in names of choices are underscores here.

    Attributes
    ----------
    neutral : tuple of str
        Loci whose perturbation changes nothing, by any of their names: HO (``YDL227C``) in control strains
        ``gene+ho``. They are taken out of every mutant.
    environment : str
        As the environment is spelled (``str(Environment)``), with ``environments="one"``.

    Raises
    ------
    ConfigError
        If a setting is not known, or two do not fit each other.
    """

    studies: str = "pooled"
    sd: str = "given"
    environments: str = "apart"
    environment: str = ""
    suppressors: str = "drop"
    neutral: tuple[str, ...] = ()
    kinds: str = "by effect"
    genes: str = "known"
    repeated_genes: str = "drop"
    fewest_genes: str = "drop"
    listed_again: str = "once"
    replicates: str = "mean"
    alleles: str = "averaged"
    essential: str = "keep"

    def __post_init__(self) -> None:
        for choice, known in POLICIES.items():
            setting = getattr(self, choice.replace(" ", "_"))
            if setting not in known:
                raise ConfigError(
                    f"policy {choice!r} has no setting {setting!r}: choose one of {', '.join(known)}"
                )
        if isinstance(self.neutral, str) or not all(isinstance(name, str) for name in self.neutral):
            raise ConfigError(f"neutral={self.neutral!r} is not a list of gene names: write ('YDL227C',)")
        object.__setattr__(self, "neutral", tuple(sorted(set(self.neutral))))
        if (self.environments == "one") != bool(self.environment):
            raise ConfigError(
                f"environments={self.environments!r} and environment={self.environment!r} do not fit: name "
                "an environment with 'one', and with nothing else"
            )
        if self.replicates == "apart" and self.alleles == "averaged":
            raise ConfigError(
                "replicates='apart' and alleles='averaged' do not fit: a mean over alleles is one over their "
                "replicates too; take alleles='apart' or replicates='mean'"
            )

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> Policies:
        """Return policies from texts, as a command line has them; lists of names are separated by commas.

        Raises
        ------
        ConfigError
            If a choice or a setting is not known.
        """
        known = [field.name for field in fields(cls)]
        given: dict[str, Any] = {}
        for name, setting in settings.items():
            field_name = name.strip().replace(" ", "_").replace("-", "_")
            if field_name not in known:
                raise ConfigError(f"there is no policy {name!r}: choose among {', '.join(known)}")
            parts = tuple(part.strip() for part in setting.split(",") if part.strip())
            given[field_name] = parts if field_name == "neutral" else setting.strip()
        return cls(**given)

    def described(self) -> dict[str, str]:
        """Return every choice with its setting and what that means."""
        out = {}
        for choice, known in POLICIES.items():
            setting = getattr(self, choice.replace(" ", "_"))
            chosen = f" ({self.environment})" if choice == "environments" and self.environment else ""
            out[choice] = f"{setting}{chosen}: {known[setting]}"
            if choice == "suppressors":
                out["neutral loci"] = ", ".join(self.neutral) or "none"
        return out

    def to_json(self) -> dict[str, Any]:
        """Return the settings in plain values, as they enter the key of a stored dataset."""
        return asdict(self)
