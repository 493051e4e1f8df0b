package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// next returns the next reply and the events before it.
func (w *wire) next() (reply, []proto.WatcherEvent) {
	w.t.Helper()
	var events []proto.WatcherEvent
	for {
		got := w.recv()
		if got.Xid != proto.XidNotification {
			return got, events
		}
		var e proto.WatcherEvent
		w.decode(got, &e)
		events = append(events, e)
	}
}

func TestWriterGetsItsEventBeforeItsReply(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	w.create("/a", nil, proto.ModePersistent)
	w.get("/a", true)
	w.send(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1})
	event := w.recv()
	set := w.recv()
	if event.Xid != proto.XidNotification || event.Zxid != set.Zxid || set.Xid != w.xid {
		t.Errorf("event %+v, then %+v", event.ReplyHeader, set.ReplyHeader)
	}
	w.set("/a", "once only")
}

// An event never follows a reply that shows its cause: readers that watch and read
// again must see the event first.
func TestEventsComeBeforeNewerReads(t *testing.T) {
	t.Parallel()
	const rounds = 500
	s := startServer(t)
	writer, reader := connect(t, s), connect(t, s)
	writer.create("/a", nil, proto.ModePersistent)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range rounds {
			writer.set("/a", "x")
		}
	}()
	version := int32(-1)
	armed := false
	for version < rounds {
		reader.send(proto.OpGetData, &proto.GetDataRequest{Path: "/a", Watch: true})
		got, events := reader.next()
		var resp proto.GetDataResponse
		reader.decode(got, &resp)
		if armed && resp.Stat.Version != version && len(events) == 0 {
			t.Fatalf("version went from %d to %d without an event", version, resp.Stat.Version)
		}
		if len(events) > 1 {
			t.Fatalf("%d events of one watch", len(events))
		}
		version, armed = resp.Stat.Version, true
	}
	<-done
}

// A watch set by a pipelined read is armed at the read's place: the write after it
// fires the watch, the write before it doesn't.
func TestPipelinedWatch(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	w.create("/a", nil, proto.ModePersistent)
	var b []byte
	b = appendRequest(b, 1, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1})
	b = appendRequest(b, 2, proto.OpGetData, &proto.GetDataRequest{Path: "/a", Watch: true})
	b = appendRequest(b, 3, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1})
	w.write(b)
	for _, want := range []int32{1, 2, proto.XidNotification, 3} {
		if got := w.recv(); got.Xid != want {
			t.Errorf("xid %d, want %d", got.Xid, want)
		}
	}
}

func TestWatchKinds(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w, other := connect(t, s), connect(t, s)
	w.create("/a", nil, proto.ModePersistent)
	w.call(proto.OpExists, &proto.ExistsRequest{Path: "/a/b", Watch: true})
	w.must(proto.OpGetChildren, &proto.GetChildrenRequest{Path: "/a", Watch: true})
	other.create("/a/b", nil, proto.ModePersistent)
	w.wantEvent(proto.EventNodeCreated, "/a/b")
	w.wantEvent(proto.EventNodeChildrenChanged, "/a")

	body := w.must(proto.OpAddWatch, &proto.AddWatchRequest{Path: "/a", Mode: int32(proto.AddWatchPersistentRecursive)}).body
	if len(body) != 4 {
		t.Errorf("addWatch answers with %d bytes; Java clients need 4", len(body))
	}
	other.set("/a/b", "1")
	other.set("/a/b", "2")
	other.must(proto.OpDelete, &proto.DeleteRequest{Path: "/a/b", Version: -1})
	w.wantEvent(proto.EventNodeDataChanged, "/a/b")
	w.wantEvent(proto.EventNodeDataChanged, "/a/b")
	w.wantEvent(proto.EventNodeDeleted, "/a/b")

	w.must(proto.OpCheckWatches, &proto.CheckWatchesRequest{Path: "/a", Type: int32(proto.WatcherPersistentRecursive)})
	if got := w.call(proto.OpCheckWatches, &proto.CheckWatchesRequest{Path: "/a", Type: int32(proto.WatcherChildren)}); got.Err != proto.ErrNoWatcher {
		t.Errorf("checkWatches of another type: %v", got.Err)
	}
	w.must(proto.OpRemoveWatches, &proto.CheckWatchesRequest{Path: "/a", Type: int32(proto.WatcherAny)})
	other.create("/a/c", nil, proto.ModePersistent)
	w.must(proto.OpPing, nil) // an event would come before its reply
}

func TestSetWatchesCatchesUp(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w, other := connect(t, s), connect(t, s)
	w.create("/old", nil, proto.ModePersistent)
	seen := w.must(proto.OpPing, nil).Zxid
	w.create("/new", nil, proto.ModePersistent)
	w.create("/old/child", nil, proto.ModePersistent)
	w.set("/old", "changed")

	xid := proto.XidSetWatches
	w.write(appendRequest(nil, xid, proto.OpSetWatches2, &proto.SetWatches2{
		RelativeZxid: seen,
		Data:         []string{"/old", "/gone", "/zookeeper"},
		Exist:        []string{"/new", "/later"},
		Child:        []string{"/old", "/gone"},
		Persistent:   []string{"/old"}, PersistentRecursive: []string{},
	}))
	got, events := w.next()
	if got.Xid != xid || got.Err != proto.Ok || len(got.body) != 0 {
		t.Errorf("reply %+v", got)
	}
	want := []proto.WatcherEvent{
		{Type: int32(proto.EventNodeDataChanged), State: 3, Path: "/old"},
		{Type: int32(proto.EventNodeDeleted), State: 3, Path: "/gone"},
		{Type: int32(proto.EventNodeCreated), State: 3, Path: "/new"},
		{Type: int32(proto.EventNodeChildrenChanged), State: 3, Path: "/old"},
		{Type: int32(proto.EventNodeDeleted), State: 3, Path: "/gone"},
	}
	if len(events) != len(want) {
		t.Fatalf("events %+v", events)
	}
	for i := range want {
		if events[i] != want[i] {
			t.Errorf("event %d: %+v, want %+v", i, events[i], want[i])
		}
	}
	other.create("/later", nil, proto.ModePersistent)
	w.wantEvent(proto.EventNodeCreated, "/later")
	other.set("/old", "again")
	w.wantEvent(proto.EventNodeDataChanged, "/old")
}

// An event reveals a node, so only clients that may read the node get it. The watch is
// used up in either case.
func TestEventsAreFilteredByACL(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	owner, stranger := connect(t, s), connect(t, s)
	owner.must(proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("u:p")})
	stranger.call(proto.OpExists, &proto.ExistsRequest{Path: "/p", Watch: true})
	owner.call(proto.OpExists, &proto.ExistsRequest{Path: "/p", Watch: true})
	w := owner
	w.send(proto.OpCreate, &proto.CreateRequest{Path: "/p", ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}})
	w.wantEvent(proto.EventNodeCreated, "/p")
	if got := w.recv(); got.Err != proto.Ok {
		t.Fatal(got.Err)
	}
	stranger.must(proto.OpPing, nil)
	owner.must(proto.OpSetACL, &proto.SetACLRequest{Path: "/p", ACL: proto.OpenACL(), Version: -1})
	owner.set("/p", "x")
	stranger.must(proto.OpPing, nil)
}

// A closed connection has no watches.
func TestWatchesEndWithTheirConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w, other := connect(t, s), connect(t, s)
	w.must(proto.OpAddWatch, &proto.AddWatchRequest{Path: "/", Mode: int32(proto.AddWatchPersistentRecursive)})
	if n := s.watches.Size().Total(); n != 1 {
		t.Fatalf("%d watches", n)
	}
	w.nc.Close()
	eventually(t, "the watch is gone", func() bool { return s.watches.Size().Total() == 0 })
	other.create("/a", nil, proto.ModePersistent)
}

// A client can watch a null path, although nothing ever happens there.
func TestWatchesOfNoPath(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	check := &proto.CheckWatchesRequest{Path: proto.NullString, Type: int32(proto.WatcherAny)}
	for _, mode := range []proto.AddWatchMode{proto.AddWatchPersistent, proto.AddWatchPersistentRecursive} {
		if got := w.call(proto.OpCheckWatches, check); got.Err != proto.ErrNoWatcher {
			t.Errorf("before: %v", got.Err)
		}
		w.must(proto.OpAddWatch, &proto.AddWatchRequest{Path: proto.NullString, Mode: int32(mode)})
		w.must(proto.OpCheckWatches, check)
		w.create("/a", nil, proto.ModePersistent)
		w.must(proto.OpDelete, &proto.DeleteRequest{Path: "/a", Version: -1})
		w.must(proto.OpRemoveWatches, check)
	}
	none := []string{}
	w.must(proto.OpSetWatches2, &proto.SetWatches2{Data: none, Exist: none, Child: none, Persistent: []string{proto.NullString}, PersistentRecursive: []string{proto.NullString}})
	w.must(proto.OpCheckWatches, check)
}
