"""What learners by noisy sums share: which guarantees they keep, and where slopes are clipped."""

from dplinear import arguments
from dplinear.convex.learners.contract import Task
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Mechanism
from dplinear.privacy.guarantees import ZCDP

MOST_STEPS = 10_000
USUAL_ROWS = 10_000.0  # expected where a task does not say how many
# Labels are within ±1: a squared error's slope of 2 is that of a margin of 0 with a label of 1.
USUAL_SLOPE = 2.0


def check_method(method: Mechanism) -> None:
    """Raise unless neighbours are such as learners know; read them."""
    where = type(method).__name__
    object.__setattr__(method, "neighbours", checks.relation(method.neighbours, where))


def check_chained(method: Mechanism) -> None:
    """Raise unless a chain of noisy sums can keep the guarantee."""
    where, guarantee = type(method).__name__, method.guarantee
    rule = "an ApproxDP guarantee with ε and δ above 0, or a ZCDP one"
    if type(guarantee) in checks.GRID_HINTS:
        known = checks.GRID_HINTS[type(guarantee)]
        raise arguments.wrong_type("guarantee", where, rule, guarantee, known)
    if not isinstance(guarantee, ZCDP):
        checks.approximate(guarantee, where, "normal noise", rule)


def check_task(task: Task, where: str) -> None:
    """Raise unless the examples have as many features as the image has dimensions."""
    if task.frame.features != task.image.dimension:
        rule = f"of {task.image.dimension} features, as the image is"
        raise arguments.rejection("task.frame", where, rule, task.frame.features)


def read_slope(task: Task, slope: float | None, where: str) -> float:
    """Return where slopes are clipped: never beyond what margins within the image can reach.

    By default a squared error counts as one of 1 if it is larger, as in Huber's loss; margins are
    free all the same, and no other loss is changed.
    """
    steepest = task.loss.steepest(task.frame.reach * task.image.radius)
    if slope is not None:
        return min(arguments.positive(slope, "slope", where), steepest)
    return min(USUAL_SLOPE, steepest)


def check_steps(steps: int | None, where: str) -> None:
    """Raise unless it is a number of steps, or left to the learner."""
    if steps is not None:
        arguments.integer(steps, "steps", where, low=1, high=MOST_STEPS)
