"""
What might lie between the observations
=======================================

The kriging mean is the best guess of each value, and too smooth as a whole.
Conditional simulations pass through the observations and are as rough as the field:
for maxima, crossings and sums take these.
"""

import matplotlib.pyplot as plt
import numpy as np

from h2gpu.covariance import Matern
from h2gpu.statistics import Kriging, simulate

cov = Matern(variance=1.0, length_scale=0.8, smoothness=1.5)
line = np.linspace(0, 10, 400)[:, None]
field = simulate(cov, line, random_state=5)[:, 0]
seen = np.array([5, 40, 90, 120, 150, 290, 330, 395])

kriging = Kriging(cov, trend=None).fit(line[seen], field[seen])
mean, std = kriging.predict(line, return_std=True)
paths = kriging.sample_y(line, n_samples=200, random_state=0)

# %%

figure, ax = plt.subplots(figsize=(10, 4), layout="constrained")
ax.fill_between(
    line[:, 0],
    mean - 1.96 * std,
    mean + 1.96 * std,
    color="#1f5f8b",
    alpha=0.15,
    label="95 %",
)
ax.plot(line, paths[:, :6], lw=0.7, color="#888888")
ax.plot(line, mean, color="#1f5f8b", label="mean")
ax.plot(line, field, "k--", lw=1, label="truth")
ax.plot(line[seen], field[seen], "ko")
ax.legend(loc="lower right")
plt.show()

# %%
# The highest value along the line: the mean's maximum is too low, that of the
# simulations is a distribution.

low, high = np.quantile(paths.max(axis=0), [0.05, 0.95])
print(f"maximum of the mean {mean.max():.2f}, of the truth {field.max():.2f}")
print(f"maximum of simulations, 5 to 95 %: {low:.2f} to {high:.2f}")
