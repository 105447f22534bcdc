"""
Fields of three smoothnesses
============================

The same variance and length scale, the same random numbers: the smoothness of
Matérn's covariance decides how rough a field looks.
"""

import matplotlib.pyplot as plt
import numpy as np

from h2gpu.covariance import Matern
from h2gpu.statistics import simulate

side = 72
axis = np.linspace(0, 10, side)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)  # 5,184 places

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, smoothness in zip(axes, (0.5, 1.5, 2.5)):
    field = simulate(Matern(1.0, 1.0, smoothness), grid, random_state=4)[:, 0]
    ax.imshow(
        field.reshape(side, side), origin="lower", extent=(0, 10, 0, 10), cmap="viridis"
    )
    ax.set(title=f"smoothness {smoothness}")
plt.show()
