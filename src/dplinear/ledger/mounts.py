"""Which file system a path is on, as far as the system tells."""

import os
from pathlib import Path

from dplinear.ledger.request import refusal

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    (
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb2",
        "smb3",
        "smbfs",
        "fuse.ceph",
        "fuse.cephfs",
        "fuse.davfs2",
        "fuse.glusterfs",
        "fuse.mfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
    )
)


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the kind of network file system a path is on, or None where it is on none known.

    Linux tells; where nothing does, None.
    """
    try:
        lines = mounts.read_bytes().split(b"\n")
    except OSError:
        return None
    place = path.resolve()
    best, kind = -1, ""
    for line in filter(None, lines):
        before, _, after = line.partition(b" - ")
        # Spaces and the like are written as \040; every other byte of a name is as it is.
        point = before.split(b" ")[4].decode("unicode_escape").encode("latin-1")
        folder = Path(os.fsdecode(point))
        depth = len(folder.parts)
        # Of several mounts on one folder the last hides the others.
        if depth >= best and (place == folder or folder in place.parents):
            best, kind = depth, after.split(b" ")[0].decode()
    return kind if kind in _NETWORK else None


def check_disk(path: Path) -> None:
    """Raise for a path on a network file system."""
    kind = network_file_system(path)
    if kind is not None:
        hint = "locks and syncs may do nothing there: keep it on a disk of this machine."
        raise refusal(f"The ledger {path.name!r} is on a network file system ({kind}).", hint)
