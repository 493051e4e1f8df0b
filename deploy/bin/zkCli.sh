#!/usr/bin/env bash
# ZooKeeper's command line client, by its name: zkgo cli takes the same arguments.
set -u
ZOOBINDIR=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$ZOOBINDIR/zkEnv.sh"

# A connection without the TLS or the login that was asked for must not go unnoticed.
unused=
read -r -d '' -a flags <<<"${CLIENT_JVMFLAGS:-} ${JVMFLAGS:-}" || true # split at spaces, as ZooKeeper's scripts do
for flag in ${flags[@]+"${flags[@]}"}; do
  case $flag in
    -Dzookeeper.client.secure* | -Dzookeeper.ssl.* | -Dzookeeper.sasl.* | -Djava.security.* | -Djavax.net.ssl.* | -Djute.maxbuffer*)
      flag=${flag#-D}
      unused="$unused ${flag%%=*}"
      ;;
  esac
done
if [ -n "$unused" ]; then
  echo "Warning: JVM flags without effect here:$unused. See -client-configuration and the --tls flags of zkgo cli." >&2
fi

exec "$ZKGO" cli "$@"
