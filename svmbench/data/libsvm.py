"""Read LIBSVM text: ``label index:value index:value …``, with ascending indices from 1.

scikit-learn's fast parser reads correct files. If it fails, a slow pass over the lines finds the
wrong line and column, or reads the file if the caller allows indices out of order.
"""

from __future__ import annotations

import io
import math
import re
from array import array
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import scipy.sparse as sp

from svmbench.base.errors import DataError
from svmbench.data.derive import refuse_merged_labels

MAX_FEATURE_INDEX = 2**31 - 1

#: Bytes of text that are split into lines at a time.
LINE_BATCH_BYTES = 1 << 20

#: Largest number of bytes of a line, in LIBSVM text and in tables. It allows 670 bytes for each of
#: the 100,000 columns of the widest table, or five million values of LIBSVM text. A file with a
#: longer line uses another line ending, or is not text.
MAX_LIBSVM_LINE_BYTES = 64 << 20

# A number in LIBSVM text. Python's float() (and the fast parser) also accepts 1_000, inf and nan,
# which no LIBSVM program writes. Each digit matches in one way only: with two ways, a long word of
# digits with a wrong ending would take time proportional to the square of its length.
_NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_INDEX = re.compile(rb"\+?\d+")


def parse_libsvm(
    content: bytes, name: str = "file", *, sort_indices: bool = False
) -> tuple[sp.csr_array, np.ndarray]:
    """Read LIBSVM text.

    Parameters
    ----------
    content : bytes
        The uncompressed file.
    name : str
        Name of the file in errors.
    sort_indices : bool, default=False
        True to sort indices of a row that are out of order; else they are an error. A repeated
        index is always an error.

    Returns
    -------
    X : csr_array of shape (n_samples, highest index)
        float64 values and int32 indices, without explicit zeros.
    labels : ndarray of shape (n_samples,)
        Labels in the file, float64.

    Raises
    ------
    DataError
        For a malformed token, a label that isn't a number, an index that isn't ascending or not in
        1 … 2³¹−1, NaN or infinity, another encoding, a header, or an empty file; with line and
        column.
    """
    content = check_text(content, name)
    fast = None if _needs_slow_pass(content) else _fast(content)
    X, labels = fast if fast is not None else read_slowly(content, name, sort_indices)
    if X.shape[0] == 0:
        raise DataError(f"{name} has no data rows")
    refuse_merged_labels(labels, name)
    return X, labels


def check_text(content: bytes, name: str) -> bytes:
    """Return `content` without a UTF-8 byte order mark; raise an error if it isn't text.

    Raises
    ------
    DataError
        For an empty file, UTF-16 or UTF-32, binary content, or a line longer than
        `MAX_LIBSVM_LINE_BYTES`.
    """
    if not content or content.isspace():
        raise DataError(f"{name} is empty")
    text = check_encoding(content, name)
    start = 0
    while len(text) - start > MAX_LIBSVM_LINE_BYTES:
        span = (start, start + MAX_LIBSVM_LINE_BYTES + 1)
        end = text.rfind(b"\n", *span)
        if end < 0:  # a carriage return alone also ends a line
            end = text.rfind(b"\r", *span)
        if end < 0:
            refuse_long_line(name)
        start = end + 1
    return text


def refuse_long_line(name: str) -> NoReturn:
    """Raise the error for a line longer than `MAX_LIBSVM_LINE_BYTES`."""
    raise DataError(
        f"{name} has a line of more than {MAX_LIBSVM_LINE_BYTES >> 20} MiB; is it a text file?"
    )


def check_encoding(content: bytes, name: str) -> bytes:
    """Check the encoding of a text or of its beginning, which may be blank."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        raise DataError(f"{name} is not encoded as UTF-8 (it looks like UTF-16 or UTF-32)")
    if b"\x00" in content:
        line = content.count(b"\n", 0, content.index(b"\x00")) + 1
        raise DataError(f"{name}, line {line}: a zero byte; this is not a text file")
    return content.removeprefix(b"\xef\xbb\xbf")


def text_lines(content: bytes) -> Iterator[bytes]:
    """Yield the lines of a text; a list of all lines may take forty times its memory."""
    start = 0
    while start < len(content):
        stop = content.find(b"\n", start + LINE_BATCH_BYTES) + 1 or len(content)
        yield from content[start:stop].splitlines()
        start = stop


def _needs_slow_pass(content: bytes) -> bool:
    """Return True if the fast parser would read the file differently from LIBSVM.

    The fast parser accepts underscores in numbers, skips qid tokens, accepts more characters as
    blanks, and doesn't end a line at a carriage return alone.
    """
    # Search for single bytes: a search for "qid" takes a tenth of the parsing time.
    if any(sign in content for sign in (b"_", b"q", b"\x0b", b"\x0c")):
        return True
    return b"\r" in content and content.count(b"\r") != content.count(b"\r\n")


def _fast(content: bytes) -> tuple[sp.csr_array, np.ndarray] | None:
    # Imported here: facts about a data set need no file.
    from sklearn.datasets import load_svmlight_file

    try:
        X, labels = load_svmlight_file(io.BytesIO(content), dtype=np.float64, zero_based=True)
    except (ValueError, OverflowError, IndexError, UnicodeError):
        return None
    indices = X.indices
    if len(indices) and (indices.min() < 1 or indices.max() > MAX_FEATURE_INDEX):
        return None
    if not (np.isfinite(X.data).all() and np.isfinite(labels).all()):
        return None
    n_features = int(indices.max()) if len(indices) else 0
    return _built(X.data, indices - 1, X.indptr, n_features), labels


def _built(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_features: int
) -> sp.csr_array:
    """Return a CSR array with int32 indices if they suffice, without explicit zeros."""
    needs_int64 = max(len(data), n_features) > MAX_FEATURE_INDEX
    index_type = np.int64 if needs_int64 else np.int32
    X = sp.csr_array(
        (data, indices.astype(index_type, copy=False), indptr.astype(index_type, copy=False)),
        shape=(len(indptr) - 1, n_features),
    )
    X.eliminate_zeros()
    return X


def read_slowly(
    content: bytes,
    name: str,
    sort_indices: bool = False,
    first_line: int = 1,
    n_features: int | None = None,
    begun: bool = False,
) -> tuple[sp.csr_array, np.ndarray]:
    """Read lines one by one: the slow pass of :func:`parse_libsvm`.

    Parameters
    ----------
    content, name, sort_indices
        As for :func:`parse_libsvm`; lines without a row are allowed.
    first_line : int, default=1
        Line number of the first line in its file.
    n_features : int, optional
        Highest allowed index.
    begun : bool, default=False
        True if the file has rows before these lines.
    """
    labels, indptr = array("d"), array("q", [0])
    indices, values = array("q"), array("d")
    for number, line in enumerate(text_lines(content), start=first_line):
        tokens = re.finditer(rb"[^ \t]+", line.split(b"#", 1)[0])
        first = next(tokens, None)
        if first is None:
            continue
        label = _number(first[0])
        if label is None:
            _bad_label(name, number, first, is_first=not (begun or labels))
        row = _Row(name, number, sort_indices, n_features)
        for token in tokens:
            row.add(token)
        row.sort()
        labels.append(label)
        indices += row.indices
        values += row.values
        indptr.append(len(indices))
    columns = np.array(indices, dtype=np.int64) - 1
    width = int(columns.max()) + 1 if len(columns) else 0
    return _built(np.array(values), columns, np.array(indptr), width), np.array(labels)


class _Row:
    """The values of a line, read token by token to save memory on long lines.

    Parameters
    ----------
    name, number
        File and line, for errors.
    sort_indices, n_features
        As for :func:`read_slowly`.
    """

    def __init__(self, name: str, number: int, sort_indices: bool, n_features: int | None) -> None:
        self.name, self.number = name, number
        self.sort_indices, self.n_features = sort_indices, n_features
        self.indices, self.values = array("q"), array("d")
        #: All indices of the row, once one was out of order; empty before.
        self._seen: set[int] = set()

    def add(self, token: re.Match[bytes]) -> None:
        """Add ``index:value``; raise an error for a malformed token or a wrong index."""
        index, value = _pair(self.name, self.number, token)
        last = self.indices[-1] if self.indices else 0
        complaint = ""
        if index in self._seen if self._seen else index <= last and index in self.indices:
            complaint = f"{index} occurs twice"
        elif index < last and not self.sort_indices:
            complaint = f"{index} after {last} is not ascending"
        elif self.n_features and index > self.n_features:
            complaint = f"{index} is above the last feature, {self.n_features}"
        if complaint:
            raise DataError(f"{_where(self.name, self.number, token)}: the index {complaint}")
        if index < last and not self._seen:
            self._seen.update(self.indices)
        if self._seen:
            self._seen.add(index)
        self.indices.append(index)
        self.values.append(value)

    def sort(self) -> None:
        """Sort the values by their indices."""
        if self._seen:
            order = np.argsort(np.array(self.indices))
            self.indices = array("q", np.array(self.indices)[order].tobytes())
            self.values = array("d", np.array(self.values)[order].tobytes())


def _number(token: bytes) -> float | None:
    if not _NUMBER.fullmatch(token):
        return None
    value = float(token)
    return value if math.isfinite(value) else None


def _shown(token: bytes) -> str:
    text = token[:40].decode("utf-8", errors="replace")
    return repr(text + ("…" if len(token) > 40 else ""))


def _where(name: str, number: int, token: re.Match[bytes]) -> str:
    return f"{name}, line {number}, column {token.start() + 1}"


def _bad_label(name: str, number: int, token: re.Match[bytes], *, is_first: bool) -> NoReturn:
    where = _where(name, number, token)
    complaint = f"the label {_shown(token[0])} is not a finite number"
    if is_first and token[0].lower() in (b"@relation", b"%"):
        raise DataError(f"{name} is an ARFF file of Weka; save it as CSV")
    if b":" in token[0] and _INDEX.match(token[0]):
        raise DataError(f"{where}: the row has no label; it begins with {_shown(token[0])}")
    if is_first:
        raise DataError(f"{where}: {complaint} (a header? LIBSVM files have none)")
    raise DataError(f"{where}: {complaint}")


def _pair(name: str, number: int, token: re.Match[bytes]) -> tuple[int, float]:
    index, colon, right = token[0].partition(b":")
    if not colon or not _INDEX.fullmatch(index):
        where = _where(name, number, token)
        raise DataError(f"{where}: {_shown(token[0])} is not of the form index:value")
    if len(index) > 18 or not 1 <= int(index) <= MAX_FEATURE_INDEX:
        where = _where(name, number, token)
        raise DataError(f"{where}: the index {_shown(index)} is not in 1 … {MAX_FEATURE_INDEX}")
    value = _number(right)
    if value is None:
        where = _where(name, number, token)
        raise DataError(f"{where}: the value {_shown(right)} is not a finite number")
    return int(index), value
