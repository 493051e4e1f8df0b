package takeover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestConfigure: the operator must give the options that the old ensemble's zoo.cfg requires, and
// we disconnect clients before the ensemble can end their sessions.
func TestConfigure(t *testing.T) {
	t.Parallel()
	m := must.Get(Configure(Options{From: "zk1:2888,zk2:2888", MinTimeout: 6 * time.Second}))(t)
	if len(m.cfg.Learner.Addrs) != 2 || m.cfg.Learner.SilenceTimeout != 0 {
		t.Errorf("%+v", m.cfg.Learner)
	}
	m = must.Get(Configure(Options{From: "zk1:2888", Serve: true, MinTimeout: 6 * time.Second}))(t)
	if m.cfg.Learner.SilenceTimeout != 4*time.Second {
		t.Errorf("silence is noticed after %v", m.cfg.Learner.SilenceTimeout)
	}
	for lines, want := range map[string]string{"sslQuorum=true": "--tls-cert", "quorum.auth.enableSasl=true": "--sasl", "x": "zoo.cfg"} {
		file := filepath.Join(t.TempDir(), "zoo.cfg")
		text := "clientPort=2181\nserver.1=zk1:2888:3888\n" + lines + "\n"
		if lines == "x" {
			text = "clientPort=2181\n"
		}
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := Configure(Options{From: file}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", lines, err)
		}
	}
}
