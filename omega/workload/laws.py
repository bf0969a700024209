"""Laws of chance, and how well one fits what was observed.

Goal     Say of a trace which law its gaps, sizes and durations follow, and how far off it is.
Promise  Estimates are of maximum likelihood. What was seen to last at least so long and not to end
         counts as such (right-censored), neither as ended nor as never seen. Functions of arrays.
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
"""Of an iteration; each of ours converges in far fewer."""
CLOSE: Final = 1e-9
SHAPES: Final = (1e-3, 1e3)
"""Between which the shape of a Weibull law is looked for."""


class Law(Protocol):
    """A distribution of what is above 0."""

    name: ClassVar[str]

    @property
    def parameters(self) -> dict[str, float]:
        """Its parameters by name."""
        ...

    def cdf(self, values: Score) -> Score:
        """Return the share of what is up to each value."""
        ...

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share is; of even chance, this draws from the law."""
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
        """The values that are no mere lower bounds."""
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
    """Without memory: the law of the paper's simulator."""

    name: ClassVar[str] = "exponential"
    mean: float

    @property
    def parameters(self) -> dict[str, float]:
        """Its mean."""
        return {"mean": self.mean}

    def cdf(self, values: Score) -> Score:
        """Return the share of what is up to each value."""
        return -np.expm1(-values / self.mean)

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share is."""
        return -self.mean * np.log1p(-shares)

    @classmethod
    def fitted(cls, seen: Observed) -> "Exponential":
        """Estimate: all time that was seen, for each end that was."""
        return cls(float(seen.values.sum() / len(seen.ended)))


@dataclass(frozen=True)
class LogNormal:
    """Its logarithm is normal: a product of many small causes."""

    name: ClassVar[str] = "lognormal"
    mu: float
    sigma: float

    @property
    def parameters(self) -> dict[str, float]:
        """Mean and deviation of the logarithm."""
        return {"mu": self.mu, "sigma": self.sigma}

    def cdf(self, values: Score) -> Score:
        """Return the share of what is up to each value."""
        return 1 - _above((np.log(values) - self.mu) / self.sigma)

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share is."""
        normal = NormalDist(self.mu, self.sigma)
        kept = np.clip(shares, 1e-12, 1 - 1e-12)
        with np.errstate(over="ignore"):  # what no float holds is infinite
            return np.asarray(np.exp([normal.inv_cdf(share) for share in kept.tolist()]))

    @classmethod
    def fitted(cls, seen: Observed) -> "LogNormal":
        """Estimate; what is censored is filled in by its expectation until nothing moves (EM)."""
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
    """Ends become rarer with age (shape below 1) or more frequent (above)."""

    name: ClassVar[str] = "weibull"
    shape: float
    scale: float

    @property
    def parameters(self) -> dict[str, float]:
        """Shape and scale."""
        return {"shape": self.shape, "scale": self.scale}

    def cdf(self, values: Score) -> Score:
        """Return the share of what is up to each value."""
        with np.errstate(over="ignore"):  # far beyond the scale, all is below
            return np.asarray(-np.expm1(-((values / self.scale) ** self.shape)))

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share is."""
        with np.errstate(over="ignore"):  # what no float holds is infinite
            return np.asarray(self.scale * (-np.log1p(-shares)) ** (1 / self.shape))

    @classmethod
    def fitted(cls, seen: Observed) -> "Weibull":
        """Estimate: the shape is the one root of the likelihood's slope, found by halving."""
        # Of values up to 1, no power overflows.
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
    """What was seen, as often as it was seen."""

    name: ClassVar[str] = "empirical"
    values: Score
    """Distinct, ascending."""
    shares: Score
    """Up to each value; what was not seen to end counts as the largest."""

    @property
    def parameters(self) -> dict[str, float]:
        """Its ends: all else is the trace itself."""
        return {"least": float(self.values[0]), "largest": float(self.values[-1])}

    def cdf(self, values: Score) -> Score:
        """Return the share of what is up to each value."""
        at = np.searchsorted(self.values, values, side="right")
        return np.concatenate([[0.0], self.shares])[at]

    def quantile(self, shares: Score) -> Score:
        """Return the value up to which each share is."""
        at = np.searchsorted(self.shares, shares - CLOSE)
        return self.values[np.minimum(at, len(self.values) - 1)]

    @classmethod
    def fitted(cls, seen: Observed) -> "Empirical":
        """Take it as it is."""
        return cls(*seen.steps())


_Parametric = type[Exponential | LogNormal | Weibull]
PARAMETRIC: Final[tuple[_Parametric, ...]] = (Exponential, LogNormal, Weibull)


def distance(seen: Observed, law: Law, *, whole: bool = False) -> float:
    """Return Kolmogorov's distance: how far the two shares are apart where they are furthest.

    Of whole numbers, which the law's values are rounded up to, only the steps' tops are compared.
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
    """Return the standard normal law's density at each value for what lies above it."""
    density = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    above = _above(values)
    return np.where(above > 0, density / np.maximum(above, 1e-300), values)


def _root(rises: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses 0, by halving on a logarithmic scale."""
    for _ in range(STEPS_MAX):
        middle = math.sqrt(low * high)
        if high / low < 1 + CLOSE:
            break
        if rises(middle) < 0:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)
