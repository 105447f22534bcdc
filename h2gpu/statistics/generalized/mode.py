"""The mode of the latent field, by Newton's method with working observations.

    η = Qγ + z,   z ~ N(0, C):     maximize Ψ = ℓ(η) − ½ zᵀ C⁻¹ z  over z and γ
    a step is kriging:  K = C + W⁻¹,   a = K⁻¹ (u − Qγ),   γ = (QᵀK⁻¹Q)⁻¹ QᵀK⁻¹u,   η ← u − W⁻¹ a = Qγ + C a
    at the mode a = g and Qᵀ a = 0

Line search halves a step that does not raise Ψ; (a, γ, η) are linear in each other, so that the line costs no product.

Reference: Rasmussen & Williams (2006), algorithm 3.1; Zilber & Katzfuss (2021), Vecchia–Laplace approximations.
"""

import logging
from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host

logger = logging.getLogger("h2gpu")

MOST = 1000  # steps: with Fisher's information they are many, and share one system
GAIN = 1e-9  # of Ψ that a further step promises: the mode is found. Beyond rounding of a sum of n terms: n times ε
CLOSE = 0.01  # promised gain below which a step is taken whole: Vecchia's C changes a little with W
LONGER = 1.2  # factor of close steps that did not go too far, as Fisher's can
HALVINGS = 20


@dataclass(frozen=True, eq=False)
class Mode:
    """(places,) arrays on the host.

    eta         predictors
    a           K⁻¹ (u − Qγ), which is g there
    gamma       (p,) coefficients of Q
    weight      W
    working     u
    system      of K
    solved      (places, p) K⁻¹ Q, where the system is
    information (p, p) Qᵀ K⁻¹ Q on the host
    steps       that were taken
    converged   whether a further step promises nothing
    """

    eta: np.ndarray
    a: np.ndarray
    gamma: np.ndarray
    weight: np.ndarray
    working: np.ndarray
    system: object
    solved: object
    information: np.ndarray
    steps: int = 0
    converged: bool = False

    def penalized(self, observed, likelihood, Q):
        """Ψ."""
        return observed.value(likelihood, self.eta) - 0.5 * float(self.a @ (self.eta - Q @ self.gamma))


def mode(observed, likelihood, Q, systems, start=None):
    """The Mode.

    Q         (places, p) on the host, orthonormal columns
    systems   function of the working noise 1/W (places,) that gives the system of K = C + 1/W
    start     (places,) η to start from; None: from the observations

    Raises LinAlgError where the covariance is not positive definite.
    """
    eta, systems = observed.start(likelihood) if start is None else start, _remembered(systems)
    now, steps = _stepped(observed, likelihood, Q, systems, eta), 1
    last, t = np.zeros(len(eta)), 1.0
    while steps < MOST:
        new = _stepped(observed, likelihood, Q, systems, now.eta)
        steps += 1
        promised = float((observed.slope(likelihood, now.eta) - now.a) @ (new.eta - now.eta))
        if abs(promised) < GAIN + len(eta) * np.finfo(float).eps:
            return _with(new, steps, True)
        if promised < CLOSE:
            way = new.eta - now.eta
            t = 0.5 * t if way @ last < 0 else min(1.0, LONGER * t)  # turned back: the last step went too far
            now, last = _between(now, new, t), way
            continue
        found = _searched(observed, likelihood, Q, now, new)
        if found is None:
            return _with(now, steps, False)
        now = found
    return _with(now, steps, False)


def _remembered(systems):
    """The same function, which makes no system again for the noise that it had last."""
    last = [None, None]

    def system(noise):
        if last[0] is None or not np.array_equal(noise, last[0]):
            last[:] = noise, systems(noise)
        return last[1]

    return system


def _with(found, steps, converged):
    logger.info("mode: %d steps%s", steps, "" if converged else ", not converged")
    return Mode(**{**found.__dict__, "steps": steps, "converged": converged})


def _stepped(observed, likelihood, Q, systems, eta):
    """Kriging of the working observations at η."""
    W = observed.weight(likelihood, eta)
    u = eta + observed.slope(likelihood, eta) / W
    system = systems(1 / W)
    xp = array_module(observed.X)
    solution = system.solve(xp.asarray(np.concatenate([u[:, None], Q], axis=1)))
    on_host = to_host(solution)
    information = Q.T @ on_host[:, 1:]
    information = 0.5 * (information + information.T)
    gamma = np.linalg.solve(information, Q.T @ on_host[:, 0])
    a = on_host[:, 0] - on_host[:, 1:] @ gamma
    return Mode(u - a / W, a, gamma, W, u, system, solution[:, 1:], information)


def _searched(observed, likelihood, Q, now, new):
    """The Mode on the line from now to new where Ψ has risen; None where it rises nowhere."""
    before, t = now.penalized(observed, likelihood, Q), 1.0
    for _ in range(HALVINGS):
        at = _between(now, new, t)
        if at.penalized(observed, likelihood, Q) > before:
            return at
        t /= 2
    return None


def _between(now, new, t):
    """The Mode a share t of the way from now to new."""
    eta, a, gamma = (old + t * (to - old) for old, to in zip(_line(now), _line(new)))
    return Mode(eta, a, gamma, new.weight, new.working, new.system, new.solved, new.information)


def _line(point):
    return point.eta, point.a, point.gamma
