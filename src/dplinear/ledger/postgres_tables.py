"""The tables of a ledger in PostgreSQL, and how one sees that they are as they were made.

What the server's own catalogues say is compared, not statements: these read alike on every version.
"""

from typing import Any

TABLE = "lines"
_NEVER = "a ledger is only ever added to"
COLUMNS = (
    ("sequence", "bigint"),
    ("time", "text"),
    ("kind", "text"),
    ("dataset", "text"),
    ("request", "text"),
    ("digest", "text"),
    ("cost", "bigint"),
    ("cost_delta", "bigint"),
    ("spent", "bigint"),
    ("spent_delta", "bigint"),
    ("facts", "text"),
    ("previous", "text"),
    ("hash", "text"),
)
_SAFELY = "search_path=pg_catalog, pg_temp"  # so that nobody's functions stand in for the server's


def _refused() -> str:
    return f"\nBEGIN RAISE EXCEPTION '{_NEVER}'; END\n"


def _follows(name: str) -> str:
    """Return what lets only the next line in: those who may add lines may not add budget."""
    lines = f'"{name}".{TABLE}'
    same = f"FROM {lines} WHERE dataset = NEW.dataset AND kind ="
    return f"""
BEGIN
 IF NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM {lines})
  OR NEW.previous <> coalesce(
   (SELECT hash FROM {lines} ORDER BY sequence DESC LIMIT 1), repeat('0', 64))
  OR (NEW.request <> '' AND EXISTS (
   SELECT 1 FROM {lines} WHERE request = NEW.request AND kind = NEW.kind))
  OR NEW.cost < 0 OR NEW.cost_delta < 0
  OR (NEW.kind = 'budget' AND EXISTS (SELECT 1 {same} 'budget'))
  OR (NEW.kind = 'spend' AND NOT EXISTS (
   SELECT 1 {same} 'budget' AND NEW.spent <= cost AND NEW.spent_delta <= cost_delta))
  OR (NEW.kind = 'spend' AND (NEW.spent - NEW.cost, NEW.spent_delta - NEW.cost_delta) <> (
   coalesce((SELECT spent {same} 'spend' ORDER BY sequence DESC LIMIT 1), 0),
   coalesce((SELECT spent_delta {same} 'spend' ORDER BY sequence DESC LIMIT 1), 0)))
 THEN RAISE EXCEPTION '{_NEVER}';
 END IF;
 RETURN NEW;
END
"""  # noqa: S608 - a name that was checked


def statements(name: str) -> list[str]:
    """Return what makes the tables of a ledger of this name."""
    # Bytes are compared as bytes ("C"): a new sorting order of the system breaks no index.
    collated = {"text": 'text COLLATE "C"'}
    columns = ", ".join(f"{one} {collated.get(kind, kind)} NOT NULL" for one, kind in COLUMNS)
    lines = f'"{name}".{TABLE}'
    made = [
        f'CREATE SCHEMA "{name}"',
        f"CREATE TABLE {lines} ({columns}, output bytea, PRIMARY KEY (sequence))",
        f"CREATE INDEX by_dataset ON {lines} (dataset, kind, sequence)",
        f"CREATE UNIQUE INDEX by_request ON {lines} (request, kind) WHERE request <> ''",
    ]
    for function, body in _functions(name).items():
        made.append(
            f'CREATE FUNCTION "{name}".{function}() RETURNS trigger LANGUAGE plpgsql '
            f"SET search_path = pg_catalog, pg_temp AS $body${body}$body$"
        )
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


def _functions(name: str) -> dict[str, str]:
    return {"refused": _refused(), "follows": _follows(name)}


DESCRIBE = (
    """SELECT relkind::text, relpersistence::text, relrowsecurity, relhasrules, relhassubclass
    FROM pg_class WHERE oid = %s""",
    """SELECT attname::text, format_type(atttypid, atttypmod), attnotnull,
    coalesce((SELECT collname::text FROM pg_collation WHERE oid = attcollation), '')
    FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum""",
    """SELECT array_to_string(ARRAY(SELECT attname FROM unnest(indkey) WITH ORDINALITY AS k(n, i)
     JOIN pg_attribute ON attrelid = indrelid AND attnum = n ORDER BY i), ' ') AS key,
    indisunique, indisvalid AND indisready, indpred IS NOT NULL
    FROM pg_index WHERE indrelid = %s ORDER BY key""",
    """SELECT tgname::text, tgtype::int, tgenabled::text, tgqual IS NULL, nspname::text,
    proname::text, prosrc, prosecdef, array_to_string(proconfig, ';'), lanname::text
    FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid JOIN pg_namespace n ON n.oid = pronamespace
    JOIN pg_language l ON l.oid = prolang
    WHERE tgrelid = %s AND NOT tgisinternal ORDER BY tgname""",
)


def expected(name: str) -> list[list[tuple[Any, ...]]]:
    """Return what the queries above find where nobody has touched the tables."""
    columns = [(one, kind, True, "C" if kind == "text" else "") for one, kind in COLUMNS]
    triggers = [
        # Before, for each statement: update, delete, truncate; before, for each row: insert.
        ("never_changed", 2 + 8 + 16 + 32, "refused", _refused()),
        ("only_added", 1 + 2 + 4, "follows", _follows(name)),
    ]
    return [
        [("r", "p", False, False, False)],
        [*columns, ("output", "bytea", False, "")],
        [
            ("dataset kind sequence", False, True, False),
            ("request kind", True, True, True),
            ("sequence", True, True, False),
        ],
        [
            (one, kind, "A", True, name, function, body, False, _SAFELY, "plpgsql")
            for one, kind, function, body in triggers
        ],
    ]
