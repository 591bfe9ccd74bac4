"""Exact decimals at the boundary: a bar of 0.6 means six tenths, and 60.0 per cent is exactly that.

Binary floating point does not: 0.55 * 100 is 55.000000000000007, so a rate of 55.0 per cent would fail a bar of 0.55
in one direction of the comparison and pass in the other. Here every number is the decimal that was written.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from gates.header import exactly


def decimal(number: float) -> Fraction:
    """A number of a file or a catalog as the decimal that was written."""
    return exactly(number)


def thousandths(number: Fraction) -> float:
    """The nearest multiple of 0.001; a tie goes to the even one. Bars are written with three decimals."""
    return round(number * 1000) / 1000


def text(number: Fraction, most: int = 6) -> str:
    """A number in decimals as people write it, exact where `most` decimals are enough.

    A bar and a measured value that differ never read the same: digits are added until something differs from the
    rounded one, up to twice `most`.
    """
    for digits in (most, 2 * most):
        rounded = Decimal(round(number * 10**digits)).scaleb(-digits)
        if Fraction(rounded) == number:
            break
    return f"{rounded.normalize():f}"
