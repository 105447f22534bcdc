"""From the maximum of Vecchia's likelihood to that of the full one, by Newton steps, where that is worth it.

    θ ← θ + t I⁻¹ ∂ℓ/∂θ      ℓ the full likelihood, I its average information; t = 1, less where ℓ falls

Without measurement error Vecchia's likelihood screens so well that nothing is left to do. With it, neighbours tell less
than the sites behind them together: on 90,000 sites of Matérn 2.3 with a nugget variance and length scale lay two
standard errors off, which one step brought back. A step costs H²-matrices and a gradient by them, so that `efficiency`
says first what it is expected to gain. Where that is little, errors are those of Vecchia's estimate, the step that was
not taken among them.

An information may tell a fourth of what all sites tell, as Vecchia's does, or be that of another place: steps by it are
too long. A value without noise shows it: the step is shortened to where the parabola through both ends and the slope at
its beginning is highest. Slopes there correct the information along the step (BFGS), where values do not tell before
that little is left (`_left`): slopes take a factorization for all parameters but one. (KAUST's rough field with a
nugget, whose first step is shortened: 5 factorizations and 124 CPU s in place of 8 and 196, 0.06 less likely.)

Reference: Nocedal & Wright (2006), Numerical optimization, section 6.1.
"""

import logging
from dataclasses import replace

import numpy as np

from h2gpu.progress import phase
from h2gpu.statistics.efficiency import expected_gain
from h2gpu.statistics.likelihood.estimation import inverse_information, newton_step
from h2gpu.statistics.systems.direct import solver_of_fits

logger = logging.getLogger("h2gpu")

WORTH = 0.4  # of log-likelihood a parameter, off by 0.9 standard errors: less is left, with errors that say so
NEXT = 0.1  # of the gain of a step is that of the next, about, where noise hides what it was
LITTLE = 0.2  # of what is worth a first step: where there is no noise, steps go on until less is left, 0.4 errors each
STEPS = 6
CERTAIN = 2.0  # standard errors: a value that falls by more has fallen
LONGEST = 1.0  # step in the logarithm of a parameter
BACK = 2  # times that a step is shortened
STRAIGHTEST = 0.25  # of the bend that a step expected: values that show less are not believed


def refined(data, found, rtol, neighbours, random_state, solver="auto"):
    """The `estimation.Estimate` with its parameters corrected where Vecchia's are off, and the full likelihood's value
    then; and the covariance system at them, None where none was made. Where the full likelihood or a step fails, the
    estimate before it is kept, with a message."""
    solver = solver_of_fits(solver, data.sites, found.model.cov, found.model.nugget)
    options = {"rtol": rtol, "neighbours": neighbours, "random_state": random_state, "solver": solver}
    with phase("full likelihood", STEPS + 1) as advance:
        gain, lost = expected_gain(data, found, neighbours, random_state)
        logger.info("full likelihood: expected to gain %.2g", gain)
        worth = WORTH * len(found.model.free)
        found = replace(found, covariance=found.covariance + lost)
        if gain < worth:
            return found, None
        ascent = _Ascent(data, options, worth, found, gain)
        for step in range(STEPS + 1):
            advance(1)
            try:
                if not ascent.goes_on(last=step == STEPS):
                    break
            except np.linalg.LinAlgError as error:
                ascent.tell(f"full likelihood: {error}; kept the parameters {ascent.kept}")
                break
    return replace(ascent.found, value=ascent.value), ascent.system


class _Ascent:
    """Steps up the full likelihood.

    found           the best Estimate so far, first Vecchia's
    value, system   the full likelihood there, and its covariance system; None at first
    candidate       the Estimate to be looked at: `move` from there in the logarithms of parameters, which the slope
                    there expects to gain `gained`
    gain            what the step after it is expected to gain
    back, fallen    how often the step was shortened; see `_left`
    seen            (move, by how much slopes fell along it) of steps without noise
    kept            which parameters are kept where something fails
    """

    def __init__(self, data, options, worth, found, gain):
        self.data, self.options, self.worth = data, options, worth
        self.found, self.value, self.system, self.candidate, self.gain = found, found.value, None, found, gain
        self.move, self.gained, self.seen, self.back, self.fallen = 0.0, 0.0, [], 0, None
        self.kept = "of Vecchia's likelihood"

    def goes_on(self, last):
        """Take the candidate or shorten the step to it; whether there is another one, which the last one has not."""
        alone = self.system is not None and self.value.standard_error == 0  # a value costs little beside slopes
        further = self.gain >= self.worth and not last
        system, new, moments = _at(self.data, self.candidate.model, self.options, further and not alone)
        rise = float(new) - float(self.value)
        if self.system is not None and rise < -CERTAIN * (new.standard_error + self.value.standard_error):
            return self._shortened(new, rise)
        if alone:
            left = _left(self.gained, rise, self.fallen)
            further = not last and max(self.gain, left / LITTLE) >= self.worth
        before, self.back, self.fallen = self.value, 0, None
        self.found, self.system, self.value = self.candidate, system, new
        return further and self._stepped(moments, before if alone else None)

    def tell(self, message):
        """To the estimate's messages."""
        self.found = self.found.told(message)

    def _shortened(self, new, rise):
        """A shorter step, after which the value `new` has fallen; False where it was shortened BACK times."""
        if self.back == BACK:
            self.tell(
                f"full likelihood: {new:.6g} after a step, {self.value:.6g} before; kept the parameters before it"
            )
            return False
        part = _along(self.gained, rise)[0]
        self.back, self.fallen, self.gain = self.back + 1, (1 / part, rise), 0.0
        self.move, self.gained = part * self.move, part * self.gained
        self.candidate = replace(self.candidate, model=self.found.model.at(self.found.model.theta + self.move))
        logger.info("full likelihood: %.6g, %.2g of the step", new, part)
        return True

    def _stepped(self, moments, before):
        """A step from what was found; False where it would gain too little.

        before   the value before, without noise: slopes are asked for now, and tell the bend along the step
        """
        if before is not None:
            self.value, moments = self.data.full(self.found.model, True, system=self.system, **self.options)
            self.seen.append((self.move, before.gradient - self.value.gradient))
        self.kept = "before this step"
        self.candidate, self.move, self.gained = _stepped(self.data, self.found, self.value, moments, self.seen)
        logger.info("full likelihood: %.6g, step %s gains %.3g", self.value, self.move.round(4), self.gained)
        self.gain = NEXT * self.gained
        return before is None or self.gained >= LITTLE * self.worth


def _along(gained, rise):
    """The part of a step at whose end a parabola is highest, and how much higher than at the step's end.

    It goes through the values at both ends of the step and has the slope at its beginning.

    gained   half the slope along the step       rise   how much higher the value is after the step
    """
    bend = max(2 * gained - rise, STRAIGHTEST * gained, np.finfo(float).tiny)
    return gained / bend, (gained - bend) ** 2 / bend


def _left(gained, rise, fallen=None):
    """What is left to gain after a step, told by values and the slope at its beginning.

    Along it, what the parabola, or a cubic through a value that had fallen, is higher at its top. Aside from it
    (κ − 1)²/4κ of the rise, where the bend is κ times what Newton's step expected: steepest ascent leaves so much at
    worst where bends differ by κ from one direction to another, and Newton's step is the steepest in the metric of its
    information (Nocedal & Wright 2006, sections 3.3 and 3.5).

    fallen   how many times as long a step was that was shortened, and the value's rise after it, below 0
    """
    part, left = _along(gained, rise)
    kappa = 1 / part
    if fallen is not None:
        kappa, left = fallen[0], _highest(gained, rise, *fallen) - rise
    return left + (kappa - 1) ** 2 / (4 * kappa) * max(rise, 0.0)


def _highest(gained, rise, times, fall):
    """The highest value before `times` of the cubic 2 gained t + a t² + b t³ that is `rise` at 1 and `fall` there."""
    b = ((fall - 2 * gained * times) / times**2 - rise + 2 * gained) / (times - 1)
    a = rise - 2 * gained - b
    t = 2 * gained / (np.sqrt(a**2 - 6 * gained * b) - a)
    return 2 * gained * t + a * t**2 + b * t**3


def _stepped(data, found, value, moments, seen):
    """The estimate after Newton's step, the step and its gain.

    seen   steps before and how much the slopes fell along each, where they have no noise
    """
    information, g = data.information(found.model, moments), value.gradient
    longest, covariance = np.full(len(g), LONGEST), inverse_information(information)
    for move, fall in seen:
        information = _corrected(information, move, fall)
    step = newton_step(information, g, -longest, longest, np.ones(len(g), bool))
    found = replace(found, model=found.model.at(found.model.theta + step), covariance=covariance)
    return found, step, 0.5 * float(step @ value.gradient)


def _corrected(information, step, fall):
    """The information with the curvature seen along a step, as BFGS corrects it; as it is where slopes did not fall."""
    if not fall @ step > 0:
        return information
    along = information @ step
    return information - np.outer(along, along) / (step @ along) + np.outer(fall, fall) / (fall @ step)


def _at(data, model, options, gradient):
    """The covariance system of a model, its log-likelihood and Moments."""
    system = data.system(model, **options)
    return system, *data.full(model, gradient, system=system, **options)
