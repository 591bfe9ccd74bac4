"""The tiny server over HTTP, beside what vLLM answers."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from counters import read_counters
from serving import free_port

from tests.payloads.running import MODEL, PAYLOADS, Model, environment, until


class Running:
    """A server that was started for tests."""

    def __init__(self, model: Model, folder: Path, *more: str) -> None:
        self.port = free_port()
        command = [sys.executable, str(PAYLOADS / "tiny_server.py"), "--model", str(model.target)]
        command += ["--served-model-name", MODEL, "--port", str(self.port), "--max-num-seqs", "4", *more]
        with open(folder / "server.log", "wb") as log:
            self.process = subprocess.Popen(command, env=environment(), stdout=log, stderr=subprocess.STDOUT)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, data)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        kind = response.headers.get_content_type()
        return response.status, json.loads(text) if kind == "application/json" else text.decode()

    def healthy(self) -> bool:
        try:
            return self.ask("GET", "/health") == (200, "")
        except OSError:
            return False

    def complete(self, **body: Any) -> tuple[int, Any]:
        standard = {"model": MODEL, "prompt": [300, 301], "max_tokens": 8, "temperature": 0, "return_token_ids": True}
        asked = {key: value for key, value in {**standard, **body}.items() if value is not None}
        return self.ask("POST", "/v1/completions", asked)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


@pytest.fixture(scope="module")
def alone(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    server = Running(model, tmp_path_factory.mktemp("alone"))
    until(server.healthy, "a healthy server")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def drafting(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    server = Running(model, tmp_path_factory.mktemp("drafting"), "--drafter", str(model.dflash2), "--draft-tokens", "3")
    until(server.healthy, "a healthy server")
    yield server
    assert server.stop() == 0


def test_it_says_what_it_serves(model: Model, alone: Running, drafting: Running) -> None:
    status, models = alone.ask("GET", "/v1/models")
    assert (status, models["data"][0]["id"], models["data"][0]["root"]) == (200, MODEL, str(model.target))
    assert alone.ask("GET", "/version") == (200, {"version": "tiny-1"})
    settings = [server.ask("GET", "/server_info?config_format=json")[1] for server in (alone, drafting)]
    speculative = [info["vllm_config"].pop("speculative_config") for info in settings]
    assert speculative == [None, {"model": str(model.dflash2), "num_speculative_tokens": 3}]
    assert settings[0] == settings[1]
    assert "OPENBLAS_NUM_THREADS=1" in settings[0]["system_env"]["env_vars"]


def test_a_text_goes_on_the_same_with_and_without_a_drafter(alone: Running, drafting: Running) -> None:
    for prompt in ([300, 301, 302], "bado bafa sasti", "anything: \N{SNOWMAN}"):
        answers = [server.complete(prompt=prompt, max_tokens=40, ignore_eos=True) for server in (alone, drafting)]
        assert [status for status, _ in answers] == [200, 200]
        choices = [answer["choices"][0] for _, answer in answers]
        assert choices[0] == choices[1]
        assert len(choices[0]["token_ids"]) == 40
        assert choices[0]["finish_reason"] == "length"
        if isinstance(prompt, list):
            assert choices[0]["prompt_token_ids"] == prompt
        usage = answers[0][1]["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + 40


def test_token_ids_come_only_when_asked_for(alone: Running) -> None:
    choice = alone.complete(return_token_ids=None)[1]["choices"][0]
    assert (choice["token_ids"], choice["prompt_token_ids"]) == (None, None)
    assert choice["text"]


def test_many_at_a_time_get_what_each_gets_alone(drafting: Running) -> None:
    prompts = [[300 + i, 310 + i] for i in range(12)]
    one_by_one = [drafting.complete(prompt=prompt, max_tokens=10 + i)[1]["choices"] for i, prompt in enumerate(prompts)]
    together: list[Any] = [None] * len(prompts)

    def ask(i: int) -> None:
        together[i] = drafting.complete(prompt=prompts[i], max_tokens=10 + i)[1]["choices"]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == one_by_one


def test_counters_count_what_was_done(alone: Running, drafting: Running) -> None:
    before = read_counters(drafting.ask("GET", "/metrics")[1])
    drafting.complete(max_tokens=30, ignore_eos=True)
    text = drafting.ask("GET", "/metrics")[1]
    after = read_counters(text)
    assert before is not None
    assert after is not None
    counted = after.since(before)
    assert counted.draft_tokens == 3 * counted.drafts
    assert len(counted.per_position) == 3
    # The first token comes without a draft; the last step may run past the limit.
    assert 29 <= counted.drafts + counted.accepted_tokens <= 29 + 3
    assert "vllm:spec_decode_num_drafts_created{" in text
    said = alone.ask("GET", "/metrics")[1]
    assert "spec" not in said
    assert 'vllm:request_success_total{engine="0",finished_reason="length"' in said


@pytest.mark.parametrize(
    ("change", "status", "parameter"),
    [
        ({"model": "nope"}, 404, "model"),
        ({"prompt": None}, 400, "prompt"),
        ({"prompt": ""}, 400, "prompt"),
        ({"prompt": []}, 400, "prompt"),
        ({"prompt": ["a", "b"]}, 400, "prompt"),
        ({"prompt": [True]}, 400, "prompt"),
        ({"prompt": [512]}, 400, None),
        ({"prompt": [-1]}, 400, None),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": "many"}, 400, "max_tokens"),
        ({"max_tokens": 5000}, 400, None),
        ({"temperature": None}, 400, "temperature"),
        ({"temperature": 0.7}, 400, "temperature"),
        ({"temperature": "0"}, 400, "temperature"),
        ({"n": 2}, 400, "n"),
        ({"stream": True}, 400, "stream"),
        ({"stop": ["x"]}, 400, "stop"),
    ],
)
def test_what_it_cannot_do_is_refused_as_vllm_refuses(
    alone: Running, change: dict[str, Any], status: int, parameter: str | None
) -> None:
    got, answer = alone.complete(**change)
    assert (got, answer["error"]["code"], answer["error"]["param"]) == (status, status, parameter)
    assert answer["error"]["message"]
    assert answer["error"]["type"] == {400: "BadRequestError", 404: "NotFoundError"}[status]
    assert alone.complete()[0] == 200


def test_what_is_no_request_is_refused(alone: Running) -> None:
    assert alone.ask("POST", "/v1/completions", b"{")[0] == 400
    assert alone.ask("POST", "/v1/completions", b"[1]")[0] == 400
    assert alone.ask("POST", "/v1/completions", b"\xff")[0] == 400
    assert alone.ask("GET", "/nowhere") == (404, {"detail": "Not Found"})
    assert alone.ask("GET", "/v1/completions") == (405, {"detail": "Method Not Allowed"})
    assert alone.ask("POST", "/health", {}) == (405, {"detail": "Method Not Allowed"})


def test_a_server_that_never_gets_healthy_answers_503_and_can_be_ended(model: Model, tmp_path: Path) -> None:
    server = Running(model, tmp_path, "--fault", "never-healthy")

    def loaded() -> bool:
        return "serving" in (tmp_path / "server.log").read_text()

    until(loaded, "a loaded server")
    for method, path in (("GET", "/health"), ("GET", "/v1/models"), ("POST", "/v1/completions")):
        status, answer = server.ask(method, path, {} if method == "POST" else None)
        assert (status, answer["error"]["code"]) == (503, 503)
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "{target}/nowhere"), "No such file"),
        (("--model", "{drafter}"), "are not supported for now"),
        (("--drafter", "{target}"), "are not supported for now"),
        (("--drafter", "{drafter}", "--draft-tokens", "5"), "cannot draft 5 tokens"),
    ],
)
def test_a_server_that_cannot_serve_ends_and_says_why(
    model: Model, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    places = {"target": model.target, "drafter": model.dflash2}
    server = Running(model, tmp_path, *(argument.format(**places) for argument in arguments))
    assert server.process.wait(60) == 1
    assert said in (tmp_path / "server.log").read_text()
