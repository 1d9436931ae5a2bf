"""Which file system a path is on, as far as the system tells."""

import os
from pathlib import Path

from dplinear.ledger.request import refusal

_MOUNTS = Path("/proc/self/mountinfo")
# Whose locks hold for every process that sees the file, and whose syncs reach the disk. What is not
# here (NFS, SMB, FUSE, folders that a virtual machine shares, whatever comes next) is refused.
_LOCAL = frozenset(
    (
        "bcachefs",
        "btrfs",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "jfs",
        "nilfs2",
        "overlay",
        "ramfs",
        "reiserfs",
        "tmpfs",
        "ubifs",
        "xfs",
        "zfs",
    )
)


def file_system(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the kind of file system a path is on; None where the system does not tell.

    Linux tells.
    """
    try:
        lines = mounts.read_bytes().split(b"\n")
    except OSError:
        return None
    place = path.resolve()
    best, kind = -1, None
    for line in filter(None, lines):
        before, _, after = line.partition(b" - ")
        # Spaces and the like are written as \040; every other byte of a name is as it is.
        point = before.split(b" ")[4].decode("unicode_escape").encode("latin-1")
        folder = Path(os.fsdecode(point))
        depth = len(folder.parts)
        # Of several mounts on one folder the last hides the others.
        if depth >= best and (place == folder or folder in place.parents):
            best, kind = depth, after.split(b" ")[0].decode()
    return kind


def check_disk(path: Path) -> None:
    """Raise for a path on a file system that is not known to keep locks and syncs."""
    kind = file_system(path)
    if kind is not None and kind not in _LOCAL:
        hint = (
            "locks and syncs may do nothing there: keep it on a disk of this machine "
            "(ext4, xfs, btrfs, zfs)."
        )
        raise refusal(f"The ledger {path.name!r} is on a file system of kind {kind}.", hint)
