"""Mistakes in the ledger that is kept in a file."""

from mutant import mutant
from paths import LOG, PLACING, SERIAL, SQLITE, STORE

UNCHANGED = "if len(self._ledger.entries) != known:"
FORGETFUL = 'for name, value in fields_of_entry.items() if value is not None and name not in ("previous", "seq")'

MUTANTS = [
    mutant(
        "a charge that others overtook not priced again",
        (STORE, UNCHANGED, "if False:"),
        tests="accounting_store_processes accounting_store_races",
        select="ten_scripts or others_charged",
    ),
    mutant(
        "lock taken at the first write",
        (
            STORE,
            'transaction(self.path, "BEGIN IMMEDIATE", partial(self._write,',
            'transaction(self.path, "BEGIN", partial(self._write,',
        ),
        tests="accounting_store_processes",
        select="scripts or threads",
    ),
    mutant(
        "a charge that is not committed",
        (SQLITE, "        with connection:\n", "        if True:\n"),
        tests="accounting_store accounting_store_processes",
        select="kill_9 or behaves",
    ),
    mutant(
        "a charge left to the cache of the system",
        (SQLITE, '"PRAGMA synchronous = EXTRA")  #', '"PRAGMA synchronous = OFF")  #'),
        tests="accounting_store",
        select="on_the_disk",
    ),
    mutant(
        "a file cut to nothing taken for a new one",
        (STORE, "not os.path.lexists(path):", "not (os.path.lexists(path) and os.path.getsize(path)):"),
        (PLACING, "os.link(made, path)", "os.replace(made, path)"),
        tests="accounting_store_faults",
        select="truncated",
    ),
    mutant(
        "another budget taken for the one that was opened",
        (STORE, "if _header(self.path, connection)[1] != self._heads[0]:", "if False:"),
        tests="accounting_store_faults",
        select="exchanged",
    ),
    mutant(
        "an older copy of the file taken for the present one",
        (STORE, "if self._heads[count : count + 1] != [head]:", "if False:"),
        tests="accounting_store_faults",
        select="exchanged",
    ),
    mutant(
        "a hash that is not recomputed",
        (STORE, "!= (seq, heads[-1], _hash(row)):", "!= (seq, heads[-1], written):"),
        tests="accounting_store_faults",
        select="tampering",
    ),
    mutant(
        "a hash that does not cover the hash before it",
        (SERIAL, "for name, value in fields_of_entry.items() if value is not None", FORGETFUL),
        (
            STORE,
            '(row.get("seq"), row.get("previous"), written) != (seq, heads[-1], _hash(row))',
            "written != _hash(row)",
        ),
        tests="accounting_store_faults",
        select="tampering",
    ),
    mutant(
        "an open lock inherited by a fork",
        (LOG, "    os.register_at_fork(", "    (lambda **hooks: None)("),
        tests="accounting_store_processes",
        select="forked",
    ),
    mutant(
        "a file that stays locked after Ctrl-C",
        (SQLITE, "*error: object) -> None:\n        self._close()", "*error: object) -> None:\n        pass"),
        tests="accounting_store_races",
        select="interrupt_at_any",
    ),
    mutant(
        "what was charged remembered after the lock is given back",
        (
            STORE,
            "        with LOCK:\n            head = transaction",
            "        if True:\n            head = transaction",
        ),
        tests="accounting_store_processes",
        select="right_after_a_charge",
    ),
    mutant(
        "a file without hard links put in the place of another",
        (PLACING, 'with open(path, "xb") as claimed:', 'with open(path, "wb") as claimed:'),
        tests="accounting_store_links",
        select="links",
    ),
    mutant(
        "a file half copied that can be charged",
        (PLACING, "claimed.seek(_HEADER)\n            claimed.write(content[_HEADER:])", "claimed.write(content)"),
        tests="accounting_store_links",
        select="copied",
    ),
    mutant(
        "a journal beside a file that can only be read, not looked at",
        (SQLITE, "                raise last  # the file alone", "                pass  # the file alone"),
        tests="accounting_store_faults",
        select="beside_a_journal",
    ),
]
