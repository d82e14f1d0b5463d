"""Arrays, lists, dictionaries and numbers from pickles that anybody may have written."""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ENCODE = "_codecs encode"
_NOTED = {"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"}


class Damaged(ValueError):
    """What is wrong with a file, without its name."""


def read_pickle(raw: bytes) -> Any:
    """Return what Python's own syntax can write, and of arrays what is stored of them, as `Stored`.

    Nothing that is read is larger than the file. `pickle.Unpickler` makes room for any place in its memo that a file
    names, and hashes tuples of tuples for as long as that takes, so keys are text and lists hold no containers here.

    Parameters
    ----------
    raw : bytes
        Strings of Python 2 in it become bytes.

    Returns
    -------
    object

    Raises
    ------
    Damaged
        It calls something that is not NumPy's. Anything else may be raised by what is no pickle.
    """
    return _Reader(raw).read()


class Stored:
    """What a pickle hands to NumPy, which itself would take bytes for addresses of objects."""

    def __init__(self, given: tuple[Any, ...]) -> None:
        self.given = given
        self.state: Any = ()

    def as_bytes(self) -> NDArray[np.uint8]:
        """Return the array, which raises anything if it is none of bytes."""
        _, shape, kind, by_columns, raw = self.state
        if kind.given[0] not in ("u1", b"u1"):
            raise TypeError("an array of another type")
        return np.frombuffer(raw, np.uint8).reshape(shape, order="F" if by_columns else "C")


class _Name(str):
    """Name of a function or class, which is not text."""


class _Reader:
    """The stack and the memo of a pickle that is read."""

    def __init__(self, raw: bytes) -> None:
        self._raw, self._left = raw, len(raw)
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def read(self) -> Any:
        """Follow all steps."""
        for code, argument, _ in pickletools.genops(self._raw):
            if code.name in _VALUES:
                self._stack.append(_VALUES[code.name](argument))
            elif code.name in _ACTIONS:
                _ACTIONS[code.name](self, argument)
            elif code.name not in ("PROTO", "FRAME", "STOP"):
                raise TypeError("a step that builds something else")
        (found,) = self._stack
        return found

    def _pop(self, n: int) -> tuple[Any, ...]:
        found = tuple(self._stack[len(self._stack) - n :])
        if len(found) != n:
            raise IndexError("the stack is empty")
        del self._stack[len(self._stack) - n :]
        return found

    def _since_mark(self) -> tuple[Any, ...]:
        return self._pop(len(self._stack) - self._marks.pop())

    def _mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def _put(self, place: Any) -> None:
        self._memo[len(self._memo) if place is None else int(place)] = self._stack[-1]

    def _get(self, place: Any) -> None:
        self._stack.append(self._memo[int(place)])

    def _tuple(self, n: int | None) -> None:
        self._stack.append(self._since_mark() if n is None else self._pop(n))

    def _list(self, _: Any) -> None:
        values = self._since_mark()
        self._stack.append([])
        self._append(values)

    def _dict(self, _: Any) -> None:
        pairs = self._since_mark()
        self._stack.append({})
        self._set(pairs)

    def _append(self, values: tuple[Any, ...]) -> None:
        if any(isinstance(value, list | dict | tuple) for value in values):
            raise TypeError("a list of containers")
        self._top(list).extend(values)

    def _set(self, pairs: tuple[Any, ...]) -> None:
        keys, values = pairs[::2], pairs[1::2]
        if not all(isinstance(key, str | bytes) for key in keys):
            raise TypeError("a key that is no text")
        self._top(dict).update(zip(keys, values, strict=True))

    def _top(self, kind: type) -> Any:
        if not isinstance(self._stack[-1], kind):
            raise TypeError("another container")
        return self._stack[-1]

    def _name(self, full: str) -> None:
        if full != _ENCODE and full not in _NOTED:
            shown = "".join(sign if sign.isprintable() else "?" for sign in full[:80].replace(" ", "."))
            raise Damaged(f"it holds {shown}, which no part of CIFAR-10 does, and was not read on")
        self._stack.append(_Name(full))

    def _call(self, _: Any) -> None:
        name, given = self._pop(2)
        if not (isinstance(name, _Name) and isinstance(given, tuple)):
            raise TypeError("no call of a function")
        self._stack.append(self._encode(*given) if name == _ENCODE else Stored(given))

    def _encode(self, text: str, codec: Any) -> bytes:
        """How Python 3 writes bytes that Python 2 can read, each once: all of them are no longer than the file."""
        self._left -= len(text)
        if codec != "latin1" or self._left < 0:
            raise Damaged("it encodes text as no part of CIFAR-10 does, and was not read on")
        return text.encode("latin1")

    def _build(self, _: Any) -> None:
        (state,) = self._pop(1)
        self._top(Stored).state = state


def _as_it_is(argument: Any) -> Any:
    return argument


_VALUES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"), _as_it_is),
    **dict.fromkeys(("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), _as_it_is),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"), _as_it_is),
    # Strings of Python 2 are bytes.
    **dict.fromkeys(("STRING", "SHORT_BINSTRING", "BINSTRING"), lambda text: text.encode("latin1")),
    "NONE": lambda _: None, "NEWTRUE": lambda _: True, "NEWFALSE": lambda _: False,
    "EMPTY_LIST": lambda _: [], "EMPTY_DICT": lambda _: {}, "EMPTY_TUPLE": lambda _: (),
}  # fmt: skip
_ACTIONS: dict[str, Callable[[_Reader, Any], None]] = {
    "MARK": _Reader._mark,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Reader._put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Reader._get),
    "TUPLE": lambda pickled, _: pickled._tuple(None),
    "TUPLE1": lambda pickled, _: pickled._tuple(1),
    "TUPLE2": lambda pickled, _: pickled._tuple(2),
    "TUPLE3": lambda pickled, _: pickled._tuple(3),
    "LIST": _Reader._list,
    "DICT": _Reader._dict,
    "APPEND": lambda pickled, _: pickled._append(pickled._pop(1)),
    "APPENDS": lambda pickled, _: pickled._append(pickled._since_mark()),
    "SETITEM": lambda pickled, _: pickled._set(pickled._pop(2)),
    "SETITEMS": lambda pickled, _: pickled._set(pickled._since_mark()),
    "GLOBAL": _Reader._name,
    "STACK_GLOBAL": lambda pickled, _: pickled._name(" ".join(pickled._pop(2))),
    "REDUCE": _Reader._call,
    "BUILD": _Reader._build,
}

__all__ = ["Damaged", "Stored", "read_pickle"]
