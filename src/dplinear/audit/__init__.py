"""Audits: what runs on two neighbouring tables prove of a promise. Synthetic tables only.

`audit` is for the mechanisms of this library, `audit_callable` for a function of one's own;
`dplinear audit` prints tables of them. An audit can refute a promise, never prove one.
`bounds` turns counts into lower bounds, `worst_pairs` has the tables, `densities` the likelihoods,
`subjects/` all that can be audited, `catalogue` their names.
"""

from dplinear.audit.audit import AuditResult, audit_callable, audit_subject
from dplinear.audit.catalogue import audit

__all__ = ["AuditResult", "audit", "audit_callable", "audit_subject"]
