"""The compiled loop that reads LIBSVM text: as fast as memory allows, and every number exact.

It reads what every LIBSVM program writes. At a line that it can't read, it stops and says so: the
slow pass of :mod:`svmbench.data.libsvm` then reads that line, or says what is wrong with it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from svmbench.base.compiled import compiled, inlined

#: Ten to the power of k is exact in float64 up to this k.
EXACT_POWER = 22

#: Mantissas up to this are exact in float64.
EXACT_MANTISSA = np.uint64(2**53)

#: Digits that a mantissa in 64 bits may have.
MOST_DIGITS = 19

#: The most values that a byte of text can stand for: ``1:1`` and a blank.
MOST_A_BYTE = 1 / 4

#: Powers of ten that the sum of two float64 holds to 106 bits, with room to multiply.
WIDEST = 270


def _powers() -> np.ndarray:
    """Return 10**k, k = -WIDEST … WIDEST, as unevaluated sums of two float64, shape (…, 2)."""
    held = np.empty((2 * WIDEST + 1, 2))
    for k in range(-WIDEST, WIDEST + 1):
        power = Fraction(10) ** k
        held[k + WIDEST, 0] = float(power)
        held[k + WIDEST, 1] = float(power - Fraction(float(power)))
    return held


POWERS = _powers()

#: Bytes that matter.
TAB, NEWLINE, RETURN, SPACE, HASH, PLUS, MINUS, POINT, ZERO, COLON, BIG_E, SMALL_E = (
    np.uint8(ord(sign)) for sign in "\t\n\r #+-.0:Ee"
)
TEN = np.uint8(10)

#: Splits a float64 into two halves of 26 bits (Dekker 1971).
SPLITTER = 134217729.0


@inlined
def long_value(mantissa: np.uint64, power: int) -> tuple[float, bool]:
    """Return ``mantissa * 10**power`` rounded, and whether it is sure to be the nearest float64.

    As a product of sums of two float64, to about 100 bits; what is closer than that to the middle
    between two numbers is not sure.
    """
    high = float(mantissa)
    # float(mantissa) may be 2**64, which no unsigned integer is.
    if high >= 1.8446744073709550e19:
        return 0.0, False
    low = float(np.int64(mantissa - np.uint64(high)))
    p, p_low = POWERS[power + WIDEST, 0], POWERS[power + WIDEST, 1]
    product = high * p
    t = SPLITTER * high
    a = t - (t - high)
    b = high - a
    t = SPLITTER * p
    c = t - (t - p)
    d = p - c
    error = ((a * c - product) + a * d + b * c) + b * d
    error += high * p_low + low * p
    nearest = product + error
    rest = error - (nearest - product)
    slack = rest * 2.0**-40
    return nearest, nearest + (rest + slack) == nearest and nearest + (rest - slack) == nearest


@inlined
def number_at(text: np.ndarray, p: int) -> tuple[float, int, bool]:
    """Return the number that begins at `p`, the place after it, and whether there is one."""
    negative = text[p] == MINUS
    if negative or text[p] == PLUS:
        p += 1
    mantissa, power, digits = np.uint64(0), 0, 0
    start = p
    c = text[p] - ZERO
    while c < TEN:
        mantissa = mantissa * np.uint64(10) + np.uint64(c)
        p += 1
        c = text[p] - ZERO
    digits = p - start
    if text[p] == POINT:
        p += 1
        after = p
        c = text[p] - ZERO
        while c < TEN:
            mantissa = mantissa * np.uint64(10) + np.uint64(c)
            p += 1
            c = text[p] - ZERO
        power = after - p
        digits += p - after
    if digits > MOST_DIGITS:  # unless they begin with zeros
        q = start
        while text[q] == ZERO or text[q] == POINT:
            digits -= text[q] == ZERO
            q += 1
        digits = max(digits, 1)
    if digits == 0 or digits > MOST_DIGITS:
        return 0.0, p, False
    if text[p] == SMALL_E or text[p] == BIG_E:
        p += 1
        below = text[p] == MINUS
        if below or text[p] == PLUS:
            p += 1
        start, exponent = p, 0
        c = text[p] - ZERO
        while c < TEN and p - start < 4:
            exponent = exponent * 10 + int(c)
            p += 1
            c = text[p] - ZERO
        if p == start or c < TEN:
            return 0.0, p, False
        power += -exponent if below else exponent
    value, sure = 0.0, True
    if mantissa <= EXACT_MANTISSA and -EXACT_POWER <= power <= EXACT_POWER:
        # Both are exact, so that what they make is rounded once (Clinger 1990).
        ten = POWERS[abs(power) + WIDEST, 0]
        value = float(mantissa) / ten if power < 0 else float(mantissa) * ten
    elif mantissa == np.uint64(0):
        value = 0.0
    elif -WIDEST <= power <= WIDEST:
        value, sure = long_value(mantissa, power)
    else:
        sure = False
    return (-value if negative else value), p, sure


@inlined
def is_end(c: np.uint8) -> bool:
    """Return whether the row ends at a byte: at the line's end, or at a comment."""
    return c in (NEWLINE, RETURN, HASH)


@compiled
def parse_rows(
    text: np.ndarray,
    start: int,
    rows: int,
    most_index: int,
    labels: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
) -> tuple[int, int, int, bool]:
    """Read lines of ``label index:value …`` into CSR arrays, up to the first that is unusual.

    Or the first that the arrays have no room for.

    Parameters
    ----------
    text : ndarray of uint8
        Whole lines; the last byte is a newline.
    start : int
        Where the first line begins.
    rows : int
        Rows that the arrays hold already.
    most_index : int
        The highest index that there may be.
    labels, indptr : ndarray
        Filled after those rows; of a row for each line, and ``indptr[0] = 0``.
    indices, values : ndarray
        Filled after those rows' values. Indices count from 0 there.

    Returns
    -------
    rows : int
        Rows that the arrays hold now.
    end : int
        The place after the last line read.
    lines : int
        Lines read.
    full : bool
        Whether each of their rows has all indices from 1 up to the same last one.
    """
    p, end, n, lines = start, len(text), indptr[rows], 0
    width, full = -1, True
    while p < end:
        line, first = p, n
        while text[p] == SPACE or text[p] == TAB:
            p += 1
        fine, is_row, label, last = True, False, 0.0, 0
        if not is_end(text[p]):
            label, p, fine = number_at(text, p)
            while fine:
                c = text[p]
                if c != SPACE and c != TAB:
                    fine = is_end(c)
                    break
                while text[p] == SPACE or text[p] == TAB:
                    p += 1
                c = text[p] - ZERO
                if c >= TEN:
                    continue
                index, begin = 0, p
                while c < TEN:
                    index = index * 10 + int(c)
                    p += 1
                    c = text[p] - ZERO
                fits = index > last and p - begin <= 10 and index <= most_index
                if text[p] != COLON or not fits or n == len(values):
                    fine = False
                    break
                value, p, fine = number_at(text, p + 1)
                indices[n] = index - 1
                values[n] = value
                last = index
                n += 1
            is_row = True
        if fine and text[p] == HASH:
            while text[p] != NEWLINE and text[p] != RETURN:
                p += 1
        if fine and text[p] == RETURN:
            p += 1
        if not fine or text[p] != NEWLINE:
            return rows, line, lines, full
        if is_row:
            labels[rows] = label
            rows += 1
            indptr[rows] = n
            full = full and last == n - first and (last == width or width < 0)
            width = last
        p += 1
        lines += 1
    return rows, p, lines, full
