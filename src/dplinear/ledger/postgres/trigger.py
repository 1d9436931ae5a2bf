r"""The trigger that holds every new line of a ledger to what the library would have written.

The right to add lines is the right to spend. It is not the right to raise a budget, to spoil the
ledger for others, or to say what others found: so the trigger checks each line itself, whoever
writes it and with whatever program.

A line's hash is the SHA-256 of the bytes that `Entry.expected_hash` makes: a JSON list in UTF-8,

    [sequence, time, kind, dataset, request, digest, cost, cost_delta, spent, spent_delta, facts,
     previous]

on one line with ", " between its entries: whole numbers in decimal, texts as JSON writes them, with
quotes, backslashes and control characters below U+0020 escaped (these as \b \f \n \r \t or \u00xx)
and everything else as it is. PostgreSQL's `to_json` of a text is exactly that.
"""

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
REFUSED = "DPL01"  # the SQLSTATE of what no further try would change
NEVER = "a ledger is only ever added to"
# Names that indexes hold, and facts that readers can take apart.
_LONGEST_NAME, _LONGEST_FACTS, _DEEPEST_FACTS = 200, 2**24, 64
_NOTHING = "NEW.cost = 0 AND NEW.cost_delta = 0 AND NEW.spent = 0 AND NEW.spent_delta = 0"
_TIME = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[+]00:00$"
_SHA256 = "^[0-9a-f]{64}$"


def follows(lines: str) -> str:
    """Return the body of the trigger's function, for the table of that name."""
    kinds = "".join(
        f" WHEN '{kind}' THEN\n{_unless(*rules)}" for kind, rules in _kinds(lines).items()
    )
    return f"""
DECLARE
 before record;
 paid record;
 told jsonb;
 own jsonb;
 latest jsonb;
 spends bigint := 0;
 ranges jsonb := '{{}}';
 other text;
 owns boolean := (SELECT pg_has_role(session_user, relowner, 'MEMBER')
  FROM pg_class WHERE oid = TG_RELID);
BEGIN
 SELECT sequence, hash INTO before FROM {lines} ORDER BY sequence DESC LIMIT 1;
 IF (NEW.sequence = coalesce(before.sequence, 0) + 1
  AND NEW.previous = coalesce(before.hash, repeat('0', 64))
  AND NOT EXISTS (SELECT 1 FROM {lines}
   WHERE request = NEW.request AND kind = NEW.kind AND request <> '')) IS NOT TRUE
 THEN RAISE EXCEPTION '{NEVER}';
 END IF;
 BEGIN
  told := {_json("NEW.facts")};
 EXCEPTION WHEN OTHERS THEN
  told := NULL;
 END;
 own := coalesce(told->'parameters'->'half_ranges', '{{}}');
 SELECT dataset, role INTO paid FROM {lines}
  WHERE request = NEW.request AND kind = 'spend' AND request <> '';
 SELECT facts INTO other FROM {lines} WHERE dataset = NEW.dataset AND kind = 'spend'
  ORDER BY sequence DESC LIMIT 1;
 latest := {_json("other")};
 IF latest ? 'so_far' THEN
  spends := latest->'so_far'->'spends';
  ranges := latest->'so_far'->'half_ranges';
 ELSIF NEW.kind = 'spend' THEN
  FOR other IN SELECT facts FROM {lines} WHERE dataset = NEW.dataset AND kind = 'spend'
  LOOP
   spends := spends + 1;
   ranges := ranges || coalesce({_json("other")}->'parameters'->'half_ranges', '{{}}');
  END LOOP;
 END IF;
{_unless(*_always())} CASE NEW.kind
{kinds} ELSE
{_unless(("false", "it has no lines of this kind"))} END CASE;
 NEW.role := session_user;
 RETURN NEW;
END
"""  # noqa: S608 - a name that was checked


def _unless(*rules: tuple[str, str]) -> str:
    """Return what refuses a line unless all rules are certainly true, which NULL is not."""
    return "".join(
        f" IF ({rule}) IS NOT TRUE\n"
        f" THEN RAISE EXCEPTION '{said}' USING ERRCODE = '{REFUSED}'; END IF;\n"
        for rule, said in rules
    )


def _json(facts: str) -> str:
    """Return facts as JSON: with 0 for numbers that JSON has no word for, and without NUL."""
    numbers = r"E'(: |, |\\[)(NaN|-?Infinity)(?=[],}])', E'\\10', 'g'"
    return rf"replace(regexp_replace({facts}, {numbers}), E'\\u0000', E'\\u0001')::jsonb"


def _always() -> list[tuple[str, str]]:
    parts = [
        f"NEW.{name}" if kind == "bigint" else f"to_json(NEW.{name})::text"
        for name, kind in COLUMNS
        if name != "hash"
    ]
    canonical = "'[' || " + " || ', ' || ".join(parts) + " || ']'"
    names = f"length(NEW.dataset) <= {_LONGEST_NAME} AND length(NEW.request) <= {_LONGEST_NAME}"
    deeper = f"jsonb_path_exists(told, 'strict $.**{{{_DEEPEST_FACTS} to last}}')"
    return [
        (
            f"NEW.hash = encode(sha256(convert_to({canonical}, 'UTF8')), 'hex')",
            "the hash of a line is that of its content",
        ),
        (f"NEW.time ~ '{_TIME}'", "a line has a time"),
        (names, f"names have at most {_LONGEST_NAME} characters"),
        ("NEW.cost >= 0 AND NEW.cost_delta >= 0", "no cost is negative"),
        (
            (
                f"length(NEW.facts) <= {_LONGEST_FACTS} AND jsonb_typeof(told) = 'object' "
                f"AND NOT {deeper}"
            ),
            "the facts of a line are a JSON object",
        ),
        (
            "NOT told ? 'state'",
            "lines of a server tell no state",
        ),
        (
            "(NEW.output IS NOT NULL) = (NEW.kind = 'release')",
            "releases have bytes, and nothing else has",
        ),
    ]


def _kinds(lines: str) -> dict[str, list[tuple[str, str]]]:
    same = f"FROM {lines} WHERE dataset = NEW.dataset AND kind ="
    newest = f"{same} 'spend' ORDER BY sequence DESC LIMIT 1"
    bare = "NEW.request = '' AND NEW.digest = ''"
    return {
        "ledger": [
            (
                f"owns AND NEW.sequence = 1 AND NEW.dataset = '' AND {bare} AND {_NOTHING}",
                "it has one first line",
            )
        ],
        "budget": [
            ("owns", "only its owner declares budgets"),
            (f"NOT EXISTS (SELECT 1 {same} 'budget')", "a dataset has one budget, for good"),
            (
                f"NEW.dataset <> '' AND {bare} AND NEW.spent = 0 AND NEW.spent_delta = 0",
                "a budget is that of a dataset, and of no request",
            ),
        ],
        "spend": [
            (
                (
                    f"EXISTS (SELECT 1 {same} 'budget' AND NEW.spent <= cost "
                    "AND NEW.spent_delta <= cost_delta)"
                ),
                "spends are within the budget of their dataset",
            ),
            (
                (
                    "(NEW.spent - NEW.cost, NEW.spent_delta - NEW.cost_delta) = "
                    f"(coalesce((SELECT spent {newest}), 0), "
                    f"coalesce((SELECT spent_delta {newest}), 0))"
                ),
                "a spend is added to those before it",
            ),
            (
                f"NEW.request <> '' AND NEW.digest ~ '{_SHA256}'",
                "a spend has a request and the digest of its arguments",
            ),
            (
                "jsonb_typeof(told->'parameters') = 'object' AND jsonb_typeof(own) = 'object'",
                "a spend tells its parameters",
            ),
            ("jsonb_typeof(told->'figures') = 'object'", "a spend tells its figures"),
            ("jsonb_typeof(told->'neighbours') = 'string'", "a spend tells its neighbours"),
            ("own || ranges = ranges || own", "half-ranges are those of earlier spends"),
            (
                (
                    "told->'so_far' = "
                    "jsonb_build_object('spends', spends + 1, 'half_ranges', own || ranges)"
                ),
                "a spend tells of those before it",
            ),
        ],
        "release": [
            ("NEW.dataset = paid.dataset", "a release is one that its request has paid for"),
            (
                # Nobody knows who wrote the lines of a ledger that an earlier version made.
                "session_user = paid.role OR (owns AND paid.role = '')",
                "the request was spent by another role, and only that one keeps its release",
            ),
            (
                f"NEW.digest = encode(sha256(NEW.output), 'hex') AND {_NOTHING}",
                "the digest of a release is that of its bytes",
            ),
        ],
    }
