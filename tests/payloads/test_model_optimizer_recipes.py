"""The recipes for real clusters: every script runs as it is rendered, with what needs GPUs stood in for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backends.payloads.load import read_questions
from console.release.recipe import (
    COMMON,
    RenderedTask,
    Task,
    choose_recipe,
    load_recipe,
    render_task,
    resolve_values,
    size_task,
)
from gates.registry import run as run_gate
from tests.payloads import fake_hub
from tests.payloads.running import MODEL, PAYLOADS, REVISION, THREADS, TOKEN, Model, processes_in, run

RECIPES = ("dflash", "dflash2")
STAND_IN = Path(__file__).parent / "standing_in.py"
SMALL: dict[str, Any] = {
    "samples": 4, "answer_only_loss": False, "block_size": 8, "sequence_length": 64, "draft_tokens": 4,
    "mask_token_id": 3, "smoke_prompts": 4, "smoke_max_tokens": 48, "concurrency": "1,2", "requests_per_point": 8,
    "bench_max_tokens": 12, "exact_prompts": 16, "server_timeout": 60, "train_nodes": 1,
    "accuracy_samples": 3, "accuracy_shots": 1,
}  # fmt: skip


class Cluster:
    """Runs a recipe's jobs in folders with awkward names; python, srun and scontrol are stood in for."""

    def __init__(self, root: Path, model: Model, recipe: str, **values: Any) -> None:
        self.root, self.model = root, model
        self.recipe = load_recipe(recipe)
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        for name in ("python", "srun", "scontrol"):
            (self.bin / name).symlink_to(STAND_IN)
        self.conversations = root / "conversations.jsonl"
        turns = [{"role": "user", "content": "Is it?"}, {"role": "assistant", "content": "It is."}]
        self.conversations.write_text(f"{json.dumps({'messages': turns})}\n" * 9)
        self.questions = root / "questions.jsonl"
        self.questions.write_text("".join(f'{{"question": "{n}?", "answer": "#### {n}"}}\n' for n in range(9)))
        python = str(self.bin / "python")
        given = {
            "modelopt_path": str(root / "Model Optimizer"), "data_path": str(self.conversations),
            "prompts_path": str(model.prompts), "gsm8k_path": str(self.questions),
            "train_python": python, "serve_python": python,
        }  # fmt: skip
        self.values = resolve_values(self.recipe, "dev", {**SMALL, **given, **values})
        self.facts = {
            "TARGET": MODEL, "REVISION": REVISION, "ALGORITHM": recipe, "BUDGET": "dev", "RUN_ID": "run 1",
            "TARGET_PATH": str(model.target), "WORKSPACE": str(root), "HF_LOCAL": str(root / "hf"),
            "PYTHON": sys.executable, "ATTEMPT": "1", "GPUS_PER_NODE": "8", "NODES": str(self.values["train_nodes"]),
            "FAIL": "", "DRAFTER_PATH": str(root / "drafts" / "run 1"),
        }  # fmt: skip
        self.calls = root / "calls.jsonl"
        self.exit_status = 0

    def job(self, stage: str, name: str, **more: str) -> tuple[Path, dict[str, bytes | None]]:
        """Run a job; gives its folder and its result files."""
        folder = self.root / stage / name
        folder.mkdir(parents=True)
        self.facts["EXPORT_PATH"] = str(folder / "export")
        task = render_task(self.recipe, self.recipe.task(stage, name), self.values, self.facts)
        for upload, data in task.uploads:
            (folder / upload).write_bytes(data)
        drafter = self.model.dflash if self.recipe.name == "dflash" else self.model.dflash2
        environment = {
            **os.environ, **THREADS, **dict(task.environment), "GONOGO_TOKEN": TOKEN, "CALLS": str(self.calls),
            "PATH": f"{self.bin}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "TINY_SERVER": str(PAYLOADS / "tiny_server.py"), "DRAFTER_MADE_BEFORE": str(drafter),
            "SLURM_JOB_NUM_NODES": self.facts["NODES"] if name == "train" else "1",
            "SLURM_JOB_NODELIST": "node[7-8]", "SLURM_JOB_ID": "42", "HF_TOKEN": "", "HF_HOME": str(self.root),
            "PYTHONPATH": "", **more,
        }  # fmt: skip
        done = subprocess.run(["bash", "-c", task.script_body], cwd=folder, env=environment, check=False, timeout=100)
        self.exit_status = done.returncode
        assert not processes_in(folder)
        paths = {kind: folder / path for kind, path in task.results.items()}
        return folder, {kind: path.read_bytes() if path.exists() else None for kind, path in paths.items()}

    def called(self, *words: str) -> list[dict[str, Any]]:
        """The calls whose words hold these."""
        rows = [json.loads(line) for line in self.calls.read_text().splitlines()]
        return [row for row in rows if all(any(word in said for said in row["words"]) for word in words)]

    def train(self, **more: str) -> dict[str, bytes | None]:
        folder, data = self.job("train", "data")
        verdict = run_gate("data", data, {"token": TOKEN})
        assert verdict.passed, verdict.detail
        self.facts["DATA_DIR"] = str(folder)
        folder, files = self.job("train", "train", **more)
        self.facts["EXPORT_DIR"] = str(folder / "export")
        return files


@pytest.fixture(scope="module")
def model(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The model of all tests, with a DFlash drafter that learned for long enough to be of use."""
    folder = tmp_path_factory.mktemp("learned")
    done = run(
        "tiny_train.py", "--target", model.target, "--data", model.data, "--algorithm", "dflash", "--steps", 200,
        "--rate", 0.025, "--export-path", folder / "export", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return model._replace(dflash=folder / "export")


@pytest.fixture
def awkward(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a $HOME of `one's` own"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("image", ["", "registry.example.org/modelopt:1"])
def test_every_job_passes_its_gate(awkward: Path, model: Model, name: str, image: str) -> None:
    cluster = Cluster(awkward, model, name, train_image=image, serve_image=image)
    expected: dict[str, Any] = {"token": TOKEN, "algorithm": name, "draft_tokens": 4}
    verdict = run_gate("train", cluster.train(), expected)
    assert verdict.passed, verdict.detail
    export = cluster.facts["EXPORT_DIR"]
    _, files = cluster.job("train", "export_check")
    assert run_gate("export", files, expected).passed
    _, files = cluster.job("train", "smoke")
    verdict = run_gate("smoke", files, {"token": TOKEN, "drafter": export, "draft_tokens": 4})
    assert verdict.passed, verdict.detail
    _, files = cluster.job("freeze", "freeze")
    destination = cluster.facts["DRAFTER_PATH"]
    verdict = run_gate("freeze", files, {"token": TOKEN, "source": export, "destination": destination})
    assert verdict.passed, verdict.detail
    manifest = json.loads(files["freeze"] or b"")["manifest_sha256"]
    cluster.facts["MANIFEST_SHA256"] = manifest
    _, files = cluster.job("bench", "bench")
    expected = {"token": TOKEN, "drafter": destination, "manifest_sha256": manifest, "draft_tokens": 4}
    loose = {"concurrency": (1, 2), "speedup_slack": 0.99}
    verdict = run_gate("bench", {"bench": files["bench"]}, {**expected, **loose})
    assert verdict.passed, verdict.detail
    verdict = run_gate("correctness", {"exact_match": files["exact_match"]}, expected)
    assert verdict.passed, verdict.detail
    _, files = cluster.job("bench", "accuracy")
    measured = json.loads(files["accuracy"] or b"")
    # The demo's server knows no words to stop at, which it says to each question: the drafter was served for them.
    assert (measured["stage"], measured["server"]["drafter"]) == ("generation_failed", destination)
    assert "stop is not supported" in measured["detail"]
    steps = [row["words"] for row in cluster.called("srun")]
    assert bool(steps) is bool(image)
    for words in steps:
        assert {f"--container-image={image}", "--export=ALL", "--ntasks-per-node=1", "--nodes=1"} <= set(words)
        mounts = next(word for word in words if word.startswith("--container-mounts=")).split("=", 1)[1].split(",")
        assert f"{awkward}:{awkward}" in mounts
        assert len(mounts) == len(set(mounts))


@pytest.mark.parametrize("name", RECIPES)
def test_a_training_is_told_all_that_it_must_not_guess(tmp_path: Path, model: Model, name: str) -> None:
    cluster = Cluster(tmp_path / "one", model, name)
    cluster.train()
    (call,) = cluster.called("accelerate.commands.launch")
    words, data = call["words"], cluster.facts["DATA_DIR"]
    config = f"{tmp_path}/one/Model Optimizer/modelopt_recipes/general/speculative_decoding/{name}.yaml"
    assert words[words.index("--config") + 1] == config
    architecture = "dflash.dflash_architecture_config"
    assert {
        f"model.model_name_or_path={model.target}", f"data.data_path={data}/train.jsonl", "training.max_steps=" +
        str(cluster.values["max_steps"]), "training.per_device_train_batch_size=1",
        "training.gradient_accumulation_steps=1", "dflash.dflash_mask_token_id=3", "dflash.dflash_block_size=8",
        f"{architecture}.num_attention_heads=1", f"{architecture}.head_dim=64", f"{architecture}.intermediate_size=64",
    } <= set(words)  # fmt: skip
    assert (f"{architecture}.projector_type=dflash2" in words) is (name == "dflash2")
    assert "--num_machines" not in words
    assert call["environment"]["PYTHONPATH"] == f"{tmp_path}/one/Model Optimizer"
    assert call["environment"]["HF_HUB_OFFLINE"] == "1"
    assert "42" in call["environment"]["TRITON_CACHE_DIR"]


def test_a_training_over_nodes_runs_once_on_each_and_exports_once(tmp_path: Path, model: Model) -> None:
    cluster = Cluster(tmp_path / "two", model, "dflash", train_nodes=2)
    verdict = run_gate("train", cluster.train(), {"token": TOKEN, "algorithm": "dflash", "draft_tokens": 4})
    assert verdict.passed, verdict.detail
    (step,) = cluster.called("srun")
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1"} <= set(step["words"])
    (call,) = cluster.called("accelerate.commands.launch")
    words = call["words"]
    told = {name: words[words.index(name) + 1] for name in ("--num_processes", "--num_machines", "--machine_rank")}
    assert told == {"--num_processes": "16", "--num_machines": "2", "--machine_rank": "0"}
    assert words[words.index("--main_process_ip") + 1] == "node7"
    assert len(cluster.called("--export_path")) == 1


def test_a_training_that_failed_is_still_judged_and_still_fails(tmp_path: Path, model: Model) -> None:
    cluster = Cluster(tmp_path / "failed", model, "dflash")
    files = cluster.train(TRAINING_ENDS_WITH="9")
    assert cluster.exit_status == 9
    assert run_gate("train", files, {"token": TOKEN, "algorithm": "dflash", "draft_tokens": 4}).passed


def test_a_target_is_staged_by_the_recipes_own_job(tmp_path: Path, model: Model) -> None:
    files = model.target
    with fake_hub.running(files) as hub:
        hub.sha = REVISION
        cluster = Cluster(tmp_path / "hub", model, "dflash", hub=hub.url)
        cluster.facts["TARGET_PATH"] = str(tmp_path / "hub" / "hf" / "tiny")
        _, written = cluster.job("stage_target", "stage_target")
        expected = {"token": TOKEN, "target": MODEL, "revision": REVISION, "path": cluster.facts["TARGET_PATH"]}
        verdict = run_gate("target", written, expected)
        assert verdict.passed, verdict.detail
        hub.refuse = (403, "GatedRepo")
        cluster.facts["TARGET_PATH"] = str(tmp_path / "hub" / "hf" / "gated")
        cluster.root = tmp_path / "hub" / "again"
        _, written = cluster.job("stage_target", "stage_target")
        assert run_gate("target", written, expected).failure_class == "USER_CONFIG_ERROR"


def every_task(name: str, budget: Any, image: str) -> list[tuple[Task, RenderedTask]]:
    recipe = load_recipe(name)
    values = resolve_values(recipe, budget, {"modelopt_path": "/opt/it's", "data_path": "/d", "gsm8k_path": "/g/q"})
    facts = {fact: f"/x/{fact} it's" for fact in ("TARGET_PATH", "WORKSPACE", "HF_LOCAL", "DATA_DIR", "EXPORT_PATH")}
    facts |= {"TARGET": "a/b", "REVISION": "a" * 40, "ALGORITHM": name, "PYTHON": "python3", "EXPORT_DIR": "/e e"}
    facts |= {"DRAFTER_PATH": "/d d", "MANIFEST_SHA256": "f" * 64, "NODES": "1", "GPUS_PER_NODE": "8"}
    facts |= {"CONTAINER_IMAGE": image} if image else {}
    sized = [size_task(task, values) for task in recipe.tasks]
    return [(task, render_task(recipe, task, values, facts)) for task in sized]


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("budget", ["dev", "full"])
@pytest.mark.parametrize("image", ["", "of/cluster:1"])
def test_every_script_is_one_for_a_shell(name: str, budget: str, image: str) -> None:
    for task, rendered in every_task(name, budget, image):
        for shell in ("bash", "sh"):
            done = subprocess.run([shell, "-n"], input=rendered.script_body.encode(), capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b""), f"{task.stage}/{task.task}"
        assert rendered.image == (image if task.image is not None else "")
        assert (task.nodes > 1) is (budget == "full" and task.task == "train")


@pytest.mark.parametrize("script", sorted(COMMON.glob("*.sh")), ids=lambda path: path.name)
def test_a_shared_script_is_used_and_can_be_read(script: Path) -> None:
    if "@" not in script.read_text().replace('"$@"', ""):
        assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    for name in RECIPES:
        recipe = load_recipe(name)
        assert script.name in recipe.templates or script.name in recipe.files


def test_a_folder_that_cannot_be_mounted_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", COMMON / "in_container.sh", "-m", "/a:b", "true"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 64
    assert "/a:b: a folder with a comma or a colon in its name cannot be mounted" in done.stderr


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipe_is_chosen_by_its_algorithm(name: str) -> None:
    assert choose_recipe(None, name).name == name


def test_the_own_prompts_are_prompts() -> None:
    questions = read_questions(str(COMMON / "release_prompts.jsonl"))
    assert len(questions) == len({question.prompt for question in questions}) == 64
