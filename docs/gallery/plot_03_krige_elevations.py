"""
A map with its uncertainty
==========================

Elevations around the Jacksboro fault, known at 2,000 random places: ordinary kriging
from all of them, and where the map should not be trusted.
"""

import h5py
import matplotlib.pyplot as plt
import numpy as np

from h2gpu.covariance import Matern
from h2gpu.statistics import Kriging

with h5py.File("../../data/jacksboro.h5") as file:
    points, elevation = (
        file["points"][:] / 1000,
        file["elevation"][:].astype(float),
    )  # kilometres, metres

seen = np.random.default_rng(0).choice(len(points), 2000, replace=False)
kriging = Kriging(Matern(smoothness=1.0), trend="constant", fit_parameters=True).fit(
    points[seen], elevation[seen]
)
print(kriging.cov_, "nugget", round(kriging.nugget_, 1))

# %%
# The raster, every fifth pixel each way.

grid = points.reshape(344, 403, 2)[::5, ::5]
mean, std = (
    a.reshape(grid.shape[:2])
    for a in kriging.predict(grid.reshape(-1, 2), return_std=True)
)
truth = elevation.reshape(344, 403)[::5, ::5]

figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained", sharey=True)
edges = [grid[0, 0, 0], grid[0, -1, 0], grid[-1, 0, 1], grid[0, 0, 1]]
pictures = (
    (truth, "truth, m", "terrain"),
    (mean, "kriging from 2,000 places, m", "terrain"),
    (std, "std, m", "magma"),
)
for ax, (values, title, colours) in zip(axes, pictures):
    figure.colorbar(ax.imshow(values, extent=edges, cmap=colours), ax=ax, shrink=0.8)
    ax.set(title=title, xlabel="km east")
axes[0].set_ylabel("km north")
plt.show()

# %%
# Of the true heights 95 % should lie within 1.96 standard deviations.

print(f"within: {np.mean(abs(mean - truth) <= 1.96 * std):.3f}")
