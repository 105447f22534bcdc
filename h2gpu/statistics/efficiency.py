"""How far Vecchia's estimate lies from that of the full likelihood, told beforehand from some rows of it.

    d_i = ∂ log p(y_i | N_4m(i))/∂θ − ∂ log p(y_i | N_m(i))/∂θ,     θ_full − θ_Vecchia ≈ I⁻¹ Σ_i d_i
    D = n mean(d_i d_iᵀ),   expected gain = ½ E (Σ d_i)ᵀ I⁻¹ (Σ d_i) ≈ ½ tr(I⁻¹ D),   cov θ_Vecchia ≈ I⁻¹ + I⁻¹ D I⁻¹

The last as an efficient estimate is not correlated with what another one is off from it (Hausman 1978).

Scores of either number of neighbours have mean zero at the true parameters; what a row's score changes with more of
them is what Vecchia's estimate lost. The gain is in units of log-likelihood: ½ is that of one parameter off by one
standard error. KAUST fields, 90,000 sites: 0.1 without nugget, 2 for Matérn 2.3 with nugget, where 4 were gained.

Reference: Guinness (2021), Gaussian process learning via Fisher scoring of Vecchia's approximation, section 5.
"""

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.covariance.sites import Sites
from h2gpu.solvers.neighbours import nearest_earlier_of
from h2gpu.solvers.ordering import maximin_order
from h2gpu.statistics.likelihood.vecchia_moments import VecchiaRows, row_scores

ROWS = 2000  # drawn: the error of the gain is some per cent
MORE = 4  # times the neighbours: as many again change little (KAUST, Matérn 2.3 with nugget: 1.95, then 2.04)


def expected_gain(data, found, neighbours=30, random_state=0):
    """Expected gain in log-likelihood of going from Vecchia's estimate to that of the full likelihood, and the
    covariance (J, J) of that step: what the errors of Vecchia's estimate have in addition.

    data    `log_likelihood.Data`, of different places
    found   `estimation.Estimate`
    """
    x = to_host(Sites.of(data.sites, found.model.cov).points)
    n, m = len(x), min(int(neighbours), len(x) - 1)
    many = min(MORE * m, n - 1)
    order, _ = maximin_order(x, random_state)
    some = many + np.sort(np.random.default_rng(random_state).permutation(n - many)[:ROWS])
    scores = []
    for count in (m, many):
        near = nearest_earlier_of(some, x[order], len(x), count)
        rows = VecchiaRows(data.sites, order[:0], order[np.concatenate([near, some[:, None]], axis=1)])
        scores.append(row_scores(found.model, rows, data.places.noise, data.B))
    d = scores[1] - scores[0]
    step = found.covariance @ (d.T @ d) * (n / len(some))
    return 0.5 * float(np.trace(step)), step @ found.covariance
