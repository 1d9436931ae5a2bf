"""What becomes of a slope where cells are missing: filled in, or their rows left out.

Charges grow by 118 with each unit of the body-mass index, which 12% of 20,000 rows lack. Nothing is
timed. Run: python benchmarks/missing_cells.py
"""

import numpy as np
import pyarrow as pa

import dplinear as dpl
from dplinear.noise import simulation

ROWS, MISSING, SLOPE = 20_000, 0.12, 118.0
SCHEMA = {"bmi": (10, 60), "age": (0, 100), "charges": (0, 20_000)}


def table(seed: int) -> pa.Table:
    """Return a made-up table."""
    random = simulation.generator(seed)
    bmi, age = random.normal(30, 5, ROWS), random.uniform(20, 80, ROWS)
    charges = 1_000 + SLOPE * bmi + 20 * age + random.normal(0, 500, ROWS)
    hidden = random.uniform(size=ROWS) < MISSING
    return pa.table({"bmi": pa.array(bmi, mask=hidden), "age": age, "charges": charges})


def complete_slope(data: pa.Table) -> float:
    """Return the least-squares slope of the rows that lack nothing."""
    rows = data.filter(data["bmi"].is_valid())
    columns = [np.ones(rows.num_rows), np.array(rows["bmi"]), np.array(rows["age"])]
    found, *_ = np.linalg.lstsq(np.column_stack(columns), np.array(rows["charges"]), rcond=None)
    return float(found[1])


def main() -> None:
    """Print the slopes."""
    data = table(1)
    with simulation.door(2):
        filled = dpl.release_moments(data, SCHEMA, epsilon=100, delta=1e-6).regress("charges")
        model = dpl.release_model(data, SCHEMA, "charges", epsilon=1, delta=1e-6)
    low, high = model.intervals().low[1], model.intervals().high[1]
    print(f"complete rows, without privacy: {complete_slope(data):.1f}")
    print(f"cells filled in (moments, ε = 100): {filled['bmi']:.1f}")
    print(f"rows left out (model, ε = 1): {model['bmi']:.1f}, 95% from {low:.1f} to {high:.1f}")
    print(f"rows left out, as released: {model.certificate.parameters['rows_left_out']:.0f}")


if __name__ == "__main__":
    main()
