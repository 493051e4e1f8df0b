package conformance_test

import (
	"context"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tests/compat/conformance"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// startZkgo starts zkgo in this process, in memory, with the settings of the
// script, and returns its client address.
func startZkgo(t *testing.T, s *conformance.Script) string {
	t.Helper()
	lines := append([]string{"tickTime=2000", "dataDir=/unused", "clientPort=0", "maxClientCnxns=0"}, s.Server...)
	z := must.Get(zoocfg.ParseText("zoo.cfg", strings.Join(append(lines, s.JVM...), "\n")))(t)
	cfg := must.Get(server.LoadConfig(z.Path, zoocfg.Parsed(z)))(t)
	cfg.Memory, cfg.DataDir, cfg.Log.Dir = true, "", ""
	cfg.ClientAddr = "127.0.0.1:0"
	srv := must.Get(server.Start(context.Background(), cfg))(t)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("closing zkgo: %v", err)
		}
	})
	return srv.ClientAddr()
}

// onZkgo runs the script against a fresh zkgo.
func onZkgo(t *testing.T, s *conformance.Script) string {
	t.Helper()
	transcript, err := conformance.Run(s, startZkgo(t, s))
	if err != nil {
		t.Errorf("%v\ntranscript:\n%s", err, tail(transcript, 20))
	}
	return transcript
}

// TestZkgo plays every script to zkgo and compares the transcript with the real
// server's, except for the listed differences.
func TestZkgo(t *testing.T) {
	differences := must.Get(conformance.ReadDifferences("testdata/differences.txt"))(t)
	for _, s := range scripts(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && s.Slow() {
				t.Skip("waits for the server's clock; not with -short")
			}
			want := must.Get(conformance.Apply(differences, s.Name, golden(t, s.Name)))(t)
			if d := conformance.Compare(want, onZkgo(t, s)); d != "" {
				t.Error(d)
			}
		})
	}
}
