"""The faults of the proof that act from outside, on other systems and on sockpqd for comparison.

    python -m tests.proof.peers rabbitmq --minutes 10 --seed 7

Three machines with a disk each (tests/proof/network.py, power.py), the system's own servers on them, and clients that
put jobs, take and end them by the system's usual library. Faults are packets that are lost, processes that are paused
or killed, power that fails, and bits that flip. Jobs that were confirmed and never came are lost; jobs whose end was
confirmed and that came again are doubled. This is less than the proof asks of sockpqd, and the same for all systems.
"""
