"""Certificates for tests, made by openssl: of this machine's address, valid now or at another time."""

from __future__ import annotations

import datetime
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make certificates")


@dataclass(frozen=True)
class Certificate:
    """A certificate that signed itself.

    Attributes:
        public: what a client must trust.
        whole: with its key, for a server.
    """

    public: Path
    whole: Path


def make_certificate(folder: Path, from_days: int = -1, to_days: int = 2, host: str = "127.0.0.1") -> Certificate:
    """Make a certificate for an address of this machine.

    Args:
        folder: where its files lie; it must be empty.
        from_days: from when it is valid, counted from today.
        to_days: until when.
        host: the address that it is for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key, request, public = folder / "key.pem", folder / "request.pem", folder / "certificate.pem"
    names = folder / "names.cnf"
    names.write_text(f"subjectAltName=IP:{host}\n", encoding="ascii")
    subject = ["-subj", f"/CN={host}"]
    _openssl("req", "-newkey", "rsa:2048", "-nodes", *subject, "-keyout", str(key), "-out", str(request))
    (folder / "index.txt").touch()
    config = folder / "ca.cnf"
    config.write_text(
        f"[ca]\ndefault_ca=own\n[own]\ndatabase={folder}/index.txt\nnew_certs_dir={folder}\nrand_serial=yes\n"
        "default_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n",
        encoding="ascii",
    )
    now = datetime.datetime.now(datetime.UTC)
    start, end = (f"{now + datetime.timedelta(days=days):%Y%m%d%H%M%SZ}" for days in (from_days, to_days))
    dates = ["-startdate", start, "-enddate", end]
    signing = ["-selfsign", "-keyfile", str(key), "-in", str(request), "-out", str(public), "-extfile", str(names)]
    _openssl("ca", "-batch", "-notext", "-config", str(config), *dates, *signing)
    whole = folder / "whole.pem"
    whole.write_bytes(key.read_bytes() + public.read_bytes())
    return Certificate(public, whole)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
