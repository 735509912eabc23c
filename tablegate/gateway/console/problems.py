"""The status and the text of each error, as the console shows them."""

from __future__ import annotations

from tablegate.gateway.console.rendering import refusal
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.model import errors

AWAY = "The database does not answer. Try again."


def explained(error: errors.GatewayError | BadSearch) -> tuple[int, str]:
    """Return (HTTP status, what failed and what to do)."""
    match error:
        case BadSearch():
            return 400, str(error)
        case errors.NotAllowed():
            return 403, error.facts.get("text", "")
        case errors.NotPermitted():
            return 403, refusal(error)
        case errors.QuotaExceeded():
            return 429, f"Your quota is used up: {error.limit:,.0f} {error.kind.replace('_', ' ')}."
        case errors.Throttled():
            return 429, f"The throughput of {error.resource} is used up. Try again."
        case errors.GroupRefused():
            return next((explained(each) for each in error.reasons if each is not None), (409, _CONFLICT))
        case errors.InvalidInput() | errors.LimitExceeded():
            return 400, _invalid(error)
    return _of_state(error)


_CONFLICT = "The row was changed in the meantime. Reload the page and try again."


def _of_state(error: errors.GatewayError) -> tuple[int, str]:
    """Return the status and text of an error that is due to the state of the tables or of the database."""
    match error:
        case errors.TableMissing():
            return 404, f"There is no table {error.name}."
        case errors.IndexMissing() | errors.StreamMissing() | errors.BackupMissing():
            return 404, "This index, stream or backup does not exist. It may have been deleted."
        case errors.TableExists():
            return 409, "A table of this name exists."
        case errors.TableBusy():
            return 409, f"The table {error.name} is {error.state}. Try again when it is active."
        case errors.BackupBusy():
            return 409, "The backup is in use. Try again later."
        case errors.ConditionFailed():
            return 409, _CONFLICT
        case errors.PartitionLocked():
            return 409, "A transaction has locked this row. Try again later."
        case errors.PositionExpired():
            return 410, "These changes have been deleted from the stream. Reload the page."
        case errors.DatabaseFailed():
            return 500, "The database refused this. The log of the server has the reason."
    return 503, AWAY


def _invalid(error: errors.InvalidInput | errors.LimitExceeded) -> str:
    match error:
        case errors.LimitExceeded():
            return f"The {error.what} is too large: {error.actual:,}. The limit is {error.limit:,}."
        case errors.KeyTooLong():
            return "A value of the key is too long."
        case errors.BadKey():
            return "A column of the key is missing or has the wrong type."
        case errors.NumberOutOfRange():
            return "A number is too large, too small or has too many digits."
    return f"The table does not accept this value: {error.rule.replace('-', ' ')}."
