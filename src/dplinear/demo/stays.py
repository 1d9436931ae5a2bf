"""Made-up stays in hospital, month by month: several rows of a patient, and cells that are missing.

20,000 patients are treated each month, half of whom were there in the month before. A patient
has one stay or more, two on average. For each stay the table has the hospital, the age and the
body-mass index (missing in one stay of eight), and

    charges = 2,000 + 90·age + 150·bmi + 1,500 in the hospital "south" + an error,

whose deviation is 2,000: half of its variance is the patient's own, and the same in all stays.
"""

import numpy as np
import pyarrow as pa

from dplinear.noise import simulation

PATIENTS = 20_000
HOSPITALS = ("north", "south", "east")
COLUMNS = {"age": (0, 100), "bmi": (10, 60), "charges": (0, 60_000)}


def stays(month: int = 1, seed: int = 2026) -> pa.Table:
    """Return the stays of a month, counted from 1; the same month and seed give the same ones."""
    people = simulation.generator(seed)
    last = PATIENTS * (month + 1) // 2
    age = people.normal(52, 17, last).clip(18, 95).round()
    index = people.normal(27, 4.5, last).clip(15, 50).round(1)
    own = people.normal(0, 2_000 / np.sqrt(2), last)

    draw = simulation.generator(seed + month)
    patient = np.repeat(np.arange(last - PATIENTS, last), draw.geometric(0.5, PATIENTS))
    rows = len(patient)
    hospital = draw.choice(HOSPITALS, rows)
    error = own[patient] + draw.normal(0, 2_000 / np.sqrt(2), rows)
    charges = 2_000 + 90 * age[patient] + 150 * index[patient] + 1_500 * (hospital == "south")
    return pa.table(
        {
            "patient": [f"p{one:05}" for one in patient],
            "hospital": hospital.tolist(),
            "age": age[patient].astype(int),
            "bmi": pa.array(index[patient], mask=draw.random(rows) < 1 / 8),
            "charges": (charges + error).clip(0, None).round().astype(int),
        }
    )
