"""The tables of a ledger in PostgreSQL, and how one sees that they are as they were made.

What the server's own catalogues say is compared, not statements: these read alike on every version.
"""

from typing import Any

from dplinear.ledger.postgres.trigger import COLUMNS, NEVER
from dplinear.ledger.postgres.trigger import follows as body_of_follows

TABLE = "lines"
_REFUSED = f"\nBEGIN RAISE EXCEPTION '{NEVER}'; END\n"
ROLE = 'role text COLLATE "C" NOT NULL'
_SAFELY = "search_path=pg_catalog, pg_temp"  # so that nobody's functions stand in for the server's


def qualified_name(name: str) -> str:
    """Return what the table of a ledger's lines is called."""
    return f'"{name}".{TABLE}'


def statements(name: str) -> list[str]:
    """Return what makes the tables of a ledger of this name."""
    # Bytes are compared as bytes ("C"): a new sorting order of the system breaks no index.
    collated = {"text": 'text COLLATE "C"'}
    columns = ", ".join(f"{one} {collated.get(kind, kind)} NOT NULL" for one, kind in COLUMNS)
    lines = qualified_name(name)
    made = [
        f'CREATE SCHEMA "{name}"',
        f"CREATE TABLE {lines} ({columns}, output bytea, {ROLE}, PRIMARY KEY (sequence))",
        f"CREATE INDEX by_dataset ON {lines} (dataset, kind, sequence)",
        f"CREATE UNIQUE INDEX by_request ON {lines} (request, kind) WHERE request <> ''",
    ]
    made += [_function(name, "refused", _REFUSED), follows(name)]
    guards = {
        "never_changed": ("UPDATE OR DELETE OR TRUNCATE", "STATEMENT", "refused"),
        "only_added": ("INSERT", "ROW", "follows"),
    }
    for guard, (event, each, function) in guards.items():
        made.append(
            f"CREATE TRIGGER {guard} BEFORE {event} ON {lines} "
            f'FOR EACH {each} EXECUTE FUNCTION "{name}".{function}()'
        )
        made.append(f"ALTER TABLE {lines} ENABLE ALWAYS TRIGGER {guard}")
    return made


def _function(name: str, function: str, body: str) -> str:
    return (
        f'CREATE OR REPLACE FUNCTION "{name}".{function}() RETURNS trigger LANGUAGE plpgsql '
        f"SET search_path = pg_catalog, pg_temp AS $body${body}$body$"
    )


def follows(name: str) -> str:
    """Return what makes the trigger's function, or replaces an earlier one."""
    return _function(name, "follows", body_of_follows(qualified_name(name)))


DESCRIBE = (
    """SELECT relkind::text, relpersistence::text, relrowsecurity, relhasrules, relhassubclass
    FROM pg_class WHERE oid = %s""",
    """SELECT attname::text, format_type(atttypid, atttypmod), attnotnull,
    coalesce((SELECT collname::text FROM pg_collation WHERE oid = attcollation), '')
    FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum""",
    """SELECT array_to_string(ARRAY(SELECT attname FROM unnest(indkey) WITH ORDINALITY AS k(n, i)
     JOIN pg_attribute ON attrelid = indrelid AND attnum = n ORDER BY i), ' ') AS key,
    indisunique, indisvalid AND indisready, coalesce(pg_get_expr(indpred, indrelid), '')
    FROM pg_index WHERE indrelid = %s ORDER BY key""",
    """SELECT tgname::text, tgtype::int, tgenabled::text, tgqual IS NULL, nspname::text,
    proname::text, prosrc, prosecdef, array_to_string(proconfig, ';'), lanname::text
    FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid JOIN pg_namespace n ON n.oid = pronamespace
    JOIN pg_language l ON l.oid = prolang
    WHERE tgrelid = %s AND NOT tgisinternal ORDER BY tgname""",
)
_NAMED = "(request <> ''::text)"


def expected_tables(name: str) -> list[list[tuple[Any, ...]]]:
    """Return what the queries above find where nobody has touched the tables."""
    columns = [(one, kind, True, "C" if kind == "text" else "") for one, kind in COLUMNS]
    triggers = [
        # Before, for each statement: update, delete, truncate; before, for each row: insert.
        ("never_changed", 2 + 8 + 16 + 32, "refused", _REFUSED),
        ("only_added", 1 + 2 + 4, "follows", body_of_follows(qualified_name(name))),
    ]
    return [
        [("r", "p", False, False, False)],
        [*columns, ("output", "bytea", False, ""), ("role", "text", True, "C")],
        [
            ("dataset kind sequence", False, True, ""),
            ("request kind", True, True, _NAMED),
            ("sequence", True, True, ""),
        ],
        [
            (one, kind, "A", True, name, function, body, False, _SAFELY, "plpgsql")
            for one, kind, function, body in triggers
        ],
    ]
