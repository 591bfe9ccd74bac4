"""The two ways in which a cluster gives no answer, as one small family of exceptions.

Everything that a library below may raise (lost link, closed channel, time-out, refused login) is mapped to
one of these at the edge, so that no caller can take silence for an answer.
"""

from __future__ import annotations


class BackendError(Exception):
    """Base of all errors that backends raise."""


class CouldNotAsk(BackendError):
    """There is no answer: link down, time-out, exit status not seen, output not framed.

    Never proof of anything. What was asked may have happened.

    Attributes:
        host: Name of the host that was asked, as the operator knows it.
        asked: What was asked, in a few words ("squeue", "read /path").
        said: What came instead of an answer, verbatim, possibly empty.
    """

    def __init__(self, host: str, asked: str, said: str) -> None:
        super().__init__(f"{host}: could not ask ({asked}): {said or 'no answer'}")
        self.host = host
        self.asked = asked
        self.said = said


class NeedsOperator(CouldNotAsk):
    """There is no answer, and trying again will not bring one: a person must act first.

    Unknown or changed host key, refused credentials, a second factor.

    Attributes:
        advice: What the operator can do, one sentence.
    """

    def __init__(self, host: str, asked: str, said: str, advice: str) -> None:
        super().__init__(host, asked, said)
        self.advice = advice


class FileMissing(BackendError):
    """The host answered: there is no such file.

    Attributes:
        host: Name of the host.
        path: Absolute path on it.
    """

    def __init__(self, host: str, path: str) -> None:
        super().__init__(f"{host}: no such file: {path}")
        self.host = host
        self.path = path
