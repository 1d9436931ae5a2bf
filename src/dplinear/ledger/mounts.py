"""Which file system a path is on, as far as the system tells."""

from pathlib import Path

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
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place = path.resolve()
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split(" ")[4].encode("utf-8", "surrogateescape")
        folder = Path(point.decode("unicode_escape"))
        depth = len(folder.parts)
        # Of several mounts on one folder the last hides the others.
        if depth >= best and (place == folder or folder in place.parents):
            best, kind = depth, after.split(" ")[0]
    return kind if kind in _NETWORK else None
