"""
Are the uncertainties right?
============================

Each place is predicted from all others, by one factorization. If the model is right,
standardized errors are standard normal, and intervals cover what they say. A wrong
length scale shows at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from h2gpu.covariance import Exponential
from h2gpu.statistics import Kriging, scores, simulate

sites = np.random.default_rng(6).uniform(0, 10, (800, 2))
truth = Exponential(variance=1.0, length_scale=1.0)
y = simulate(truth, sites, random_state=6, nugget=0.05)[:, 0]

models = {
    "true covariance": Kriging(truth, nugget=0.05),
    "estimated": Kriging(Exponential(), nugget=0.1, fit_parameters=True),
    "length scale ten times too long": Kriging(Exponential(1.0, 10.0), nugget=0.05),
}
levels = np.linspace(0.05, 0.95, 19)
figure, ax = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
ax.plot([0, 1], [0, 1], "k:", lw=1)
for name, kriging in models.items():
    left_out = kriging.fit(sites, y).leave_one_out()
    z = abs(left_out.values - left_out.mean) / left_out.std
    ax.plot(
        levels,
        [np.mean(z <= norm.ppf(0.5 + p / 2)) for p in levels],
        "o-",
        ms=3,
        label=name,
    )
    told = scores.summary(left_out.values, left_out.mean, left_out.std)
    print(f"{name:32}", {key: round(float(value), 3) for key, value in told.items()})
ax.set(xlabel="promised share", ylabel="share within the interval")
ax.legend()
plt.show()
