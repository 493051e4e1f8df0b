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

	"github.com/zkgo/zkgo/tests/kit/process"
)

// stub installs the scripts with a program that prints its arguments, one in each line.
func stub(t *testing.T, config ...string) (home string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "a prefix")
	if err := os.CopyFS(filepath.Join(home, "bin"), os.DirFS(filepath.Join(root, "deploy/bin"))); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(home, "bin", "zkgo")
	write(t, program, "#!/bin/sh", `printf '%s\n' "$@"`)
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
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

// TestServerFlags: what the variables of ZooKeeper's scripts are as flags of zkgo server.
func TestServerFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  []string
		want string // the flags after the file
		says string // a part of the error stream
	}{
		"nothing":  {nil, "", ""},
		"heap":     {[]string{"SERVER_JVMFLAGS=-Xmx1g -XX:+UseG1GC -Dcom.sun.management.jmxremote.port=1"}, "", ""},
		"property": {[]string{"SERVER_JVMFLAGS=-Dzookeeper.sslQuorum=true"}, "--set sslQuorum=true", ""},
		"both, and * is no pattern": {[]string{"SERVER_JVMFLAGS=-Dzookeeper.snapCount=1", "JVMFLAGS=-Dzookeeper.snapCount=2 -Dzookeeper.4lw.commands.whitelist=*"},
			"--set snapCount=1 --set snapCount=2 --set 4lw.commands.whitelist=*", ""},
		"without prefix": {[]string{"JVMFLAGS=-Djute.maxbuffer=5 -Djava.security.auth.login.config=/a=b -Dznode.container.maxPerMinute=1 -Dreadonlymode.enabled=true"},
			"--set jute.maxbuffer=5 --set java.security.auth.login.config=/a=b --set znode.container.maxPerMinute=1 --set readonlymode.enabled=true", ""},
		"others": {[]string{"JVMFLAGS=-Djava.security.krb5.conf=/secret -DsuperUser=secret -javaagent:a.jar=secret"},
			"", "without effect here: java.security.krb5.conf superUser -javaagent\n"},
		"the file overrides": {[]string{"JVMFLAGS=-Dzookeeper.ssl.clientAuth=none"}, "", "-Dzookeeper.ssl.clientAuth has no effect"},
		"no directories":     {[]string{"ZOO_DATADIR_AUTOCREATE_DISABLE=1"}, "--set datadir.autocreate=false", ""},
		"zkgo's flags":       {[]string{"ZKGO_SERVER_FLAGS=--log-format json", "JVMFLAGS=-Dzookeeper.maxCnxns=2"}, "--set maxCnxns=2 --log-format json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := stub(t, "dataDir=/data", "ssl.clientAuth = need")
			out, diagnostics, err := words(t, home, c.env, "zkServer.sh", "start-foreground")
			if err != nil || !slices.Equal(out, append([]string{"server", home + "/bin/../conf/zoo.cfg"}, strings.Fields(c.want)...)) {
				t.Errorf("%v: %q", err, out)
			}
			first, rest, _ := strings.Cut(diagnostics, "\n")
			if !strings.HasPrefix(first, "Using config") || !strings.Contains(rest, c.says) || c.says == "" && rest != "" || strings.Contains(rest, "secret") {
				t.Errorf("it says %q", diagnostics)
			}
		})
	}
}

// TestJavaEnv: java.env may extend a variable that isn't set.
func TestJavaEnv(t *testing.T) {
	t.Parallel()
	home := stub(t, "dataDir=/data")
	write(t, home+"/conf/java.env", `export SERVER_JVMFLAGS="-Dzookeeper.sslQuorum=true $SERVER_JVMFLAGS"`)
	out, diagnostics, err := words(t, home, nil, "zkServer.sh", "start-foreground")
	if err != nil || len(out) != 4 || out[3] != "sslQuorum=true" {
		t.Errorf("%v: %q\n%s", err, out, diagnostics)
	}
}

// TestClientFlags: zkCli.sh says that TLS settings of the JVM have no effect.
func TestClientFlags(t *testing.T) {
	t.Parallel()
	home := stub(t)
	for env, want := range map[string]string{
		"CLIENT_JVMFLAGS=-Xmx1g": "",
		"CLIENT_JVMFLAGS=-Dzookeeper.client.secure=true -Dzookeeper.ssl.keyStore.password=secret": "without effect here: zookeeper.client.secure zookeeper.ssl.keyStore.password.",
	} {
		out, diagnostics, err := words(t, home, []string{env}, "zkCli.sh", "ls", "/")
		if err != nil || !slices.Equal(out, []string{"cli", "ls", "/"}) || !strings.Contains(diagnostics, want) ||
			want == "" && diagnostics != "" || strings.Contains(diagnostics, "secret") {
			t.Errorf("%s: %v: %q\n%s", env, err, out, diagnostics)
		}
	}
}

// TestNoDataDirectory: with ZOO_DATADIR_AUTOCREATE_DISABLE no command makes the data
// directory, and no server starts.
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
