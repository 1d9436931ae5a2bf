"""Paths: only regular files, each once, and none of a table whose log says which rows count."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dplinear.curator import Schema, second_moments
from dplinear.curator.sources.ordered import open_rows
from refusals import refused
from services import library

SCHEMA = Schema({"a": (0, 9)})
TABLE = pa.table({"a": [1.0, 2.0]})


def parquet(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(TABLE, file)
    return file


def delta(folder: Path) -> Path:
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / "00000000000000000000.json").write_text("{}")
    return parquet(folder / "year=2026" / "part-0.parquet")


def iceberg(folder: Path) -> Path:
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "00001-abc.gz.metadata.json").write_text("{}")
    return parquet(folder / "data" / "part-0.parquet")


def hadoop_iceberg(folder: Path) -> Path:
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "version-hint.text").write_text("1")
    return parquet(folder / "data" / "part-0.parquet")


def hudi(folder: Path) -> Path:
    (folder / ".hoodie").mkdir(parents=True)
    return parquet(folder / "2026" / "part-0.parquet")


def stream(folder: Path) -> Path:
    (folder / "_spark_metadata").mkdir(parents=True)
    return parquet(folder / "part-0.parquet")


def paimon(folder: Path) -> Path:
    for name in ("snapshot", "manifest", "schema"):
        (folder / name).mkdir(parents=True)
    return parquet(folder / "bucket-0" / "data-0.parquet")


MAKERS = [delta, iceberg, hadoop_iceberg, hudi, stream, paimon]
WAYS: dict[str, Callable[[Path, Path], Any]] = {
    "the folder": lambda folder, _: folder,
    "a folder above": lambda folder, _: folder.parent,
    "a folder within": lambda _, file: str(file.parent),
    "a file": lambda _, file: file,
    "a glob": lambda folder, _: f"{folder}/**/*.parquet",
    "a glob above": lambda folder, _: f"{folder.parent}/*/**/*.parquet",
    "a list": lambda folder, file: [parquet(folder.parent / "other.parquet"), file],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", MAKERS)
def test_a_table_with_a_log_of_its_own_is_refused(
    make: Callable[[Path], Path], way: str, tmp_path: Path
) -> None:
    """Its files hold rows that were deleted or replaced: 5,000 rows were read as 14,999."""
    folder = tmp_path / "all" / "people"
    data = WAYS[way](folder, make(folder))
    with pytest.raises(ValueError, match=r"'data' parameter .*log of its own") as caught:
        second_moments(data, SCHEMA)
    assert "Hint: " in str(caught.value)
    with refused("data", "second_moments", "log of its own"):
        open_rows(data, SCHEMA, "release_rows")


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_engines_refuse_it_too(engine: str, tmp_path: Path, request: Any) -> None:
    library({"dask": "dask", "spark": "pyspark"}[engine])
    if engine == "spark":
        request.getfixturevalue("spark")
    delta(tmp_path / "people")
    with refused("data", "second_moments", "log of its own"):
        second_moments(str(tmp_path / "people"), SCHEMA, engine=engine)


def test_a_link_into_such_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.parquet").symlink_to(delta(tmp_path / "people"))
    with refused("data", "second_moments", "log of its own"):
        second_moments(tmp_path / "link.parquet", SCHEMA)


def test_an_empty_one_is_refused_likewise(tmp_path: Path) -> None:
    delta(tmp_path / "people").unlink()
    with refused("data", "second_moments", "log of its own"):
        second_moments(tmp_path / "people", SCHEMA)


def test_other_folders_of_such_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "notes.json").write_text("{}")
    (tmp_path / "schema").mkdir()
    file = parquet(tmp_path / "data" / "t.parquet")
    assert second_moments(file, SCHEMA).count == 2


def pipe(file: Path) -> Path:
    os.mkfifo(file)
    return file


def linked_pipe(file: Path) -> Path:
    file.symlink_to(pipe(file.parent / "pipe"))
    return file


def server(file: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(file))
    return file


def device(file: Path) -> Path:
    file.symlink_to("/dev/zero")
    return file


def linked_to_nothing(file: Path) -> Path:
    file.symlink_to(file.parent / "nothing")
    return file


NO_FILES = [pipe, linked_pipe, server, device, linked_to_nothing]
READ = """
import sys
from dplinear.curator import Schema, second_moments
try:
    second_moments(sys.argv[1], Schema({"a": (0, 9)}))
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow"])
@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_regular_file_is_refused_before_it_is_opened(
    make: Callable[[Path], Path], suffix: str, tmp_path: Path
) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    file = make(folder / f"t{suffix}")
    rule = "readable file" if make is linked_to_nothing else "a regular file"
    for data in (file, folder, f"{folder}/t*"):
        with pytest.raises(ValueError, match=f"'data' parameter .*{rule}"):
            second_moments(data, SCHEMA)


def test_the_command_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(pipe(tmp_path / "t.csv"))],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "a regular file" in done.stdout


def test_a_folder_is_read_whatever_its_name(tmp_path: Path) -> None:
    parquet(tmp_path / "t.csv" / "part-0.parquet")
    assert second_moments(tmp_path / "t.csv", SCHEMA).count == 2
    with refused("data", "second_moments", "a glob that matches files"):
        second_moments(f"{tmp_path}/*.csv", SCHEMA)
    assert second_moments(f"{tmp_path}/**/*.parquet", SCHEMA).count == 2


@pytest.mark.parametrize("way", ["list", "link", "hard link", "glob"])
def test_a_file_named_twice_is_refused(way: str, tmp_path: Path) -> None:
    file = parquet(tmp_path / "t.parquet")
    data: Any = tmp_path
    if way == "list":
        data = [file, str(file)]
    elif way == "glob":
        data = [f"{tmp_path}/*.parquet", file]
    elif way == "link":
        (tmp_path / "u.parquet").symlink_to(file)
    else:
        (tmp_path / "u.parquet").hardlink_to(file)
    with pytest.raises(ValueError, match=r"'data' parameter .*none of them twice"):
        second_moments(data, SCHEMA)
