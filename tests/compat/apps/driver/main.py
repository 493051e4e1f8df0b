"""Runs applications against servers, one after the other: see run.sh for the options."""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import install
import page
import process

APPLICATIONS = sorted(p.stem for p in (install.APPS / "applications").glob("*.py") if not p.stem.endswith("_common"))


def options(arguments):
    p = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    p.add_argument("--list", action="store_true", help="the applications and what we exercise")
    p.add_argument("--install", action="store_true", help="only download what they need")
    p.add_argument("--page", metavar="FILE", help="write the table of the docs from the results in FILE")
    p.add_argument("--servers", choices=["zkgo", "zookeeper", "both"], default="zkgo")
    p.add_argument("--zkgo", metavar="PATH", default="")
    p.add_argument("--short", action="store_true", help="a part of the checks, for .ci/run")
    p.add_argument("--slow", type=float, default=3, metavar="FACTOR")
    p.add_argument("--record", metavar="FILE")
    p.add_argument("--keep", metavar="DIRECTORY")
    p.add_argument("--fault", choices=["watches", "sessions", "freeze"])
    p.add_argument("application", nargs="*", default=[])
    o = p.parse_args(arguments)
    if unknown := [a for a in o.application if a not in APPLICATIONS]:
        p.error(f"no such application: {' '.join(unknown)}; choose from: {' '.join(APPLICATIONS)}")
    o.application = o.application or APPLICATIONS
    return o


def module(name):
    return importlib.import_module(f"applications.{name}")


def main(arguments):
    """Returns the exit code."""
    o = options(arguments)
    if o.list:
        for name in APPLICATIONS:
            m = module(name)
            print(f"{name:16} {m.TITLE} {m.VERSION}: {m.EXERCISED}")
        return 0
    if o.page:
        return page.write(pathlib.Path(o.page), {name: module(name) for name in APPLICATIONS})
    python = install.python()
    if pathlib.Path(sys.prefix) != python.parent.parent:  # the packages are there, and not here
        os.execv(python, [str(python), "-B", __file__, *arguments])
    if o.install:
        for name in o.application:
            module(name).install()
        install.zookeeper()
        return 0
    process.supervise()
    work = pathlib.Path(o.keep).absolute() if o.keep else pathlib.Path(tempfile.mkdtemp(prefix="zkgo-apps-", dir="/tmp"))  # TMPDIR may be root's alone
    try:
        work.mkdir(parents=True, exist_ok=True)
        work.chmod(0o755)  # PostgreSQL doesn't run as root
        kinds = ["zkgo", "zookeeper"] if o.servers == "both" else [o.servers]
        program = install.zkgo(o.zkgo, work) if "zkgo" in kinds else ""
        results = [one(o, name, kind, program, work) for name in o.application for kind in kinds]
        if o.fault:  # the checks should notice
            return 0 if all(r["failed"] for r in results) else 1
        return 0 if all(r["failed"] == 0 and r["passed"] for r in results) else 1
    except install.CannotInstall as e:
        print(f"run.sh: {e}")
        return 1
    finally:
        process.end_all()
        if not o.keep:
            shutil.rmtree(work, ignore_errors=True)


def one(o, name, servers, zkgo, work):
    """Runs one application and returns its result."""
    import checks  # needs the packages of requirements.txt

    m = module(name)
    print(f"{name} on {servers}", flush=True)
    home = work / f"{name}-{servers}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    load = os.getloadavg()[0]
    run = checks.Run(name, servers, zkgo, home, o.slow, o.short, o.fault)
    try:
        m.check(run)
    except Exception as e:  # also an exception between two checks is a failure of the application
        run.fail(e)
    finally:
        result = {"application": name, "version": m.VERSION, **run.finish()}
        process.end_all()
        if not o.keep:
            shutil.rmtree(home, ignore_errors=True)
    result.update(load=[round(load, 1), round(os.getloadavg()[0], 1)], cpus=os.cpu_count(), date=time.strftime("%Y-%m-%d"))
    if o.fault:
        result["fault"] = o.fault
    line = json.dumps(result)
    print(line, flush=True)
    if o.record:
        with open(o.record, "a") as file:
            file.write(line + "\n")
    return result


def ended(*_):
    sys.exit(143)


if __name__ == "__main__":
    sys.path.insert(0, str(install.APPS))
    signal.signal(signal.SIGTERM, ended)  # so that "finally" still ends all processes
    signal.signal(signal.SIGHUP, ended)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
