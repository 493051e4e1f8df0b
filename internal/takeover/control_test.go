package takeover

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestControl asks a server that follows nothing yet.
func TestControl(t *testing.T) {
	t.Parallel()
	dir := must.Get(os.MkdirTemp("", "zkgo"))(t) // the path of a socket must be short
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := New(Config{Learner: learner.Config{Addrs: []string{"127.0.0.1:1"}}, Old: &mirror.Old{}, Logger: slog.New(slog.DiscardHandler)})
	s := must.Get(server.Start(t.Context(), server.Config{DataDir: dir, Env: server.Env{Mirror: m}}))(t)
	t.Cleanup(func() { _ = s.Close() })
	ctx := t.Context()
	c := NewClient(dir)
	if _, err := c.Status(ctx); err == nil || !strings.Contains(err.Error(), "zkgo mirror") {
		t.Errorf("without a socket: %v", err)
	}
	must.Get(m.Serve(ctx, dir, s.Node()))(t)
	if info := must.Get(os.Stat(Socket(dir)))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v", info.Mode())
	}
	st := must.Get(c.Status(ctx))(t)
	if st.Phase != "none" || st.InSync {
		t.Errorf("%+v", st)
	}
	if _, err := c.Cutover(ctx, CutoverOptions{}, nil); err == nil || !strings.Contains(err.Error(), "phase none") {
		t.Errorf("cutover: %v", err)
	}
	for _, phase := range []string{"open", "fenced", "done", "nonsense"} {
		if _, err := c.SetPhase(ctx, phase); err == nil {
			t.Errorf("the phase can become %s", phase)
		}
	}
	if _, err := c.Snapshot(ctx, io.Discard); err == nil || !strings.Contains(err.Error(), "phase is none") {
		t.Errorf("snapshot: %v", err)
	}
	select {
	case <-s.Ready():
		t.Error("a server that waits for a mirror serves clients")
	default:
	}
}
