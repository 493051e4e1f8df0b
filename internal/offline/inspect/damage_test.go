package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/raftfsm/boltlog"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// problems returns the problems of files.
func problems(files []File) (all []string) {
	for i := range files {
		if files[i].Problem != "" {
			all = append(all, files[i].Problem)
		}
	}
	return all
}

// home is a kind of server. The test damages its directory.
type home struct {
	name   string
	member bool
	cfg    server.Config
	killed bool // the directory is copied while the server runs
}

func homes(t *testing.T) []home {
	t.Helper()
	return []home{
		{name: "standalone"},
		{name: "standalone killed", killed: true},
		{name: "standalone bolt", cfg: server.Config{Log: server.Log{Store: string(raftlog.Bolt), Bolt: boltlog.Format{}}}},
		{name: "member", member: true},
		{name: "member killed", member: true, killed: true},
		{name: "member bolt", member: true, cfg: server.Config{Log: server.Log{Store: string(raftlog.Bolt), Bolt: boltlog.Format{}}}},
	}
}

// config returns the configuration of a server of this kind on dir.
func (h *home) config(t *testing.T, dir string) server.Config {
	t.Helper()
	c := h.cfg
	c.ClientAddr, c.DataDir, c.Log.Dir, c.Log.SnapTrailing, c.Log.Segment = "127.0.0.1:0", dir, dir, 20, 8<<10
	if h.member {
		c.Quorum.ID, c.Quorum.Ensemble = 1, true
		c.Quorum.Members = []raftfsm.Member{{ID: 1, QuorumAddr: freeAddr(t), ElectionAddr: freeAddr(t), ClientAddr: "127.0.0.1:0"}}
	}
	return c
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	return l.Addr().String()
}

// fill makes a server write a log of several files and two snapshots, and returns a
// copy of its directory and the digest of its state.
func (h *home) fill(t *testing.T) (dir, state string) {
	t.Helper()
	work := t.TempDir()
	if h.member {
		must.Do(t, os.WriteFile(filepath.Join(work, "myid"), []byte("1\n"), 0o600))
	}
	s, err := server.Start(t.Context(), h.config(t, work))
	must.Do(t, err)
	defer s.Close()
	<-s.Ready()
	c, err := client.Connect(t.Context(), s.ClientAddrs()[0])
	must.Do(t, err)
	for i := range 60 {
		_, err = c.Create(t.Context(), fmt.Sprintf("/n%d", i), []byte(strings.Repeat("x", 300)))
		must.Do(t, err)
		if i == 25 || i == 50 {
			must.Do(t, s.Node().Snapshot())
		}
	}
	must.Do(t, c.Close())
	state = stateOf(t, s)
	dir = t.TempDir()
	if !h.killed {
		must.Do(t, s.Close())
	}
	must.Do(t, os.CopyFS(dir, os.DirFS(work)))
	return dir, state
}

// stateOf returns a digest of the znodes of a server without /zookeeper/config, which a
// server with another address updates.
func stateOf(t *testing.T, s *server.Server) string {
	t.Helper()
	tree := s.Node().Tree()
	tree.RLock()
	defer tree.RUnlock()
	var b strings.Builder
	must.Do(t, tree.Dump(&b))
	digest := sha256.New()
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "zxid=") && !strings.Contains(line, "/zookeeper/config") {
			digest.Write([]byte(line))
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// served starts a server on dir and returns its state.
func (h *home) served(t *testing.T, dir string) (string, error) {
	t.Helper()
	s, err := server.Start(t.Context(), h.config(t, dir))
	if err != nil {
		return "", err
	}
	defer s.Close()
	select {
	case <-s.Ready():
		return stateOf(t, s), nil
	case err := <-s.Err():
		return "", err
	}
}

// paths returns the files below dir as relative paths.
func paths(t *testing.T, dir string) (all []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, rel)
		}
		return err
	}))
	return all
}

// damage changes one file and describes the change.
func damage(t *testing.T, rng *rand.Rand, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must.Do(t, err)
	used := len(strings.TrimRight(string(b), "\x00"))
	at := rng.IntN(max(1, used)) // where there is content
	switch n := rng.IntN(10); {
	case n == 0:
		must.Do(t, os.Remove(path))
		return "removed"
	case n < 4:
		must.Do(t, os.Truncate(path, int64(at)))
		return fmt.Sprintf("cut at %d of %d", at, len(b))
	case n == 4:
		clear(b[at:])
		must.Do(t, os.WriteFile(path, b, 0o600))
		return fmt.Sprintf("zeros from %d of %d", at, len(b))
	default:
		b[at] ^= byte(1 + rng.IntN(255))
		must.Do(t, os.WriteFile(path, b, 0o600))
		return fmt.Sprintf("byte %d of %d changed", at, len(b))
	}
}

// TestVerifyFindsDamage damages every file of a server. Either Verify should report the
// damage, or a server should serve exactly the same state as before. A warning is enough
// only if the server was killed. ZKGO_FLIPS sets the number of times each file is damaged.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	rounds := 5
	if n, err := strconv.Atoi(os.Getenv("ZKGO_FLIPS")); err == nil {
		rounds = n
	}
	for i, h := range homes(t) {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			dir, want := h.fill(t)
			files, err := Verify(Dirs{Data: dir})
			if err != nil || problems(files) != nil || len(files) < 4 {
				t.Fatalf("undamaged: %+v, %v", files, err)
			}
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			reported, same := 0, 0
			for _, rel := range paths(t, dir) {
				for range rounds {
					broken := t.TempDir()
					must.Do(t, os.CopyFS(broken, os.DirFS(dir)))
					what := rel + " " + damage(t, rng, filepath.Join(broken, rel))
					files, err := Verify(Dirs{Data: broken})
					warned := h.killed && slices.ContainsFunc(files, func(f File) bool { return f.Warning != "" })
					if err != nil || problems(files) != nil || warned {
						reported++
						continue
					}
					same++
					if got, err := h.served(t, broken); err != nil || got != want {
						t.Errorf("%s: verify reported nothing, but the server serves %s instead of %s: %v", what, got, want, err)
					}
				}
			}
			t.Logf("%d damages reported, %d without effect", reported, same)
			if reported == 0 {
				t.Error("nothing was reported")
			}
		})
	}
}
