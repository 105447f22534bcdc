"""
Parameters, and how well they are known
=======================================

Maximum likelihood with all sites, 95 % intervals, and the profile of the likelihood
along the smoothness: data say little about some parameters, and here one sees how
little.
"""

import matplotlib.pyplot as plt
import numpy as np

from h2gpu.covariance import Matern
from h2gpu.statistics import Kriging, simulate

sites = np.random.default_rng(2).uniform(0, 10, (400, 2))
truth = Matern(variance=1.5, length_scale=1.2, smoothness=1.5)
y = simulate(truth, sites, random_state=2, nugget=0.01)[:, 0]

kriging = Kriging(Matern(), nugget=0.01, trend="constant", fit_parameters="all").fit(
    sites, y
)

# %%

true = {"variance": 1.5, "length_scale": 1.2, "smoothness": 1.5, "nugget": 0.01}
for name, value in kriging.parameters_.items():
    low, high = kriging.parameter_intervals_.get(name, (np.nan, np.nan))
    value = float(np.squeeze(value))
    print(f"{name:13} {value:8.4f}  95 %: {low:.4f} to {high:.4f}  true: {true[name]}")

# %%
# The profile: the likelihood with the smoothness held, all else at its best.

profile = kriging.profile("smoothness", values=np.linspace(0.8, 2.6, 7))
print("interval from the likelihood itself:", np.round(profile.interval(), 2))
profile.plot()
plt.show()
