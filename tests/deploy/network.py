"""A bridge with a subnet of its own for the containers of one run: 10.213.<number>.0/24, this machine is .254."""

from __future__ import annotations

import random
import subprocess

from tests.deploy.leftovers import Leftovers

NUMBERS = range(1, 255)


class Network:
    """Claimed by making the bridge: its name is taken or it is not, so two runs never share one."""

    def __init__(self, leftovers: Leftovers) -> None:
        for number in random.sample(NUMBERS, len(NUMBERS)):
            self.bridge, self.prefix = f"sqd{number}", f"10.213.{number}."
            if self._claim():
                break
        else:
            raise RuntimeError("there is no free number for a bridge")
        leftovers.later("ip", "link", "delete", self.bridge)
        ip("address", "add", f"{self.prefix}254/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")

    def _claim(self) -> bool:
        made = subprocess.run(
            ["ip", "link", "add", self.bridge, "type", "bridge"], capture_output=True, check=False
        )
        return made.returncode == 0


def ip(*arguments: str) -> None:
    """Run `ip` with these arguments; raises CalledProcessError."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
