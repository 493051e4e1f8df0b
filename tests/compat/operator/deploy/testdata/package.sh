# package.sh DEB PORT: the life of the package on a machine. Prints "all is well", or what
# is not.
set -u
deb=$1 port=$2
fail() { echo "FAILED: $*"; exit 1; }
is() { [ "$1" = "$2" ] || fail "$3: $1, not $2"; }

dpkg -s zkgo >/dev/null 2>&1 && fail "zkgo is installed already"
trap 'dpkg -P zkgo >/dev/null 2>&1' EXIT

dpkg --no-triggers -i "$deb" || fail "dpkg -i"
[ -z "$(dpkg -V zkgo)" ] || fail "the files are not those of the package: $(dpkg -V zkgo)"
getent passwd zkgo >/dev/null || fail "there is no user zkgo"
is "$(stat -c '%U:%G %a' /var/lib/zkgo)" "zkgo:zkgo 750" /var/lib/zkgo
is "$(stat -c '%U:%G %a' /etc/zkgo)" "root:zkgo 775" /etc/zkgo
[ -f /usr/lib/systemd/system/zkgo.service ] || fail "there is no unit"
man -w zkgo-server >/dev/null && man -w 5 zoo.cfg >/dev/null || fail "there is no man page"
for file in /usr/share/zkgo/grafana/zkgo.json /usr/share/zkgo/prometheus/alerts.yml /usr/share/bash-completion/completions/zkgo \
  /usr/share/zsh/vendor-completions/_zkgo /usr/share/fish/vendor_completions.d/zkgo.fish /usr/share/doc/zkgo/README.md \
  /usr/share/doc/zkgo/SECURITY.md /usr/share/doc/zkgo/docs/operate/quickstart.md; do
  [ -s $file ] || fail "there is no $file"
done

# The server, as the unit starts it.

sed -i "s/^clientPort=.*/clientPort=$port/; s/^admin.serverPort=.*/admin.enableServer=false/" /etc/zkgo/zoo.cfg
setpriv --reuid=zkgo --regid=zkgo --init-groups zkgo server /etc/zkgo/zoo.cfg >/tmp/zkgo.log 2>&1 &
pid=$!
zkgo health /etc/zkgo/zoo.cfg --wait 60s --timeout 60s || fail "the server: $(cat /tmp/zkgo.log)"
is "$(/usr/share/zkgo/bin/zkServer.sh status 2>/dev/null | tail -1)" "Mode: standalone" "zkServer.sh status"
kill $pid
wait $pid || fail "the server ended with $?: $(cat /tmp/zkgo.log)"
[ -f /var/lib/zkgo/identity.json ] || fail "there is no data in /var/lib/zkgo"

# An update keeps what somebody has written into the configuration.
dpkg --no-triggers --force-confdef --force-confold -i "$deb" || fail "the update"
grep -q "clientPort=$port" /etc/zkgo/zoo.cfg || fail "the update has changed zoo.cfg"

# Removed: no program, but the configuration. Purged: only the data.
dpkg --no-triggers -r zkgo || fail "dpkg -r"
[ ! -e /usr/bin/zkgo ] || fail "/usr/bin/zkgo is left"
[ -e /etc/zkgo/zoo.cfg ] || fail "dpkg -r has removed zoo.cfg"
dpkg --no-triggers -P zkgo || fail "dpkg -P"
[ ! -e /etc/zkgo/zoo.cfg ] || fail "dpkg -P has left zoo.cfg"
[ -f /var/lib/zkgo/identity.json ] || fail "the data is gone"
rm -rf /var/lib/zkgo
userdel zkgo
echo all is well
