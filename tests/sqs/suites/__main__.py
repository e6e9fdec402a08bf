"""Runs the tests of SQS of moto and of ElasticMQ against sockpq-sqs before one node, and compares with DIFFERENCES.md.

    python -m tests.sqs.suites moto SOURCES --packages FOLDER
    python -m tests.sqs.suites elasticmq SOURCES --build FOLDER

SOURCES are checkouts of github.com/getmoto/moto and github.com/softwaremill/elasticmq. The folder --packages has moto
of the same version with what its server needs, pytest and pytest-timeout (`pip install --target FOLDER 'moto[server]'
pytest pytest-timeout freezegun`). ElasticMQ's need Java and Maven, which fetches the compiler and the SDKs into
--build. Their tests know their URLs: ports 5000 and 9321 must be free. The exit code is 1 if a test fails that the
table does not have, or one of the table passes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from devcluster.cluster import LocalCluster
from tests.sqs.service import SECRET, USER, Service
from tests.sqs.suites.differences import RACES, SUITES, rows

HERE = Path(__file__).parent
ACCOUNT = "123456789012"
PORTS = {"moto": 5000, "elasticmq": 9321}
MOTO = ("tests/test_sqs/test_sqs.py", "tests/test_sqs/test_sqs_message_attributes.py")
ELASTICMQ = "rest/rest-sqs-testing-amazon-java-sdk/src/test/scala/org/elasticmq/rest/sqs/integration"
OF_ITS_PROCESS = ("MultiSdkTestSuite", "HealthCheck", "Tracing")        # need its server in the same process
OPENED = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")     # without it SDK 1 reads no errors with Java 17


def main() -> int:
    """Run a suite; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.sqs.suites", description="Tests of other implementations of SQS.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--packages", type=Path, help="moto, for its tests")
    parser.add_argument("--build", type=Path, help="where ElasticMQ's tests are compiled")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="all that the suite says")
    options = parser.parse_args()
    wanted = options.packages if options.suite == "moto" else options.build
    if wanted is None:
        parser.error("moto needs --packages, elasticmq --build")
    run: Callable[[str, Path, Path], str] = moto if options.suite == "moto" else elasticmq
    with tempfile.TemporaryDirectory(prefix="sqs-") as name:
        settings = Path(name, "sqs.toml")
        settings.write_text(f'[sqs]\naccount = "{ACCOUNT}"\n', "utf-8")
        with (
            LocalCluster(1) as cluster,
            Service(cluster.servers, Path(name), "--config", str(settings), port=PORTS[options.suite]),
        ):
            said = run(f"http://localhost:{PORTS[options.suite]}", options.sources.absolute(), wanted.absolute())
    options.log.write_text(said, "utf-8")
    print(said.strip().splitlines()[-1])
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S*::(\S+)|^- (.*) \*\*\* FAILED", said, re.MULTILINE))
    ran = re.search(r"\d passed|succeeded \d", said) is not None
    return _judge(options.suite, {"".join(one) for one in failed}, ran=ran)


def _judge(suite: str, failed: set[str], *, ran: bool) -> int:
    """Compare with the table; returns the exit code."""
    known = set(rows(suite))
    failed -= RACES
    for name in sorted(failed - known):
        print("fails, and is not in the table:", name)
    for name in sorted(known - failed):
        print("is in the table, and passes:", name)
    print(f"{len(failed & known)} of {len(known)} known differences")
    return 0 if ran and failed == known else 1


def moto(url: str, sources: Path, packages: Path) -> str:
    """Run moto's tests; returns what they say."""
    return _run([
        sys.executable, "-m", "pytest", "-p", "moto_plugin", "-p", "no:cacheprovider", "--rootdir", str(sources), "-c",
        os.devnull, "-q", "-rfE", "--tb=short", "-W", "ignore", "--timeout=120", *MOTO,
    ], sources, TEST_SERVER_MODE="true", TEST_SERVER_MODE_ENDPOINT=url, SQS_ACCOUNT=ACCOUNT,
        PYTHONPATH=os.pathsep.join((str(packages), str(HERE), str(sources))))


def elasticmq(url: str, sources: Path, build: Path) -> str:
    """Compile and run ElasticMQ's tests; returns what they say."""
    tests, classes, listed = sources / ELASTICMQ, build / "classes", build / "classpath"
    classes.mkdir(parents=True, exist_ok=True)
    if not listed.exists():
        subprocess.run([
            "mvn", "-q", "-f", str(HERE / "elasticmq.xml"), "dependency:build-classpath", f"-Dmdep.outputFile={listed}",
        ], check=True)
    classpath = listed.read_text("utf-8").strip()
    files = [
        HERE / "Remote.scala", *tests.glob("client/*.scala"), tests / "common/AwsConfig.scala",
        tests / "common/IntegrationTestsBase.scala",
        *(one for one in tests.glob("multisdk/*.scala") if not one.name.startswith(OF_ITS_PROCESS)),
    ]
    subprocess.run([
        "java", "-Xss8m", "-Xmx1500m", "-cp", classpath, "scala.tools.nsc.Main", "-nowarn", "-cp", classpath, "-d",
        str(classes), *map(str, files),
    ], check=True)
    return _run([
        "java", *OPENED, "-Xmx800m", f"-Dendpoint={url}", f"-Daccess={USER}", f"-Dsecret={SECRET}", "-cp",
        f"{classes}:{classpath}", "org.scalatest.tools.Runner", "-R", str(classes), "-oW", "-s",
        "org.elasticmq.rest.sqs.integration.common.Sdk1", "-s", "org.elasticmq.rest.sqs.integration.common.Sdk2",
    ], build)


def _run(command: list[str], folder: Path, **more: str) -> str:
    environment = {
        **os.environ, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true", **more,
    }
    done = subprocess.run(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
