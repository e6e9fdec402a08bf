"""The cluster of all tests: three bare hosts, and what came of the first runs of site.yml on them."""

from __future__ import annotations

from typing import Any, Self

from tests.deploy.cluster import Cluster, Run

WATCHDOG_S = 15
SECRET = "secret-of-the-tests"
SQS_SECRET, SHOP_SECRET = "secret-of-the-front-ends", "secret-of-the-shop"
VARIABLES = {
    "sockpqd_watchdog_s": WATCHDOG_S,
    "sockpqd_users": {
        "worker": {"rights": ["put", "get"], "secret": SECRET},
        "sqs": {"rights": ["put", "get", "queue"], "secret": SQS_SECRET},
        "shop": {"rights": ["put:shop.*", "get:shop.*", "queue:shop.*"], "secret": SHOP_SECRET},
    },
}


class Installed(Cluster):
    """`checked` is the run in check mode before, `installed` the one that installed everything."""

    checked: Run
    installed: Run

    def __init__(self) -> None:
        super().__init__(VARIABLES)

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self.checked = self.playbook("site.yml", "--check")
            self.left_by_check = self.ssh("n1", "ls -d /opt/sockpqd /etc/sockpqd /run/sockpqd; id sockpqd", check=False)
            self.installed = self.playbook("site.yml")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Of a sockpq client that puts and takes jobs."""
        return {"tls": str(self.secrets / "ca.crt"), "user": "worker", "secret": SECRET}
