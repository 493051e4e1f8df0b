#!/bin/sh
# Before the files of the package go: deb says "remove" or "upgrade", rpm 0 or 1.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
  if [ -d /run/systemd/system ]; then systemctl --no-reload disable --now zkgo.service || true; fi
fi
