"""The table of the rows in an object: written by the job that stores the object, checked by the job that reads it.

An export and the report of a bulk put hold rows of a table. The caller of a job that reads them must be permitted to
scan that table. Objects that no job has written name no table.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from tablegate.adapters.dynamodb.object_stores.object_store import ACCESS_DENIED, ObjectStoreRejection
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, Job
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.authorizations import RequestSource
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.authorization.permissions import Channel, Permission
from tablegate.gateway.model.authorization.quotas import account_of
from tablegate.gateway.security.credentials import Scheme
from tablegate.gateway.security.identities import caller_of

# Tables of objects


def table_of(job: Job) -> str:
    """Return the table of a job as NAMESPACE/NAME, in ASCII as S3 metadata demands."""
    return f"{quote(job.namespace)}/{job.table_name}"


def check_readable(gateway: Gateway, job: Job, table: str, prefix: str) -> None:
    """Check that the caller of a job may read an object of a table.

    Raises ObjectStoreRejection, which omits the table's name.
    """
    if table and not _may_read(gateway, job, table):
        text = f"{prefix} has objects with rows of a table that you are not authorized to scan"
        raise ObjectStoreRejection(ACCESS_DENIED, text)


def _may_read(gateway: Gateway, job: Job, table: str) -> bool:
    credentials, caller = gateway.credentials, job.definition["caller"]
    place, _, name = table.rpartition("/")
    namespace = unquote(place)
    if credentials.is_dev:
        return True
    if credentials.keeps_apart and account_of(namespace) != account_of(job.namespace):
        return False
    source = job.definition["source"]
    if source is None:
        return True
    principals = job.definition["principals"]
    if principals:
        identity = caller_of(principals[0], caller["account"])
        policy = credentials.policy_of_principals(principals, job.namespace)
    else:
        credential = credentials.find(Scheme.AWS, caller["access_id"])
        if credential is None:
            return False
        identity, policy = credential.identity, credential.policy
    limits = credentials.authorization(identity, policy, RequestSource(*source), gateway.now_ms())
    scan = Access(Permission.SCAN, Channel.SINGLE, namespace, name, AdvanceJob(job))
    return limits is None or limits.judge(scan) is Verdict.ALLOWED
