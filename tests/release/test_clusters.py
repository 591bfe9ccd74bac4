"""`clusters.yaml`: where it is looked for, what it may say, and which cluster a release gets."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from console.release.clusters import Cluster, choose_cluster, find_clusters_file, load_clusters
from console.release.confirmed import confirm
from console.release.errors import InputError

# The shape of Model-Optimizer's own example, with keys that only its other tools know.
SHARED = """\
clusters:
  my-cluster:
    login_node: cluster-login.example.com
    user: myusername
    ssh_key: {key}
    ssh_proxy: "socat - PROXY:localhost:%h:%p,proxyport=3128"
    workspace: /path/to/remote/workdir
    gpu_type: H100
    nodes_hint: [a, b]
    slurm:
      default_account: my_account
      default_partition: batch_short
      interactive: true

default_cluster: my-cluster
other_tool: {{retries: 3}}
"""

TWO = """\
clusters:
  alpha: {login_node: alpha.example.com, user: me, workspace: /work}
  beta: {login_node: beta.example.com, user: me, workspace: /work}
"""


def written(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "clusters.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def one(folder: Path, *lines: str, gonogo: tuple[str, ...] = ()) -> Path:
    """A file with one cluster; a line replaces the key that it begins with."""
    entry = {"login_node": "login.example.com", "user": "me", "workspace": "/work"}
    text = ["clusters:", "  alpha:"]
    given_keys = {line.partition(":")[0] for line in lines}
    text += [f"    {key}: {value}" for key, value in entry.items() if key not in given_keys]
    text += [f"    {line}" for line in lines]
    if gonogo:
        text += ["    gonogo:", *(f"      {line}" for line in gonogo)]
    return written(folder, "\n".join(text) + "\n")


def chosen(path: Path, asked: str | None = None, *, confirmed: bool = False) -> Cluster:
    clusters = load_clusters(path)
    if confirmed:
        confirm(clusters.commands(asked or clusters.names[0]))
    return choose_cluster(clusters, asked)


def only_line(path: Path, asked: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        chosen(path, asked)
    lines = str(caught.value).split("\n")
    assert len(lines) == 1, lines
    assert lines[0].isprintable()
    return lines[0]


def test_a_file_of_the_other_tools_works_unchanged(tmp_path: Path) -> None:
    key = tmp_path / "id_ed25519"
    key.write_text("key")
    path = written(tmp_path, SHARED.format(key=key))
    cluster = chosen(path, confirmed=True)
    assert (cluster.name, cluster.file) == ("my-cluster", str(path))
    assert (cluster.login_node, cluster.user, cluster.port) == ("cluster-login.example.com", "myusername", 22)
    assert (cluster.account, cluster.partition) == ("my_account", "batch_short")
    assert cluster.ssh_key == str(key)
    assert cluster.ssh_proxy == "socat - PROXY:localhost:%h:%p,proxyport=3128"
    assert (cluster.workspace, cluster.gpu_type) == ("/path/to/remote/workdir", "H100")
    assert cluster.hf_local == "/path/to/remote/workdir/hf_local"
    assert (cluster.python, cluster.whole_node, cluster.production) == ("python3", False, False)
    # What we read is what the other tools read.
    assert yaml.safe_load(path.read_text())["clusters"]["my-cluster"]["workspace"] == cluster.workspace


def test_our_settings_stand_under_our_own_key(tmp_path: Path) -> None:
    cluster = chosen(
        one(
            tmp_path,
            gonogo=(
                "port: 2222",
                "known_hosts: /etc/hosts",
                "hf_local: /models/",
                "drafts_root: /drafts",
                "python: /opt/python/bin/python3",
                "whole_node: yes",
                "gpus_per_node: 4",
                "max_gpus: 16",
                "qos: high",
                "time_zone: Europe/Berlin",
                "keepalive_seconds: 5",
                "poll_seconds: 0.5",
                "watch_seconds: 0.2",
                "settle_seconds: 3",
                "result_grace_seconds: 4",
                "wake: [/usr/bin/vpn, up]",
                "production: true",
                "slurm_path: /opt/slurm/bin",
            ),
        ),
        confirmed=True,
    )
    assert (cluster.port, cluster.known_hosts, cluster.hf_local) == (2222, "/etc/hosts", "/models")
    assert (cluster.drafts_root, cluster.python, cluster.slurm_path) == (
        "/drafts",
        "/opt/python/bin/python3",
        "/opt/slurm/bin",
    )
    assert (cluster.whole_node, cluster.gpus_per_node, cluster.max_gpus, cluster.production) == (True, 4, 16, True)
    assert (cluster.qos, cluster.time_zone) == ("high", "Europe/Berlin")
    assert (cluster.keepalive_seconds, cluster.poll_seconds) == (5, 0.5)
    assert (cluster.watch_seconds, cluster.settle_seconds, cluster.result_grace_seconds) == (0.2, 3, 4)
    assert cluster.wake == ("/usr/bin/vpn", "up")


def test_the_home_folder_is_expanded_in_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("key")
    assert chosen(one(tmp_path, "ssh_key: ~/.ssh/id_rsa")).ssh_key == str(tmp_path / ".ssh" / "id_rsa")


def test_the_operators_own_name_stands_in_for_a_missing_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    path = written(tmp_path, "clusters: {alpha: {login_node: a.example.com, workspace: /work}}\n")
    assert chosen(path).user == "ada"


MISTAKES: list[tuple[tuple[str, ...], tuple[str, ...], str, str]] = [
    # lines of the entry, lines under gonogo:, field, what the message must say besides
    (("workspace: ~/work",), (), "workspace", "~ is not expanded"),
    (("workspace: work",), (), "workspace", "absolute path on the cluster"),
    (("workspace: /",), (), "workspace", "a folder below /"),
    (("workspace: /a/../..",), (), "workspace", "without .."),
    (("login_node: -oProxyCommand=id",), (), "login_node", "a plain name"),
    (("login_node: me@login",), (), "login_node", "a plain name"),
    (("login_node: 10",), (), "login_node", "put it in quotes"),
    (("user: no",), (), "user", "found no (YAML reads it as false); put it in quotes"),
    (("user: 1001",), (), "user", "1001 (a number); put it in quotes"),
    (("ssh_key: /nowhere/id_rsa",), (), "ssh_key", "/nowhere/id_rsa"),
    (("ssh_key: keys/id_rsa",), (), "ssh_key", "absolute path on this machine"),
    (("env_type: docker",), (), "env_type", "expected slurm or auto"),
    (("slurm: batch",), (), "slurm", "expected a mapping"),
    (("slurm: {default_account: 7}",), (), "slurm.default_account", "put it in quotes"),
    (("gonogo: yes",), (), "gonogo", "expected a mapping"),
    ((), ("prot: 22",), "gonogo.prot", "did you mean port?"),
    ((), ("whole-node: true",), "gonogo.whole-node", "did you mean whole_node?"),
    ((), ("port: '22'",), "gonogo.port", "a whole number"),
    ((), ("port: 0",), "gonogo.port", "of at least 1"),
    ((), ("port: 65536",), "gonogo.port", "of at most 65535"),
    ((), ("port: yes",), "gonogo.port", "a whole number"),
    ((), ("whole_node: 1",), "gonogo.whole_node", "true or false"),
    ((), ("wake: vpn up",), "gonogo.wake", "a list"),
    ((), ("wake: [vpn, 7]",), "gonogo.wake[1]", "put it in quotes"),
    ((), ("time_zone: Mars/Olympus",), "gonogo.time_zone", "time zone"),
    ((), ("time_zone: ../../etc/passwd",), "gonogo.time_zone", "time zone"),
    ((), ("poll_seconds: 0",), "gonogo.poll_seconds", "of at least 0.05"),
    ((), ("poll_seconds: .nan",), "gonogo.poll_seconds", "number"),
    ((), ("keepalive_seconds: .inf",), "gonogo.keepalive_seconds", "number"),
    ((), ("hf_local: models",), "gonogo.hf_local", "absolute path on the cluster"),
    ((), ("drafts_root: ~/drafts",), "gonogo.drafts_root", "~ is not expanded"),
    ((), ('python: "python3\\nid"',), "gonogo.python", "delete U+000A"),
]


@pytest.mark.parametrize(("lines", "gonogo", "field", "words"), MISTAKES, ids=lambda value: str(value)[:40])
def test_each_mistake_gets_one_line_with_file_and_field(
    tmp_path: Path, lines: tuple[str, ...], gonogo: tuple[str, ...], field: str, words: str
) -> None:
    path = one(tmp_path, *lines, gonogo=gonogo)
    said = only_line(path)
    assert said.startswith(f"{path}, line ")
    assert f": clusters.alpha.{field}: expected " in said
    assert words in said


@pytest.mark.parametrize("key", ["login_node", "workspace"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    entry = {"login_node": "a.example.com", "workspace": "/work"}
    del entry[key]
    path = written(tmp_path, yaml.safe_dump({"clusters": {"alpha": entry}}))
    assert f": clusters.alpha.{key}: expected " in only_line(path)


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("clusters: {}\n", "clusters", "add a cluster"),
        ("clusters: [alpha]\n", "clusters", "a mapping from names to clusters"),
        ("alpha: {login_node: a}\n", "clusters", "a mapping from names to clusters"),
        ("clusters: {alpha: 7}\n", "clusters.alpha", "expected a mapping"),
        ("clusters: {alpha: {}}\ndefault_cluster: 7\n", "default_cluster", "the name of a cluster"),
        ("clusters: {alpha: {}, alpha: {}}\n", "clusters.alpha", "the key once"),
        ("", "clusters file", "an empty file"),
    ],
)
def test_a_file_that_is_none_gets_one_line(tmp_path: Path, text: str, field: str, words: str) -> None:
    path = written(tmp_path, text)
    said = only_line(path)
    assert said.startswith(str(path))
    assert f": {field}: expected " in said
    assert words in said


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "clusters.yaml"
    assert only_line(path).startswith(f"{path}: clusters file: expected a file, found nothing at this path")


def test_an_entry_that_nobody_asked_for_may_be_wrong(tmp_path: Path) -> None:
    path = written(tmp_path, TWO + "  laptop: {env_type: docker}\n")
    assert chosen(path, "beta").login_node == "beta.example.com"


def test_the_named_cluster_is_taken_whatever_the_default(tmp_path: Path) -> None:
    assert chosen(written(tmp_path, TWO + "default_cluster: alpha\n"), "beta").name == "beta"


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    path = written(tmp_path, TWO)
    said = only_line(path, "betta")
    assert said == (
        f'release.yaml: cluster: expected a cluster of {path} (alpha, beta), found "betta"; did you mean beta?'
    )


@pytest.mark.parametrize("default", ["", "default_cluster: beta\n", "default_cluster: gone\n"])
def test_several_clusters_and_none_named_is_a_question_never_a_silent_default(tmp_path: Path, default: str) -> None:
    path = written(tmp_path, TWO + default)
    said = only_line(path)
    assert said.startswith(f"release.yaml: cluster: expected one of the 2 clusters of {path} (alpha, beta)")
    assert said.endswith("cluster: beta" if "beta" in default else "cluster: alpha")


def test_the_only_cluster_needs_no_name(tmp_path: Path) -> None:
    assert chosen(one(tmp_path)).name == "alpha"


def test_a_default_that_contradicts_the_only_cluster_is_refused(tmp_path: Path) -> None:
    path = one(tmp_path)
    path.write_text(path.read_text() + "default_cluster: gone\n")
    said = only_line(path)
    assert said.startswith(f"{path}, line 6: default_cluster: expected the only cluster (alpha)")
    assert chosen(path, "alpha").name == "alpha"


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A home folder, and a working folder three levels deep in a project."""
    home, project = tmp_path / "home", tmp_path / "project" / "a" / "b"
    home.mkdir()
    project.mkdir(parents=True)
    return home, project


def test_the_search_order(places: tuple[Path, Path]) -> None:
    home, folder = places
    far, near = folder.parent.parent, folder
    weakest_first = [far / ".claude", near / ".claude", far / ".agents", near / ".agents", home / ".config/modelopt"]
    for place in weakest_first:
        path = written(place, TWO)
        assert find_clusters_file(folder=folder, home=home) == path
    explicit = folder / "mine.yaml"
    assert find_clusters_file(explicit, folder=folder, home=home) == explicit


def test_the_working_folder_and_the_operators_home_are_the_defaults(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = places
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    path = written(folder.parent / ".agents", TWO)
    assert find_clusters_file() == path
    path = written(home / ".config" / "modelopt", TWO)
    assert find_clusters_file() == path


def test_no_file_anywhere_names_the_places(places: tuple[Path, Path]) -> None:
    home, folder = places
    with pytest.raises(InputError) as caught:
        find_clusters_file(folder=folder, home=home)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"{home}/.config/modelopt/clusters.yaml: clusters file: expected ")
    assert ".agents/clusters.yaml" in said
    assert ".claude/clusters.yaml" in said


def test_a_first_place_that_cannot_be_looked_at_is_not_passed_over(places: tuple[Path, Path]) -> None:
    home, folder = places
    written(folder / ".agents", TWO)
    (home / ".config").symlink_to(home / ".config")
    with pytest.raises(InputError) as caught:
        find_clusters_file(folder=folder, home=home)
    assert caught.value.file == str(home / ".config/modelopt/clusters.yaml")
    assert "a readable file" in str(caught.value)


def test_a_dangling_link_in_the_first_place_is_not_passed_over(places: tuple[Path, Path]) -> None:
    home, folder = places
    written(folder / ".agents", TWO)
    (home / ".config" / "modelopt").mkdir(parents=True)
    link = home / ".config" / "modelopt" / "clusters.yaml"
    link.symlink_to(home / "not-mounted.yaml")
    path = find_clusters_file(folder=folder, home=home)
    assert path == link
    assert "nothing at this path" in only_line(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc")
def test_an_unreadable_key_is_named(tmp_path: Path) -> None:
    assert "clusters.alpha.ssh_key: expected a readable private key" in only_line(
        one(tmp_path, "ssh_key: /proc/self/mem")
    )


KEYS = st.sampled_from(
    ["login_node", "user", "ssh_key", "workspace", "slurm", "gonogo", "env_type", "port", "default_account"]
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS | st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["alpha", "beta", "no"]), TREES, max_size=2), st.none() | st.just("alpha"), TREES
)
def test_no_document_raises_anything_but_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, entries: dict[str, object], asked: str | None, default: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "tree-clusters.yaml"
    path.write_text(yaml.safe_dump({"clusters": entries, "default_cluster": default}), encoding="utf-8")
    said: tuple[str, ...] = ()
    try:
        cluster = choose_cluster(load_clusters(path), asked)
    except InputError as error:
        said = tuple(map(str, error.problems))
    assert all(line.isprintable() for line in said)
    assert said or cluster.workspace.startswith("/")
