"""A ledger and a table that tell what was done to them."""

from typing import Any

import pyarrow as pa

from dplinear.ledger import Request


class Book:
    """A ledger that remembers what it was told, and may refuse."""

    def __init__(self, *, refuse: bool = False) -> None:
        self.requests: list[Request] = []
        self.refuse = refuse

    def spend(self, request: Request) -> None:
        if self.refuse:
            raise PermissionError("the budget is spent")
        self.requests.append(request)


class Watched:
    """A table that knows whether its rows were asked for."""

    def __init__(self, table: pa.Table) -> None:
        self.read = False
        self.table = table

    def __arrow_c_stream__(self, requested: object = None) -> object:
        def batches() -> Any:
            self.read = True
            yield from self.table.to_batches()

        reader = pa.RecordBatchReader.from_batches(self.table.schema, batches())
        return reader.__arrow_c_stream__(requested)
