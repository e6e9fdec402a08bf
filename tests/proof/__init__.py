"""A long run of the installed packages in network namespaces, with all faults mixed by a seed: `make proof`.

It plays the clients, faults and judges of tests/chaos on machines whose network and disks are the kernel's: packets
that routes drop, file systems that lose their power. docs/PROOF.md has its results.
"""
