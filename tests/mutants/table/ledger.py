"""Mistakes in the ledger that is kept in a file."""

from mutant import mutant
from paths import ADMISSION, BALANCE, CHARGES, LEDGER, LOG, PLACING, SERIAL, SQLITE, STORE, TABLES

UNCHANGED = "if len(self._ledger.entries) != known:"
FORGETFUL = 'for name, value in fields_of_entry.items() if value is not None and name not in ("previous", "seq")'

MUTANTS = [
    mutant(
        "a charge that others overtook not priced again",
        (STORE, UNCHANGED, "if False:"),
        tests="store_processes store_races",
        select="ten_scripts or others_charged",
    ),
    mutant(
        "lock taken at the first write",
        (
            STORE,
            'transaction(self.path, "BEGIN IMMEDIATE", partial(self._write,',
            'transaction(self.path, "BEGIN", partial(self._write,',
        ),
        tests="store_processes",
        select="scripts or threads",
    ),
    mutant(
        "a charge that is not committed",
        (SQLITE, "        with connection:\n", "        if True:\n"),
        tests="store store_processes",
        select="kill_9 or behaves",
    ),
    mutant(
        "a charge left to the cache of the system",
        (SQLITE, '"PRAGMA synchronous = EXTRA")  #', '"PRAGMA synchronous = OFF")  #'),
        tests="store",
        select="on_the_disk",
    ),
    mutant(
        "a file cut to nothing taken for a new one",
        (STORE, "not os.path.lexists(path):", "not (os.path.lexists(path) and os.path.getsize(path)):"),
        (PLACING, "os.link(made, path)", "os.replace(made, path)"),
        tests="store_faults",
        select="truncated",
    ),
    mutant(
        "another budget taken for the one that was opened",
        (STORE, "if _header(self.path, connection)[1] != self._heads[0]:", "if False:"),
        tests="store_faults",
        select="exchanged",
    ),
    mutant(
        "an older copy of the file taken for the present one",
        (STORE, "if self._heads[count : count + 1] != [head]:", "if False:"),
        tests="store_faults",
        select="exchanged",
    ),
    mutant(
        "a hash that is not recomputed",
        (STORE, "!= (seq, heads[-1], _hash(row)):", "!= (seq, heads[-1], written):"),
        tests="store_faults",
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
        tests="store_faults",
        select="tampering",
    ),
    mutant(
        "an open lock inherited by a fork",
        (LOG, "    os.register_at_fork(", "    (lambda **hooks: None)("),
        tests="store_processes",
        select="forked",
    ),
    mutant(
        "a file that stays locked after Ctrl-C",
        (SQLITE, "*error: object) -> None:\n        self._close()", "*error: object) -> None:\n        pass"),
        tests="store_races",
        select="interrupt_at_any",
    ),
    mutant(
        "what was charged remembered after the lock is given back",
        (
            STORE,
            "        with LOCK:\n            head = transaction",
            "        if True:\n            head = transaction",
        ),
        tests="store_processes",
        select="right_after_a_charge",
    ),
    mutant(
        "a file without hard links put in the place of another",
        (PLACING, 'with open(path, "xb") as claimed:', 'with open(path, "wb") as claimed:'),
        tests="store_links",
        select="links",
    ),
    mutant(
        "a file half copied that can be charged",
        (PLACING, "claimed.seek(_HEADER)\n            claimed.write(content[_HEADER:])", "claimed.write(content)"),
        tests="store_links",
        select="copied",
    ),
    mutant(
        "a journal beside a file that can only be read, not looked at",
        (SQLITE, "                raise last  # the file alone", "                pass  # the file alone"),
        tests="store_faults",
        select="beside_a_journal",
    ),
    mutant(
        "definitions of tables taken as the file tells them",
        (TABLES, "if _definitions(connection) != _made():", "if False:"),
        tests="store_damage store_faults",
        select="hid_charges or other_tables",
    ),
    mutant(
        "files of other schemas read",
        (TABLES, "if found != FILE_SCHEMA:", "if found > FILE_SCHEMA:"),
        tests="store_faults",
        select="another_schema",
    ),
    mutant(
        "pages of a file not compared with each other",
        (TABLES, 'if found != "ok":', "if False:"),
        tests="store_damage",
        select="hid_charges or five_charges",
    ),
    mutant(
        "a file that lost its last page of charges taken for whole",
        (STORE, "if last != (len(heads) - 1, heads[-1]):", "if False:"),
        tests="store_damage store_faults",
        select="another_moment or tampering",
    ),
    mutant(
        "a file that is never looked at as a whole",
        (STORE, "        if not self._sound:\n", "        if False:\n"),
        tests="store_damage store_faults",
        select="hid_charges or other_tables",
    ),
    mutant(
        "bytes in the place of text told with a bare error",
        (STORE, "    except TypeError:  # text that became bytes", "    except KeyError:"),
        tests="store_faults",
        select="tampering",
    ),
    mutant(
        "a new file beside the journal of one that is gone",
        (SQLITE, 'JOURNALS = ("-journal", "-wal")', 'JOURNALS = ("-wal",)'),
        tests="store_faults",
        select="without_its_file or beside_a_journal",
    ),
    mutant(
        "a file that keeps its charges in a log beside it",
        (SQLITE, "PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = WAL"),
        tests="store",
        select="on_the_disk",
    ),
    mutant(
        "entries made out while nobody else can charge",
        (
            STORE,
            'self._enter(transaction(self.path, "BEGIN", self._fetch))',
            'transaction(self.path, "BEGIN", self._catch_up)',
        ),
        tests="store_processes",
        select="made_out",
    ),
    mutant(
        "a lock that ends when another thread opens the file",
        (PLACING, 'with LOCK, open(path, "rb") as file:', 'with open(path, "rb") as file:'),
        tests="store_processes",
        select="who_opens",
    ),
    mutant(
        "a raise that leaves less made without a word",
        (ADMISSION, 'if not entry.parameters.get("allow_less"):', "if False:"),
        tests="raise",
    ),
    mutant(
        "a raise before the first charge that takes the filter away",
        (BALANCE, "self.raised = self.raised or bool(self._counts)", "self.raised = True"),
        tests="raise",
        select="before_the_first",
    ),
    mutant(
        "a raise after a charge that leaves the filter to decide",
        (BALANCE, "self.raised = self.raised or bool(self._counts)", "self.raised = self.raised"),
        tests="raise filters",
        select="raise",
    ),
    mutant(
        "null in JSON taken for what is usual",
        (SERIAL, "if content.get(name) is None]", "if name not in content]"),
        tests="raise",
        select="null",
    ),
    mutant(
        "charges to all forgotten for a new partition",
        (LEDGER, "self._own[partition] = self._common.copy(partition)", "self._own[partition] = Balance(self.terms)"),
        tests="partitions",
    ),
    mutant(
        "a charge to all admitted by one partition only",
        (
            LEDGER,
            "return max(each.load(event, adjacency, count) for",
            "return min(each.load(event, adjacency, count) for",
        ),
        tests="partitions",
    ),
    mutant(
        "partitions under another rule",
        (LEDGER, "if rule is not None and self.partition_rule not in (None, rule):", "if False:"),
        tests="partitions",
    ),
    mutant(
        "partitions that differ in white space",
        (CHARGES, " or value != value.strip()", ""),
        tests="partitions",
        select="white_space",
    ),
    mutant(
        "the last partition taken for the largest",
        (LEDGER, "return {each.event for each in self.balances}", "return {self.balances[-1].event}"),
        tests="partitions",
    ),
]
