#!/bin/sh
# After the files of the package are gone. The data stays, whatever is asked for: it may
# be the only copy. So does the user, to whom it belongs.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
if [ "$1" = purge ] && [ -d /var/lib/zkgo ]; then
  echo "zkgo: /var/lib/zkgo is left as it is" >&2
fi
