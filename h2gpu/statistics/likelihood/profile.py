"""The profile of the likelihood along one parameter: the others at their best for each of its values.

    ℓ_p(v) = max ℓ(θ),  θ_j = v        {v: ℓ_p(v) ≥ ℓ_max − χ²_1(level)/2} is a confidence interval

It shows what the curvature at the maximum cannot: skewed and open-ended intervals. Reference: Pawitan (2001), In all
likelihood, section 3.4.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from h2gpu.statistics.likelihood.estimation import climbed, evaluation
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.variography.plots import axes_or_new
from h2gpu.texts import brief

POINTS, REACH = 13, 3.0  # values, within so many standard errors
STEEP, HALVINGS = 1.5, 6  # of log-likelihood: where it falls by more between two values across an interval's end, it is
# evaluated between them; at most so many times an end. Near a parabola it falls by one.
WIDE = 10.0  # largest by smallest value of a logarithmic axis
SHOWN = 8.0  # of log-likelihood below the maximum


@dataclass(frozen=True, eq=False)
class Held:
    """A Model of which free number j is held."""

    model: Model
    j: int

    @property
    def free(self):
        """The others."""
        return self.model.free[: self.j] + self.model.free[self.j + 1 :]

    @property
    def theta(self):
        """Of the others."""
        return np.delete(self.model.theta, self.j)

    def at(self, theta):
        """The same with other free numbers."""
        return Held(self.model.at(np.insert(theta, self.j, self.model.theta[self.j])), self.j)


@dataclass(frozen=True, eq=False)
class Profile:
    """The profile of one parameter.

    name             of the parameter
    values           (points,) ascending, on its own scale
    log_likelihood   (points,) the largest for each
    best, highest    the estimate, and its log-likelihood
    """

    name: str
    values: np.ndarray
    log_likelihood: np.ndarray
    best: float
    highest: float

    @property
    def _curve(self):
        """Values and log-likelihoods, the estimate among them, behind an equal one."""
        at = np.searchsorted(self.values, self.best, side="right")
        return np.insert(self.values, at, self.best), np.insert(self.log_likelihood, at, self.highest)

    def interval(self, level=0.95):
        """(low, high): where the profile is χ²_1(level)/2 below its maximum, by straight lines between the values; an
        end that lies beyond them is the last of the values. Raises ValueError for a level outside (0, 1)."""
        if not 0 < level < 1:
            raise ValueError(f"level: expected a number between 0 and 1, got {brief(level)}")
        least = self.highest - 0.5 * float(chdtri(1, 1 - level))
        v, l = self._curve
        at = int(np.searchsorted(self.values, self.best, side="right"))
        return _crossing(v[at::-1], l[at::-1], least), _crossing(v[at:], l[at:], least)

    def plot(self, ax=None, level=0.95):
        """The profile, the estimate and the interval of the level, on axes of matplotlib: the axes.

        Raises ImportError without matplotlib.
        """
        ax = axes_or_new(ax)
        ax.plot(*self._curve, ".-")
        ax.axhline(self.highest - 0.5 * float(chdtri(1, 1 - level)), color="C1", linewidth=0.8)
        for end in self.interval(level):
            ax.axvline(end, color="C1", linewidth=0.8, linestyle="--")
        if self.values[0] > 0 and self.values[-1] > WIDE * self.values[0]:
            ax.set_xscale("log")
        ax.set_ylim(bottom=max(ax.get_ylim()[0], self.highest - SHOWN))
        ax.set_xlabel(self.name)
        ax.set_ylabel("log-likelihood")
        ax.set_title(f"{self.name} {self.best:.4g}, {100 * level:g} % interval")
        return ax


def profile(data, found, name, values, options, full=False):
    """The Profile of the named parameter around an `estimation.Estimate`.

    values    on its own scale; None: POINTS within REACH standard errors, and more where the curve is steep
    options   rtol, neighbours, random_state and solver
    full      whether of many places the full likelihood is meant, not Vecchia's

    Raises ValueError for a parameter that was not estimated, and values that it cannot have.
    """
    names = found.model.names
    if name not in names:
        raise ValueError(f"profile: expected one of the estimated {', '.join(names)}, got {brief(name)}")
    j = names.index(name)
    free = found.model.free[j]
    evaluate = evaluation(data, found.model, options["neighbours"], options["random_state"], options if full else None)
    top = climbed(evaluate, evaluate(found.model))
    if values is None:
        spread = np.linspace(-REACH, REACH, POINTS) * float(np.sqrt(top.covariance[j, j]))
        grid = top.model.theta[j] + spread[spread != 0]
    else:
        given = np.unique(np.asarray(values, np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            grid = np.array([replace(free, value=v).theta for v in given.ravel()])
        if given.ndim != 1 or not len(given) or not np.isfinite(grid).all():
            told = " above 0" if free.logarithmic else " from −1 to 1" if free.kind == "partial" else ""
            raise ValueError(f"values: expected finite numbers{told}, got {brief(values, 80)}")
    found_at = np.array([_highest(evaluate, top.model, j, t) for t in grid])
    if values is None:
        grid, found_at = _halved(lambda t: _highest(evaluate, top.model, j, t), grid, found_at, top, j)
    own = top.model.free[j].value
    return Profile(name, free.at(grid), found_at, own, float(top.value))


def _halved(highest, grid, found_at, top, j):
    """Grid of the j-th number, ascending, and profile, with further values where it falls steeply through the ends of
    the 95 % interval."""
    least = top.value - 0.5 * float(chdtri(1, 0.05))
    for side in (-1, 1):
        for _ in range(HALVINGS):
            outward = np.flatnonzero(side * (grid - top.model.theta[j]) > 0)[::side]
            below = next((k for k in outward if found_at[k] < least), None)
            if below is None:
                break
            inner = np.append(outward[outward * side < below * side], -1)  # −1: the estimate itself
            t, l = (top.model.theta[j], float(top.value)) if len(inner) == 1 else (grid[inner[-2]], found_at[inner[-2]])
            if l - found_at[below] <= STEEP:
                break
            middle = 0.5 * (t + grid[below])
            at = int(np.searchsorted(grid, middle))
            grid, found_at = np.insert(grid, at, middle), np.insert(found_at, at, highest(middle))
    return grid, found_at


def _highest(evaluate, model, j, t):
    """The largest log-likelihood with the j-th of the parameters at t; −∞ where it cannot be evaluated."""
    theta = model.theta.copy()
    theta[j] = t

    def held(one):
        point = evaluate(one.model)
        value = LogLikelihood(point.value, 0.0, np.delete(point.value.gradient, j))
        return replace(point, model=one, value=value, information=np.delete(np.delete(point.information, j, 0), j, 1))

    try:
        start = held(Held(model.at(theta), j))
    except (ValueError, np.linalg.LinAlgError):
        return -np.inf
    return float(climbed(held, start).value if len(theta) > 1 else start.value)


def _crossing(v, l, least):
    """Where l falls below `least` on the way from v[0]; the last of v if it does not."""
    below = np.flatnonzero(l < least)
    if not len(below):
        return float(v[-1])
    i = below[0]
    share = (l[i - 1] - least) / (l[i - 1] - l[i]) if np.isfinite(l[i]) else 0.0
    return float(v[i - 1] + share * (v[i] - v[i - 1]))
