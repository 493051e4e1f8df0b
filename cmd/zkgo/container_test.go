package main

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/offline/container"
)

// containerPlan returns the plan for directories in root and the variables in more.
func containerPlan(root string, more map[string]string) container.Plan {
	values := map[string]string{"ZOO_CONF_DIR": root + "/conf", "ZOO_DATA_DIR": root + "/data", "ZOO_DATA_LOG_DIR": root + "/log", "ZOO_MY_ID": "1"}
	maps.Copy(values, more)
	return container.FromEnvironment(func(name string) (string, bool) { v, ok := values[name]; return v, ok })
}

func prepare(root string, more map[string]string, flags ...string) (s serverFlags, log string, err error) {
	var out bytes.Buffer
	s = serverFlags{clientPort: unset, set: flags}
	err = prepareContainer(containerPlan(root, more), &s, slog.New(slog.NewTextHandler(&out, nil)))
	return s, out.String(), err
}

// TestContainerChecksBeforeItWrites: a wrong variable leaves no file behind, so that the
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

// TestContainerJVMFlags: the properties are settings of the server, after the file and
// before --set.
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
	for _, want := range []string{"JVM flags without effect here: other.password", "-Dzookeeper.tickTime has no effect"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "hidden") {
		t.Errorf("the log has a value:\n%s", log)
	}
}

// TestContainerMakesNoDirectory: with ZOO_DATADIR_AUTOCREATE_DISABLE the directories that
// exist are used, and datadir.autocreate is off for the server, too.
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
