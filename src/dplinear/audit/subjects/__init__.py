"""What can be audited: each kind of mechanism with its worst pair of tables, one file each."""
