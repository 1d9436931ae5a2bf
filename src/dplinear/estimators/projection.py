"""Private rows for scikit-learn: projected, with noise, for any algorithm to run on."""

from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dplinear.analyst.rows.release import RowsRelease
from dplinear.arguments import integer, rejection
from dplinear.arrays import Array, Floats
from dplinear.curator.gates.rows import release_rows
from dplinear.estimators.base import PrivateEstimator
from dplinear.estimators.bounds import read_bounds
from dplinear.estimators.tables import features_of
from dplinear.ledger import AnyLedger
from dplinear.ledger.address import check_shown
from dplinear.mechanisms.checks import read_guarantee
from dplinear.mechanisms.rows import row_maps
from dplinear.mechanisms.rows.projection import ProjectedRows
from dplinear.mechanisms.rows.row_maps import RowMap
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_MECHANISM = "projection"


class _RowsOut:
    """The methods of a transformer whose output is a release: no label of the table's goes with it.

    scikit-learn wraps those that its own classes define, and puts the index of X, where names and
    moments may stand, on what they return. It wraps none of a class that is not its own.
    """

    release_: RowsRelease

    def fit_transform(self: Any, X: Any, y: object = None) -> Any:
        """Draw a projection and release the rows of X through it, once.

        Promises: the guarantee, whatever the cells hold; each call spends it again. Rows are in the
        order of X, and have no other name: a frame that `set_output` asks for has no index of X.
        """
        self.release_ = self._release_rows(self._prepare(X))
        self.certificate_ = self.release_.certificate
        return self._in_container(self.release_.values)

    def transform(self: Any, X: Any) -> Any:
        """Release the rows of X through the projection of `fit`; each call spends the guarantee."""
        return self._in_container(self.release(X).values)

    def _in_container(self: Any, values: Floats) -> Any:
        """Return released rows in the container that scikit-learn is asked for, with new labels."""
        own = getattr(self, "_sklearn_output_config", {})
        asked = own.get("transform", get_config()["transform_output"])
        if asked not in {"pandas", "polars"}:
            return values
        frame = import_module(asked).DataFrame(values)
        frame.columns = self.get_feature_names_out().tolist()
        return frame


class PrivateProjection(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # as in base
    _RowsOut,
    TransformerMixin,  # type: ignore[misc]
    PrivateEstimator,
):
    """Rows themselves under differential privacy: `n_components` numbers for each.

    Requires: public `bounds` for the columns (a pair for all, or one for each); values outside are
    clamped, missing ones are the middle. The guarantee is `epsilon` and, if not None, `delta`, or a
    `guarantee` of another kind with both set to None, between tables that are `neighbours`:
    "element" (one cell changes, by at most `change` half-ranges), "row_l1" or "row_l2" (one row
    does). With a `change`, `missing_public` says that neighbours agree on which cells hold no
    number; otherwise a changed cell may also go missing, for more noise. The number of rows and
    their order are public. `projection` and `noise` are those of `release_rows` with
    mechanism="projection".
    Promises: `fit` draws the projection, reads no row and spends nothing. Every `transform` is a
    release of the rows it is handed, with fresh noise, and spends the guarantee: tables without a
    row in common each keep their own, and a row released twice costs twice. The same projection
    may be used again because the noise is scaled for that very projection, as if it were known;
    with noise="quantile" it may not, and `fit_transform` alone works, on a fresh one each time.
    After `fit_transform`: `release_`, with `distances`, `nearest`, `kmeans`, …, `certificate_`.
    The object holds the projection, and so does a pickle of it: it stays with the curator.
    """

    _drawn: RowMap | None

    def __init__(
        self,
        n_components: int = 2,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = None,
        bounds: Any = None,
        change: float | None = None,
        missing_public: bool = False,
        row_norm: float | None = None,
        neighbours: str = "element",
        projection: str = "gaussian",
        noise: str = "auto",
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.change = change
        self.missing_public = missing_public
        self.row_norm = row_norm
        self.neighbours = neighbours
        self.projection = projection
        self.noise = noise
        self.ledger = ledger
        self.dataset = dataset
        self.guarantee = guarantee

    def fit(self, X: Any, y: object = None) -> Self:
        """Draw the projection for tables with the columns of X; no row of X is read.

        Requires: `bounds`; without them this raises before it looks at X.
        """
        self._prepare(X)
        return self

    def release(self, X: Any) -> RowsRelease:
        """Do as `transform`, and return the whole release with its certificate."""
        check_is_fitted(self, "schema_")
        if self._drawn is None:
            hint = "fit_transform releases a table through a projection of its own."
            rule = "another than 'quantile', whose promise is for one table alone"
            raise rejection("noise", f"{self._where}.transform", rule, self.noise, hint)
        table = features_of(X, self._where, self.n_features_in_)
        validate_data(self, X if hasattr(X, "shape") else table, reset=False, skip_check_array=True)
        return self._release_rows(table)

    def _prepare(self, X: Any) -> Array:
        """Check all arguments, then the columns of X; draw the projection."""
        check_shown(self.ledger, self._where)
        bounds = read_bounds(self.bounds, self._where)
        k = integer(
            self.n_components, "n_components", self._where, low=1, high=row_maps.MOST_COLUMNS
        )
        relation = Neighbours.parse(self.neighbours, self._where)
        with self._named():
            ProjectedRows(
                guarantee=read_guarantee(self._where, self.epsilon, self.delta, self.guarantee),
                neighbours=relation,
                k=k,
                projection=self.projection,
                noise=self.noise,
                change=self.change,
                missing_public=self.missing_public,
            )
        if self.row_norm is not None and relation is Neighbours.ELEMENT:
            rule = "None where single cells are protected"
            hint = "clipping a row to a norm lets each of its cells move the others."
            raise rejection("row_norm", self._where, rule, self.row_norm, hint)
        table, names = self._features(X)
        columns = self._named_bounds(bounds, names)
        self.schema_ = Schema(columns, row_norm=self.row_norm)
        fixed = self.noise == "quantile"
        for of_last in ("release_", "certificate_"):  # of another projection
            self.__dict__.pop(of_last, None)
        self._drawn = None if fixed else row_maps.draw(self.projection, len(names), k, _entropy())
        return table

    def _release_rows(self, table: Array) -> RowsRelease:
        """Cross the wall."""
        with self._named():
            return release_rows(
                table,
                self.schema_,
                epsilon=self.epsilon,
                delta=self.delta,
                guarantee=self.guarantee,
                neighbours=self.neighbours,
                ledger=self.ledger,
                dataset=self.dataset,
                mechanism=_MECHANISM,
                k=int(self.n_components),
                projection=self.projection,
                noise=self.noise,
                change=self.change,
                missing_public=self.missing_public,
                drawn=self._drawn,
            )

    @property
    def _n_features_out(self) -> int:
        """How many names scikit-learn makes for what `transform` returns."""
        return int(np.int64(self.n_components))


def _entropy() -> Entropy:
    """Return entropy for a projection; within the seeded door, a stream apart from the noise's."""
    entropy = simulation.entropy_for_release()
    return simulation.entropy(entropy.bits(64)) if entropy.simulated else entropy
