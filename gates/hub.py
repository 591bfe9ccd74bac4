"""What the answers of a model hub mean for the operator.

A hub answers 401 where no token, or a wrong one, came with the request, and also for repositories that do not exist or
are private: it does not tell which. 403 is a gated repository whose terms were not accepted. Both are for the operator
to mend; no retry will.
"""

from __future__ import annotations

from typing import Final

from gates.record import Record
from gates.verdict import FailureClass

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_OK: Final = range(200, 400)

_ADVICE: Final = {
    _UNAUTHORIZED: (
        "keep a token that may read {it} on the cluster (`hf auth login` there, or a file that HF_TOKEN_PATH names); "
        "the name may be wrong too"
    ),
    _FORBIDDEN: "request access to {it} on its page at the hub, with the account of the token that the cluster has",
    _NOT_FOUND: "check name and revision of {it}; a private one looks like this without a token",
}


def judge_http(record: Record, it: str) -> bool:
    """Check the hub's last answer, where the file states one.

    Args:
        record: The document; `http_status` may be null or absent where nothing was downloaded.
        it: What was downloaded, in words.

    Returns:
        Whether an answer explains a failure, so that no other class has to.
    """
    status = record.integer("http_status", optional=True)
    if status is None:
        return False
    if status in _OK:
        record.check("hub_answer", True, status, "a success", "http_status")
        return False
    advice = _ADVICE.get(status, "").format(it=it)
    if advice:
        cls = FailureClass.USER_CONFIG_ERROR
    elif status == _TOO_MANY or status >= _SERVER_ERROR:
        cls, advice = FailureClass.INFRA_TRANSIENT, "the hub is busy or down; the same job again may work"
    else:
        cls, advice = FailureClass.USER_CONFIG_ERROR, "the hub refuses the request"
    record.sheet.fact("http_status", status)
    record.sheet.fact("advice", advice)
    record.check("hub_answer", False, f"{status} ({advice})", "a success", "http_status", cls=cls)
    return True
