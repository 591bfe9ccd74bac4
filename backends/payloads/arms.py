"""One arm of an A|B benchmark: a server that is started, warmed up, measured at each concurrency and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from backends.payloads.counters import Counters, Unreadable
    from backends.payloads.endpoint import Completion
    from backends.payloads.load import Answers, Question, Sampling, counted, send
    from backends.payloads.serving import Identity, Server, Stop, Wanted, identify
else:
    from counters import Counters, Unreadable
    from endpoint import Completion
    from load import Answers, Question, Sampling, counted, send
    from serving import Identity, Server, Stop, Wanted, identify


class Plan(NamedTuple):
    """What is measured in each round.

    Attributes:
        concurrency: Requests at a time, one point for each.
        requests: Requests of a point; with fewer prompts they are asked again.
        warmup_requests: Requests before anything is timed.
        max_tokens: Tokens of every output.
        exact_prompts: Prompts whose outputs are kept for the exact match.
        exact_concurrency: At which concurrency.
        control_concurrency: At which one A answers them once more.
    """

    concurrency: Tuple[int, ...]
    requests: int
    warmup_requests: int
    max_tokens: int
    exact_prompts: int
    exact_concurrency: int
    control_concurrency: int


class Point:
    """One concurrency of one arm, all rounds together."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.requested = 0
        self.completed = 0
        self.output_tokens = 0
        self.rounds: List[float] = []
        self.latency_s = 0.0
        self.counters: Optional[Counters] = None
        self.first_error = ""

    @property
    def tokens_per_s(self) -> float:
        """Throughput over all rounds."""
        return self.output_tokens / sum(self.rounds)

    def add(self, answers: Answers, counters: Optional[Counters]) -> None:
        """Add a round."""
        self.requested += len(answers.completions)
        self.completed += len(answers.good)
        self.output_tokens += answers.output_tokens
        self.rounds.append(answers.duration_s)
        self.latency_s += sum(answers.latencies_s)
        self.first_error = self.first_error or answers.first_error
        if counters is not None:
            self.counters = counters if self.counters is None else self.counters.plus(counters)

    def to_json(self) -> Dict[str, Any]:
        """As it is written in the result."""
        counters = self.counters
        return {
            "concurrency": self.concurrency,
            "requested": self.requested,
            "completed": self.completed,
            "failed": self.requested - self.completed,
            "duration_s": sum(self.rounds),
            "output_tokens": self.output_tokens,
            "output_tokens_per_s": self.tokens_per_s,
            "mean_output_tokens": self.output_tokens / self.completed if self.completed else None,
            "mean_ttft_s": None,
            "mean_latency_s": self.latency_s / self.requested,
            "counters": None if counters is None else counters.to_json(),
            "acceptance_length": None if counters is None else counters.acceptance_length,
            "round_durations_s": self.rounds,
            "first_error": self.first_error,
        }


class Arm:
    """One arm.

    Attributes:
        name: `A` or `B`.
        timeout: How long its server has to become healthy, in seconds.
        points: What was measured, in the order of the plan.
        exact: Outputs for the exact match; None until they were made.
        control: The same, made once more; only in an arm without drafter.
    """

    def __init__(self, name: str, command: str, wanted: Wanted, plan: Plan, engine: str = "vllm") -> None:
        self.name = name
        self.timeout = 600.0
        self.points: List[Point] = []
        self.exact: Optional[List[Completion]] = None
        self.control: Optional[List[Completion]] = None
        self._command = command
        self._engine = engine
        self._wanted = wanted
        self._plan = plan
        self._identity: Optional[Identity] = None
        self._starts: List[Dict[str, Any]] = []

    def measure(self, questions: List[Question], exact: bool) -> None:
        """One round: start the server, measure every point, end it.

        Args:
            questions: The prompts.
            exact: Also make the outputs for the exact match.

        Raises:
            Stop: When it cannot go on.
            Unreadable: When the counters cannot be read.
        """
        log = f"server-{self.name.lower()}-{len(self._starts) + 1}.log"
        server = Server.start(self._command, log, engine=self._engine)
        try:
            server.wait(self.timeout)
            identity = identify(server, self._wanted)
            if self._identity is not None and identity != self._identity:
                raise Stop("model_mismatch", f"started again it is {identity}, before it was {self._identity}")
            self._identity = identity
            self._warm_up(server, questions)
            asked = [questions[i % len(questions)] for i in range(self._plan.requests)]
            for index, level in enumerate(self._plan.concurrency):
                if len(self.points) <= index:
                    self.points.append(Point(level))
                self._measure_point(server, self.points[index], asked)
            if exact:
                self._make_exact(server, questions[: self._plan.exact_prompts])
        finally:
            server.stop()
            self._starts.append(server.to_json())

    def _warm_up(self, server: Server, questions: List[Question]) -> None:
        """Let the server do once, untimed, what is timed later: one request at a time, and many."""
        some = [questions[-1 - i % len(questions)] for i in range(self._plan.warmup_requests)]
        for level in (1, max(self._plan.concurrency)):
            answers = self._send(server, some, level)
            if answers.first_error:
                server.check_alive_after_failure()
            if not answers.good:
                raise Stop("generation_failed", f"warming up: {answers.first_error}")

    def _measure_point(self, server: Server, point: Point, asked: List[Question]) -> None:
        before = self._read(server)
        answers = self._send(server, asked, point.concurrency)
        if answers.first_error:
            server.check_alive_after_failure()
        if not answers.good:
            raise Stop("generation_failed", f"at concurrency {point.concurrency}: {answers.first_error}")
        after = self._read(server)
        drafts = self._wanted.draft_tokens > 0
        point.add(answers, counted(before, after, answers.good) if drafts else None)

    def _make_exact(self, server: Server, questions: List[Question]) -> None:
        self.exact = self._send(server, questions, self._plan.exact_concurrency).completions
        if not self._wanted.draft_tokens:
            self.control = self._send(server, questions, self._plan.control_concurrency).completions
        server.check_alive()

    def _send(self, server: Server, questions: List[Question], concurrency: int) -> Answers:
        return send(server.endpoint, self._wanted.model, questions, Sampling(self._plan.max_tokens, True), concurrency)

    def _read(self, server: Server) -> Optional[Counters]:
        """A reading of the counters; None in an arm without drafter, and where each answer tells its own.

        Raises:
            Unreadable: When there is none, or something was drafted where nothing should be.
        """
        endpoint = server.endpoint()
        counters = endpoint.counters()
        endpoint.close()
        drafts = self._wanted.draft_tokens > 0
        if (drafts and counters is None and server.engine.counts) or (not drafts and counters and counters.drafts):
            raise Unreadable(f"counters of speculative decoding: {counters or 'none'}")
        return counters if drafts else None

    def to_json(self, manifest_sha256: str) -> Dict[str, Any]:
        """As it is written in the result."""
        drafts = self._wanted.draft_tokens > 0
        identity = self._identity
        return {
            "model": identity.model if identity is not None else self._wanted.model,
            "drafter": identity.drafter if identity is not None else None,
            "drafter_manifest_sha256": manifest_sha256 if drafts else None,
            "num_draft_tokens": (identity.draft_tokens if identity is not None else None) if drafts else None,
            "server_config": identity.settings if identity is not None else {},
            "points": [point.to_json() for point in self.points if point.rounds],
            "starts": self._starts,
        }
