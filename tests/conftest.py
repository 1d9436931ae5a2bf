import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from dplinear.noise import simulation
from postgres_server import Server
from resume import install
from rotation import rotate
from services import lacking, library

# No test times anything: on a machine that others use, any call may take long.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--resume`, which runs only what has not passed yet on the same files."""
    parser.addoption("--resume", action="store_true", help="leave out what passed on these files")


def pytest_configure(config: pytest.Config) -> None:
    """Leave out what has passed, where that is asked for."""
    install(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take a part of the large suites each day, before others choose among all tests."""
    rotate(items)


@pytest.fixture(scope="session")
def generator() -> Callable[[int], Any]:
    """Fixed data for tests: a seeded NumPy generator."""
    return simulation.generator


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark session with two cores, each task tried up to four times."""
    sql = library("pyspark.sql")
    java = shutil.which("java")
    if java is None:
        lacking("Java, which Spark runs on", "Run make services.")
    os.environ.setdefault("JAVA_HOME", str(Path(java).resolve().parents[1]))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = sql.SparkSession.builder.master("local[2,4]").appName("dplinear-tests")
    session = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, started and stopped here; each test makes a ledger of its own."""
    if Server.shared is not None:
        yield Server.shared
        return
    server = Server()
    yield server
    server.remove()
