"""Downloads what the applications need, once per machine.

Integrity is the package managers': Maven stops at a wrong checksum (-C), pip compares the
hashes in requirements.txt, Debian checks signatures, and Go its checksum database. Each
installation ends with a rename, under a lock, so that a broken download leaves nothing.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

APPS = pathlib.Path(__file__).resolve().parent.parent
ROOT = APPS.parent.parent.parent
CACHE = pathlib.Path(os.environ.get("ZKGO_CI_DIR") or pathlib.Path.home() / ".cache/zkgo-ci") / "apps"


class CannotInstall(Exception):
    """Something that an application needs can't be installed here."""


@contextlib.contextmanager
def locked(name):
    """Keeps two runs on one machine from installing the same thing."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def command(argv, what, seconds=1500, **options):
    """Runs a command that uses the network, three times if it fails, and returns its output."""
    for n in range(3):
        time.sleep(5 * n)
        r = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, **options)
        if r.returncode == 0:
            return r.stdout
    raise CannotInstall(f"{what} failed three times: {(r.stdout + r.stderr).strip()[-800:]}")


def once(name, identity, make):
    """Returns a directory in the cache that make(directory) fills the first time."""
    home = CACHE / f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}"
    with locked(name):
        if not home.exists():
            temp = pathlib.Path(tempfile.mkdtemp(prefix=f".{name}-", dir=CACHE))
            try:
                print(f"install {name}", flush=True)
                make(temp)
                os.rename(temp, home)
            finally:
                shutil.rmtree(temp, ignore_errors=True)
    return home


def debian(*packages, present):
    """Installs Debian packages unless present() holds, without starting their services."""
    if present():
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise CannotInstall(f"not installed, and only root on Debian can install them: {' '.join(packages)}")
    clusters = pathlib.Path("/etc/postgresql-common/createcluster.conf")
    if any(p.startswith("postgresql") for p in packages) and not clusters.exists():
        clusters.parent.mkdir(parents=True, exist_ok=True)
        clusters.write_text("create_main_cluster = false\n")
    options = ["-q", "-o", "DPkg::Lock::Timeout=900", "-o", "Acquire::Retries=3"]
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    with locked("apt"):
        if not present():
            print("install", *packages, flush=True)
            command(["apt-get", *options, "update"], "apt-get update", env=env)
            command(["apt-get", *options, "install", "-y", "--no-install-recommends", *packages], f"apt-get install {' '.join(packages)}", env=env)
    if not present():
        raise CannotInstall(f"Debian's packages {' '.join(packages)} lack what we need")


def java():
    """A JDK and Maven."""
    debian("openjdk-17-jdk-headless", "maven", present=lambda: shutil.which("javac") and shutil.which("mvn"))


def maven(name, artifacts):
    """Returns the class path of artifacts, e.g. org.slf4j:slf4j-simple:2.0.13, and of what they depend on."""
    java()

    def make(home):
        dependencies = ""
        for artifact in artifacts:
            group, ident, version = artifact.split(":")
            dependencies += f"<dependency><groupId>{group}</groupId><artifactId>{ident}</artifactId><version>{version}</version></dependency>\n"
        (home / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            f"<groupId>zkgo</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        command(["mvn", "-q", "-B", "-C", "-f", home / "pom.xml", goal, f"-DoutputDirectory={home}/lib", "-DincludeScope=runtime"], f"the download of {name}")

    return f"{once(name, ' '.join(artifacts), make)}/lib/*"


def classes(name, class_path):
    """Compiles java/NAME.java against a class path and returns the class path with its class."""
    source = APPS / "java" / f"{name}.java"
    home = once(name, source.read_text() + class_path, lambda home: command(["javac", "-cp", class_path, "-d", home, source], f"javac {source}"))
    return f"{home}:{class_path}"


def go_tests(name):
    """Compiles the tests of a Go module in this folder and returns the program."""
    source = APPS / name
    identity = "".join(p.read_text() for p in sorted(source.iterdir()))
    build = lambda home: command(["go", "test", "-c", "-o", home / "tests", "."], f"go test -c in {source}", cwd=source)
    return once(name, identity, build) / "tests"


def hadoop_xml(properties):
    """Returns the text of a configuration file of Hadoop's kind."""
    lines = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    return "<configuration>" + "".join(lines) + "</configuration>"


def python():
    """Returns the interpreter of a virtual environment with the packages of requirements.txt."""
    needs = APPS / "requirements.txt"
    debian("python3-venv", present=lambda: subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0)

    def make(home):
        command([sys.executable, "-m", "venv", "--copies", home], "python3 -m venv")
        # A virtual environment moves when nothing but its interpreter is called.
        command([home / "bin/python", "-m", "pip", "install", "-q", "--only-binary", ":all:", "--no-binary", "ydiff", "--require-hashes", "-r", needs], "pip install")

    return once("python", f"{sys.version} {needs.read_text()}", make) / "bin/python"


def zookeeper():
    """Returns the class path of Apache ZooKeeper 3.9.5."""
    java()
    with locked("zookeeper"):
        jars = command([ROOT / "tests/kit/oracle/install.sh"], "tests/kit/oracle/install.sh").split()[-1]
    return f"{jars}:{jars}/*"


def zkgo(given, directory):
    """Returns the zkgo program: the one given, or one built from this checkout."""
    if given:
        if not os.access(given, os.X_OK):
            raise CannotInstall(f"--zkgo {given}: not an executable file")
        return os.path.abspath(given)
    target = directory / "zkgo"
    command(["go", "build", "-o", target, "./cmd/zkgo"], "go build ./cmd/zkgo", cwd=ROOT, env=dict(os.environ, CGO_ENABLED="0", GOFLAGS="-buildvcs=false"))
    return str(target)
