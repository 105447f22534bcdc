"""From the maximum of Vecchia's likelihood to that of the full one, by Newton steps.

    θ ← θ + I⁻¹ ∂ℓ/∂θ      ℓ the full likelihood, I its average information

Without measurement error Vecchia's likelihood screens so well that nothing is left to do. With it, neighbours tell less
than the sites behind them together: on 90,000 sites of Matérn 2.3 with a nugget its maximum lost 900 of log-likelihood,
and a quarter of σ² l^(−2ν), which one step brought back. A step costs the gradient by the H²-matrix, a minute there.
"""

import logging
from dataclasses import replace

import numpy as np

from h2gpu.progress import phase
from h2gpu.statistics import systems
from h2gpu.statistics.estimation import inverse_information

logger = logging.getLogger("h2gpu")

AGREE = 10.0  # of log-likelihood: Vecchia's that is off by less has its maximum at the same place
STEPS = 4
SMALL = 1.0  # of log-likelihood: a step that gains less is the last one, the next would gain a tenth
LONGEST = 1.0  # step in the logarithm of a parameter


def refined(data, found, rtol, neighbours, random_state):
    """The `estimation.Estimate` with the full likelihood's value, its parameters corrected where Vecchia's are off; and
    the covariance system at them."""
    options = {"rtol": rtol, "neighbours": neighbours, "random_state": random_state}
    vecchia = found.value
    with phase("full likelihood", STEPS + 1) as advance:
        system = _system(data, found.model, options)
        value = data.log_likelihood(found.model, system=system, **options)
        logger.info("log-likelihood %.6g ± %.2g, Vecchia's %.6g", value, value.standard_error, vecchia)
        gain = np.inf if abs(value - vecchia) > AGREE else 0.0
        for _ in range(STEPS):
            advance(1)
            if gain < SMALL:
                break
            found, step, gain = _stepped(data, found, *data.full(found.model, system=system, **options))
            logger.info("full likelihood: step %s gains %.3g", step.round(4), gain)
            system = _system(data, found.model, options)
            value = data.log_likelihood(found.model, system=system, **options)
    return replace(found, value=value), system


def _stepped(data, found, value, moments):
    """The estimate after Newton's step, the step and its gain."""
    covariance = inverse_information(data.information(found.model, moments))
    step = covariance @ value.gradient
    step *= min(1.0, LONGEST / max(abs(step).max(), 1e-300))
    found = replace(found, model=found.model.at(found.model.theta + step), covariance=covariance)
    return found, step, 0.5 * float(step @ value.gradient)


def _system(data, model, options):
    noise = data.places.noise(model.nugget)
    return systems.covariance_system(
        data.sites, model.cov, noise, options["rtol"], options["neighbours"], options["random_state"]
    )
