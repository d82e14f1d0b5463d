"""Downloads of ACS files from a local server, and their cache."""

from __future__ import annotations

import http.server
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from census_files import acs, one_line, zip_bytes

from skdp.datasets import fetch_acs_pums, load_pums


class Server:
    """A Census Bureau on this machine: `files` maps a path to bytes; `requests` lists what was asked for."""

    def __init__(self):
        self.files, self.requests, self.cut = {}, [], None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                body = outer.files.get(self.path)
                if body is None:
                    return self.send_error(404)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: outer.cut])
                return None

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/pums"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()
    server.thread.join()


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def fetch(server, home, state="GA", year=2018, **kwargs):
    return fetch_acs_pums(state, year, data_home=home, base_url=server.url, **kwargs)


def put(server, tmp_path, frame, state="ga", year=2018, **kwargs):
    body = zip_bytes(tmp_path / "upload.zip", frame, **kwargs)
    server.files[f"/pums/{year}/1-Year/csv_p{state}.zip"] = body
    return body


def nothing_kept(home):
    return [path for path in home.rglob("*") if path.is_file()] == []


def test_fetch_downloads_once(server, home, tmp_path):
    body = put(server, tmp_path, acs())
    first = fetch(server, home, "ga")
    assert server.requests == ["/pums/2018/1-Year/csv_pga.zip"]
    kept = sorted(path.name for path in home.rglob("*") if path.is_file())
    assert kept == ["csv_pga.zip", "csv_pga.zip.sha256"]
    assert (home / "acs_pums/2018/csv_pga.zip").read_bytes() == body
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = fetch(server, home, "GA", features=["age"], labour_force_only=True)
    assert len(server.requests) == 1
    np.testing.assert_array_equal(first.data, load_pums(tmp_path / "upload.zip", year=2018).data)
    assert again.feature_names == ["age"]
    assert len(again.target) == len(again.sample_weight) < len(first.target)


def test_fetch_gives_the_year_to_the_recode(server, home, tmp_path):
    put(server, tmp_path, acs(4, MIL=[1, 2, 2, 4]), year=2012)
    assert fetch(server, home, year=2012, features=["militaryservice"]).data.ravel().tolist() == [1, 1, 1, 1]


def test_fetch_of_2023_and_later_with_state_for_st(server, home, tmp_path):
    put(server, tmp_path, acs().rename(columns={"ST": "STATE"}), year=2023)
    assert fetch(server, home, year=2023).data.shape == (80, 11)


def test_a_short_download_leaves_nothing(server, home, tmp_path):
    put(server, tmp_path, acs())
    server.cut = 1000
    with pytest.raises(OSError, match="cut short, 1000 of") as error:
        fetch(server, home)
    one_line(error)
    assert nothing_kept(home)
    server.cut = None
    assert fetch(server, home).data.shape == (80, 11)


def test_a_missing_file_is_told_with_its_address(server, home):
    with pytest.raises(OSError, match=r"/pums/2018/1-Year/csv_pga\.zip.*404") as error:
        fetch(server, home)
    assert "load_pums" in one_line(error)
    assert nothing_kept(home)


def test_no_server_at_all(server, home):
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(OSError, match="try again later") as error:
        fetch(server, home, timeout=5)
    one_line(error)
    assert nothing_kept(home)


def test_fetch_damaged_archive_raises(server, home, tmp_path):
    damaged = bytearray(put(server, tmp_path, acs()))
    damaged[damaged.index(b"psam_p13.csv") + 600] ^= 0xFF
    for body in (bytes(damaged), b"<html>down for maintenance</html>"):
        server.files["/pums/2018/1-Year/csv_pga.zip"] = body
        with pytest.raises(OSError, match=r"checksum|sound zip") as error:
            fetch(server, home)
        one_line(error)
        assert nothing_kept(home)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"SERIALNO": [1], "WGTP": [2]}), "no ACS person file"),
        (acs().drop(columns="ESR"), "no ACS person file"),
        (acs(ST=[13] * 79 + [12]), "ST is not 13 throughout"),
    ],
    ids=["housing", "without ESR", "another state"],
)
def test_fetch_other_table_raises(server, home, tmp_path, frame, said):
    put(server, tmp_path, frame)
    with pytest.raises(ValueError, match=said) as error:
        fetch(server, home)
    one_line(error)
    assert nothing_kept(home)


@pytest.mark.parametrize("harm", ["flip", "no digest"])
def test_a_damaged_cache_is_downloaded_anew(server, home, tmp_path, harm):
    body = put(server, tmp_path, acs())
    fetch(server, home)
    kept, digest = home / "acs_pums/2018/csv_pga.zip", home / "acs_pums/2018/csv_pga.zip.sha256"
    if harm == "flip":
        kept.write_bytes(body[:500] + bytes([body[500] ^ 1]) + body[501:])
    else:
        digest.unlink()
    with pytest.warns(UserWarning, match="downloaded again"):
        assert fetch(server, home).data.shape == (80, 11)
    assert len(server.requests) == 2
    assert kept.read_bytes() == body
    fetch(server, home)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("state", "year", "said"),
    [
        ("XX", 2018, "state='XX'"),
        (13, 2018, "state=13"),
        ("GA", 2020, "no standard 1-year file"),
        ("GA", 2008, "2009 to 2024"),
    ],
)
def test_unknown_states_and_years_ask_nobody(server, home, state, year, said):
    with pytest.raises(ValueError, match=said) as error:
        fetch(server, home, state, year)
    one_line(error)
    assert server.requests == []
    with pytest.raises(ValueError, match="not an http"):
        fetch_acs_pums("GA", 2018, data_home=home, base_url="file:///etc")
