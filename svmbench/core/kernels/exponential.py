"""The exponential of the RBF kernel, in double and in single precision, for compiled loops.

e^t = 2^k e^r with an integer k: 2^k goes to the exponent's bits, and e^r is a polynomial, whose
loop the compiler vectorises, where it can't vectorise a call of the library's exponential.

- `gauss_double` and `gauss_single` turn inner products of two sets of samples into kernel values;
- `gauss_of_squares` takes squared distances of one sample, in single precision.

``np.exp`` remains where it is as fast: for few values (tables of at most 1,025, up to 8 values of a
step of SMO) and for blocks of stored squared distances, which need no lengths.
"""

from __future__ import annotations

import numpy as np

from svmbench.base.compiled import compiled_fused, compiled_sums, inlined, wide_vectors

#: Values converted at a time: two scratch blocks of them stay in the first-level cache.
PIECE_VALUES = 512

#: A product with a larger gamma overflows in single precision; nor does it tell more samples apart.
LARGEST_GAMMA = 1e30

LOG2_E = 1.4426950408889634
# ln 2 in two parts: the first has zeros at its end, so that k times it is exact.
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723e-6

#: Added to a number below 2^51 it rounds that to an integer, which then stands in the last bits.
TO_INTEGER = 6755399441055744.0

#: e^r = 1 + r + sum_k EXP[k] r^(k + 2) for |r| <= ln(2) / 2, to 1e-17: what interpolates
#: (e^r - 1 - r) / r^2 at the ten Chebyshev nodes.
EXP = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662413,
    0.008333333333330062,
    0.0013888888917213717,
    0.00019841269863053618,
    2.4801521295954376e-05,
    2.7557268459997064e-06,
    2.7620088445409746e-07,
    2.510038549551032e-08,
)


@compiled_fused
def gauss_double(P: np.ndarray, a: np.ndarray, b: np.ndarray, gamma: float) -> None:
    """Replace inner products by exp(-gamma * squared distance), in place, to about 2e-16.

    Parameters
    ----------
    P : ndarray of shape (m, n)
        Inner products ``x_i . z_j``.
    a, b : ndarray of shape (m,), (n,)
        Squared lengths of the x_i and of the z_j.
    gamma : float
    """
    wide_vectors()
    values, shifted = np.empty(PIECE_VALUES), np.empty(PIECE_VALUES)
    bits, power, out = values.view(np.int64), shifted.view(np.int64), P.view(np.int64)
    n = P.shape[1]
    for i in range(P.shape[0]):
        length = a[i]
        for start in range(0, n, PIECE_VALUES):
            row, others = P[i, start : start + PIECE_VALUES], b[start : start + PIECE_VALUES]
            for j in range(len(row)):
                distance = length + others[j] - 2.0 * row[j]
                t = -gamma * distance if distance > 0.0 else 0.0
                t = t if t > -708.0 else -708.0
                # The last bits of the sum are those of the nearest integer.
                z = t * LOG2_E + TO_INTEGER
                k = z - TO_INTEGER
                r = (t - k * LN2_HIGH) - k * LN2_LOW
                # By Estrin: half a dozen steps that wait for each other instead of eleven.
                r2 = r * r
                r4 = r2 * r2
                low = r2 * (EXP[0] + EXP[1] * r)
                middle = (EXP[2] + EXP[3] * r) + r2 * (EXP[4] + EXP[5] * r)
                high = (EXP[6] + EXP[7] * r) + r2 * (EXP[8] + EXP[9] * r)
                # The largest part comes last: its rounding is the only one of its size.
                values[j] = 1.0 + (r + (low + r4 * (middle + r4 * high)))
                shifted[j] = z
            target = out[i, start : start + PIECE_VALUES]
            for j in range(len(row)):
                # k goes to the exponent.
                target[j] = bits[j] + (power[j] << 52)


@inlined
def power_of_two(t: np.float32) -> tuple[np.float32, np.int32]:
    """Return two factors of 2^t for t <= 0: 2^r, and the bits of the float32 number 2^k.

    t = k + r with an integer k and |r| <= 1/2; 2^r is a polynomial, to about 1e-7. A caller keeps
    the bits in an array of int32 and multiplies by its view as float32.
    """
    one, half, lowest = np.float32(1.0), np.float32(0.5), np.float32(-126.0)
    c1, c2, c3 = np.float32(0.6931472), np.float32(0.24022651), np.float32(0.05550411)
    c4, c5, c6 = np.float32(0.0096181291), np.float32(0.0013333558), np.float32(0.000154035)
    t = t if t > lowest else lowest
    k = np.int32(t - half)
    r = t - np.float32(k)
    e = c5 + r * c6
    e = c4 + r * e
    e = c3 + r * e
    e = c2 + r * e
    e = c1 + r * e
    return one + r * e, (k + np.int32(127)) << np.int32(23)


@compiled_sums
def gauss_of_squares(
    squares: np.ndarray, factor: np.float32, power: np.ndarray, out: np.ndarray
) -> None:
    """Write ``2 ** (factor * squares)`` to `out`: RBF values of squared distances.

    Parameters
    ----------
    squares : ndarray of float32 of shape (m,)
        Written over.
    factor : float32
        ``-gamma * log2(e)``; see :func:`single_factor`.
    power : ndarray of int32 of shape (m,)
        Scratch.
    out : ndarray of shape (m,)
        May be `squares`.
    """
    zero, two_to_k = np.float32(0.0), power.view(np.float32)
    m = len(out)
    for j in range(m):
        squares[j], power[j] = power_of_two(factor * (squares[j] if squares[j] > zero else zero))
    for j in range(m):
        out[j] = squares[j] * two_to_k[j]


@compiled_sums
def gauss_single(
    P: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    gamma: float,
    out: np.ndarray,
    at: np.ndarray,
) -> None:
    """Write exp(-gamma * squared distance) of inner products, in float32, to about 2e-7.

    Parameters
    ----------
    P : ndarray of float32 of shape (m, n)
        Inner products ``x_i . z_j``.
    a, b : ndarray of float32 of shape (m,), (n,)
        Squared lengths of the x_i and of the z_j.
    gamma : float
    out, at : ndarray
        Row i goes to ``out[at[i], :n]``; `out` may be `P`.
    """
    wide_vectors()
    n = P.shape[1]
    width = min(n, PIECE_VALUES)
    power, part = np.empty(width, dtype=np.int32), np.empty(width, dtype=np.float32)
    two_to_k = power.view(np.float32)
    zero, two, factor = np.float32(0.0), np.float32(2.0), np.float32(-gamma * LOG2_E)
    for i in range(P.shape[0]):
        length = a[i]
        for start in range(0, n, PIECE_VALUES):
            row, others = P[i, start : start + PIECE_VALUES], b[start : start + PIECE_VALUES]
            target = out[at[i], start : start + PIECE_VALUES]
            for j in range(len(row)):
                distance = length + others[j] - two * row[j]
                part[j], power[j] = power_of_two(factor * (distance if distance > zero else zero))
            for j in range(len(row)):
                target[j] = part[j] * two_to_k[j]


def single_factor(gamma: float) -> np.float32:
    """Return the factor that :func:`gauss_of_squares` takes for a gamma."""
    return np.float32(-gamma * LOG2_E)
