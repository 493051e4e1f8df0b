package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/offline/container"
)

func prepare(root string, more map[string]string, flags ...string) (s serverFlags, log string, err error) {
	var out bytes.Buffer
	variables := []string{"ZOO_CONF_DIR=" + root + "/conf", "ZOO_DATA_DIR=" + root + "/data", "ZOO_DATA_LOG_DIR=" + root + "/log"}
	if more["ZOO_MY_ID"] == "" {
		variables = append(variables, "ZOO_MY_ID=1")
	}
	for name, value := range more {
		variables = append(variables, name+"="+value)
	}
	s = serverFlags{clientPort: unset, set: flags, getenv: environ(variables...)}
	err = prepareContainer(container.FromEnvironment(variables), &s, slog.New(slog.NewTextHandler(&out, nil)))
	return s, out.String(), err
}

// TestContainerChecksBeforeItWrites: a wrong variable should leave no file, so that the
// corrected one has an effect.
func TestContainerChecksBeforeItWrites(t *testing.T) {
	t.Parallel()
	const three = "server.1=a:2888:3888;2181 server.2=b:2888:3888;2181 server.3=c:2888:3888;2181"
	for name, more := range map[string]map[string]string{
		"tickTime":     {"ZOO_TICK_TIME": "2s"},
		"too large":    {"ZOO_MY_ID": "3000", "ZOO_SERVERS": three},
		"no number":    {"ZOO_MY_ID": "x"},
		"no such JAAS": {"SERVER_JVMFLAGS": "-Djava.security.auth.login.config=/no/such/jaas.conf"},
		"no boolean":   {"JVMFLAGS": "-Dzookeeper.ssl.clientAuth=perhaps"},
		"no directory": {"ZOO_DATADIR_AUTOCREATE_DISABLE": "1"},
		"no member":    {"ZOO_SERVERS": "zk1:2888:3888;2181"},
	} {
		root := t.TempDir()
		if _, _, err := prepare(root, more); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if entries, err := os.ReadDir(root); err != nil || len(entries) != 0 {
			t.Errorf("%s: it has written %v, %v", name, entries, err)
		}
		for _, file := range []string{"conf/zoo.cfg", "data/myid"} {
			if _, err := os.Stat(filepath.Join(root, file)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s: %v", name, file, err)
			}
		}
		if _, _, err := prepare(root, map[string]string{"ZOO_SERVERS": three}); err != nil {
			t.Errorf("%s, corrected: %v", name, err)
		}
	}
}

// TestContainerJVMFlags: the properties should be settings of the server, after the file
// and before --set.
func TestContainerJVMFlags(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s, log, err := prepare(root, map[string]string{
		"SERVER_JVMFLAGS": "-Xmx1g -Dzookeeper.snapCount=7 -Djute.maxbuffer=2000000 -Dreadonlymode.enabled=true -Dzookeeper.tickTime=9",
		"JVMFLAGS":        "-Dzookeeper.snapCount=8 -Dzookeeper.DigestAuthenticationProvider.superDigest=super:hash -Dzookeeper.maxCnxns=5 -Dother.password=hidden",
	}, "maxCnxns=6")
	if err != nil {
		t.Fatal(err)
	}
	z, err := s.zooCfg()
	if err != nil {
		t.Fatal(err)
	}
	if z.SnapCount != 8 || z.JuteMaxBuffer != 2000000 || !z.ReadOnlyMode || z.Auth.SuperDigest != "super:hash" || z.MaxCnxns != 6 || z.TickTime.Milliseconds() != 2000 {
		t.Errorf("the settings are %+v", z.Settings())
	}
	warnings := fmt.Sprint(z.Warnings)
	for _, want := range []string{"JVM flags without effect here: other.password", "-Dzookeeper.tickTime has no effect"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("there is no warning %q:\n%s", want, warnings)
		}
	}
	if strings.Contains(log+warnings, "hidden") {
		t.Errorf("the log has a value:\n%s\n%s", log, warnings)
	}
}

// TestContainerUnknownVariables: one warning should name them, with the most similar known
// ones, and another the script, because there is no shell to run it.
func TestContainerUnknownVariables(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.MkdirAll(root+"/conf", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/conf/java.env", []byte("export SERVER_JVMFLAGS=-Dzookeeper.snapCount=5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, log, err := prepare(root, map[string]string{"ZOO_TICKTIME": "500", "ZOO_QWERTZ": "1"})
	if !strings.Contains(log, "/conf/java.env has no effect") || strings.Contains(log, "zookeeper-env.sh") {
		t.Errorf("the log says of java.env:\n%s", log)
	}
	if want := "unknown variables: ZOO_QWERTZ, ZOO_TICKTIME (did you mean ZOO_TICK_TIME?)"; err != nil || strings.Count(log, want) != 1 {
		t.Errorf("%v: the log lacks %q:\n%s", err, want, log)
	}
}

// TestContainerMakesNoDirectory: with ZOO_DATADIR_AUTOCREATE_DISABLE we should use the
// existing directories and turn off datadir.autocreate for the server, too.
func TestContainerMakesNoDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"data", "log"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s, _, err := prepare(root, map[string]string{"ZOO_DATADIR_AUTOCREATE_DISABLE": "1"})
	if err != nil {
		t.Fatal(err)
	}
	if z, err := s.zooCfg(); err != nil || z.DataDirAutocreate {
		t.Errorf("datadir.autocreate: %v", err)
	}
}
