"""Grouping of bitwise identical rows in one pass, by a keyed hash.

A row is a sequence of 32-bit words s_1, ..., s_k. Its hash is the upper half of ``m_0 + sum m_i s_i`` modulo 2**64,
with secret, uniform 64-bit keys m. The hashes of two different rows are uniform and independent for any rows (strongly
universal; Lemire & Kaser 2014). Shorter rows are padded with zeros, and their length is one of their words. The groups
of a bucket form a chain. There are at least twice as many buckets as groups, so a row is compared with less than one
other group in expectation. Without knowing the keys, an attacker cannot choose rows that take longer. Rows with equal
hashes are compared word by word.
"""

from __future__ import annotations

import numpy as np

from skdp._kernels.caching import njit


@njit
def pack_sparse(data, indices, indptr, start, tails, packed, ends):
    """Write the number of entries, the indices and the values of CSR rows, and their tails, one row after the other.

    Parameters
    ----------
    data, indices : ndarray of shape (n_entries, n_words), uint32
    indptr : ndarray of shape (n + 1,)
    start : int
        First row.
    tails : ndarray of shape (m, n_words), uint32
        Targets and weights of the m rows from there on.
    packed : ndarray, uint32
        Written.
    ends : ndarray of shape (m + 1,), int64
        Written: where rows start and end.
    """
    place = ends[0] = 0
    for i in range(len(tails)):
        low, high = indptr[start + i], indptr[start + i + 1]
        packed[place] = high - low
        place += 1
        for t in range(low, high):
            for j in range(indices.shape[1]):
                packed[place + j] = indices[t, j]
            place += indices.shape[1]
            for j in range(data.shape[1]):
                packed[place + j] = data[t, j]
            place += data.shape[1]
        for j in range(tails.shape[1]):
            packed[place + j] = tails[i, j]
        place += tails.shape[1]
        ends[i + 1] = place


@njit
def _hash(words, keys):
    total = keys[0]
    for j in range(len(words)):
        total += keys[j + 1] * np.uint64(words[j])
    return np.uint32(total >> np.uint64(32))


@njit
def hash_rows(packed, ends, keys, hashes):
    """Hash each row of a block."""
    for i in range(len(hashes)):
        hashes[i] = _hash(packed[ends[i] : ends[i + 1]], keys)


@njit
def chain(heads, following, hashes):
    """Put groups into the chains of buckets, whose number is a power of two: -1 ends a chain.

    Parameters
    ----------
    heads : ndarray of shape (n_buckets,), int32 or int64
        Written: the first group of each bucket.
    following : ndarray of shape (at least n_groups,), of the dtype of `heads`
        Written: the next group of the bucket of each group.
    hashes : ndarray of shape (n_groups,), uint32
    """
    heads[:] = -1
    for g in range(len(hashes)):
        bucket = hashes[g] & np.uint32(len(heads) - 1)
        following[g] = heads[bucket]
        heads[bucket] = g


@njit
def _first_of_buckets(row_hashes, heads, found):
    """The first group of the bucket of each row: a loop of its own, so that many cache misses overlap."""
    last = np.uint32(len(heads) - 1)
    for i in range(len(row_hashes)):
        found[i] = heads[row_hashes[i] & last]


@njit
def _is_row(packed, start, stop, kept, low, high):
    """Whether two rows are equal, word by word: without a branch, and with unsigned indices, the loop vectorises."""
    if stop - start != high - low:
        return False
    begin, other = np.uint64(start), np.uint64(low)
    difference = np.uint32(0)
    for j in range(np.uint64(stop - start)):
        difference |= packed[begin + j] ^ kept[other + j]
    return difference == 0


@njit
def _keep_equal(packed, ends, row_hashes, hashes, kept, kept_ends, found):
    """Of the groups that were found, keep those whose row is equal, and -1 in the place of the others."""
    for i in range(len(row_hashes)):
        g = found[i]
        if g >= 0 and not (
            hashes[g] == row_hashes[i] and _is_row(packed, ends[i], ends[i + 1], kept, kept_ends[g], kept_ends[g + 1])
        ):
            found[i] = -1


@njit
def add_rows(packed, ends, row_hashes, first_row, n_groups, heads, following, hashes, kept, kept_ends, first, copies):
    """Find the group of each row of a block, or begin one with it.

    Parameters
    ----------
    packed : ndarray, uint32
    ends : ndarray of shape (m + 1,), int64
        Row i is ``packed[ends[i] : ends[i + 1]]``.
    row_hashes : ndarray of shape (m,), uint32
    first_row : int
        Number of the first of these rows in the table.
    n_groups : int
        Number of groups so far.
    heads, following : ndarray of int32 or int64
        See `chain`.
    hashes : ndarray of uint32
        Of each group; this and all below have room for m groups more.
    kept : ndarray of uint32
    kept_ends : ndarray of int64
        The row of group g is ``kept[kept_ends[g] : kept_ends[g + 1]]``.
    first, copies : ndarray of int64
        Number of the first row of each group in the table, and how many rows are equal to it.

    Returns
    -------
    n_groups : int
    """
    found = np.empty(len(row_hashes), heads.dtype)
    # Most rows are equal to the first group of their bucket; the others are looked for one after the other.
    _first_of_buckets(row_hashes, heads, found)
    _keep_equal(packed, ends, row_hashes, hashes, kept, kept_ends, found)
    for i in range(len(row_hashes)):
        g, value = found[i], row_hashes[i]
        bucket = value & np.uint32(len(heads) - 1)
        if g >= 0:
            copies[g] += 1
            continue
        g = heads[bucket]
        while g >= 0 and not (
            hashes[g] == value and _is_row(packed, ends[i], ends[i + 1], kept, kept_ends[g], kept_ends[g + 1])
        ):
            g = following[g]
        if g < 0:
            g = n_groups
            n_groups += 1
            following[g] = heads[bucket]
            heads[bucket] = g
            hashes[g], first[g], copies[g] = value, first_row + i, 0
            low = kept_ends[g]
            kept_ends[g + 1] = low + ends[i + 1] - ends[i]
            kept[low : kept_ends[g + 1]] = packed[ends[i] : ends[i + 1]]
        copies[g] += 1
    return n_groups
