"""sockpqd on real hosts: Debian in systemd-nspawn containers, installed and looked after by Ansible over ssh."""
