package secure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// logback makes the real server write its audit log as its own logback.xml does.
const logback = `<configuration>
  <appender name="AUDIT" class="ch.qos.logback.core.FileAppender">
    <file>audit.log</file><encoder><pattern>%d{ISO8601} %p %c{2}: %m%n</pattern></encoder>
  </appender>
  <logger name="org.apache.zookeeper.audit.Slf4jAuditLogger" additivity="false" level="INFO"><appender-ref ref="AUDIT"/></logger>
</configuration>`

const jaas = `Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  user_bob="secret"
  user_super="adminpw";
};
Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  username="bob"
  password="secret";
};
`

// TestAuditLines makes the same changes, and mistakes, on both servers and compares their
// audit logs line by line.
func TestAuditLines(t *testing.T) {
	needOracle(t)
	t.Parallel()
	config := []string{"audit.enable=true", "extendedTypesEnabled=true", "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
	login := file(t, "jaas.conf", jaas)
	theirs := oracle.Start(t, oracle.Options{Config: config, JVM: []string{
		"-Dlogback.configurationFile=" + file(t, "logback.xml", logback), "-Djava.security.auth.login.config=" + login,
	}})
	theirLog := filepath.Join(theirs.Dir, "audit.log")
	ourLog := filepath.Join(t.TempDir(), "audit.log")
	ours := process.Start(t, t.TempDir(), sets(append(config, "java.security.auth.login.config="+login, "audit.file="+ourLog)...)...)
	want := changes(t, theirs.Addr(), theirLog)
	got := changes(t, ours.Addr, ourLog)
	for i, line := range got {
		// ZooKeeper doesn't log the type of a sequential znode that a multi creates.
		if strings.Contains(line, "/m/as-") {
			got[i] = strings.Replace(line, "\tznode_type=persistent_sequential", "", 1)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("zkgo:\n%s\nZooKeeper:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(want) < 25 {
		t.Errorf("only %d lines were compared", len(want))
	}
}

// changes makes changes and returns the lines that the server at addr has logged for them.
func changes(t *testing.T, addr, log string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := must.Get(client.Connect(ctx, addr, client.WithSASL(client.DigestMD5("bob", "secret")), client.WithSessionTimeout(30*time.Second)))(t)
	step := 0
	result := func(err error, refused bool) {
		step++
		if (err != nil) != refused {
			t.Fatalf("%s: step %d: %v", addr, step, err)
		}
	}
	create := func(refused bool, path string, o ...client.CreateOption) {
		_, err := c.Create(ctx, path, nil, o...)
		result(err, refused)
	}
	multi := func(refused bool, ops ...client.Op) {
		_, err := c.Multi(ctx, ops...)
		result(err, refused)
	}
	acl := func(refused bool, path string, acl ...client.ACL) {
		_, err := c.SetACL(ctx, path, acl, client.AnyVersion)
		result(err, refused)
	}
	set := func(refused bool, path string, version int32) {
		_, err := c.Set(ctx, path, []byte("x"), version)
		result(err, refused)
	}
	create(false, "/m")
	create(true, "/m")
	create(false, "/m/s-", client.Sequential)
	create(true, "/none/s-", client.Sequential)
	create(false, "/m/e", client.Ephemeral)
	create(false, "/m/es-", client.Ephemeral|client.Sequential)
	create(false, "/m/c", client.Container)
	create(false, "/m/t", client.WithTTL(time.Hour))
	create(false, "/m/ts-", client.WithTTL(time.Hour), client.Sequential)
	create(false, "/with space, ünï")
	multi(false, client.CreateOp("/m/a", nil), client.CreateOp("/m/as-", nil, client.Sequential), client.SetOp("/m", nil, -1), client.CheckOp("/m", -1), client.DeleteOp("/m/a", -1))
	multi(true, client.CreateOp("/m/a", nil), client.SetOp("/none", nil, -1))
	set(false, "/m", client.AnyVersion)
	set(true, "/m", 77)
	set(true, "/none", client.AnyVersion)
	result(c.Delete(ctx, "/m", client.AnyVersion), true)
	result(c.Delete(ctx, "/m/c", client.AnyVersion), false)
	result(c.AddAuth(ctx, "digest", []byte("eve:pw")), false)
	create(false, "/acl")
	acl(false, "/acl", client.ACL{Perms: client.PermAll, ID: client.ID{Scheme: "world", ID: "anyone"}}, client.ACL{Perms: client.PermRead | client.PermAdmin, ID: client.ID{Scheme: "ip", ID: "127.0.0.1"}})
	acl(true, "/acl", client.ACL{Perms: client.PermAll, ID: client.ID{Scheme: "nix"}})
	acl(false, "/acl", client.ACL{Perms: client.PermRead, ID: client.ID{Scheme: "auth"}})
	set(true, "/acl", client.AnyVersion)
	acl(true, "/acl", client.WorldACL(client.PermAll)...)
	create(false, "/acl2", client.WithACL(client.CreatorACL(client.PermAll)...))
	_, err := c.Reconfig(ctx, client.Reconfiguration{Joining: []string{"server.7=127.0.0.1:5555:5556;5557"}, Version: -1})
	result(err, true)
	must.Do(t, c.Close())
	return lines(t, log, func(lines []string) bool {
		return strings.Count(strings.Join(lines, "\n"), "ephemeralZNodeDeletion") == 2
	})
}

// session and prefix match what differs between two runs.
var (
	session = regexp.MustCompile(`session=0x[0-9a-f]+`)
	prefix  = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} `)
	user    = regexp.MustCompile(`user=[^\t]*`)
)

// lines waits until a log is complete and returns its lines without what differs between two
// runs: times, sessions, and the order in which ZooKeeper lists the identities of a client,
// or deletes ephemeral znodes, which is the order of a hash table.
func lines(t *testing.T, log string, complete func([]string) bool) []string {
	t.Helper()
	var found []string
	err := wait.For(patience, "all lines of "+log, func() (bool, error) {
		found = nil
		b, err := os.ReadFile(log)
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSuffix(line, "\n")
			if !prefix.MatchString(line) {
				line = "without a time: " + line
			}
			line = session.ReplaceAllString(prefix.ReplaceAllString(line, ""), "session=S")
			found = append(found, user.ReplaceAllStringFunc(line, func(names string) string {
				all := strings.Split(strings.TrimPrefix(names, "user="), ",")
				slices.Sort(all)
				return fmt.Sprint("user=", all)
			}))
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return complete(found), nil
		}
		return false, err
	})
	if err != nil {
		t.Fatalf("%v:\n%s", err, strings.Join(found, "\n"))
	}
	n := slices.IndexFunc(found, func(l string) bool { return strings.Contains(l, "ephemeralZNodeDeletion") })
	slices.Sort(found[n:])
	return found
}
