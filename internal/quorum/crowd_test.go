package quorum

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestCrowd: the hub limits the streams of one kind from one member. It closes the least
// recently used one first, and keeps the streams of other members and kinds open.
func TestCrowd(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	x := ClusterID{1}
	a, b, c := newHub(t, m, Identity{ServerID: "1", Cluster: x}, io.Discard), newHub(t, m, Identity{ServerID: "2", Cluster: x}, io.Discard), newHub(t, m, Identity{ServerID: "3", Cluster: x}, io.Discard)
	for _, kind := range []Kind{Raft, Forward} {
		b.Handle(kind, echo)
	}
	dial := func(from *Hub, kind Kind) net.Conn {
		t.Helper()
		conn, _, err := from.Dial(t.Context(), kind, "s2:1", "2")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	used := func(conn net.Conn) bool {
		if _, err := conn.Write([]byte("ping")); err != nil {
			return false
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err := io.ReadFull(conn, make([]byte, 4))
		return err == nil
	}
	others := []net.Conn{dial(a, Forward), dial(c, Raft)}
	var open []net.Conn
	for range maxStreams {
		conn := dial(a, Raft)
		if !used(conn) {
			t.Fatal("a stream within the limit is closed")
		}
		open = append(open, conn)
	}
	if !used(open[0]) { // from now on the second one is the least recently used
		t.Fatal("a stream within the limit is closed")
	}
	if !used(dial(a, Raft)) {
		t.Fatal("a new stream is closed")
	}
	if used(open[1]) {
		t.Error("the stream that was used least lately is still there")
	}
	for i, conn := range append(others, append(open[:1:1], open[2:]...)...) {
		if !used(conn) {
			t.Errorf("stream %d is closed", i)
		}
	}
}
