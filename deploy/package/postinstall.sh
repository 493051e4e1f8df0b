#!/bin/sh
# After the files of the package are there.
set -e
if ! getent group zkgo >/dev/null; then groupadd --system zkgo; fi
if ! getent passwd zkgo >/dev/null; then
  useradd --system --gid zkgo --home-dir /var/lib/zkgo --no-create-home --shell /usr/sbin/nologin zkgo
fi
if [ ! -d /var/lib/zkgo ]; then mkdir -m 0750 /var/lib/zkgo; fi
chown zkgo:zkgo /var/lib/zkgo
# With reconfigEnabled=true the server keeps the files in step with the membership.
chown root:zkgo /etc/zkgo && chmod 0775 /etc/zkgo
chown zkgo:zkgo /etc/zkgo/zoo.cfg
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # An update replaces the program of a server that runs; a new installation starts
  # nothing: first it has to be told of its ensemble.
  systemctl try-restart zkgo.service
fi
