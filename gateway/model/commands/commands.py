"""What adapters ask the engine for, and what they get: a closed union of commands, each with the type of its outcome.

`engine.run` takes a list of commands and answers a list of the same length: for each command its outcome, or the
GatewayError that it met. Commands of one list are independent of each other.

What is made for every request or row is a named tuple: as frozen as a dataclass and three times quicker to make.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from tablegate.gateway.model.authorization.quotas import TableBound
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate, View
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.backups import Backup, BackupKind
from tablegate.gateway.model.tables.changes import AtTime, ChangePage, Latest, Oldest, Shard, Stream
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.tables.pages import Concatenation, Page, PageLimits, Segment
from tablegate.gateway.model.tables.tables import Index, Projection, Rules, Table, VectorIndex
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Value
from tablegate.gateway.model.values.vectors import Metric

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Command(Protocol[R_co]):
    """What the engine can be asked for; R is the type of its outcome.

    For the type checker only: nothing inherits from it and nobody calls `outcome`. A named tuple, which can have no generic
    base, declares the method; every other command inherits it from `Asks`.
    """

    def outcome(self) -> R_co:
        """Never called: its return type is what the command's outcome is."""
        ...


class Asks(Generic[R]):
    """The base of commands that are dataclasses: a Command[R]."""

    __slots__ = ()

    def outcome(self) -> R:
        """Never called: its type is that of the command's outcome."""
        raise NotImplementedError


# Rows


class Shown(Protocol):
    """What of a row its reader will show. It is asked only of callers whose rights depend on it."""

    @property
    def names(self) -> frozenset[str]:
        """The top-level attributes that are shown or looked at; none: the rows are only counted."""
        ...


class ShownNames(NamedTuple):
    """These attributes."""

    names: frozenset[str]


class Get(NamedTuple):
    """Read one row. Outcome: Row or None. `transaction`: as an open local transaction sees it; TransactionMissing.
    `may_be_old`: the reader was promised no more than what was there a short while ago, so that a replica may answer.
    `shown`: what the reader will show of the row (None: everything)."""

    table: Table
    position: Position
    transaction: str = ""
    may_be_old: bool = False
    shown: Shown | None = None

    def outcome(self) -> Row | None:
        """Never called (Command)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ReadAll(Asks[list[Row | None]]):
    """Read rows, of any tables, as they were at one moment. Outcome: list of Row or None, in order.

    `max_bytes`: how large the rows may be together, as billed; LimitExceeded `rows-together` at the row that is too much,
    and nothing is read beyond it.
    """

    gets: tuple[Get, ...]
    max_bytes: int | None = None
    may_be_old: ClassVar[bool] = False


class Read(NamedTuple):
    """Read a page of a table or one of its indexes, in key order. Outcome: Page; IndexMissing, TableBusy.

    `range` is over entry positions if there is an index. With a `segment`, `after` (a row's or entry's position) resumes,
    and the range is not looked at. Rows read through an index hold what it projects, or everything if `whole_rows`.

    `cut`, a pure function: what this reader may see of a row (columns, versions), None if nothing. Filter, limits and page
    go by what it leaves; a row of which nothing is left has been looked at, counts no bytes and is not returned.
    `cut_many`: does the same to many rows at once, for readers whose `cut` leaves something of every row; `cut` is there too.
    `transaction`: as an open local transaction sees the table (not its indexes); TransactionMissing.
    `concatenation`: the reader wants no more of a row than `Concatenation` says, so that many may be given in
    one piece (Page.concatenated). `may_be_old`, `shown`: as of Get.
    """

    table: Table
    range: KeyRange
    limits: PageLimits
    index: Index | None = None  # type: ignore[assignment]  # nobody looks a command up in itself
    reverse: bool = False
    filter: Predicate = ALWAYS
    view: View | None = None
    segment: Segment | None = None
    after: Position | None = None
    whole_rows: bool = False
    cut: Callable[[Row], Row | None] | None = None
    cut_many: Callable[[Sequence[Row]], list[Row]] | None = None
    transaction: str = ""
    concatenation: Concatenation | None = None
    may_be_old: bool = False
    shown: Shown | None = None

    def outcome(self) -> Page:
        """Never called (Command)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class SearchVectors(Asks["list[Nearest]"]):
    """Find the rows with the nearest vectors in an index, at most `count`. Outcome: list of Nearest, the nearest first;
    IndexMissing, TableBusy, NotInstalled.

    `vector`: as model/values/vectors.py packs it. `partition`: where to look in an index that has partitions; `filters`: values
    that columns of the index must be equal to, by name.
    """

    table: Table
    index: VectorIndex
    vector: bytes
    count: int
    partition: Value | None = None
    filters: Mapping[str, Value] = field(default_factory=dict)
    may_be_old: ClassVar[bool] = False


class Nearest(NamedTuple):
    """A row that a search found, its score by the metric of the index, and its vector as the index has it."""

    row: Row
    score: float
    vector: bytes


@dataclass(frozen=True, slots=True)
class Token:
    """An idempotency token: a name in a scope, what the request was (digest), and how long it is remembered."""

    scope: str
    name: str
    digest: bytes
    lifetime_ms: int


class WriteGroup(NamedTuple):
    """Writes that happen all or not at all. Outcome: a list of Outcome, one for each write, in order.

    A group of one write fails with that write's error; a larger one with GroupRefused. With a token that was used before
    by an equal request the outcome is Replayed. Where a local transaction has locked a partition: PartitionLocked;
    `transaction`: the one that these writes commit.
    """

    writes: tuple[Write, ...]
    token: Token | None = None
    transaction: str = ""

    def outcome(self) -> list[Outcome] | Replayed:
        """Never called (Command)."""
        raise NotImplementedError


class Load(NamedTuple):
    """Put many rows of one table over whatever is there, all or none: what a WriteGroup of puts that want no old row leaves, and
    quicker where no row is there yet. Outcome: None, or the error that the group would get."""

    table: Table
    rows: Sequence[tuple[Position, Contents]]

    def outcome(self) -> None:
        """Never called (Command)."""
        raise NotImplementedError


class Outcome(NamedTuple):
    """A row before and after a write."""

    old: Row | None
    new: Row | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The answer to an idempotency token seen before: billed sizes (old, new; None: no row) of each write then."""

    sizes: tuple[tuple[int | None, int | None], ...]


GroupOutcome = list[Outcome] | Replayed | GatewayError
"""What came of a group of writes, or what kept it from happening. Replayed: only of groups with a token."""


# Tables


@dataclass(frozen=True, slots=True)
class NewIndex:
    """An index to be made. `fill`: rows that are already there get entries; if not, only what is written from now on. `dialect`:
    which reads its key columns, if it is not the command's."""

    name: str
    key_schema: KeySchema
    projection: Projection
    included: tuple[str, ...] = ()
    local: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)
    fill: bool = True
    dialect: str = ""


@dataclass(frozen=True, slots=True)
class NewVectorIndex:
    """A vector index to be made: of each member VectorIndex (model/tables/tables.py) says what it is, of `dialect` NewIndex."""

    name: str
    attribute: str
    dimensions: int
    metric: Metric
    projection: Projection
    included: tuple[str, ...] = ()
    partition: KeyColumn | None = None
    filters: tuple[KeyColumn, ...] = ()
    dialect: str = ""


@dataclass(frozen=True, slots=True)
class FindTable(Asks[Table]):
    """Look a table up by name, or by its Azure name. Outcome: Table; TableMissing."""

    namespace: str
    name: str
    by_azure_name: bool = False


@dataclass(frozen=True, slots=True)
class ListTables(Asks[list[Table]]):
    """Names of a namespace in order, after a name, at most `limit`. Outcome: list of Table."""

    namespace: str
    after: str = ""
    limit: int | None = None
    by_azure_name: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable(Asks[Table]):
    """Make a table. Outcome: Table; TableExists, TableBusy, QuotaExceeded. `dialect` reads the key columns of its indexes.

    `ignoring_case`: a table whose Azure name differs only in case counts as the same name. `bounds`: of quotas.
    """

    dialect: str
    namespace: str
    name: str
    key_schema: KeySchema
    indexes: tuple[NewIndex, ...] = ()
    rules: Rules = field(default_factory=Rules)
    properties: Mapping[str, Any] = field(default_factory=dict)
    ignoring_case: bool = False
    vector_indexes: tuple[NewVectorIndex, ...] = ()
    bounds: tuple[TableBound, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterTable(Asks[Table]):
    """Change a table: new rules; `properties` merged in: those of a dialect named replace its old ones whole; indexes to
    add, to drop, and to give other properties.

    Outcome: Table; StaleTable, TableBusy, IndexMissing. A new index is kept up at once and filled afterwards. `instant`: the
    change is done when it is answered, so the table does not become UPDATING, and may be.
    """

    dialect: str
    table: Table
    rules: Rules | None = None
    properties: Mapping[str, Any] | None = None
    add_indexes: tuple[NewIndex, ...] = ()
    drop_indexes: tuple[str, ...] = ()
    index_properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    instant: bool = False
    add_vector_indexes: tuple[NewVectorIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class DropTable(Asks[Table]):
    """Drop a table, in constant time. Outcome: Table as it was; TableMissing, TableBusy.

    `delay_ms`: for how long at least its name is not free; meanwhile the table is DELETING.
    """

    table: Table
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class ResetTables(Asks[int]):
    """Empty tables as if they had just been made, or drop them, all at one moment. Outcome: how many tables; TableMissing, if
    one of `names` is nowhere: then nothing has changed.

    `namespace`: None for all; `names`: None for all of the namespace, and then backups and jobs go with tables that are dropped;
    `keeps_definitions`: the tables stay, without rows.
    """

    namespace: str | None = None
    names: frozenset[str] | None = None
    keeps_definitions: bool = False


class DocumentChange(NamedTuple):
    """A change of a document (PutProperties) in the transaction of another command. `apply` is called with the document, empty if
    there is none, and the outcome of the command. It returns the new document. What it raises undoes the transaction."""

    namespace: str
    name: str
    apply: Callable[[dict[str, Any], int], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CopyTables(Asks[int]):
    """Make the tables of namespaces, rows and all, those of others, which lose what they had; all as they are at one moment.
    Outcome: how many there are. A table whose indexes are still being filled: TableBusy.

    `copies`: (source, target), each target once. `empties`: every namespace whose name begins so loses what it had, too.
    """

    copies: tuple[tuple[str, str], ...]
    empties: str = ""
    records: DocumentChange | None = None


@dataclass(frozen=True, slots=True)
class DescribeTables(Asks[list[tuple[Table, dict[str, Any]]]]):
    """All tables of a namespace, each with the document that `ImportDefinition` makes it of. Outcome: these, in
    the order of ids."""

    namespace: str


@dataclass(frozen=True, slots=True)
class ImportDefinition(Asks[Table]):
    """Make an empty table of a document, in a namespace of copies that nobody else writes. Outcome: Table; TableExists,
    InvalidInput `document`."""

    namespace: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ImportRows(Asks[None]):
    """Put rows just as they were into a table that ImportDefinition has made, where there are none. Outcome: None; InvalidInput
    `rows`."""

    table: Table
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class ListNamespaces(Asks[list[str]]):
    """Names of the namespaces that have tables and whose names begin so. Outcome: names in order."""

    prefix: str = ""


@dataclass(frozen=True, slots=True)
class CountRows(Asks["TableStatistics"]):
    """Count a table. Outcome: TableStatistics."""

    table: Table


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Rows and billed bytes of a table and of each of its indexes, by name."""

    rows: int
    size_bytes: int
    indexes: Mapping[str, tuple[int, int]]


# Tables as they were


@dataclass(frozen=True, slots=True)
class KeepHistory(Asks[Table]):
    """Keep what the rows of a table were, for so many days, so that it can be gone back in (RestoreTable); None: no longer.
    Outcome: Table; TableMissing."""

    table: Table
    days: int | None


@dataclass(frozen=True, slots=True)
class RestoreTable(Asks[Table]):
    """Make a table with the rows that another had at a moment (`at`, in ticks; None: now), or those of a backup. It is CREATING
    until they are there; background work brings them.

    Outcome: Table; TableExists, TableBusy, TableMissing, MomentNotKept, BackupMissing, BackupBusy, BackupUnreadable,
    QuotaExceeded. `size_bytes`: about how many the rows have, if that is known.
    """

    made: CreateTable
    source: Table | Backup
    at: int | None = None
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CreateBackup(Asks[Backup]):
    """Make a backup of a table as it is; background work brings the rows. Outcome: Backup; TableMissing. `size_bytes`: about how
    many the rows have, if that is known."""

    table: Table
    name: str
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ListBackups(Asks[list[Backup]]):
    """Backups of a namespace by table, age and id, behind a place (Backup.place), at most `limit`. Outcome: list of Backup.

    Of one table, of one kind, made at that time or later and before another, where these are given."""

    namespace: str
    after: tuple[str, int, int] = ("", 0, 0)
    limit: int = 1_000
    table_name: str | None = None
    kind: BackupKind | None = None
    from_ms: int | None = None
    before_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteBackup(Asks[Backup]):
    """Delete a backup. Outcome: the Backup; BackupMissing, BackupBusy."""

    backup: Backup


# Jobs


@dataclass(frozen=True, slots=True)
class StartJob(Asks[Job]):
    """Begin a job, which a worker carries on (Engine.register_worker). Outcome: Job; TokenReused, LimitExceeded `jobs`,
    TableMissing, MomentNotKept, QuotaExceeded. With a token that was used before by an equal command: the job that it began.

    `source`: a table whose rows the job needs as they were at a moment (`at`, in ticks; None: now), or what changed in it in a
    `window` (from a moment to before another): tables of the job's own namespace will have them. `most`: how many jobs
    of the kind there may be at a time in the namespace. `makes_table`, `stores_rows`: what quotas may limit of it; `bounds`: of
    quotas.
    """

    kind: str
    namespace: str
    table_name: str
    definition: Mapping[str, Any]
    state: str
    most: int
    token: Token | None = None
    source: Table | None = None
    at: int | None = None
    window: tuple[int, int] | None = None
    makes_table: bool = False
    stores_rows: bool = False
    bounds: tuple[TableBound, ...] = ()


@dataclass(frozen=True, slots=True)
class ListJobs(Asks[list[Job]]):
    """Jobs of a kind in a namespace, the newest first, behind a place (Job.place), at most `limit`. Outcome: list of Job.

    Of one table, begun at that time or later and before another, where these are given. `path`: how grants call the one job that
    is looked for (accesses.py)."""

    namespace: str
    kind: str
    after: tuple[int, int] | None = None
    limit: int = 1_000
    table_name: str | None = None
    from_ms: int | None = None
    before_ms: int | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class ListUnfinishedJobs(Asks[list[Job]]):
    """Jobs of all kinds and namespaces that have not ended, the oldest first, at most `limit`; or the one with an id.

    Outcome: list of Job."""

    job_id: int | None = None
    limit: int = 1_000


@dataclass(frozen=True, slots=True)
class CancelJob(Asks["Job | None"]):
    """Ask for a job to end. Its worker ends it before it does anything else. `path`: as of ListJobs. Outcome: Job; InvalidInput
    `cancel` if jobs of this kind cannot be cancelled."""

    job: Job
    path: str = ""


@dataclass(frozen=True, slots=True)
class AdvanceJob(Asks["Job | None"]):
    """Carry a job on: what it writes and how far it has come then, all at once. Outcome: Job; None: another server carries it on,
    nothing was done; StaleTable, TableExists, TableBusy.

    `groups`: writes, also to tables that are CREATING; `settle`: gives the progress, from what came of each group, in place
    of `progress`. `makes`: a table that is CREATING until it is opened, and whose id is that of the job; `keeps`: a table of the
    job's own namespace; `opens`: a table that is CREATING no longer. `ended`: this is the last that is heard of the job.
    """

    job: Job
    progress: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[WriteGroup, ...] = ()
    settle: Callable[[list[Any]], Mapping[str, Any]] | None = None
    makes: CreateTable | None = None
    keeps: CreateTable | None = None
    opens: Table | None = None
    state: str | None = None
    ended: bool = False


# What a dialect keeps for an account as a whole


@dataclass(frozen=True, slots=True)
class GetProperties(Asks[dict[str, Any] | None]):
    """Read a document that was put under a name in a namespace. Outcome: the document, or None."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class PutProperties(Asks[None]):
    """Keep a document (plain JSON values) under a name in a namespace. Outcome: None."""

    namespace: str
    name: str
    document: Mapping[str, Any]


# Streams


@dataclass(frozen=True, slots=True)
class ListStreams(Asks[list[Stream]]):
    """The streams of a namespace, or of one table, by name and age. Outcome: list of Stream."""

    namespace: str
    table_name: str | None = None


@dataclass(frozen=True, slots=True)
class FindStream(Asks[Stream]):
    """Look a stream up by its table's name and its label. Outcome: Stream; StreamMissing."""

    namespace: str
    table_name: str
    label: str


@dataclass(frozen=True, slots=True)
class ListShards(Asks[list[Shard]]):
    """The shards of a stream, parents before children. Outcome: list of Shard."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class FindPosition(Asks[int]):
    """Where to begin reading a shard. Outcome: the sequence, to be given to ReadChanges; StreamMissing."""

    stream: Stream
    shard: int
    at: Oldest | Latest | AtTime


@dataclass(frozen=True, slots=True)
class ReadChanges(Asks[ChangePage]):
    """Read changes of a shard from a sequence on, at most `limit` and (but for the first) `size_bytes` of row bodies.

    Outcome: ChangePage; StreamMissing, PositionExpired. Nothing new: no changes, and `next` is the sequence asked for.
    """

    stream: Stream
    shard: int
    sequence: int
    limit: int
    size_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Reshard(Asks[Table]):
    """Give a table's stream another number of open shards. Outcome: Table; StaleTable, StreamMissing."""

    table: Table
    shards: int


@dataclass(frozen=True, slots=True)
class Follow(Asks[Table]):
    """Have somebody told each change of a table from now on: what kind, and whom it means by `target`; and merge
    `properties` into the table's, as AlterTable does. Outcome: Table; StaleTable."""

    table: Table
    kind: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unfollow(Asks[Table]):
    """End a follower: it is told what has been written until now, and no more. Outcome: Table; StaleTable."""

    table: Table
    kind: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListFollowers(Asks[list[str]]):
    """The targets of a kind that are told changes of a table, or have still to be told some. Outcome: list of them."""

    table: Table
    kind: str


# Replicas


@dataclass(frozen=True, slots=True)
class NewReplica:
    """A table to be made that will have the rows of another, and what it is called among its replicas."""

    name: str
    made: CreateTable


@dataclass(frozen=True, slots=True)
class AddReplicas(Asks[Table]):
    """Make tables that have the same rows as one (which is called `name` among them), and have each told what changes in the
    others. Outcome: the Table; StaleTable, TableExists, TableBusy. `strong`, `witness`: as of ReplicationRule."""

    table: Table
    name: str
    replicas: tuple[NewReplica, ...]
    strong: bool = False
    witness: str = ""


@dataclass(frozen=True, slots=True)
class RemoveReplicas(Asks[Table]):
    """Drop replicas of a table, by name; or if they are kept, let them go on alone. Outcome: the Table; StaleTable."""

    table: Table
    names: tuple[str, ...]
    keeps: bool = False


# Local transactions


@dataclass(frozen=True, slots=True)
class BeginTransaction(Asks[None]):
    """Hold a partition of a table for a local transaction of that (new, unguessable) id. Outcome: None; PartitionLocked,
    StaleTable. Nobody else can write to the partition until the transaction ends or its time is up.

    The id ends in two hexadecimal digits: the slot of the partition (model/values/keys.py), by which the transaction is found."""

    table: Table
    partition: bytes
    transaction: str
    lifetime_ms: int


@dataclass(frozen=True, slots=True)
class Stage(Asks[list[GroupOutcome]]):
    """Writes inside a local transaction, judged against what it has written so far over what is there.

    Outcome: for each group what WriteGroup gives, or its error (InvalidInput `other-partition` and `auto-increment`,
    LimitExceeded `transaction-bytes` besides); TransactionMissing, StaleTable.
    """

    transaction: str
    groups: tuple[WriteGroup, ...]
    limit_bytes: int


class HeldPartition(NamedTuple):
    """What a local transaction holds. `partition`: None where it is too long to be told."""

    table: Table
    partition: bytes | None


@dataclass(frozen=True, slots=True)
class FindTransaction(Asks[HeldPartition]):
    """Look up what an open local transaction holds. Outcome: HeldPartition; TransactionMissing."""

    transaction: str


@dataclass(frozen=True, slots=True)
class CommitTransaction(Asks[None]):
    """Carry out what a local transaction has staged, all of it at once. Outcome: None; TransactionMissing. `held`: what it holds,
    by which it is judged who may end it; None: nobody has looked, and who may not do everything may not."""

    transaction: str
    held: HeldPartition | None = None


@dataclass(frozen=True, slots=True)
class AbortTransaction(Asks[None]):
    """Forget what a local transaction has staged. Outcome: None; TransactionMissing. `held` as in CommitTransaction."""

    transaction: str
    held: HeldPartition | None = None


RowCommand = Get | ReadAll | Read | SearchVectors | WriteGroup
"""Commands that read or write rows. The server's tick joins those of many requests in one list."""

DefinitionCommand = (
    FindTable
    | ListTables
    | CreateTable
    | AlterTable
    | DropTable
    | ResetTables
    | CopyTables
    | DescribeTables
    | ImportDefinition
    | ImportRows
    | ListNamespaces
    | KeepHistory
    | RestoreTable
    | CreateBackup
    | ListBackups
    | DeleteBackup
    | StartJob
    | ListJobs
    | ListUnfinishedJobs
    | CancelJob
    | AdvanceJob
    | CountRows
    | GetProperties
    | PutProperties
    | ListStreams
    | FindStream
    | ListShards
    | FindPosition
    | ReadChanges
    | Reshard
    | Follow
    | Unfollow
    | ListFollowers
    | AddReplicas
    | RemoveReplicas
)
"""Commands about tables, streams, backups, jobs and replicas."""

TransactionCommand = BeginTransaction | Stage | FindTransaction | CommitTransaction | AbortTransaction
"""Commands of Table Store's local transactions."""

SingleCommand = Load | TransactionCommand | DefinitionCommand
"""Commands that run by themselves, each in a transaction of its own."""

AnyCommand = RowCommand | SingleCommand

Exchange = Generator[list[AnyCommand], list[Any], R]
"""A request being handled: yields lists of commands, is sent their outcomes, returns an R; the whole of it a Reply
(gateway/http.py). What came of each command has its type by `one` and `each` (gateway/exchanges.py)."""
