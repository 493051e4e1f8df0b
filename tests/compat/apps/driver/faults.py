"""Breaks servers on purpose, to show that a check of an application can fail.

A proxy before each server reads the frames of ZooKeeper's protocol. With the fault "watches"
it drops the events of watches. With "sessions" it damages the password of a session that
moves, so that the server reports the session as expired.
"""

import contextlib
import socket
import struct
import threading

WATCH_EVENT = -1  # the xid of an event
LARGEST = 64 << 20  # a longer "frame" is a four-letter word
PASSWORD = slice(28, 44)  # in a request to connect, after version, zxid, timeout, session and length
SESSION = slice(16, 24)


class Proxy:
    """Forwards connections to a server, with a fault."""

    def __init__(self, address, server, fault):
        self.server, self.fault = server, fault
        self.hits = 0
        self.listener = socket.create_server(address)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client):
        try:
            server = socket.create_connection(self.server, 5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        threading.Thread(target=self._pump, args=(client, server, self._request), daemon=True).start()
        self._pump(server, client, self._reply)

    def _pump(self, source, target, change):
        """Forwards frames until one side closes. change returns the frame to send, or None."""
        with contextlib.suppress(OSError), source, target:
            first = True
            while head := _read(source, 4):
                length = struct.unpack(">i", head)[0]
                if not 0 <= length <= LARGEST:
                    target.sendall(head)
                    while data := source.recv(65536):
                        target.sendall(data)
                    break
                body = change(_read(source, length), first)
                first = False
                if body is not None:
                    target.sendall(head + body)
            for s in (source, target):
                s.shutdown(socket.SHUT_RDWR)

    def _request(self, body, first):
        if first and self.fault == "sessions" and len(body) >= PASSWORD.stop and body[SESSION] != bytes(8):
            self.hits += 1
            return body[: PASSWORD.start] + b"\xff" * 16 + body[PASSWORD.stop :]
        return body

    def _reply(self, body, first):
        if not first and self.fault == "watches" and len(body) >= 4 and struct.unpack(">i", body[:4])[0] == WATCH_EVENT:
            self.hits += 1
            return None
        return body


def _read(source, count):
    """Reads that many bytes, or returns nothing when the connection ended."""
    data = b""
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            return b""
        data += part
    return data
