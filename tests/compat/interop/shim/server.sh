#!/usr/bin/env bash
# Runs one server of the target in the foreground, in this very process: whoever
# starts it may kill it by its pid.
#
#   server.sh CONFIG [-Dkey=value…]
#
# A Java property "zookeeper.K" is the setting K of zoo.cfg; the others keep
# their names. The real server gets them as they are.
#
#   ZKGO_INTEROP_TARGET   zkgo or zookeeper
#   ZKGO_INTEROP_BINARY   the zkgo binary
#   ZKGO_INTEROP_JARS     the directory of the real server's jars
#   ZKGO_INTEROP_JAVA     the real java (a shim of that name may stand first in PATH)
set -euo pipefail
config=$1
shift

if [ "$ZKGO_INTEROP_TARGET" = zookeeper ]; then
  exec "$ZKGO_INTEROP_JAVA" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dfile.encoding=UTF-8 "$@" \
    -cp "$ZKGO_INTEROP_JARS:$ZKGO_INTEROP_JARS/*" org.apache.zookeeper.server.quorum.QuorumPeerMain "$config"
fi

settings=()
for property in "$@"; do
  case $property in
    # What only a JVM or its logger understands.
    -Dlog4j.* | -Dfile.encoding=* | -Djava.awt.* | -Dzookeeper.log.dir=* | -Dzookeeper.root.logger=*) ;;
    -Djava.security.krb5.* | -Dsun.security.*) ;;
    -Dzookeeper.*) settings+=(--set "${property#-Dzookeeper.}") ;;
    -D*) settings+=(--set "${property#-D}") ;;
    *) ;;
  esac
done
exec "$ZKGO_INTEROP_BINARY" server "${settings[@]}" "$config"
