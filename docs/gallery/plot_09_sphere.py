"""
On the sphere: depths of earthquakes
====================================

A week of earthquakes, longitudes and latitudes in degrees: distances go along the great
circle, in kilometres. Under Alaska one plate dips below the other, and earthquakes are
deeper towards the north-west. Where none is near, the standard deviation says so.
"""

import h5py
import matplotlib.pyplot as plt
import numpy as np

from h2gpu.covariance import Exponential, on_sphere
from h2gpu.statistics import Kriging

with h5py.File("../../data/earthquakes.h5") as file:
    lonlat, depth = file["lonlat"][:], file["depth"][:]
west, east, south, north = -158.0, -144.0, 58.0, 66.0
inside = np.all((lonlat >= [west, south]) & (lonlat <= [east, north]), axis=1)
lonlat, depth = lonlat[inside], depth[inside]
print(len(depth), "earthquakes")

# %%
# Ordinary kriging on the sphere, at parameters chosen by hand: 200 km of reach, and a
# nugget for what differs between neighbours.

cov = on_sphere(Exponential(1500.0, 200.0))
kriging = Kriging(cov, nugget=100.0).fit(lonlat, depth)

# %%

lon, lat = np.meshgrid(np.linspace(west, east, 110), np.linspace(south, north, 90))
targets = np.column_stack([lon.ravel(), lat.ravel()])
mean, std = kriging.predict(targets, return_std=True)
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
pictures = (
    (mean, "mean depth, km", "viridis_r"),
    (std, "standard deviation, km", "magma"),
)
for ax, (values, title, colours) in zip(axes, pictures):
    picture = ax.pcolormesh(lon, lat, values.reshape(lon.shape), cmap=colours)
    figure.colorbar(picture, ax=ax, shrink=0.9)
    ax.plot(*lonlat.T, "w.", ms=2)
    ax.set(title=title, xlabel="longitude", xlim=(west, east), ylim=(south, north))
axes[0].set_ylabel("latitude")
plt.show()
