"""Installs what the suites need, once per machine: into ~/.cache/zkgo-interop,
and Debian's packages where the driver may.

Every installation is finished by a rename or by a marker written last, under a
lock: a broken download or two runs at once never leave half of one behind.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from base import ROOT, CannotRun, locked, retry, run, say

GOZK = "github.com/go-zookeeper/zk"
GOZK_VERSION = "v1.0.4"
KAZOO = "kazoo[sasl]==2.11.0"
# Kazoo's harness makes its certificates with X509Extension, which the newest
# pyOpenSSL lacks.
KAZOO_NEEDS = ["pytest==8.3.5", "pytest-timeout==2.3.1", "objgraph", "gevent>=1.2", "eventlet>=0.17.1", "pyjks", "pyopenssl==24.2.1"]
CURATOR = "5.9.0"


def apt(env, packages, present):
    """Installs Debian's packages unless present() already holds."""
    if present():
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise CannotRun(f"not installed, and only root on Debian can install them: {' '.join(packages)}")
    options = ["-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"]
    quiet = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    log = env.logs / "apt.log"

    def attempt():
        say("install", *packages)
        run(["apt-get", *options, "update"], log, 300, env=quiet)
        command = ["apt-get", *options, "install", "-y", "--no-install-recommends", *packages]
        return run(command, log, 900, env=quiet) == 0 and present()

    with locked(env.cache / "apt.lock"):
        if not present():
            retry("apt-get install " + " ".join(packages), attempt)


def java(env):
    """A JDK 17 and Maven, and the jars of the real server."""
    apt(env, ["openjdk-17-jdk-headless"], lambda: shutil.which("javac") is not None)
    apt(env, ["maven"], lambda: shutil.which("mvn") is not None)
    env.java = shutil.which("java")

    def attempt():
        result = subprocess.run([ROOT / "tests/kit/oracle/install.sh"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        (env.logs / "oracle-install.log").write_text(result.stdout + result.stderr)
        env.jars = result.stdout.strip().splitlines()[-1] if result.returncode == 0 else ""
        return bool(env.jars)

    with locked(env.cache / "oracle.lock"):
        retry("tests/kit/oracle/install.sh", attempt)


def binary(env):
    """The zkgo binary: the one given, or one built from this checkout."""
    given = os.environ.get("ZKGO_INTEROP_BINARY")
    if given:
        if not os.access(given, os.X_OK):
            raise CannotRun(f"ZKGO_INTEROP_BINARY={given} is not an executable file")
        env.binary = os.path.abspath(given)
        return
    env.binary = str(env.work / "zkgo")
    log = env.logs / "build.log"
    build = dict(os.environ, CGO_ENABLED="0", GOFLAGS="-buildvcs=false")
    if run(["go", "build", "-o", env.binary, "./cmd/zkgo"], log, 900, env=build, cwd=ROOT) != 0:
        raise CannotRun(f"go build ./cmd/zkgo failed: {log.read_text().strip()}")


def gozk(env):
    """The test binary of go-zookeeper, built from its module's own source."""
    home = env.cache / f"gozk-{GOZK_VERSION}-1"
    with locked(env.cache / "gozk.lock"):
        if not (home / "gozk.test").exists():
            temp = pathlib.Path(tempfile.mkdtemp(prefix=".gozk-", dir=env.cache))
            try:
                _build_gozk(env, temp / "src", temp / "gozk.test")
                shutil.rmtree(home, ignore_errors=True)
                os.rename(temp, home)
            finally:
                shutil.rmtree(temp, ignore_errors=True)
    return home


def _build_gozk(env, source, target):
    found = {}

    def download():
        command = ["go", "mod", "download", "-json", f"{GOZK}@{GOZK_VERSION}"]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        found.update(json.loads(result.stdout or "{}"))
        return result.returncode == 0 and "Dir" in found

    retry(f"download of {GOZK}", download)
    shutil.copytree(found["Dir"], source)
    for path in [source, *source.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    _read_iso_build_dates(source)
    log = env.logs / "gozk-build.log"
    if run(["go", "test", "-c", "-o", target, "."], log, 900, cwd=source) != 0:
        raise CannotRun(f"go-zookeeper's tests do not compile: {log.read_text().strip()}")


def _read_iso_build_dates(source):
    """Lets go-zookeeper's srvr parser read "built on 2026-02-11 20:18 UTC" too.

    Its harness waits for every server with that parser, which only knows the
    older date format: with ZooKeeper 3.9.5, none of its tests would get past
    "unable to verify health of servers".
    """
    path = source / "flw.go"
    text = path.read_text()
    for old, new in (
        (r"built on (\d\d/\d\d/\d\d\d\d \d\d:\d\d ", r"built on ([-/\d]{10} \d\d:\d\d "),
        ('time.Parse("01/02/2006 15:04 MST", match[1])', "parseBuildTime(match[1])"),
    ):
        if old not in text:
            raise CannotRun(f"{path}: {old!r} is not there to be replaced")
        text = text.replace(old, new)
    path.write_text(text)
    (source / "buildtime.go").write_text(
        """package zk

import "time"

func parseBuildTime(text string) (time.Time, error) {
	if t, err := time.Parse("01/02/2006 15:04 MST", text); err == nil {
		return t, nil
	}
	return time.Parse("2006-01-02 15:04 MST", text)
}
"""
    )


def venv(env):
    """A Python environment with Kazoo, whose package contains its tests."""
    home = env.cache / "kazoo-2.11.0-2"
    python = home / "bin" / "python"
    marker = home / ".complete"
    apt(env, ["python3-venv"], _has_ensurepip)
    with locked(env.cache / "kazoo.lock"):
        if not marker.exists():
            shutil.rmtree(home, ignore_errors=True)
            log = env.logs / "kazoo-install.log"
            retry("python3 -m venv", lambda: run(["python3", "-m", "venv", home], log, 300) == 0)
            pip = [python, "-m", "pip", "install", "-q", "--retries", "5", KAZOO, *KAZOO_NEEDS]
            retry("pip install kazoo", lambda: run(pip, log, 900) == 0)
            marker.touch()
    return python


def _has_ensurepip():
    command = ["python3", "-c", "import ensurepip, venv"]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0


def curator(env):
    """The directory of Curator's jars."""
    home = env.cache / f"curator-{CURATOR}-1"
    with locked(env.cache / "curator.lock"):
        if not home.exists():
            temp = pathlib.Path(tempfile.mkdtemp(prefix=".curator-", dir=env.cache))
            try:
                pom = ROOT / "tests/compat/interop/curator/pom.xml"
                command = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={temp}"]
                log = env.logs / "curator-install.log"
                retry("the download of Curator", lambda: run(command, log, 900) == 0)
                os.rename(temp, home)
            finally:
                shutil.rmtree(temp, ignore_errors=True)
    return home


def c_client(env):
    """ZooKeeper's C client, its shell and a compiler."""
    apt(
        env,
        ["zookeeper-bin", "libzookeeper-mt-dev", "gcc", "libc6-dev"],
        lambda: os.path.exists("/usr/lib/zookeeper/bin/cli_mt")
        and os.path.exists("/usr/include/zookeeper/zookeeper.h")
        and shutil.which("gcc") is not None,
    )
