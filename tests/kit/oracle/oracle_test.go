package oracle_test

import (
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

func TestStandaloneServesAndEnds(t *testing.T) {
	notShort(t)
	t.Parallel()
	s := oracle.Start(t, oracle.Options{Config: []string{"tickTime=500"}, JVM: []string{"-Dzookeeper.enforceQuota=true"}})
	conf := must.Get(s.Word("conf"))(t)
	if !strings.Contains(conf, "tickTime=500\n") {
		t.Errorf("the extra zoo.cfg line did not replace the default:\n%s", conf)
	}
	s.Stop()
	if _, err := s.Word("ruok"); err == nil {
		t.Error("the server still answers after Stop")
	}
	if err := s.Run(); err != nil {
		t.Fatalf("it does not start again: %v", err)
	}
	if out, err := s.Word("ruok"); err != nil || out != "imok" {
		t.Errorf("after a restart: ruok = %q, %v", out, err)
	}
}

func TestEnsembleElectsALeader(t *testing.T) {
	notShort(t)
	t.Parallel()
	leaders := 0
	for _, s := range oracle.Ensemble(t, 3, oracle.Options{Config: []string{"tickTime=500"}}) {
		out := must.Get(s.Word("srvr"))(t)
		if !strings.Contains(out, "Zookeeper version: "+oracle.Version) {
			t.Errorf("server %d is not %s:\n%s", s.ID, oracle.Version, out)
		}
		if strings.Contains(out, "Mode: leader") {
			leaders++
		}
	}
	if leaders != 1 {
		t.Errorf("%d leaders", leaders)
	}
}

// notShort skips a test that starts Java.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Java; not with -short")
	}
}
