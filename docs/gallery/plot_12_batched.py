"""
Ten thousand small SVDs at once
===============================

``h2gpu.batched`` stands on its own: many small matrices in one call. Here, patches of
a landscape are compressed by truncated SVDs, each to the rank that it needs.
"""

import h5py
import matplotlib.pyplot as plt
import numpy as np

from h2gpu import batched

with h5py.File("../../data/jacksboro.h5") as file:
    raster = file["elevation"][:].astype(float).reshape(344, 403)

# %%
# Overlapping patches of 16 × 16 pixels, their means taken away: (batch, 16, 16).

windows = np.lib.stride_tricks.sliding_window_view(raster, (16, 16))[::3, ::3]
patches = windows.reshape(-1, 16, 16) - windows.mean(axis=(2, 3)).reshape(-1, 1, 1)
U, s, missed = batched.truncated_svd(
    patches, 80.0
)  # metres, in the Frobenius norm: 5 m a pixel
ranks = (s > 0).sum(axis=1)
print(f"{len(patches)} patches, ranks {ranks.min()} to {ranks.max()}")
print(f"largest error {missed.max():.1f} m")

# %%
# Ridges and valleys need few vectors, broken ground more.

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
axes[0].imshow(raster, cmap="terrain")
axes[0].set_title("elevation")
picture = axes[1].imshow(ranks.reshape(windows.shape[:2]), cmap="magma")
axes[1].set_title("rank of each patch, 5 m a pixel")
figure.colorbar(picture, ax=axes[1], shrink=0.8)
for ax in axes:
    ax.set_axis_off()
plt.show()
