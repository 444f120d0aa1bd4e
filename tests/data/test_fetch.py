"""Sources: a mirror that is a folder or a URL, the official address, and every way they fail."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import random
import shutil
import socket
import time
import zipfile

import pytest
import requests
from misbehaving_server import Server
from runs import svmbench, write_config

from svmbench import data
from svmbench.base import paths
from svmbench.base.errors import DataError, DataUnavailableError, UnknownNameError
from svmbench.data import download, fetch, many, prepare
from svmbench.data.entries import shown_address
from svmbench.studies import doctor

TEXT = b"".join(
    b"%s1 1:%d 2:%d.5 3:7\n" % (b"-" if i % 3 else b"+", i, i * i % 11) for i in range(300)
)
SHA = hashlib.sha256(TEXT).hexdigest()
MAKERS = {"": bytes, ".xz": lzma.compress, ".bz2": bz2.compress, ".gz": gzip.compress}


def registry_text(*, url="", sha=SHA, more=""):
    fields = ['name = "tiny.svm"']
    if url:
        fields.append(f'url = "{url}"')
    if sha:
        fields.append(f'sha256 = ["{sha}"]')
    return f"""
[tiny]
origin = "here"
title = "Tiny"
task = "binary"
files = [{{ {", ".join(fields)}{more} }}]
n_samples = 300
n_features = 3
counts = [200, 100]
"""


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(download, "READ_TIMEOUT_S", 0.5)
    monkeypatch.setattr(download, "RETRY_PAUSE_S", 0.01)


def nothing_cached():
    prepared = paths.cache_dir() / "prepared"
    return not prepared.exists() or not list(prepared.iterdir())


# ---------------------------------------------------------------- a folder


@pytest.mark.parametrize("suffix", MAKERS)
def test_a_mirror_folder_plain_or_compressed_in_any_sub_folder(use_registry, tmp_path, suffix):
    use_registry(registry_text())
    place = tmp_path / "mirror" / "deep" / "er" / f"tiny.svm{suffix}"
    place.parent.mkdir(parents=True)
    place.write_bytes(MAKERS[suffix](TEXT))
    assert data.status("tiny", str(tmp_path / "mirror")) == "mirror"
    facts = data.ensure("tiny", mirror=str(tmp_path / "mirror"))
    assert facts["verified"] == "sha256"
    assert facts["source"] == "mirror"
    assert data.status("tiny") == "cached"


def test_of_two_files_of_one_name_the_right_one_is_taken(use_registry, tmp_path):
    use_registry(registry_text())
    for folder, content in (("a", TEXT[:-10]), ("b", TEXT), ("c", b"1 1:1\n")):
        (tmp_path / "mirror" / folder).mkdir(parents=True)
        (tmp_path / "mirror" / folder / "tiny.svm").write_bytes(content)
    assert data.ensure("tiny", mirror=str(tmp_path / "mirror"))["n_samples"] == 300


def test_a_checksum_decides_before_the_folder_that_the_registry_names(use_registry, tmp_path):
    use_registry(registry_text(more=', folder = "old"'))
    for folder, content in (("old", TEXT[:-10]), ("other", TEXT)):
        (tmp_path / "mirror" / folder).mkdir(parents=True)
        (tmp_path / "mirror" / folder / "tiny.svm").write_bytes(content)
    assert data.ensure("tiny", mirror=str(tmp_path / "mirror"))["verified"] == "sha256"


@pytest.mark.parametrize("suffix", MAKERS)
def test_a_flipped_byte_is_caught_or_changes_nothing(use_registry, tmp_path, suffix):
    """Whichever byte is flipped: refused with nothing cached, or the same bytes."""
    use_registry(registry_text())
    place = tmp_path / "mirror" / f"tiny.svm{suffix}"
    place.parent.mkdir()
    stored = MAKERS[suffix](TEXT)
    chooser = random.Random(0)
    outcomes = set()
    for at in [0, 1, 2, 3, len(stored) - 1, *chooser.sample(range(len(stored)), 60)]:
        damaged = bytearray(stored)
        damaged[at] ^= 1 << chooser.randrange(8)
        place.write_bytes(bytes(damaged))
        try:
            found = fetch.get(
                data.entry("tiny"), data.entry("tiny").files[0], mirror=str(place.parent)
            )
        except DataError:
            outcomes.add("refused")
            with pytest.raises(DataError, match=r"tiny: tiny\.svm|can't be uncompressed"):
                data.ensure("tiny", mirror=str(place.parent))
            assert nothing_cached()
        else:
            outcomes.add("same")
            assert found.content == TEXT
    assert "refused" in outcomes


def test_a_cut_off_archive_is_refused(use_registry, tmp_path):
    use_registry(registry_text(sha=""))  # even where no checksum would tell
    (tmp_path / "mirror").mkdir()
    for suffix in (".xz", ".bz2", ".gz"):
        place = tmp_path / "mirror" / f"tiny.svm{suffix}"
        place.write_bytes(MAKERS[suffix](TEXT)[:-20])
        with pytest.raises(DataError, match=f"tiny.svm{suffix} can't be uncompressed"):
            data.ensure("tiny", mirror=str(tmp_path / "mirror"))
        place.unlink()
    assert nothing_cached()


def test_a_mirror_that_does_not_exist(use_registry, tmp_path):
    use_registry(registry_text(url="https://example.org/tiny.svm"))
    with pytest.raises(DataUnavailableError, match=r"tiny: the mirror .*gone is not a folder"):
        data.ensure("tiny", mirror=str(tmp_path / "gone"))


def test_a_run_never_goes_beyond_its_mirror(use_registry, tmp_path, server):
    server.files["/tiny.svm"] = TEXT
    use_registry(registry_text(url=f"{server.url}/tiny.svm"))
    (tmp_path / "mirror").mkdir()
    with pytest.raises(DataUnavailableError) as raised:
        data.ensure("tiny", mirror=str(tmp_path / "mirror"))
    assert str(raised.value) == (
        "tiny: the mirror has no tiny.svm; run 'svmbench fetch tiny' on a machine with internet"
        f" access ({server.url}/tiny.svm)"
    )
    assert data.why_unavailable("tiny", mirror=str(tmp_path / "mirror")) == str(raised.value)
    assert server.seen == []
    assert (
        data.ensure("tiny", mirror=str(tmp_path / "mirror"), official=True)["source"] == "official"
    )


def test_offline_is_a_sentence_and_no_wait(use_registry, monkeypatch):
    use_registry(registry_text(url="http://svmbench.invalid/tiny.svm"))
    waited: list[float] = []
    monkeypatch.setattr(download.time, "sleep", waited.append)
    with pytest.raises(
        DataUnavailableError, match=r"tiny: tiny.svm can't be downloaded: .*invalid"
    ):
        data.ensure("tiny", official=True)
    assert sum(waited) < 10
    monkeypatch.setenv("SVMBENCH_OFFLINE", "1")
    with pytest.raises(DataUnavailableError, match="tiny: it is not cached, and downloads are"):
        data.ensure("tiny")


def test_packets_that_vanish_are_waited_for_twice(use_registry, monkeypatch):
    use_registry(registry_text(url="https://example.org/tiny.svm"))
    asked = []

    def vanish(url, **options):
        asked.append(options["timeout"])
        raise requests.ConnectTimeout("no answer")

    monkeypatch.setattr(requests, "get", vanish)
    with pytest.raises(DataUnavailableError, match="the server did not answer in time"):
        data.ensure("tiny")
    assert asked == [(download.CONNECT_TIMEOUT_S, download.READ_TIMEOUT_S)] * 2
    assert download.CONNECT_TIMEOUT_S <= 5


def test_a_refused_connection_is_a_sentence(use_registry):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    use_registry(registry_text(url=f"http://127.0.0.1:{port}/tiny.svm"))
    with pytest.raises(DataUnavailableError, match="the connection was refused"):
        data.ensure("tiny")


def test_no_official_address_is_said(use_registry, tmp_path):
    use_registry(registry_text())
    with pytest.raises(DataUnavailableError, match=r"there is no official address for tiny\.svm"):
        data.ensure("tiny", official=True)
    assert data.status("tiny") == "nowhere"
    (tmp_path / "empty").mkdir()
    assert "it has no official address" in data.why_unavailable("tiny", str(tmp_path / "empty"))


# ---------------------------------------------------------------- over HTTP


def test_a_mirror_url_is_asked_by_name_with_and_without_folder(use_registry, server):
    server.files["/m/uci/tiny/tiny.svm.xz"] = lzma.compress(TEXT)
    use_registry(registry_text(more=', folder = "uci/tiny"'))
    assert data.ensure("tiny", mirror=f"{server.url}/m/")["verified"] == "sha256"
    use_registry(registry_text(more=', aliases = ["other-name"]').replace("[tiny]", "[small]"))
    server.files["/m/other-name"] = TEXT
    assert data.ensure("small", mirror=f"{server.url}/m")["source"] == "mirror"


def test_a_query_of_the_mirror_url_stays_behind_the_path(use_registry, server):
    server.files["/m/tiny.svm?key=hidden"] = TEXT
    use_registry(registry_text())
    mirror = server.url.replace("//", "//me:secret@") + "/m/?key=hidden#part"
    assert data.ensure("tiny", mirror=mirror)["source"] == "mirror"


def secret_mirrors(server):
    """Return addresses that fail in all the ways that one can."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{taken.getsockname()[1]}"
    ways = [
        "http://me:secret@{}",
        "http://me:secret@{}/m?key=hidden",
        "http://{}/m/?key=secret#secret",
    ]
    hosts = [server.url.removeprefix("http://"), closed, "[::1", "no where", "x:secret/y:hidden@z"]
    found = [way.format(host) for way in ways for host in hosts]
    return [
        *found,
        "ftp://me:secret@host/m?key=hidden",
        "http://me:se?cret@host",
        "https://a:hid@@b/@",
    ]


def is_told(text):
    return [word for word in ("secret", "hidden", "cret", "hid@", "me:") if word in text]


def test_a_password_in_an_address_is_shown_nowhere(use_registry, server, monkeypatch, tmp_path):
    """Not in the sentences, nor in the plan, the records and the table of a run, nor by doctor."""
    use_registry(registry_text(url="http://me:secret@127.0.0.1:9/tiny.svm?key=hidden"))
    server.faults["/m/tiny.svm.xz?key=hidden"] = ["500"] * 9
    server.files["/m/tiny.svm.xz?key=hidden"] = TEXT
    config = write_config(tmp_path, ["alsvm-batch"], datasets=["tiny"])
    for number, mirror in enumerate(secret_mirrors(server)):
        with pytest.raises(DataUnavailableError) as raised:
            data.ensure("tiny", mirror=mirror, official=bool(number % 2))
        assert not is_told(str(raised.value)), (mirror, str(raised.value))
        outcome = data.fetch_many(["tiny"], mirror)[0]
        assert not is_told(f"{outcome.reason} {outcome.url}"), mirror
        monkeypatch.setenv("SVMBENCH_MIRROR", mirror)
        assert not is_told(str([*doctor._mirror()])), mirror
    out = tmp_path / "out"
    ended = svmbench("run", config, "--output", out)
    assert "tiny" in ended.said
    assert not is_told(ended.said + svmbench("describe", "tiny").said)
    for place in [place for place in out.rglob("*") if place.is_file()]:
        assert not is_told(place.read_text(errors="replace")), place


def test_a_shown_address_keeps_what_is_not_secret():
    same = ("/a/folder", "http://host/a/b", "https://host:8080/p@1/x:y", "http://[::1]:80/a")
    for address in same:
        assert shown_address(address) == address
    assert shown_address("http://me:pw@host:1/a?b=c#d") == "http://host:1/a"


def test_a_mirror_url_without_the_file(use_registry, server):
    use_registry(registry_text(url="https://example.org/tiny.svm"))
    with pytest.raises(
        DataUnavailableError, match=r"the mirror has no tiny\.svm; run 'svmbench fetch"
    ):
        data.ensure("tiny", mirror=server.url)


@pytest.mark.parametrize("suffix", MAKERS)
def test_the_official_address_of_each_kind(use_registry, server, suffix):
    server.files[f"/d/tiny.svm{suffix}"] = MAKERS[suffix](TEXT)
    use_registry(registry_text(url=f"{server.url}/d/tiny.svm{suffix}"))
    assert data.ensure("tiny")["source"] == "official"


def test_a_member_of_an_archive(use_registry, server):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside/tiny.svm", TEXT)
    server.files["/all.zip"] = held.getvalue()
    url = f"{server.url}/all.zip"
    use_registry(registry_text(url=url, more=', member = "inside/tiny.svm"'))
    assert data.ensure("tiny")["verified"] == "sha256"
    use_registry(registry_text(url=url, more=', member = "tiny.svm"').replace("[tiny]", "[less]"))
    with pytest.raises(DataError, match=r"all.zip has no member 'tiny.svm'"):
        data.ensure("less")


def test_half_a_file_is_resumed(use_registry, server):
    server.files["/tiny.svm"] = TEXT
    server.faults["/tiny.svm"] = ["half"]
    use_registry(registry_text(url=f"{server.url}/tiny.svm"))
    said = []
    data.ensure("tiny", progress=lambda name, done, total: said.append((name, done, total)))
    half = len(TEXT) // 2
    assert server.seen == [
        ("/tiny.svm", None, half),
        ("/tiny.svm", f"bytes={half}-", len(TEXT) - half),
    ]
    assert said[-1] == ("tiny.svm", len(TEXT), len(TEXT))


def begun(use_registry, server, monkeypatch, text, **more):
    """Leave the first half of a file, as a process that is killed then does."""
    use_registry(registry_text(url=f"{server.url}/tiny.svm", **more))
    server.files["/tiny.svm"] = text
    server.faults["/tiny.svm"] = ["half"]
    with monkeypatch.context() as patch:
        patch.setattr(download, "MAX_ATTEMPTS", 1)
        with pytest.raises(DataUnavailableError, match="the connection"):
            data.ensure("tiny")
    server.seen.clear()
    return len(text) // 2


def test_a_killed_download_is_resumed_by_the_next_process(use_registry, server, monkeypatch):
    half = begun(use_registry, server, monkeypatch, TEXT)
    assert data.ensure("tiny")["verified"] == "sha256"
    assert server.seen == [("/tiny.svm", f"bytes={half}-", len(TEXT) - half)]
    folder = fetch._downloads("official", f"{server.url}/tiny.svm")
    assert {path.name for path in folder.iterdir()} - {"tiny.svm.lock"} == {"tiny.svm"}


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("longer", [True, False])
def test_half_of_one_version_is_not_joined_to_half_of_another(
    use_registry, server, monkeypatch, tells, heeds, longer
):
    server.handler.tells_version, server.handler.heeds_if_range = tells, heeds
    lines = TEXT.splitlines(keepends=True)
    other = b"".join([lines[-1], *lines[:-1]]) + (b"# longer\n" if longer else b"")
    begun(use_registry, server, monkeypatch, other, sha="")
    server.files["/tiny.svm"] = TEXT
    data.ensure("tiny")
    folder = fetch._downloads("official", f"{server.url}/tiny.svm")
    assert (folder / "tiny.svm").read_bytes() == TEXT


def test_a_file_that_changes_between_two_attempts_is_begun_again(use_registry, server, monkeypatch):
    server.handler.heeds_if_range = False
    use_registry(registry_text(url=f"{server.url}/tiny.svm", sha=""))
    server.files["/tiny.svm"] = TEXT[::-1]
    server.faults["/tiny.svm"] = ["half"]
    monkeypatch.setattr(time, "sleep", lambda _: server.files.update({"/tiny.svm": TEXT}))
    data.ensure("tiny")
    folder = fetch._downloads("official", f"{server.url}/tiny.svm")
    assert (folder / "tiny.svm").read_bytes() == TEXT


@pytest.mark.parametrize("faults", [["no-range"], ["wrong-range"]])
def test_a_server_that_can_not_resume_sends_it_all_again(use_registry, server, faults):
    server.files["/tiny.svm"] = TEXT
    server.faults["/tiny.svm"] = ["half", *faults]
    use_registry(registry_text(url=f"{server.url}/tiny.svm"))
    assert data.ensure("tiny")["verified"] == "sha256"


def test_a_partial_file_that_is_too_long_is_thrown_away(use_registry, server):
    server.files["/tiny.svm"] = TEXT
    use_registry(registry_text(url=f"{server.url}/tiny.svm"))
    folder = fetch._downloads("official", f"{server.url}/tiny.svm")
    folder.mkdir(parents=True)
    (folder / "tiny.svm.part").write_bytes(TEXT + b"more")
    assert data.ensure("tiny")["verified"] == "sha256"


def test_a_500_is_tried_again(use_registry, server):
    server.files["/tiny.svm"] = TEXT
    server.faults["/tiny.svm"] = ["500", "500"]
    use_registry(registry_text(url=f"{server.url}/tiny.svm"))
    assert data.ensure("tiny")["verified"] == "sha256"
    assert len(server.seen) == 3


def test_a_500_for_ever_is_a_sentence(use_registry, server):
    server.files["/tiny.svm"] = TEXT
    server.faults["/tiny.svm"] = ["500"] * 99
    use_registry(registry_text(url=f"{server.url}/tiny.svm"))
    with pytest.raises(DataUnavailableError, match=r"the server answered 500 .*/tiny.svm\)"):
        data.ensure("tiny")
    assert len(server.seen) == download.MAX_ATTEMPTS
    assert nothing_cached()


def test_a_stalled_connection_ends_and_is_resumed(use_registry, server):
    server.files["/tiny.svm"] = TEXT
    server.faults["/tiny.svm"] = ["stall"]
    use_registry(registry_text(url=f"{server.url}/tiny.svm"))
    assert data.ensure("tiny")["verified"] == "sha256"
    assert len(server.seen) == 2  # who waits until the server goes on asks once


def test_wrong_bytes_are_refused_and_fetched_anew_next_time(use_registry, server):
    server.files["/tiny.svm"] = TEXT.replace(b"3:7", b"3:8", 1)
    use_registry(registry_text(url=f"{server.url}/tiny.svm"))
    with pytest.raises(DataError, match=r"tiny.svm has the sha256 .* instead of .*: the file is"):
        data.ensure("tiny")
    assert nothing_cached()
    server.files["/tiny.svm"] = TEXT
    assert data.ensure("tiny")["verified"] == "sha256"


def test_the_published_md5_of_the_official_file(use_registry, server):
    stored = bz2.compress(TEXT)
    server.files["/tiny.svm.bz2"] = stored
    md5 = hashlib.md5(stored).hexdigest()
    url = f"{server.url}/tiny.svm.bz2"
    use_registry(registry_text(url=url, sha="", more=f', md5 = "{"0" * 32}"'))
    with pytest.raises(DataError, match=r"tiny\.svm has the md5"):
        data.ensure("tiny")
    use_registry(registry_text(url=url, sha="", more=f', md5 = "{md5}"'))
    assert data.ensure("tiny")["verified"] == "md5"


def test_a_rebuilt_copys_checksum_does_not_bind_the_official_file(use_registry, server, tmp_path):
    official = TEXT.replace(b"\n", b" \n")
    server.files["/tiny.svm"] = official
    text = registry_text(url=f"{server.url}/tiny.svm", more=', rebuilt = "spaces were cut"')
    use_registry(text)
    assert data.ensure("tiny")["verified"] == "unverified"
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "tiny.svm").write_bytes(official)
    use_registry(text.replace("[tiny]", "[small]"))
    with pytest.raises(DataError, match="has the sha256"):  # the mirror's copy it does bind
        data.ensure("small", mirror=str(tmp_path / "mirror"))


# ---------------------------------------------------------------- unverified


def test_an_unverified_file_is_recorded_at_its_first_fetch_and_binding_then(use_registry, server):
    server.files["/tiny.svm"] = TEXT
    use_registry(registry_text(url=f"{server.url}/tiny.svm", sha=""))
    facts = data.ensure("tiny")
    assert facts["verified"] == "unverified"
    assert facts["files"] == {"tiny.svm": SHA}
    known = json.loads((paths.cache_dir() / "first-fetch-hashes.json").read_text())
    assert list(known.values()) == [SHA]
    # The same file for another set, and by now it is another one, with equal counts.
    server.files["/tiny.svm"] = TEXT.replace(b"3:7", b"3:8", 1)
    for place in paths.cache_dir().glob("downloads/*/tiny.svm"):
        place.unlink()
    use_registry(registry_text(url=f"{server.url}/tiny.svm", sha="").replace("[tiny]", "[less]"))
    with pytest.raises(DataError, match="the file is damaged or is another version"):
        data.ensure("less")


def test_an_unverified_file_whose_counts_differ_leaves_nothing(use_registry, server):
    server.files["/tiny.svm"] = TEXT[: TEXT.rindex(b"\n", 0, -1) + 1]
    use_registry(registry_text(url=f"{server.url}/tiny.svm", sha=""))
    with pytest.raises(DataError, match=r"tiny: n_samples is 299 instead of 300; counts is"):
        data.ensure("tiny")
    assert nothing_cached()
    assert not (paths.cache_dir() / "first-fetch-hashes.json").exists()


# ---------------------------------------------------------------- many


def test_fetch_many_goes_on_after_a_failure(use_registry, server):
    server.files["/tiny.svm"] = TEXT
    text = registry_text(url=f"{server.url}/tiny.svm")
    lost = registry_text(url=f"{server.url}/lost.svm", sha="").replace("[tiny]", "[lost]")
    damaged = registry_text(url=f"{server.url}/tiny.svm", sha="0" * 64)
    use_registry(lost + damaged.replace("[tiny]", "[damaged]") + text)
    events, done = [], []
    outcomes = data.fetch_many(
        ["lost", "damaged", "tiny", "tiny[:5]"], on_event=events.append, on_done=done.append
    )
    assert [(o.name, o.status, o.ok) for o in outcomes] == [
        ("lost", "unavailable", False),
        ("damaged", "failed", False),
        ("tiny", "prepared", True),
    ]
    assert outcomes[0].url in outcomes[0].sentence
    assert "prepared in" in outcomes[2].sentence
    assert done == outcomes
    assert {event.kind for event in events} == {"start", "bytes", "done"}
    again = data.fetch_many(["tiny"])
    assert [o.status for o in again] == ["cached"]


def test_sets_of_the_same_files_read_them_once(use_registry, tmp_path, monkeypatch):
    half = registry_text().replace("= 300", "= 150").replace("200, 100", "100, 50")
    fewer = registry_text().replace("n_features = 3", "n_features = 2")
    use_registry(
        half.replace("tiny]", "half]") + "derivation.rows = [0, 150]\n" + registry_text()
        + fewer.replace("tiny]", "fewer]") + "derivation.drop_features = [3]\n"
    )  # fmt: skip
    (tmp_path / "tiny.svm").write_bytes(TEXT)
    read = []
    usual = prepare.read_entry_files
    monkeypatch.setattr(
        prepare, "read_entry_files", lambda one, got: read.append(one.name) or usual(one, got)
    )
    outcomes = data.fetch_many(["half", "tiny", "fewer"], str(tmp_path))
    assert read == ["half", "fewer"]  # a dropped feature changes what is expected of the file
    assert [outcome.facts["n_samples"] for outcome in outcomes] == [150, 300, 300]
    shutil.rmtree(paths.cache_dir())
    assert [data.ensure(o.name, str(tmp_path)) for o in outcomes] == [o.facts for o in outcomes]


def test_other_files_are_read_anew(use_registry, tmp_path):
    other = registry_text(sha="").replace("tiny", "other").replace("200, 100", "100, 200")
    use_registry(registry_text() + other)
    (tmp_path / "tiny.svm").write_bytes(TEXT)
    (tmp_path / "other.svm").write_bytes(TEXT.translate(bytes.maketrans(b"+-", b"-+")))
    files_read = data.FilesRead()
    facts = [data.ensure(name, str(tmp_path), files_read=files_read) for name in ("tiny", "other")]
    assert [one["counts"] for one in facts] == [[200, 100], [100, 200]]


def test_sets_of_the_same_files_make_a_group():
    names = ["mnist-1-vs-2", "circle", "mnist-1-vs-3", "gauss-1"]
    assert many._by_files(names) == [["mnist-1-vs-2", "mnist-1-vs-3"], ["circle"], ["gauss-1"]]


@pytest.mark.slow
def test_fetch_many_in_several_processes(monkeypatch):
    names = ["synthetic-linear", "breast-cancer", "gauss-1", "circle"]
    outcomes = data.fetch_many(names, jobs=2)
    assert [(o.name, o.status) for o in outcomes] == [(name, "prepared") for name in names]
    assert all(prepare.is_cached(data.entry(name)) for name in names)


def test_fetch_many_checks_all_names_first(use_registry):
    use_registry(registry_text())
    with pytest.raises(UnknownNameError, match="unknown data set 'tine'; did you mean 'tiny'"):
        data.fetch_many(["tiny", "tine"])


def test_a_note_on_a_partial_file_is_small_or_no_note(tmp_path):
    said = {"etag": "a", "modified": "b", "total": 3}
    place = tmp_path / "note"
    for n_blanks, is_read in ((0, True), (16_000, True), (17_000, False)):
        place.write_text(json.dumps(said) + " " * n_blanks)
        assert (download._read_version(place) is not None) is is_read


def test_an_existing_file_is_downloaded_again_only_if_asked(tmp_path, server):
    url = f"{server.url}/tiny.svm"
    for content, again, held in ((b"1", False, b"1"), (b"22", False, b"1"), (b"333", True, b"333")):
        server.files["/tiny.svm"] = content
        found = download.download(url, tmp_path, None, None, again=again)
        assert found.place.read_bytes() == held
        assert found.is_new is (held == content)
