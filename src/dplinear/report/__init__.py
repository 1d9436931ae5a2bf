"""Pages about releases and plans: one HTML file each, for people who do not read code.

`release_page` tells what was released and what it promises, `plan_page` what a budget will buy, and
`summary_page` what was found about the claims of papers.
"""

from dplinear.report.planned import plan_page
from dplinear.report.release import release_page
from dplinear.report.reproduced import summary_page

__all__ = ["plan_page", "release_page", "summary_page"]
