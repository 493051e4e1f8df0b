# What zkServer.sh, zkCli.sh and zkCleanup.sh of zkgo have in common: sourced by them,
# never run. Directories and variables are those of ZooKeeper's scripts, so what is set
# in /etc/default, in a unit or in conf/zookeeper-env.sh goes on to work:
#
#   --config DIR, ZOOCFGDIR   where zoo.cfg is; without it ../conf or ../etc/zookeeper
#   ZOOCFG                    the name of the file in it: zoo.cfg
#   ZOO_LOG_DIR               where "start" sends the log: ../logs
#   ZOOPIDFILE                where "start" notes the process: <dataDir>/zookeeper_server.pid
#   ZKGO                      the program: beside the scripts, in ../bin, or in PATH
#   ZKGO_SERVER_FLAGS         more flags of "zkgo server"
#   SERVER_JVMFLAGS, JVMFLAGS ZooKeeper's system properties (-D) are settings for every zkgo
#                             command that reads zoo.cfg; of the others only the names are
#                             logged. Flags for heap and garbage collection, and JMX, have
#                             no meaning here.
#
# conf/java.env may set them, too.

prefix=${ZOOBINDIR:-/usr/bin}/..

if [ $# -gt 1 ] && [ "$1" = --config ]; then
  ZOOCFGDIR=$2
  shift 2
fi
if [ -z "${ZOOCFGDIR:-}" ]; then
  if [ -e "$prefix/conf" ]; then ZOOCFGDIR=$prefix/conf; else ZOOCFGDIR=$prefix/etc/zookeeper; fi
fi
# ZooKeeper's scripts allow unset variables, and such a file may extend one.
set +u
# shellcheck disable=SC1091 # files of the operator
for env in zookeeper-env.sh java.env; do
  if [ -f "$ZOOCFGDIR/$env" ]; then . "$ZOOCFGDIR/$env"; fi
done
set -u
# The program reads them.
export SERVER_JVMFLAGS JVMFLAGS ZOO_DATADIR_AUTOCREATE_DISABLE
ZOOCFG=$ZOOCFGDIR/${ZOOCFG:-zoo.cfg}
ZOO_LOG_DIR=${ZOO_LOG_DIR:-$prefix/logs}

if [ -z "${ZKGO:-}" ]; then
  if [ -x "$ZOOBINDIR/zkgo" ]; then
    ZKGO=$ZOOBINDIR/zkgo
  elif [ -x "$prefix/zkgo" ]; then
    ZKGO=$prefix/zkgo
  elif ! ZKGO=$(command -v zkgo); then
    echo "Error: ZKGO is not set and zkgo could not be found in PATH." >&2
    exit 1
  fi
fi

# setting KEY: the value of the last line with it in zoo.cfg, without the spaces
# around it; nothing if there is none.
setting() { setting_of "$1" "$ZOOCFG"; }

# setting_of KEY FILE
setting_of() {
  awk -v key="$1" '
    { at = index($0, "="); name = substr($0, 1, at - 1); gsub(/^[ \t\f]+|[ \t\f]+$/, "", name) }
    at && name == key { value = substr($0, at + 1); gsub(/^[ \t\f]+|[ \t\f\r]+$/, "", value); found = value }
    END { if (found != "") print found }' "$2"
}
