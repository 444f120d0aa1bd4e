"""The compiled loop that reads LIBSVM text, with correctly rounded numbers.

The loop stops at a line in an unusual form. The slow pass of :mod:`svmbench.data.libsvm` then reads
this line or raises an error for it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from svmbench.base.compiled import compiled, inlined

#: Largest k for which 10**k is exact in float64.
EXACT_POWER = 22

#: Largest mantissa that is exact in float64.
EXACT_MANTISSA = np.uint64(2**53)

#: Largest number of decimal digits that fit into 64 bits.
MAX_UINT64_DIGITS = 19

#: Largest number of values per byte of text: a value takes at least ``1:1`` and a blank.
MAX_VALUES_PER_BYTE = 1 / 4

#: Largest power of ten that a sum of two float64 represents with 106 bits, with room to multiply.
LARGEST_TABLE_POWER = 270


def _powers() -> np.ndarray:
    """Return 10**k, |k| ≤ LARGEST_TABLE_POWER, as unevaluated sums of two float64, (…, 2)."""
    held = np.empty((2 * LARGEST_TABLE_POWER + 1, 2))
    for k in range(-LARGEST_TABLE_POWER, LARGEST_TABLE_POWER + 1):
        power = Fraction(10) ** k
        held[k + LARGEST_TABLE_POWER, 0] = float(power)
        held[k + LARGEST_TABLE_POWER, 1] = float(power - Fraction(float(power)))
    return held


POWERS = _powers()

#: Bytes of the format.
TAB, NEWLINE, RETURN, SPACE, HASH, PLUS, MINUS, POINT, ZERO, COLON, BIG_E, SMALL_E = (
    np.uint8(ord(sign)) for sign in "\t\n\r #+-.0:Ee"
)
TEN = np.uint8(10)

#: Splits a float64 into two halves of 26 bits (Dekker 1971).
SPLITTER = 134217729.0


@inlined
def long_value(mantissa: np.uint64, power: int) -> tuple[float, bool]:
    """Compute ``mantissa * 10**power``; return it, and True if it surely is the nearest float64.

    The product of sums of two float64 has about 100 bits. A result closer than that to the middle
    between two float64 is not sure.
    """
    high = float(mantissa)
    # float(mantissa) may be 2**64, which no unsigned integer is.
    if high >= 1.8446744073709550e19:
        return 0.0, False
    low = float(np.int64(mantissa - np.uint64(high)))
    p, p_low = POWERS[power + LARGEST_TABLE_POWER, 0], POWERS[power + LARGEST_TABLE_POWER, 1]
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
    """Read the number at `p`; return it, the place after it, and True if it is valid."""
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
    if digits > MAX_UINT64_DIGITS:  # leading zeros don't count
        q = start
        while text[q] == ZERO or text[q] == POINT:
            digits -= text[q] == ZERO
            q += 1
        digits = max(digits, 1)
    if digits == 0 or digits > MAX_UINT64_DIGITS:
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
        # Both factors are exact, so the product is rounded once (Clinger 1990).
        ten = POWERS[abs(power) + LARGEST_TABLE_POWER, 0]
        value = float(mantissa) / ten if power < 0 else float(mantissa) * ten
    elif mantissa == np.uint64(0):
        value = 0.0
    elif -LARGEST_TABLE_POWER <= power <= LARGEST_TABLE_POWER:
        value, sure = long_value(mantissa, power)
    else:
        sure = False
    return (-value if negative else value), p, sure


@inlined
def is_end(c: np.uint8) -> bool:
    """Return True for a byte that ends a row: the end of the line, or a comment."""
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
    """Read lines of ``label index:value …`` into CSR arrays.

    Stop at the first line in an unusual form, and at a line that doesn't fit into the arrays.

    Parameters
    ----------
    text : ndarray of uint8
        Whole lines; the last byte is a newline.
    start : int
        Position of the first line.
    rows : int
        Number of rows in the arrays before the call.
    most_index : int
        Highest allowed index.
    labels, indptr : ndarray
        Filled after the existing rows; they have room for a row per line, and ``indptr[0] = 0``.
    indices, values : ndarray
        Filled after the existing values. Indices count from 0.

    Returns
    -------
    rows : int
        Number of rows in the arrays after the call.
    end : int
        The place after the last line read.
    lines : int
        Lines read.
    full : bool
        True if each row has all indices from 1 to the same last index.
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
