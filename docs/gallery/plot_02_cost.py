"""
What accuracy and sites cost
============================

Memory of a dense covariance grows with the square of the number of sites; that of an
H²-matrix grows little faster than the sites themselves. A digit more of accuracy
costs a few more ranks.
"""

import matplotlib.pyplot as plt
import numpy as np

import h2gpu

cov = h2gpu.covariance.Exponential(length_scale=0.1)
rng = np.random.default_rng(0)

# %%
# Bytes a site, by number of sites and accuracy. Every matrix is compared with exact
# rows when it is built.

sizes, accuracies = [2_000, 4_000, 8_000, 16_000], [1e-3, 1e-6]
bytes_a_site = {rtol: [] for rtol in accuracies}
for n in sizes:
    sites = rng.random((n, 2))
    for rtol in accuracies:
        C = h2gpu.covariance_matrix(sites, cov, rtol=rtol)
        bytes_a_site[rtol].append(C.nbytes / n)

# %%

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.loglog(sizes, [8 * n for n in sizes], "k--", label="dense")
for rtol, values in bytes_a_site.items():
    ax.loglog(sizes, values, "o-", label=f"rtol {rtol:.0e}")
ax.set(xlabel="sites", ylabel="bytes a site", title="memory")
ax.legend()
plt.show()
