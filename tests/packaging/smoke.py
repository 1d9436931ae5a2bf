"""What an installed dplinear must do in an environment that has nothing else."""

import sys

import numpy as np

import dplinear as dpl

assert "sklearn" not in sys.modules
schema = dpl.Schema({"age": (0, 100), "charges": (0, 60_000)})
age = 20.0 + np.arange(2000) % 50
rows = np.column_stack([age, 300 * age])
moments = dpl.release_moments(rows, schema, epsilon=100.0, delta=1e-6)
assert abs(moments.regress("charges", ["age"])["age"] - 300) < 30
moments.save("moments.json")
assert dpl.load("moments.json").certificate == moments.certificate
model = dpl.PrivateLinearRegression(
    epsilon=100.0, delta=1e-6, bounds=(0, 100), target_bounds=(0, 60_000)
)
assert abs(model.fit(rows[:, :1], rows[:, 1]).coef_[0] - 300) < 30
sys.stdout.write("fine")
