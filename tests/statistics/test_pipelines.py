"""Kriging as the last step of scikit-learn's pipelines, whose steps hand on tables (`set_output`)."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from h2gpu.covariance import Exponential
from h2gpu.statistics import IndicatorKriging, Kriging

pandas = pytest.importorskip("pandas", reason="pandas is not installed")
RNG = np.random.default_rng(2)
TABLE = pandas.DataFrame({"x": RNG.random(120), "y": 1000 * RNG.random(120), "note": 7.0})
VALUES = np.sin(5 * TABLE["x"].to_numpy()) + 3
NEW = TABLE[:10].assign(x=TABLE["x"] + 0.01, y=TABLE["y"] + 5.0)


def estimator():
    return Kriging(Exponential(length_scale=1.0), 0.05)


def places(output):
    """The scaled coordinates, other columns dropped, as arrays ("default") or tables ("pandas")."""
    return ColumnTransformer([("scaled", StandardScaler(), ["x", "y"])], verbose_feature_names_out=False).set_output(
        transform=output
    )


@pytest.mark.parametrize("kind", [estimator, lambda: IndicatorKriging(Exponential(length_scale=1.0), [2.5, 3.5])])
def test_tables_give_what_arrays_give(kind):
    by_arrays = make_pipeline(places("default"), kind()).fit(TABLE, VALUES)
    by_tables = make_pipeline(places("pandas"), kind()).fit(TABLE, VALUES)
    np.testing.assert_allclose(by_tables.predict(NEW), by_arrays.predict(NEW), rtol=1e-12)
    assert list(by_tables[-1].feature_names_in_) == ["x", "y"]


def test_set_output_of_a_whole_pipeline_leaves_kriging_alone():
    pipeline = make_pipeline(StandardScaler(), FunctionTransformer(lambda t: t[["x", "y"]]), estimator())
    pipeline.set_output(transform="pandas").fit(TABLE, VALUES)
    mean, std = pipeline.predict(NEW, return_std=True)
    assert isinstance(mean, np.ndarray) and mean.shape == std.shape == (10,)
    scaled = StandardScaler().fit(TABLE[["x", "y"]])
    alone = estimator().fit(scaled.transform(TABLE[["x", "y"]]), VALUES)
    np.testing.assert_allclose(mean, alone.predict(scaled.transform(NEW[["x", "y"]])), rtol=1e-10)


def test_columns_in_another_order_are_refused():
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), estimator()).fit(
        TABLE[["x", "y"]], VALUES
    )
    with pytest.raises(ValueError, match="feature names should match"):
        pipeline[-1].predict(NEW[["y", "x"]])


def test_pipelines_are_scored_and_targets_transformed():
    pipeline = make_pipeline(places("pandas"), estimator())
    assert cross_val_score(pipeline, TABLE, VALUES, cv=3).min() > 0.5
    logarithm = TransformedTargetRegressor(pipeline, func=np.log, inverse_func=np.exp).fit(TABLE, VALUES)
    direct = np.exp(make_pipeline(places("pandas"), estimator()).fit(TABLE, np.log(VALUES)).predict(NEW))
    np.testing.assert_allclose(logarithm.predict(NEW), direct, rtol=1e-12)
