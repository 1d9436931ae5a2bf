"""A password is never saved: not with a ledger, an estimator, an error, nor a copy of them."""

import copy
import io
import json
import pickle
import traceback
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]  # as scikit-learn
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dplinear.estimators import PrivateMean, PrivatePCA, PrivateProjection, PrivateRidge
from dplinear.ledger import LedgerError, open_ledger
from dplinear.ledger.address import Address, Veiled, veil
from dplinear.privacy import ZCDP
from postgres_server import PASSWORD, Server

pytestmark = pytest.mark.engine
HUSH = "hush-hush"
WORDS = (PASSWORD, HUSH)


def _joblib(value: object) -> bytes:
    file = io.BytesIO()
    joblib.dump(value, file)
    return file.getvalue()


def _cloudpickle(value: object) -> bytes:
    found: bytes = pytest.importorskip("cloudpickle").dumps(value)
    return found


def _python(value: object) -> bytes:
    file = io.BytesIO()
    pickle._Pickler(file).dump(value)  # the one that is written in Python
    return file.getvalue()


SAVERS: dict[str, Callable[[Any], bytes]] = {
    **{f"pickle {kind}": partial(pickle.dumps, protocol=kind) for kind in range(6)},
    "python": _python,
    "joblib": _joblib,
    "cloudpickle": _cloudpickle,
}
URLS = (
    f"postgresql://me:{HUSH}@host/base",
    f"postgres://me:{HUSH}@host:5432/base?sslmode=require",
    f"postgresql://:{HUSH}@host",
    f"postgresql:///base?user=me&password={HUSH}",
    f"postgresql://host/base?password={HUSH}&user=me&ledger=a&anchor=%2Ftmp%2Fa",
    f"postgresql://host/base?pass%77ord={HUSH}",
    f"postgresql://host/base?sslpassword={HUSH}",
    f"postgresql://me:{HUSH}@host/base?password={HUSH}",
)
# What nobody could connect with, and what holds a password all the same.
BROKEN = (
    f"postgresql://me:a/{HUSH}@host/base",
    f"postgresql//me:{HUSH}@host/base",
    f"host=host password={HUSH}",
    f"postgresql://host/base?{HUSH}",
)


@pytest.fixture(params=["user", "query"])
def right(request: pytest.FixtureRequest, postgres: Server, tmp_path: Path) -> str:
    """The address of a ledger, with the password that its server wants."""
    name = f"ledger_{uuid.uuid4().hex[:12]}"
    place = f"127.0.0.1:{postgres.port}/postgres?ledger={name}&anchor={tmp_path}/side.anchor"
    address = {
        "user": f"postgresql://keeper:{PASSWORD}@{place}",
        "query": f"postgresql://{place}&user=keeper&password={PASSWORD}&sslmode=prefer",
    }[request.param]
    open_ledger(address, create=True).declare("table", ZCDP(10.0))
    return address


def holds(saved: bytes) -> bool:
    return any(word.encode() in saved for word in WORDS)


@pytest.mark.parametrize("saver", SAVERS)
def test_an_opened_ledger_is_saved_without_its_password(
    right: str, saver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(right)
    saved = SAVERS[saver](ledger)
    assert not holds(saved)
    loaded = joblib.load(io.BytesIO(saved)) if saver == "joblib" else pickle.loads(saved)
    assert repr(loaded) == repr(ledger)
    with pytest.raises(LedgerError, match=r"(?s)wants another password.*\.pgpass"):
        loaded.status()
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert loaded.status() == ledger.status()


@pytest.mark.parametrize("kind", [PrivateRidge, PrivatePCA, PrivateMean, PrivateProjection])
@pytest.mark.parametrize("saver", ["pickle 5", "python", "joblib", "cloudpickle"])
@pytest.mark.parametrize("given", [*URLS, *BROKEN])
def test_an_estimator_is_saved_without_a_password(kind: Any, saver: str, given: str) -> None:
    for made in (kind(ledger=given), kind(ledger=Path(given)), kind(ledger=given.encode())):
        for one in (made, clone(made), make_pipeline(made), copy.copy(made)):
            assert not holds(SAVERS[saver](one))
        assert not holds(repr(made.__getstate__()).encode())
        assert HUSH not in json.dumps(made.__getstate__(), default=repr)  # as skops does
        assert HUSH not in joblib.hash(made)


def test_a_fitted_estimator_keeps_its_ledger_and_saves_no_password(right: str) -> None:
    ledger = open_ledger(right)
    model = PrivatePCA(
        1,
        bounds=(-1, 1),
        guarantee=ZCDP(1.0),
        ledger=ledger,
        dataset="table",
        epsilon=None,
        delta=None,
    )
    model.fit(np.linspace(-1, 1, 200).reshape(100, 2))
    for saver in SAVERS.values():
        assert not holds(saver(model))
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.components_, model.components_)
    assert copy.deepcopy(make_pipeline(model))[0].ledger is ledger  # one budget, not two
    twins: list[Any] = [clone(model), copy.copy(model), copy.deepcopy(model), model]
    for twin in twins:
        assert twin.ledger.status() == ledger.status()  # with the password, as nothing was saved


@pytest.mark.parametrize("given", URLS)
def test_addresses_lose_their_password_alone_when_they_are_saved(given: str) -> None:
    address = Address.parse(given)
    loaded = pickle.loads(pickle.dumps(address))
    assert address.has_password
    assert not loaded.has_password
    assert (loaded.database, loaded.ledger, loaded.anchor) == (
        address.database,
        address.ledger,
        address.anchor,
    )
    assert copy.deepcopy(address) is address
    veiled: Any = veil(given)
    again = pickle.loads(pickle.dumps(veiled))
    assert isinstance(again, Veiled)
    assert not Address.parse(again[:]).has_password
    assert Address.parse(again[:]) == loaded
    assert copy.deepcopy(veiled) is copy.copy(veiled) is veiled


def test_an_address_without_a_password_is_saved_as_it_is() -> None:
    for given in ("postgresql://me@host/base?sslmode=require&ledger=a", "postgresql:///b?user=me"):
        address = Address.parse(given)
        assert pickle.loads(pickle.dumps(address)) == address
        assert pickle.loads(pickle.dumps(veil(given))) == given


# Errors


def _errors(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    "query", ["password={}x", "user=keeper&password={}x&sslmode=prefer", "password={}&port=1"]
)
def test_no_error_carries_a_password(postgres: Server, query: str) -> None:
    said = query.replace("{}", PASSWORD)
    said += "" if "port" in said else f"&port={postgres.port}"
    address = f"postgresql://127.0.0.1/postgres?{said}"
    with pytest.raises(LedgerError) as caught:
        open_ledger(address)
    error = caught.value
    for one in _errors(error):
        assert PASSWORD not in "".join(map(str, (one, repr(one), one.args, vars(one))))
    assert PASSWORD not in "".join(traceback.format_exception(error))
    assert not holds(pickle.dumps(error))
    for kind in (PrivateRidge, PrivatePCA):
        made = kind(ledger=address, epsilon=1.0, delta=1e-6, bounds=(0, 1))
        with pytest.raises((ValueError, TypeError)) as refused:
            made.fit(np.zeros((2, 2)), np.zeros(2))
        assert not holds(pickle.dumps(refused.value))
        shown = repr(made) + str(made.get_params()) + made._repr_html_() + str(refused.value)
        assert PASSWORD not in shown


def test_an_error_during_a_use_carries_no_password(right: str, postgres: Server) -> None:
    ledger: Any = open_ledger(right)

    def use() -> None:
        with ledger.writing() as lines:
            ((number,),) = lines._session.ask("SELECT pg_backend_pid()")
            postgres.sql(f"SELECT pg_terminate_backend({number})")
            lines._session.ask("SELECT 1")

    with pytest.raises(LedgerError) as caught:
        use()
    for one in _errors(caught.value):
        assert PASSWORD not in str(one) + repr(vars(one))
        assert not holds(pickle.dumps(one))
