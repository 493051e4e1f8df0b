package transport

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// snapshotPair is a leader, server 1, and a follower, server 2, which notes the snapshots
// that it gets.
type snapshotPair struct {
	net              *quorum.Memory
	leader, follower *Transport
	newest           atomic.Uint64 // index of the leader's newest snapshot
	opened           atomic.Int64
	leads            atomic.Bool
	refusal          atomic.Pointer[string] // the follower's answer to a snapshot; nil: it installs it
	unreadable       atomic.Bool            // the follower ends the stream: it can't read the snapshot

	mu        sync.Mutex
	installed []uint64 // indexes
}

// snapshotBytes is large enough not to fit into one packet.
var snapshotBytes = bytes.Repeat([]byte("s"), 5000)

func newSnapshotPair(t *testing.T) *snapshotPair {
	p := &snapshotPair{net: quorum.NewMemory()}
	p.leads.Store(true)
	p.newest.Store(100)
	// With the third, the leader has a quorum without server 2.
	conf := raft.Configuration{Servers: []raft.Server{{ID: "1", Address: "s1:1"}, {ID: "2", Address: "s2:1"}, {ID: "3", Address: "s3:1"}}}
	p.leader = New(Config{Hub: newHub(t, p.net, quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, io.Discard), ID: "1", Addr: "s1:1",
		View: func() View {
			if p.leads.Load() {
				return View{Leader: "1", Term: 7, Config: conf}
			}
			return View{Leader: "2", Term: 8, Config: conf}
		},
		OpenSnapshot: func() (*raft.SnapshotMeta, io.ReadCloser, error) {
			p.opened.Add(1)
			return &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: p.newest.Load(), Term: 6, Configuration: conf, ConfigurationIndex: 1,
				Size: int64(len(snapshotBytes))}, io.NopCloser(bytes.NewReader(snapshotBytes)), nil
		}})
	p.follower = New(Config{Hub: newHub(t, p.net, quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, io.Discard), ID: "2", Addr: "s2:1",
		CheckSnapshot: func(*raft.InstallSnapshotRequest, io.Reader) error {
			if p.unreadable.Load() {
				return errors.New("snapshot of format 9, this server knows 1")
			}
			return nil
		}})
	p.follower.SetHeartbeatHandler(func(rpc raft.RPC) {
		rpc.Respond(&raft.AppendEntriesResponse{Term: 7, Success: true}, nil)
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case rpc := <-p.follower.Consumer():
				p.install(rpc)
			case <-p.follower.ctx.Done():
				return
			}
		}
	}()
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		for p.leader.pause(100 * time.Millisecond) {
			beat := raft.AppendEntriesRequest{RPCHeader: headerOf("1"), Term: 7}
			_ = p.leader.AppendEntries("2", "s2:1", &beat, new(raft.AppendEntriesResponse))
		}
	}()
	t.Cleanup(func() {
		_ = p.leader.Close()
		_ = p.follower.Close()
		<-ended
		<-beats
	})
	return p
}

// install handles a snapshot like Raft.
func (p *snapshotPair) install(rpc raft.RPC) {
	q := rpc.Command.(*raft.InstallSnapshotRequest)
	got, err := io.ReadAll(rpc.Reader)
	switch text := p.refusal.Load(); {
	case err != nil:
	case text != nil:
		err = errors.New(*text)
	case !bytes.Equal(got, snapshotBytes):
		err = errors.New("it is another one")
	default:
		p.mu.Lock()
		p.installed = append(p.installed, q.LastLogIndex)
		p.mu.Unlock()
	}
	rpc.Respond(&raft.InstallSnapshotResponse{Term: q.Term, Success: err == nil}, err)
}

// send asks the leader to send its snapshot at index, like Raft.
func (p *snapshotPair) send(index uint64) (bool, error) {
	var resp raft.InstallSnapshotResponse
	err := p.leader.InstallSnapshot("2", "s2:1", snapshotAt(index, int64(len(snapshotBytes))), &resp, bytes.NewReader(snapshotBytes))
	return resp.Success && resp.Term == 7, err
}

func (p *snapshotPair) has(t *testing.T, want ...uint64) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.installed, want) {
		t.Errorf("the follower has installed %d instead of %d", p.installed, want)
	}
}

// TestSnapshotIsSentUntilItArrives loses large packets for a minute, while the leader
// makes newer snapshots. Raft, which would sleep for up to ten seconds, should not learn
// of a failure.
func TestSnapshotIsSentUntilItArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSnapshotPair(t)
		p.net.Lose("s1", "s2", 1000)
		healed := make(chan time.Time, 1)
		time.AfterFunc(63*time.Second, func() {
			p.net.Heal("s1", "s2")
			healed <- time.Now()
		})
		time.AfterFunc(30*time.Second, func() { p.newest.Store(300) })
		if ok, err := p.send(100); !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		if took := time.Since(<-healed); took > 3500*time.Millisecond {
			t.Errorf("the follower had the snapshot %v after its packets arrived again", took)
		}
		p.has(t, 300)
		// Raft knows only that the follower has the snapshot at 100.
		if ok, err := p.send(200); !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		p.has(t, 300)
		for _, index := range []uint64{200, 400} { // the answer was for one request
			if ok, err := p.send(index); !ok || err != nil {
				t.Fatalf("%v, %v", ok, err)
			}
		}
		p.has(t, 300, 200, 400)
	})
}

// TestARefusedSnapshotIsRepeatedRarely: a follower that can't read the snapshot won't
// read it the next time either, and the leader must read the whole snapshot for each
// attempt.
func TestARefusedSnapshotIsRepeatedRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newSnapshotPair(t)
		p.unreadable.Store(true)
		sent := make(chan error, 1)
		go func() {
			_, err := p.send(100)
			sent <- err
		}()
		time.Sleep(10 * time.Minute)
		if n := p.opened.Load(); n < 30 || n > 100 {
			t.Errorf("%d attempts in 10 minutes", n)
		}
		p.unreadable.Store(false)
		if err := <-sent; err != nil {
			t.Error(err)
		}
		p.has(t, 100)
	})
}

// TestSnapshotIsNotRepeated: a leader that has lost its leadership should stop sending the
// snapshot, and should not send an older one instead. Raft should learn about a follower
// that can't store it.
func TestSnapshotIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(p *snapshotPair){
		"another leader": func(p *snapshotPair) {
			p.net.Lose("s1", "s2", 1000)
			time.AfterFunc(20*time.Second, func() { p.leads.Store(false) })
		},
		"closed": func(p *snapshotPair) {
			p.net.Lose("s1", "s2", 1000)
			time.AfterFunc(20*time.Second, func() { _ = p.leader.Close() })
		},
		"older": func(p *snapshotPair) {
			p.net.Lose("s1", "s2", 1000)
			time.AfterFunc(20*time.Second, func() { p.newest.Store(99) })
		},
		"disk full": func(p *snapshotPair) {
			text := "no space left on device"
			p.refusal.Store(&text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newSnapshotPair(t)
				began := time.Now()
				fault(p)
				ok, err := p.send(100)
				if ok || err == nil {
					t.Errorf("it succeeded: %v, %v", ok, err)
				}
				took := time.Since(began)
				if name == "disk full" {
					if took > time.Second || p.opened.Load() > 0 || !strings.Contains(err.Error(), "no space") {
						t.Errorf("after %v and %d repetitions: %v", took, p.opened.Load(), err)
					}
				} else if took < 20*time.Second || took > 24*time.Second || p.opened.Load() < 5 {
					t.Errorf("after %v and %d repetitions: %v", took, p.opened.Load(), err)
				}
				opened := p.opened.Load()
				time.Sleep(30 * time.Second)
				if p.opened.Load() != opened {
					t.Error("it goes on")
				}
				p.has(t)
			})
		})
	}
}

// slowWrites is a network that delays every write.
type slowWrites struct{ quorum.Network }

func (n slowWrites) Listen(addr string) (net.Listener, error) {
	l, err := n.Network.Listen(addr)
	return slowListener{l}, err
}

type slowListener struct{ net.Listener }

func (l slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return slowConn{c}, err
}

type slowConn struct{ net.Conn }

func (c slowConn) Write(p []byte) (int, error) {
	time.Sleep(200 * time.Millisecond)
	return c.Conn.Write(p)
}

// TestTheLeaderLearnsOfAnInstalledSnapshot: a follower replaces its transport as soon as it
// has installed a snapshot. The leader should still get the answer.
func TestTheLeaderLearnsOfAnInstalledSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		hub, err := quorum.Listen(slowWrites{m.Host("s2")}, "s2:1", quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, quorum.Security{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer hub.Close()
		installed := make(chan struct{})
		follower := New(Config{Hub: hub, ID: "2", Addr: "s2:1", Installed: func() { close(installed) }})
		leader := New(Config{Hub: newHub(t, m, quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, io.Discard), ID: "1", Addr: "s1:1"})
		defer leader.Close()
		replaced := make(chan struct{})
		go func() {
			defer close(replaced)
			rpc := <-follower.Consumer()
			_, _ = io.Copy(io.Discard, rpc.Reader)
			rpc.Respond(&raft.InstallSnapshotResponse{Term: 7, Success: true}, nil)
			<-installed
			_ = follower.Close()
		}()
		var resp raft.InstallSnapshotResponse
		if err := leader.InstallSnapshot("2", "s2:1", snapshotAt(100, 3), &resp, strings.NewReader("abc")); err != nil || !resp.Success {
			t.Errorf("%+v, %v", resp, err)
		}
		<-replaced
	})
}
