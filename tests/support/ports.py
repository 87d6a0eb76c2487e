# SPDX-License-Identifier: Apache-2.0
"""Ports of the loopback for servers of a test."""
import socket

held = []


def free_port():
    """One that nobody listens on, and that nobody else gets while this program runs: the kernel gives a bound one to no
    connection and to nobody who asks for any. A server may listen there (with SO_REUSEADDR, which servers set), stop and
    start again."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(('127.0.0.1', 0))
    held.append(holder)
    return holder.getsockname()[1]
