"""
Variograms, by direction
========================

A simulated field that reaches farther along one axis: the empirical variogram says
so, and a model fitted to it serves as covariance.
"""

import matplotlib.pyplot as plt
import numpy as np

from h2gpu.covariance import Exponential, Spherical
from h2gpu.statistics import simulate, variogram

sites = np.random.default_rng(1).uniform(0, 100, (3000, 2))
truth = Exponential(variance=2.0, length_scale=(20.0, 6.0), rotation=0.6)
y = simulate(truth, sites, random_state=1, nugget=0.2)[:, 0]

# %%
# All directions together, and a spherical model by weighted least squares.

every = variogram(sites, y, longest=40.0)
fit = every.fit(Spherical())
print(fit.cov, "nugget", round(fit.nugget, 3))

# %%
# Along the long axis and across it.

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
every.plot(fit, ax=axes[0], units="km")
axes[0].set_title("all directions")
for direction, name in ((0.6, "along"), (0.6 + np.pi / 2, "across")):
    found = variogram(sites, y, direction=direction, tolerance=np.pi / 8, longest=40.0)
    axes[1].plot(found.distance, found.value, "o-", label=name)
axes[1].set(title="two directions", xlabel="distance, km", ylabel="γ", ylim=0)
axes[1].legend()
plt.show()
