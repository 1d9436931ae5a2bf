"""`dplinear pca`: principal components of released moments or covariances; they are free."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.output import certificate_facts, facts, say, table, tell


def pca(
    release: flags.Release = None,
    *,
    k: Annotated[
        int | None, flags.option("--k", text="How many components to show (default: 2).")
    ] = None,
    features: flags.Features = None,
    scaled: Annotated[
        bool | None,
        flags.option(
            "--scaled/--no-scaled",
            text="Take the components of the correlations (default: of the covariances).",
        ),
    ] = None,
    repair: Annotated[
        str | None,
        flags.option(
            "--repair", text="How to repair a matrix that noise left indefinite (default: auto)."
        ),
    ] = None,
    config: flags.Config = None,
    json_: flags.Json = False,
) -> None:
    """Show the principal components of a release. This costs no budget."""
    given = dict(locals())  # before anything else is
    from dplinear.arguments import rejection
    from dplinear.cli.loading import load
    from dplinear.cli.settings import merge_settings, split_names

    said = merge_settings(given)
    loaded = load(said, ("moments", "covariance", "sketch", "noisy rows"))
    moments = loaded if loaded.kind in {"moments", "covariance"} else loaded.moments
    if loaded.kind == "covariance" and "repair" in said:
        rule = "left out for a covariance, which noise leaves without negative eigenvalues"
        raise rejection("repair", "pca", rule, said["repair"])
    if "features" in said:
        said["features"] = split_names(said["features"])
    chosen = {name: said[name] for name in ("features", "scaled", "repair") if name in said}
    found = moments.pca(said.get("k", min(2, len(moments.schema.features) - 1)), **chosen)
    if json_:
        tell(
            {
                "names": found.names,
                "components": found.components,
                "explained_variance": found.explained_variance,
                "explained_variance_ratio": found.explained_variance_ratio,
                "mean": found.mean,
                "scale": found.scale,
                "certificate": moments.certificate.to_dict(),
            }
        )
        return
    heads = ("feature", *(f"component {index}" for index in range(1, len(found.components) + 1)))
    lines = [
        (name, *(f"{number:+.3f}" for number in column))
        for name, column in zip(found.names, found.components.T, strict=True)
    ]
    shares = ("of the variance", *(f"{share:.1%}" for share in found.explained_variance_ratio))
    say(
        table(heads, [*lines, shares]),
        "",
        facts(certificate_facts(moments.certificate)[:2]),
    )
