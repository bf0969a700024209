"""Probability laws, and how well one fits what was observed.

Goal     Find the laws that a trace's gaps, sizes and durations follow, and their distances from it.
Promise  Estimates are of maximum likelihood. A duration that was not seen to end counts as a lower
         bound (right-censored), neither as ended nor as missing. All are functions of arrays.
Source   Kaplan and Meier (1958) for the observed distribution; Kolmogorov's distance; Omega
         (EuroSys 2013), table 2: its simple simulator samples from laws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Final, Protocol

import numpy as np

from omega.model.arrays import Mask, Score

STEPS_MAX: Final = 200
"""Steps of an iteration; each one here converges in far fewer."""
CLOSE: Final = 1e-9
SHAPES: Final = (1e-3, 1e3)
"""Bounds between which the shape of a Weibull law is searched."""


class Law(Protocol):
    """A distribution of values above 0."""

    name: ClassVar[str]

    @property
    def parameters(self) -> dict[str, float]:
        """Its parameters by name."""
        ...

    def cdf(self, values: Score) -> Score:
        """Return the probability of a value up to each of these."""
        ...

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share lies; uniform shares give draws from the law."""
        ...


@dataclass(frozen=True)
class Observed:
    """What was seen: values above 0, and whether each is only a lower bound."""

    values: Score
    is_censored: Mask

    def __post_init__(self) -> None:
        assert len(self.values) == len(self.is_censored)
        assert (self.values > 0).all()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def ended(self) -> Score:
        """The values that are not lower bounds."""
        return self.values[~self.is_censored]

    def steps(self) -> tuple[Score, Score]:
        """Return the distinct values that were reached, and the share up to each (Kaplan-Meier)."""
        at, ends = np.unique(self.ended, return_counts=True)
        at_risk = len(self) - np.searchsorted(np.sort(self.values), at, side="left")
        return at, np.asarray(1 - np.cumprod(1 - ends / at_risk))

    def quantile(self, share: float) -> float | None:
        """Return the least value up to which there is this share; None if it was not seen."""
        at, shares = self.steps()
        first = int(np.searchsorted(shares, share - CLOSE))
        return float(at[first]) if first < len(at) else None


@dataclass(frozen=True)
class Exponential:
    """The exponential law, which the paper's simulator uses."""

    name: ClassVar[str] = "exponential"
    mean: float

    @property
    def parameters(self) -> dict[str, float]:
        """Its mean."""
        return {"mean": self.mean}

    def cdf(self, values: Score) -> Score:
        """Return the probability of a value up to each of these."""
        return -np.expm1(-values / self.mean)

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share lies."""
        return -self.mean * np.log1p(-shares)

    @classmethod
    def fitted(cls, seen: Observed) -> "Exponential":
        """Estimate the mean: the sum of all times that were seen, divided by the number of ends."""
        return cls(float(seen.values.sum() / len(seen.ended)))


@dataclass(frozen=True)
class LogNormal:
    """The log-normal law: the logarithm is normally distributed."""

    name: ClassVar[str] = "lognormal"
    mu: float
    sigma: float

    @property
    def parameters(self) -> dict[str, float]:
        """Mean and deviation of the logarithm."""
        return {"mu": self.mu, "sigma": self.sigma}

    def cdf(self, values: Score) -> Score:
        """Return the probability of a value up to each of these."""
        return 1 - _above((np.log(values) - self.mu) / self.sigma)

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share lies."""
        normal = NormalDist(self.mu, self.sigma)
        kept = np.clip(shares, 1e-12, 1 - 1e-12)
        with np.errstate(over="ignore"):  # what no float holds becomes inf
            return np.asarray(np.exp([normal.inv_cdf(share) for share in kept.tolist()]))

    @classmethod
    def fitted(cls, seen: Observed) -> "LogNormal":
        """Estimate by expectation maximisation: expectations replace the censored values."""
        ended, bound = np.log(seen.ended), np.log(seen.values[seen.is_censored])
        mu, sigma = float(ended.mean()), max(float(ended.std()), CLOSE)
        for _ in range(STEPS_MAX if len(bound) else 0):
            beyond = (bound - mu) / sigma
            hazard = _hazard(beyond)
            filled = mu + sigma * hazard
            spread = sigma**2 * (1 + beyond * hazard - hazard**2)
            before = mu, sigma
            mu = float((ended.sum() + filled.sum()) / len(seen))
            squares = ((ended - mu) ** 2).sum() + ((filled - mu) ** 2 + spread).sum()
            sigma = max(math.sqrt(squares / len(seen)), CLOSE)
            if max(abs(mu - before[0]), abs(sigma - before[1])) < CLOSE:
                break
        return cls(mu, sigma)


@dataclass(frozen=True)
class Weibull:
    """The Weibull law: ends become rarer with age (shape below 1) or more frequent (above)."""

    name: ClassVar[str] = "weibull"
    shape: float
    scale: float

    @property
    def parameters(self) -> dict[str, float]:
        """Shape and scale."""
        return {"shape": self.shape, "scale": self.scale}

    def cdf(self, values: Score) -> Score:
        """Return the probability of a value up to each of these."""
        with np.errstate(over="ignore"):  # far beyond the scale, the result is 1
            return np.asarray(-np.expm1(-((values / self.scale) ** self.shape)))

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share lies."""
        with np.errstate(over="ignore"):  # what no float holds becomes inf
            return np.asarray(self.scale * (-np.log1p(-shares)) ** (1 / self.shape))

    @classmethod
    def fitted(cls, seen: Observed) -> "Weibull":
        """Estimate: the shape is the one root of the likelihood's slope, found by bisection."""
        # The values are scaled to at most 1, so that no power overflows.
        largest = float(seen.values.max())
        logs = np.log(seen.values / largest)
        of_ended = float(np.log(seen.ended / largest).mean())

        def slope(shape: float) -> float:
            powers = np.exp(shape * logs)
            return float((powers * logs).sum() / powers.sum()) - 1 / shape - of_ended

        shape = _root(slope, *SHAPES)
        mean_power = float(np.exp(shape * logs).sum() / len(seen.ended))
        return cls(shape, largest * mean_power ** (1 / shape))


@dataclass(frozen=True, eq=False)
class Empirical:
    """The observed distribution itself."""

    name: ClassVar[str] = "empirical"
    values: Score
    """Distinct, ascending."""
    shares: Score
    """Share up to each value; quantiles above the last share are the largest value."""

    @property
    def parameters(self) -> dict[str, float]:
        """Its least and its largest value."""
        return {"least": float(self.values[0]), "largest": float(self.values[-1])}

    def cdf(self, values: Score) -> Score:
        """Return the probability of a value up to each of these."""
        at = np.searchsorted(self.values, values, side="right")
        return np.concatenate([[0.0], self.shares])[at]

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share lies."""
        at = np.searchsorted(self.shares, shares - CLOSE)
        return self.values[np.minimum(at, len(self.values) - 1)]

    @classmethod
    def fitted(cls, seen: Observed) -> "Empirical":
        """Return the observed distribution (Kaplan-Meier)."""
        return cls(*seen.steps())


_Parametric = type[Exponential | LogNormal | Weibull]
PARAMETRIC: Final[tuple[_Parametric, ...]] = (Exponential, LogNormal, Weibull)


def distance(seen: Observed, law: Law, *, whole: bool = False) -> float:
    """Return Kolmogorov's distance: the largest difference between the two cumulative shares.

    With `whole`, a law's values are rounded up, and only the tops of the steps are compared.
    """
    at, shares = seen.steps()
    tops = float(np.abs(law.cdf(at) - shares).max())
    if whole:
        return tops
    feet = np.abs(law.cdf(at * (1 - CLOSE)) - np.concatenate([[0.0], shares[:-1]]))
    return max(tops, float(feet.max()))


def _above(values: Score) -> Score:
    """Return how much of the standard normal law lies above each value."""
    halves = (0.5 * math.erfc(value / math.sqrt(2)) for value in values.tolist())
    return np.fromiter(halves, dtype=np.float64, count=len(values))


def _hazard(values: Score) -> Score:
    """Return the standard normal law's density at each value, divided by the share above it."""
    density = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    above = _above(values)
    return np.where(above > 0, density / np.maximum(above, 1e-300), values)


def _root(rises: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses 0, by bisection on a logarithmic scale."""
    for _ in range(STEPS_MAX):
        middle = math.sqrt(low * high)
        if high / low < 1 + CLOSE:
            break
        if rises(middle) < 0:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)
