"""A proxy on loopback before a PostgreSQL server, that cuts a connection at a numbered message."""

import os
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from postgres_server import Server

_HEAD = 5  # bytes of a message's kind and length; the first one of a client has no kind


@dataclass(frozen=True)
class Cut:
    """Where to cut: at which message from the client or the server, and when.

    "before" it is passed on, when "half" of it was, or "after" it.
    """

    side: str
    number: int
    when: str


class Proxy:
    """Passes messages on and counts them; cuts one connection once, and lets later ones be."""

    def __init__(self, server: Server, cut: Cut | None = None) -> None:
        self._server, self._cut = server, cut
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.messages = {"client": list[str](), "server": list[str]()}  # their kinds, in order
        self.done = threading.Event()
        self._threads: list[threading.Thread] = []
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._start(self._accept)

    def url(self, ledger: str, **query: object) -> str:
        """Return the address of a ledger, by way of the proxy."""
        place = {"host": "127.0.0.1", "port": self.port, "sslmode": "disable"}
        return self._server.url(ledger, **place, gssencmode="disable", **query)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]  # of threads here
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # when the proxy is closed
            while not self._closed.is_set():
                client, _ = self._listening.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                there = socket.socket(socket.AF_UNIX)
                try:
                    there.connect(str(self._server.folder / f".s.PGSQL.{self._server.port}"))
                except OSError:  # it is down
                    client.close()
                    continue
                self._start(self._pair, client, there)

    def _pair(self, client: socket.socket, there: socket.socket) -> None:
        with client, there:
            back = threading.Thread(target=self._pass, args=("server", there, client), daemon=True)
            back.start()
            self._pass("client", client, there)
            back.join()

    def _pass(self, side: str, source: socket.socket, target: socket.socket) -> None:
        first = side == "client"
        with suppress(OSError):
            while message := _message(source, first=first):
                if self._act(side, "" if first else chr(message[0]), message, target):
                    break
                first = False
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _act(self, side: str, kind: str, message: bytes, target: socket.socket) -> bool:
        """Pass a message on, or a part of it; return whether the connection is to be cut."""
        with self._lock:
            self.messages[side].append(kind)
            number, cut = len(self.messages[side]) - 1, self._cut
            here = cut is not None and not self.done.is_set()
            here = here and cut is not None and (cut.side, cut.number) == (side, number)
            if here:
                self.done.set()
        share = {"before": 0, "half": len(message) // 2}.get(cut.when if here and cut else "")
        target.sendall(message if share is None else message[:share])
        return here

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()


def _message(source: socket.socket, *, first: bool) -> bytes:
    """Return a whole message, or nothing at the end."""
    head = _read(source, _HEAD - 1 if first else _HEAD)
    if not head:
        return b""
    length = int.from_bytes(head[-4:], "big")
    return head + _read(source, length - 4)


def _read(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = source.recv(min(size - len(found), os.sysconf("SC_PAGE_SIZE") * 16))
        if not more:
            return b""
        found += more
    return found
