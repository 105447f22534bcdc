"""What a fitted `Kriging` can do besides predicting: maps, cross-validation, further observations, files.

ŷ_i from all others     leave_one_out          the same with more data     update
mean, √σ² on a grid     plot                   in a file and back          save, load
means over areas        predict_blocks
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from h2gpu.arrays import any_array, array_module
from h2gpu.statistics.blocks.averages import block_predictions
from h2gpu.statistics.blocks.discretization import Blocks, blocks_of
from h2gpu.statistics.inputs import new_values, seed_of, targets, weighted
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.likelihood.profile import Profile, profile
from h2gpu.statistics.results import files
from h2gpu.statistics.results.leave_one_out import LeaveOneOut, leave_one_out
from h2gpu.statistics.results.maps import maps
from h2gpu.statistics.results.updating import check_same_arrays, take_over
from h2gpu.statistics.tables import check_same_crs
from h2gpu.typing import Array, ArrayLike, FileName


class Results:
    """A part of `Kriging`, which fits."""

    def plot(self, pixels: int = 150, ax: Any = None, units: str = "", value_units: str = "") -> Any:
        """Maps of mean and standard deviation around the sites, which are marked: two axes of matplotlib.

        pixels               along the longer side
        ax                   one of axes to draw the mean on, or two; None makes figures
        units, value_units   of the coordinates and of the field

        Raises ImportError without matplotlib, ValueError unless there are two coordinates and nothing beside them.
        """
        check_is_fitted(self, "weights_")
        return maps(self, pixels, ax, units, value_units)

    def predict_blocks(
        self, blocks: Blocks | Sequence[ArrayLike], return_std: bool = False, *, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predictions of block means of the field, (blocks,), and where asked for one of

        return_std   standard deviations (blocks,), exact: a solve a block
        return_cov   the covariance matrix (blocks, blocks) of the errors, for up to 5,000 blocks

        blocks   `cells` of a grid, `areas` (polygons), or a list of (m, features) tables: the mean over those places

        Raises ValueError for anything else, for both, and for cells and areas where X has trend columns of its own.
        """
        check_is_fitted(self, "weights_")
        check_same_crs(self.crs_, getattr(blocks, "crs", None))
        blocks = blocks_of(blocks, lambda points: targets(self, points))
        mean, more = block_predictions(self._equations, blocks, return_std, return_cov)
        mean = mean + self._known_mean()
        return mean if more is None else (mean, more)

    def leave_one_out(self) -> LeaveOneOut:
        """Predictions of each place from all others at the parameters in use, from one factorization: `LeaveOneOut`
        with values, mean and std (n,), of observations. Exact for up to 4,096 places, else std of stated error."""
        check_is_fitted(self, "weights_")
        return leave_one_out(self._equations, self._places.values, self._known_mean(), seed_of(self.random_state))

    def profile(self, name: str, values: ArrayLike | None = None, full: bool = False) -> Profile:
        """The profile of the likelihood along an estimated parameter: a `likelihood.profile.Profile`.

        name     of `parameters_`
        values   on the parameter's own scale; default: 13 within three standard errors
        full     of more than 1,500 places the full likelihood by the solver in use, in place of Vecchia's: a handful of
                 gradients a value

        Exact for up to 1,500 places. Raises ValueError where the parameter was not estimated.
        """
        check_is_fitted(self, "weights_")
        if self.estimation_ is None:
            raise ValueError("profile: expected parameters that this object has estimated, got a fit with given ones")
        data = Data(self._places, self._trend, self.restricted)
        options = dict(zip(("rtol", "neighbours", "random_state", "solver"), self._accuracy))
        return profile(data, self.estimation_, name, values, options, full)

    @any_array
    def update(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Observations y (n,) at X (n, features) added, at the parameters in use: nothing is estimated again.

        sample_weight   as for `fit`
        """
        check_is_fitted(self, "weights_")
        before, X = self._observed, targets(self, X)
        new = weighted(X, *new_values(self, X, y, sample_weight))
        check_same_arrays(before[:2], new[:2])
        both = tuple(array_module(a).concatenate([a, b]) for a, b in zip(before, new))
        later = copy(self)._fitted(Model(self.cov_, self.nugget_, ()), *both)
        later._observed = both
        take_over(self, later)
        return self

    def save(self, path: FileName) -> None:
        """Write the fitted estimator to an HDF5 file, whole or not at all, nothing pickled: `Kriging.load` reads it.

        Raises ValueError for functions, as cov or trend, that a file cannot hold; OSError when the disk refuses.
        """
        check_is_fitted(self, "weights_")
        files.save(self, path)

    @classmethod
    def load(cls, path: FileName) -> Self:
        """The estimator of a file, on the CPU. Nothing in the file is trusted, nothing is solved again.

        Raises ValueError, one line, for a file that is damaged or of another kind; OSError when it cannot be opened.
        """
        return files.restored(cls, path)
