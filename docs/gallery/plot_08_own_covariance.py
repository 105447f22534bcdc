"""
A covariance of one's own
=========================

A hole effect: fields that come back every so often, such as dunes. Any positive
definite function will do, as a Python function or as one line of text that a GPU
compiles.
"""

import matplotlib.pyplot as plt
import numpy as np

import h2gpu
from h2gpu.covariance import Expression, from_distance

damped = "exp(-r / reach) * cos(r / wave)"
written = Expression(damped, reach=3.0, wave=3.0 / (2 * np.pi), dimension=1)
called = from_distance(lambda r: np.exp(-r / 3.0) * np.cos(r * 2 * np.pi / 3.0))

# %%
# Both are covariances like all others: values, matrices to a promised accuracy,
# simulations.

r = np.linspace(0, 12, 400)
x = np.sort(np.random.default_rng(0).uniform(0, 200, 3000))[:, None]
C = h2gpu.covariance_matrix(x, written, rtol=1e-6)
print(C)
print("error on random rows:", h2gpu.sampled_error(C, x, called, random_state=0))

# %%

line = np.linspace(0, 40, 600)[:, None]
fields = h2gpu.statistics.simulate(written, line, n_samples=2, random_state=1)
figure, axes = plt.subplots(
    1, 2, figsize=(11, 3.6), layout="constrained", width_ratios=(1, 2)
)
axes[0].plot(r, called.at_distance(r))
axes[0].axhline(0, color="k", lw=0.5)
axes[0].set(xlabel="distance", ylabel="covariance", title=damped)
axes[1].plot(line, fields)
axes[1].set(xlabel="x", title="two fields")
plt.show()
