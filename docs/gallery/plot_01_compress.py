"""
A compressed covariance matrix
==============================

The covariance of 20,000 sites is a matrix of 3.2 GB. Compressed to six digits it
takes about a hundredth of that. Distant groups of sites see each other through few
numbers; only neighbours keep all of theirs.
"""

# %%
# Sites, a covariance, and the one number that says how accurate the matrix shall be.

import matplotlib.pyplot as plt
import numpy as np

import h2gpu

sites = np.random.default_rng(0).uniform(0, 100, (20_000, 2))
cov = h2gpu.covariance.Matern(variance=1.0, length_scale=10.0, smoothness=1.5)
C = h2gpu.covariance_matrix(sites, cov, rtol=1e-6)
print(C)
print("error on random rows:", h2gpu.sampled_error(C, sites, cov, random_state=0))

# %%
# What each part takes, beside the dense matrix, and the ranks by level of the tree:
# what the clusters of a level need to see all that is far from them.

parts = {name: size / 1e6 for name, size in C.memory.items() if name != "total"}
levels = [np.asarray(ranks) for ranks in C.ranks]
dense = len(sites) ** 2 * 8 / 1e6

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].barh(list(parts), list(parts.values()), color="#1f5f8b")
axes[0].set(xlabel="MB", title=f"{C.nbytes / 1e6:.0f} MB; dense: {dense:.0f} MB")
used = [ranks[ranks > 0] for ranks in levels if (ranks > 0).any()]
axes[1].boxplot(used, showfliers=False)
axes[1].set(
    xlabel="level, the coarsest first", ylabel="rank", title="ranks of the clusters"
)
plt.show()
