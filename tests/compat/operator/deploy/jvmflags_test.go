//go:build linux

package deploy

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// stub installs the scripts with a program that prints its arguments in a line, as a mode of
// a server, and writes the variables that it reads to a file.
func stub(t *testing.T, config ...string) (home string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "a prefix")
	must.Do(t, os.CopyFS(filepath.Join(home, "bin"), os.DirFS(filepath.Join(root, "deploy/bin"))))
	program := filepath.Join(home, "bin", "zkgo")
	write(t, program, "#!/bin/sh", `echo "Mode: $*"`, `echo "$SERVER_JVMFLAGS|$JVMFLAGS|$ZOO_DATADIR_AUTOCREATE_DISABLE" >"${0%/*}/../environment"`)
	must.Do(t, os.Chmod(program, 0o755))
	write(t, home+"/conf/zoo.cfg", config...)
	return home
}

// words runs a script with the variables env, and returns its output's lines.
func words(t *testing.T, home string, env []string, name string, args ...string) (out []string, diagnostics string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := command(t, filepath.Join(home, "bin", name), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n"), stderr.String(), err
}

// TestServerFlags: the program should get the variables of ZooKeeper's scripts, which
// contain system properties, and zkgo's flags. status should use the settings of start.
func TestServerFlags(t *testing.T) {
	t.Parallel()
	const properties = "-Dzookeeper.sslQuorum=true -Dzookeeper.4lw.commands.whitelist=*"
	env := []string{"SERVER_JVMFLAGS=" + properties, "JVMFLAGS=-Xmx1g", "ZOO_DATADIR_AUTOCREATE_DISABLE=1", "ZKGO_SERVER_FLAGS=--log-format json"}
	home := stub(t, "dataDir=/data", "clientPort=1")
	config := home + "/bin/../conf/zoo.cfg"
	for args, want := range map[string]string{
		"start-foreground":           "server CONFIG --log-format json",
		"start-foreground other.cfg": "server CONF/other.cfg --log-format json",
		"status":                     "health --word srvr CONFIG --log-format json",
		"status other.cfg":           "health --word srvr CONF/other.cfg --log-format json",
	} {
		out, diagnostics, err := words(t, home, env, "zkServer.sh", strings.Fields(args)...)
		want = strings.NewReplacer("CONFIG", config, "CONF", strings.TrimSuffix(config, "/zoo.cfg")).Replace(want)
		if err != nil || out[len(out)-1] != "Mode: "+want {
			t.Errorf("%s: %v: %q\n%s", args, err, out, diagnostics)
		}
		got, err := os.ReadFile(filepath.Join(home, "environment"))
		if text := string(got); err != nil || text != properties+"|-Xmx1g|1\n" {
			t.Errorf("%s: the environment is %q, %v", args, text, err)
		}
	}
	out, _, err := words(t, home, env, "zkServer.sh", "print-cmd")
	if want := `SERVER_JVMFLAGS="` + properties + `" JVMFLAGS="-Xmx1g" ZOO_DATADIR_AUTOCREATE_DISABLE="1" "` + home + `/bin/zkgo" "server" "`; err != nil || !strings.HasPrefix(out[0], want) {
		t.Errorf("print-cmd: %v: %q", err, out)
	}
}

// TestJavaEnv: java.env should be able to set a variable that isn't exported, and extend
// one that isn't set.
func TestJavaEnv(t *testing.T) {
	t.Parallel()
	home := stub(t, "dataDir=/data")
	write(t, home+"/conf/java.env", `SERVER_JVMFLAGS="-Dzookeeper.sslQuorum=true $SERVER_JVMFLAGS"`)
	out, diagnostics, err := words(t, home, nil, "zkServer.sh", "start-foreground")
	got, readErr := os.ReadFile(filepath.Join(home, "environment"))
	if err != nil || readErr != nil || string(got) != "-Dzookeeper.sslQuorum=true ||\n" {
		t.Errorf("%v: %q, %q\n%s", err, out, got, diagnostics)
	}
}

// TestClientFlags: zkCli.sh should warn that TLS settings of the JVM have no effect.
func TestClientFlags(t *testing.T) {
	t.Parallel()
	home := stub(t)
	for env, want := range map[string]string{
		"CLIENT_JVMFLAGS=-Xmx1g": "",
		"CLIENT_JVMFLAGS=-Dzookeeper.client.secure=true -Dzookeeper.ssl.keyStore.password=secret": "without effect here: zookeeper.client.secure zookeeper.ssl.keyStore.password.",
	} {
		out, diagnostics, err := words(t, home, []string{env}, "zkCli.sh", "ls", "/")
		if err != nil || !slices.Equal(out, []string{"Mode: cli ls /"}) || !strings.Contains(diagnostics, want) ||
			want == "" && diagnostics != "" || strings.Contains(diagnostics, "secret") {
			t.Errorf("%s: %v: %q\n%s", env, err, out, diagnostics)
		}
	}
}

// TestNoDataDirectory: with ZOO_DATADIR_AUTOCREATE_DISABLE no command should create the
// data directory, and no server should start.
func TestNoDataDirectory(t *testing.T) {
	t.Parallel()
	home := stub(t)
	data := filepath.Join(home, "data")
	write(t, home+"/conf/zoo.cfg", "dataDir="+data, "clientPort=0", "admin.enableServer=false")
	disabled := []string{"ZOO_DATADIR_AUTOCREATE_DISABLE=1"}
	out, _, err := words(t, home, disabled, "zkServer.sh", "start")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out[0], "data directory is missing at "+data) {
		t.Errorf("start: %v: %q", err, out)
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory: %v", err)
	}
}

// TestNoDataDirectoryServer is TestNoDataDirectory with the real server.
func TestNoDataDirectoryServer(t *testing.T) {
	process.Needed(t)
	home := install(t)
	data := filepath.Join(home, "data")
	write(t, home+"/conf/zoo.cfg", "dataDir="+data, "clientPort=0", "admin.enableServer=false")
	_, diagnostics, err := words(t, home, []string{"ZOO_DATADIR_AUTOCREATE_DISABLE=1"}, "zkServer.sh", "start-foreground")
	if err == nil || !strings.Contains(diagnostics, "datadir.autocreate=false") {
		t.Errorf("%v\n%s", err, diagnostics)
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory: %v", err)
	}
}
