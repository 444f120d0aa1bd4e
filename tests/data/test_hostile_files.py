"""Files, servers and registries that mean harm: nothing escapes, nothing is without end."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import socket
import threading
import time
import tracemalloc
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.sparse as sp
from test_fetch import SHA, TEXT, registry_text

from svmbench import data
from svmbench.base import paths
from svmbench.base.errors import ConfigError, DataError, DataUnavailableError
from svmbench.data import (
    archives,
    dataset,
    derive,
    download,
    entries,
    fetch,
    libsvm,
    prepare,
    registry,
    store,
    tables,
    text_blocks,
)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(download, "READ_TIMEOUT_S", 2.0)
    monkeypatch.setattr(download, "RETRY_PAUSE_S", 0.01)
    monkeypatch.setattr(download, "MAX_ATTEMPTS", 2)


@pytest.fixture
def serve():
    """Serve with a function that is given the handler; return the address."""
    running = []

    def put(answer):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                answer(self)

            def log_message(self, *args):
                pass

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        http.daemon_threads = True
        threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
        running.append(http)
        return f"http://127.0.0.1:{http.server_address[1]}"

    yield put
    for http in running:
        http.shutdown()
        http.server_close()


def body(content, length=None):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", length or str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/data/%2e%2e%2f%2e%2e%2fprecious",
        "https://example.org/data/..%2F..%2Fprecious",
        "https://example.org/data/a%5C..%5Cprecious",
        "https://example.org/data/..",
        "https://example.org/data/",
        "https://example.org/data/a%00b",
        "https://example.org/data/a%1b%5B2J",
        "https://example.org/" + "a" * 300,
        "file:///etc/passwd",
        "https://example.org/a b",
        "http://[",
    ],
)
def test_an_address_that_names_no_plain_file_is_refused(use_registry, tmp_path, url):
    use_registry(registry_text(url=url))
    with pytest.raises(ConfigError, match=r"tiny: files\.0\.url"):
        data.names()
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    precious = tmp_path / "a" / "precious"
    precious.write_text("mine")
    with pytest.raises(DataUnavailableError):
        download.download(url, folder)
    assert precious.read_text() == "mine"
    assert [place for place in folder.iterdir() if place.suffix != ".lock"] == []


def test_a_registered_name_stays_in_the_cache(use_registry):
    for name in ("../../x", "/x", "a/b", "a\\\\b", "..", ".x", "-x", "a b", "a[b", "x" * 300):
        use_registry(registry_text().replace("[tiny]", f'["{name}"]'))
        with pytest.raises(ConfigError, match="name"):
            data.names()


@pytest.mark.parametrize(
    "field", ['name = "../x"', 'folder = "../x"', 'folder = "/x"', 'aliases = ["a/b"]']
)
def test_a_file_of_an_entry_stays_in_its_folder(use_registry, field):
    text = registry_text(more="" if field.startswith("name") else f", {field}")
    use_registry(text.replace('name = "tiny.svm"', field) if field.startswith("name") else text)
    with pytest.raises(ConfigError, match=r"tiny: files\.0"):
        data.names()


def test_what_lay_there_is_replaced_by_what_is_right_and_by_nothing_else(use_registry, serve):
    served = [b"wrong too"]
    url = serve(lambda handler: body(served[0])(handler)) + "/tiny.svm"
    use_registry(registry_text(url=url))
    place = fetch._downloads("official", url) / "tiny.svm"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"what was there")

    served[0] = b""
    with pytest.raises(DataError):
        data.ensure("tiny")
    place.write_bytes(b"what was there")
    served[0] = TEXT
    assert data.ensure("tiny")["verified"] == "sha256"
    assert place.read_bytes() == TEXT


def test_what_lay_there_stays_when_nothing_better_comes(use_registry):
    use_registry(registry_text(url="http://127.0.0.1:9/tiny.svm"))
    place = fetch._downloads("official", "http://127.0.0.1:9/tiny.svm") / "tiny.svm"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"what was there")
    with pytest.raises(DataUnavailableError, match="refused"):
        data.ensure("tiny")
    assert place.read_bytes() == b"what was there"


# ---------------------------------------------------------------- ceilings


def test_a_body_without_end_is_cut_off(serve, tmp_path):
    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(1 << 16))

    with pytest.raises(DataUnavailableError, match="more than the allowed 1,000,000 bytes"):
        download.download(serve(endless) + "/x", tmp_path / "in", max_bytes=1_000_000)
    assert [place.suffix for place in (tmp_path / "in").iterdir()] == [".lock"]


def test_a_body_that_announces_nothing_may_have_its_ceiling_and_no_byte_more(serve, tmp_path):
    def long(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(bytes(100_000))

    url = serve(long) + "/x"
    found = download.download(url, tmp_path / "fits", max_bytes=100_000)
    assert found.place.read_bytes() == bytes(100_000)
    with pytest.raises(DataUnavailableError, match="more than the allowed 99,999 bytes"):
        download.download(url, tmp_path / "does-not", max_bytes=99_999)


def test_a_body_that_announces_too_much_is_not_begun(serve, tmp_path):
    url = serve(body(b"abc", str(10**12))) + "/x"
    with pytest.raises(DataUnavailableError, match="more than the allowed 1,000,000 bytes"):
        download.download(url, tmp_path, max_bytes=1_000_000)


@pytest.mark.parametrize("length", ["lots", "-3", "1e3", "³", "9" * 5000])
def test_a_length_that_is_no_number_is_not_believed(serve, tmp_path, length):
    url = serve(body(TEXT, length.encode("latin-1", "replace").decode("latin-1"))) + "/x"
    with contextlib.suppress(DataUnavailableError):
        assert download.download(url, tmp_path).place.read_bytes() == TEXT


@pytest.mark.parametrize("where", ["head", "body"])
def test_bytes_that_trickle_are_not_waited_for(serve, tmp_path, monkeypatch, where):
    monkeypatch.setattr(download, "HEAD_TIMEOUT_S", 0.6)
    monkeypatch.setattr(download, "PACE_CHECK_AFTER_S", 0.6)
    over = threading.Event()

    served: list[int] = []

    def trickle(handler):
        if where == "body":
            handler.send_response(200)
            handler.end_headers()
        while not over.is_set():
            handler.wfile.write(b"H")
            handler.wfile.flush()
            served.append(1)
            time.sleep(0.05)

    try:
        with pytest.raises(DataUnavailableError, match=r"too slowly|stalled"):
            download.download(serve(trickle) + "/x", tmp_path)
    finally:
        over.set()
    assert len(served) < 1200  # what it serves in a minute


def test_a_transfer_ends_at_its_deadline(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "TRANSFER_TIMEOUT_S", -1.0)
    with pytest.raises(DataUnavailableError, match="was not complete after"):
        download.download(serve(body(TEXT)) + "/x", tmp_path)


def packed(kind, pieces, piece=bytes(1 << 20)):
    """Return an archive of zeros that unpacks to so many pieces."""
    if kind == "bz2":  # streams one after the other are one file
        return bz2.compress(piece * 8) * (pieces // 8)
    if kind == "gz":
        return gzip.compress(piece * 8, compresslevel=9) * (pieces // 8)
    if kind == "xz":
        return lzma.compress(piece * pieces)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", piece * pieces)
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bz2", "gz", "xz", "zip"])
def test_an_archive_that_unpacks_to_far_more_than_it_is_ends_early(kind, monkeypatch):
    bomb = packed(kind, 128)
    assert len(bomb) < 1 << 20
    produced = 0
    bounded = archives._bounded

    def counting(pieces, name, most):
        def watched():
            nonlocal produced
            for piece in pieces:
                produced += len(piece)
                yield piece

        return bounded(watched(), name, most)

    monkeypatch.setattr(archives, "_bounded", counting)
    monkeypatch.setattr(archives, "BYTES_ALLOWED_AT_ANY_RATIO", 4 << 20)
    monkeypatch.setattr(archives, "HIGHEST_UNPACKING_RATIO", 10)
    with pytest.raises(DataError, match=r"has more than the allowed .* bytes"):
        archives.decompressed(bomb, f"x.{kind}", "inside" if kind == "zip" else None)
    assert produced <= max(4 << 20, 10 * len(bomb)) + (8 << 20)


@pytest.mark.parametrize("kind", ["bz2", "gz", "xz"])
def test_streams_one_after_the_other_are_one_file(kind):
    pack = {"bz2": bz2.compress, "gz": gzip.compress, "xz": lzma.compress}[kind]
    assert archives.decompressed(pack(b"one\n") + pack(b"two\n"), f"x.{kind}") == b"one\ntwo\n"
    assert archives.decompressed(pack(b""), f"x.{kind}") == b""
    with pytest.raises(DataError, match="can't be uncompressed"):
        archives.decompressed(b"", "x.zip", "inside")


@pytest.mark.parametrize("suffix", [".bz2", ".gz", ".xz"])
def test_a_damaged_stream_after_a_good_one_is_an_error(suffix, tmp_path):
    pack = {".bz2": bz2.compress, ".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    parts = [pack(b"".join(b"%d 1:%d\n" % (i % 2, i) for i in range(3000))) for _ in range(3)]
    path = tmp_path / f"x.svm{suffix}"
    path.write_bytes(b"".join(parts))
    assert data.load_file(path).facts["n_samples"] == 9000
    assert sum(len(y) for _, y in data.open_blocks(path)) == 9000
    start, end = len(parts[0]), len(parts[0]) + len(parts[1])
    # The first bytes say where a stream begins; the last ones hold its checksum.
    for at in (start, start + 1, start + 3, (start + end) // 2, end - 3):
        content = bytearray(b"".join(parts))
        content[at] ^= 16
        path.write_bytes(content)
        if suffix == ".gz" and at == start + 3:  # a flag that the format reserves
            continue
        with pytest.raises(DataError, match="can't be uncompressed"):
            data.load_file(path)
        with pytest.raises(DataError, match=r"can't be read|is cut off"):
            list(data.open_blocks(path))
    whole = b"".join(parts)
    for content in (whole + b"1 1:1\n", whole[:-1], whole[: end - 9], whole[: end + 1]):
        path.write_bytes(content)
        with pytest.raises(DataError, match="can't be uncompressed"):
            data.load_file(path)
        with pytest.raises(DataError, match=r"can't be read|is cut off"):
            list(data.open_blocks(path))
    path.write_bytes(parts[0] + bytes(512))  # padded to the blocks of a tape or an xz file
    assert data.load_file(path).facts["n_samples"] == 3000
    assert sum(len(y) for _, y in data.open_blocks(path)) == 3000


def test_an_entry_states_how_much_its_file_may_hold(use_registry, tmp_path):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "tiny.svm.gz").write_bytes(gzip.compress(TEXT))
    use_registry(registry_text(more=f", max_bytes = {len(TEXT) - 1}"))
    with pytest.raises(DataError, match=f"more than the allowed {len(TEXT) - 1:,} bytes"):
        data.ensure("tiny", mirror=str(tmp_path / "mirror"))
    use_registry(registry_text(more=f", max_bytes = {len(TEXT)}"))
    assert data.ensure("tiny", mirror=str(tmp_path / "mirror"))["n_samples"] == 300


def test_an_encrypted_archive_is_a_sentence():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("inside", TEXT)
    content = bytearray(file.getvalue())
    for sign, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(sign) + at] |= 1
    with pytest.raises(DataError, match="it is encrypted"):
        archives.decompressed(bytes(content), "x.zip", "inside")


@pytest.mark.parametrize("what", ["fifo", "device", "socket", "folder"])
def test_what_is_no_regular_file_is_not_read(use_registry, tmp_path, monkeypatch, what):
    use_registry(registry_text())
    place = tmp_path / "m" / "tiny.svm"
    place.parent.mkdir()
    if what == "fifo":
        os.mkfifo(place)
    elif what == "device":
        place.symlink_to("/dev/zero")
    elif what == "socket":
        monkeypatch.chdir(place.parent)  # a socket's path has 108 bytes at most
        socket.socket(socket.AF_UNIX).bind("tiny.svm")
    else:
        place.mkdir()
    with pytest.raises(DataError):
        data.ensure("tiny", mirror=str(place.parent))
    with pytest.raises(DataError, match="can't be read"):
        data.load_file(place)


# ---------------------------------------------------------------- the cache


def prepared(use_registry, tmp_path):
    use_registry(registry_text())
    (tmp_path / "mirror").mkdir(exist_ok=True)
    (tmp_path / "mirror" / "tiny.svm").write_bytes(TEXT)
    data.ensure("tiny", mirror=str(tmp_path / "mirror"))
    return prepare._folder(data.entry("tiny"))


@pytest.mark.parametrize("large", [False, True])
def test_a_byte_that_changed_is_noticed(use_registry, tmp_path, monkeypatch, large):
    folder = prepared(use_registry, tmp_path)
    monkeypatch.setattr(store, "_hashed", set())
    if large:
        monkeypatch.setattr(store, "MAX_BYTES_HASHED_AT_OPENING", 0)
    before = np.array(data.load("tiny").X)
    for name in ("X.npy", "y.npy"):
        content = bytearray((folder / name).read_bytes())
        content[-3] ^= 4
        (folder / name).write_bytes(content)
        with pytest.warns(UserWarning, match="tiny: the prepared copy was damaged"):
            held = data.load("tiny", mirror=str(tmp_path / "mirror"))
        assert np.array_equal(held.X, before)
        assert held.facts["sha256"] == store._identity(
            {"X": np.array(held.X), "y": np.array(held.y)}, {"X": list(held.X.shape)}
        )


def test_a_large_set_is_hashed_once_in_a_process_and_not_by_workers(
    use_registry, tmp_path, monkeypatch
):
    prepared(use_registry, tmp_path)
    monkeypatch.setattr(store, "MAX_BYTES_HASHED_AT_OPENING", 0)
    monkeypatch.setattr(store, "_hashed", set())
    identity, calls = store._identity, []
    monkeypatch.setattr(store, "_identity", lambda *args: calls.append(1) or identity(*args))
    for _ in range(3):
        data.load("tiny")
    assert len(calls) == 1
    monkeypatch.setattr(store, "_trusts_large", True)
    monkeypatch.setattr(store, "_hashed", set())
    data.load("tiny")
    assert len(calls) == 1


DAMAGED_META = {
    "no facts": lambda meta: meta.pop("facts"),
    "no shapes": lambda meta: meta.pop("shapes"),
    "no sizes": lambda meta: meta.pop("sizes"),
    "sizes elsewhere": lambda meta: meta["sizes"].update({"../x": 1}),
    "no classes": lambda meta: meta["facts"].pop("classes"),
    "no sha256": lambda meta: meta["facts"].pop("sha256"),
    "no counts": lambda meta: meta["facts"].update(counts=None),
    "no X": lambda meta: meta["shapes"].pop("X"),
    "odd shape": lambda meta: meta["shapes"].update(X=[300]),
    "text shape": lambda meta: meta["shapes"].update(X=["a", "b"]),
    "other rows": lambda meta: meta["facts"].update(n_samples=7),
}


@pytest.mark.parametrize("damage", DAMAGED_META.values(), ids=list(DAMAGED_META))
def test_a_damaged_description_is_made_again(use_registry, tmp_path, damage):
    folder = prepared(use_registry, tmp_path)
    meta = json.loads((folder / "meta.json").read_text())
    damage(meta)
    (folder / "meta.json").write_text(json.dumps(meta))
    data.status("tiny")
    with pytest.warns(UserWarning, match="tiny: the prepared copy was damaged"):
        held = data.load("tiny", mirror=str(tmp_path / "mirror"))
    assert held.facts["counts"] == [200, 100]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b'{"mirror:tiny.svm": 3}', b"3"])
def test_a_damaged_list_of_hashes_is_begun_again(use_registry, tmp_path, content):
    use_registry(registry_text(sha=""))
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "tiny.svm").write_bytes(TEXT)
    place = paths.cache_dir() / "first-fetch-hashes.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    if content.startswith(b'{"'):
        data.ensure("tiny", mirror=str(tmp_path / "mirror"))
    else:
        with pytest.warns(UserWarning, match=r"hashes\.json was damaged and is written again"):
            data.ensure("tiny", mirror=str(tmp_path / "mirror"))
    assert json.loads(place.read_text()) == {"mirror:tiny.svm": SHA}


# ---------------------------------------------------------------- registries


REGISTRIES = {
    "no UTF-8": b'[x]\ntitle = "\xff"\n',
    "control character": registry_text().replace("Tiny", "Ti\\u001b[2Jny").encode(),
    "control character in a key": registry_text().encode() + b'"a\\u0007b" = 1\n',
    "long integer": b"[x]\nn_samples = " + b"9" * 5000,
    "large integer": registry_text().replace("n_samples = 300", f"n_samples = {10**30}").encode(),
    "deep": b"x = " + b"[" * 5000,
    "origin is a number": b"origin = 3\n",
    "origin of numbers": b"[origin]\na = 3\n",
    "entry is a number": b"x = 3\n",
    "entry is a list": b"[[x]]\na = 1\n",
    "based on a list": b"[x]\nbased_on = [1]\n",
    "origin is a list": b"[x]\norigin = [1]\n",
    "files is a number": b'[x]\norigin = "here"\nfiles = 3\n',
    "an infinite ratio": registry_text().encode() + b"density = inf\n",
    "a separator of several": registry_text().encode() + b'reading.separator = "(a+)+$"\n',
}


@pytest.mark.parametrize("content", REGISTRIES.values(), ids=list(REGISTRIES))
def test_a_registry_of_the_wrong_shape_is_sentences(tmp_path, monkeypatch, content):
    place = tmp_path / "own.toml"
    place.write_bytes(b'[origin.here]\nlicence = "none"\n' * content.startswith(b"[x") + content)
    monkeypatch.setenv(paths.FURTHER_REGISTRIES, str(place))
    with pytest.raises(ConfigError) as raised:
        data.names()
    assert all(said.startswith("own.toml") and said.isprintable() for said in raised.value.problems)


@pytest.mark.parametrize(
    "more", ['"nothing"', '"linear"\nparameters.n = -3', '"noise"\nparameters.q = 1']
)
def test_a_builtin_that_can_not_be_made_is_a_sentence(use_registry, more):
    use_registry(
        f'[made]\norigin = "here"\ntitle = "Made"\ntask = "binary"\nbuiltin = {more}\n'
        "n_samples = 3\nn_features = 3\n"
    )
    with pytest.raises(DataError, match="made: "):
        data.ensure("made")


# ---------------------------------------------------------------- work that grows too fast


def cpu_seconds(function):
    started = time.process_time()
    function()
    return time.process_time() - started


@pytest.mark.parametrize("line", [b"1 1:%sx\n", b"%sx 1:1\n", b"1 %sx:1\n", b"1 1:1e%sx\n"])
def test_a_long_word_of_digits_is_read_in_proportion_to_its_length(line):
    def refused(length):
        with pytest.raises(DataError, match="line 1"):
            libsvm.parse_libsvm(line % (b"1" * length))

    refused(10)
    assert cpu_seconds(lambda: refused(400_000)) < 1.5


def test_as_many_classes_as_rows_take_no_longer():
    n = 60_000
    part = derive.LabelledRows(np.ones((n, 1)), np.arange(float(n)))

    def describe():
        derived = derive.derive("x", part, None, entries.Derivation())
        return dataset.described(derived, {"sha256": ""})

    assert cpu_seconds(describe) < 2.0
    with pytest.raises(DataError, match="too many to search for a pair"):
        derive.derive("x", part, None, entries.Derivation(select_pair_of=2))


def test_one_hot_encoding_has_a_bound():
    from svmbench.data import userfile

    content = b"".join(b"w%d,%d\n" % (i, i % 2) for i in range(2000))
    reading = entries.Reading(format="table", encode={"1": "one-hot"})
    with pytest.raises(DataError, match="2,000 different words"):
        userfile.parse_file(content, "x.csv", reading)


def test_a_label_is_no_wider_in_memory_for_another_ones_length():
    labels = np.array(["x" * 200, *["a", "b"] * 50_000], dtype=object)
    words = derive.label_words(labels)
    assert words.tolist() == labels.tolist()
    assert words.nbytes == 8 * len(labels)  # NumPy's own texts would take 80 MB
    numbers = derive.label_words(np.array([1.2345678901234567e-300, *[1.0] * 1000]))
    assert numbers.nbytes == 8 * 1001


@pytest.mark.parametrize("reader", ["whole", "blocks"])
def test_a_label_that_is_a_sentence_is_refused(tmp_path, reader):
    place = tmp_path / "x.csv"

    def read(length):
        place.write_text("1,a\n" * 20 + "2," + "x" * length + "\n")
        return list(data.open_blocks(place)) if reader == "blocks" else data.load_file(place)

    assert read(derive.MAX_LABEL_CHARS)
    with pytest.raises(DataError, match="a label has 201 characters, but at most 200 are allowed"):
        read(derive.MAX_LABEL_CHARS + 1)


def test_a_table_has_no_end_of_columns(monkeypatch):
    monkeypatch.setattr(tables, "MAX_TABLE_COLUMNS", 100)
    for separator in (",", "whitespace"):
        sign = {"whitespace": " "}.get(separator, separator)
        reading = entries.Reading(format="table", separator=separator, skip_lines=1)
        for number in (100, 101):
            content = ("x\n\n" + sign.join(["1"] * number) + "\n").encode()
            if number == 100:
                assert tables.read_table(content, "x.csv", reading).shape == (1, 100)
            else:
                with pytest.raises(DataError, match="has 101 columns; a table may have 100"):
                    tables.read_table(content, "x.csv", reading)
                with pytest.raises(DataError, match="has 101 columns; a table may have 100"):
                    next(text_blocks.table_blocks([content[3:]], "x.csv", None, reading))


@pytest.mark.parametrize("reader", ["whole", "blocks"])
@pytest.mark.parametrize("ending", ["csv", "svm"])
def test_a_line_has_a_greatest_length(tmp_path, monkeypatch, reader, ending):
    monkeypatch.setattr(libsvm, "MAX_LIBSVM_LINE_BYTES", 100)
    monkeypatch.setattr("svmbench.data.blocks.TEXT_PIECE_BYTES", 64)
    place = tmp_path / f"x.{ending}"
    few, values = (b"1,2,-1\n", b"1,2,") if ending == "csv" else (b"-1 2:1\n", b"1 2:")

    def read(length, before):
        place.write_bytes(few * before + values + b"1".rjust(length - len(values), b"0") + b"\n")
        return list(data.open_blocks(place)) if reader == "blocks" else data.load_file(place)

    for before in (0, 1, 9, 50):
        assert read(100, max(before, 1))
        with pytest.raises(DataError, match="has a line of more than 0 MiB"):
            read(101, before)


def test_a_line_ends_at_a_carriage_return_too(monkeypatch):
    monkeypatch.setattr(libsvm, "MAX_LIBSVM_LINE_BYTES", 100)
    assert len(libsvm.parse_libsvm(b"1 1:1\r" * 50, "x")[1]) == 50


@pytest.mark.slow
def test_a_long_line_that_is_read_slowly_takes_little_memory():
    row = " ".join(["1", *(f"{index}:1" for index in range(1, 200_001))]).encode()
    tracemalloc.start()
    try:
        X, _ = libsvm.read_slowly(row, "x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.nnz == 200_000
    assert peak < 8 * len(row)  # a text for each value would take 60 bytes for one of the row


def test_columns_are_read_all_at_once(monkeypatch):
    calls = []
    whole = tables.pd.to_numeric
    monkeypatch.setattr(tables.pd, "to_numeric", lambda *a, **k: calls.append(1) or whole(*a, **k))
    content = "\n".join([",".join(map(str, range(300))) + ",a"] * 3).encode()
    reading = entries.Reading(format="table")
    ((X, _),) = tables.samples([tables.read_table(content, "x", reading)], ["x"], reading)
    assert (np.arange(300) == X).all()
    assert len(calls) == 1


def test_words_that_would_fill_the_memory_one_hot_are_refused(monkeypatch):
    monkeypatch.setattr(tables, "MAX_DENSE_BYTES", 1 << 10)
    text = "\n".join(f"w{i % 90},{'ab'[i % 2]}" for i in range(900)).encode()
    reading = entries.Reading(format="table", encode={"1": "one-hot"})
    frame = tables.read_table(text, "x.csv", reading)
    with pytest.raises(DataError, match="90 different words would take more than"):
        tables.samples([frame], ["x.csv"], reading)


def test_features_are_left_out_of_as_many_as_an_entry_says(tmp_path):
    X = sp.csr_array(np.array([[1.0, 0, 2, 0, 3], [0, 4, 0, 5, 0]]))
    for dropped in ((1,), (5, 2), (3, 3, 4)):
        columns = [j for j in range(5) if j + 1 not in dropped]
        for stored in (X, X.toarray()):
            left = derive._without("x", stored, dropped)
            left = left.toarray() if sp.issparse(left) else left
            assert (left == X.toarray()[:, columns]).all()
    wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(2, 1_000_000_000))
    tracemalloc.start()
    left = derive._without("x", wide, (1,))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert left.shape == (2, 999_999_999)
    assert left.indices.tolist() == [1, 3, 0, 2]
    assert peak < 1 << 20


def test_narrow_rows_that_are_nearly_empty_are_kept_sparse(monkeypatch):
    monkeypatch.setattr(derive, "MAX_DENSE_BYTES", 1 << 16)
    text = b"1 64:1\n" + b"0\n1\n" * 2_000
    X, labels = libsvm.parse_libsvm(text)
    found = derive.derive("x", derive.LabelledRows(X, labels), None, entries.Derivation())
    assert sp.issparse(found.X)
    full = derive.LabelledRows(np.ones((4_000, 64)), labels[:4_000])
    assert not sp.issparse(derive.derive("x", full, None, entries.Derivation()).X)


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("start", ["", "\n", "\r\n", " \n\n"])
@pytest.mark.parametrize(
    ("ending", "rows", "how"),
    [
        (".csv", "1,2,a\n3,4,b", {}),
        (".csv", "x,y,z\n1,2,a\n3,4,b", {"label_column": "z"}),
        (".svm", "1 1:2\n-1 2:3", {}),
    ],
)
def test_blank_lines_around_the_rows_are_none(tmp_path, start, end, ending, rows, how):
    place = tmp_path / f"x{ending}"
    place.write_text(start + rows + end, newline="")
    whole = data.load_file(place, **how)
    blocks = [*data.open_blocks(place, **how)]
    dense = [X.toarray() if sp.issparse(X) else X for X, _ in blocks]
    found = np.zeros_like(whole.X)
    for i, row in enumerate(row for X in dense for row in X):
        found[i, : len(row)] = row
    assert (found == whole.X).all()
    assert sum(len(y) for _, y in blocks) == 2


@pytest.mark.parametrize("text", ["", "\n", " \n\n", "\n\n "])
def test_a_blank_file_is_empty_to_both_readers(tmp_path, text):
    for ending in (".csv", ".svm"):
        place = tmp_path / f"x{ending}"
        place.write_text(text)
        for read in (data.load_file, lambda place: list(data.open_blocks(place))):
            with pytest.raises(DataError, match="is empty"):
                read(place)


def test_a_parquet_column_whose_name_is_no_text_is_a_sentence(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    place = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"abcdefgh": [1.0], "y": [1]}), place, store_schema=False)
    content = place.read_bytes()
    assert b"abcdefgh" in content
    place.write_bytes(content.replace(b"abcdefgh", b"abcd\xff\xfe\xffh"))
    with pytest.raises(DataError, match="a column's name is not encoded as UTF-8"):
        list(data.open_blocks(place))


TWO = """
[{name}]
title = "t"
task = "binary"
homepage = "https://x.org"
licence = "none"
citation = "none"
files = [{{ name = "data.csv", folder = "{name}" }}]
reading = {{ format = "table" }}
n_samples = 2
n_features = 1
"""


@pytest.mark.parametrize("kind", ["folder", "address"])
def test_files_of_one_name_in_two_folders_are_two(tmp_path, monkeypatch, serve, kind):
    for name, value in (("one", 1), ("two", 2)):
        (tmp_path / "mirror" / name).mkdir(parents=True)
        (tmp_path / "mirror" / name / "data.csv").write_text(f"{value},a\n{value},b\n")
    own = tmp_path / "own.toml"
    own.write_text(TWO.format(name="one") + TWO.format(name="two"))
    monkeypatch.setenv("SVMBENCH_DATASETS", str(own))

    def answer(handler):
        place = tmp_path / "mirror" / handler.path.lstrip("/")
        handler.send_response(200 if place.is_file() else 404)
        body = place.read_bytes() if place.is_file() else b""
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    mirror = str(tmp_path / "mirror") if kind == "folder" else serve(answer)
    for name, value in (("one", 1), ("two", 2), ("one", 1)):
        assert data.load(name, mirror=mirror).X.ravel().tolist() == [value, value]
    before = prepare._folder(data.entry("one"))
    own.write_text(TWO.format(name="one").replace('folder = "one"', 'folder = "two"'))
    registry._read.cache_clear()
    registry._stated.cache_clear()
    assert prepare._folder(data.entry("one")) != before
    assert data.load("one", mirror=mirror).X.ravel().tolist() == [2, 2]


@pytest.mark.parametrize("same", [True, False])
def test_two_files_that_nothing_tells_apart_have_to_be_the_same(tmp_path, monkeypatch, same):
    for name, text in (("one", "1,a\n2,b\n"), ("two", "1,a\n2,b\n" if same else "3,a\n4,b\n")):
        (tmp_path / "mirror" / name).mkdir(parents=True)
        (tmp_path / "mirror" / name / "data.csv").write_text(text)
    own = tmp_path / "own.toml"
    own.write_text(TWO.format(name="mine").replace(', folder = "mine"', ""))
    monkeypatch.setenv("SVMBENCH_DATASETS", str(own))
    mirror = str(tmp_path / "mirror")
    if same:
        assert data.load("mine", mirror=mirror).X.ravel().tolist() == [1, 2]
    else:
        with pytest.raises(DataError, match=r"one/data.csv and .*two/data.csv differ"):
            data.load("mine", mirror=mirror)
