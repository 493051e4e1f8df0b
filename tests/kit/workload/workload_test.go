package workload_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/history"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/workload"
)

// dialer connects to the members of a cluster.
func dialer(cl *zktest.Cluster) func(context.Context, int) (net.Conn, error) {
	return func(_ context.Context, id int) (net.Conn, error) { return cl.Server(id).Dial() }
}

// TestEverythingHappens checks that a run without faults contains everything that
// the checkers should check.
func TestEverythingHappens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cl := zktest.RunCluster(t, 3, zktest.WithConfig(func(c *server.Config) { c.Znodes.ContainerInterval = 5 * time.Second }))
		rec := history.NewRecorder(nil)
		cfg := workload.Config{Seed: 1, Servers: []int{1, 2, 3}, Dial: dialer(cl), Recorder: rec}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		must.Do(t, workload.Run(ctx, cfg))
		state, err := workload.Dump(t.Context(), cfg, 2)
		for range 10 { // an abandoned session may expire in this time
			if err != nil || state.Final {
				break
			}
			time.Sleep(time.Second)
			state, err = workload.Dump(t.Context(), cfg, 2)
		}
		if err != nil || !state.Final || len(state.Nodes) < 10 {
			t.Errorf("dump: %v, %v", state, err)
		}
		h := rec.History()
		ops, codes, events, changes := map[proto.Op]int{}, map[proto.Code]int{}, map[proto.EventType]int{}, map[history.Change]int{}
		unanswered := 0
		for _, o := range h.Ops {
			ops[o.Op]++
			codes[o.Code]++
			if !o.Answered() {
				unanswered++
			}
			if o.Bad != "" {
				t.Errorf("%s", o)
			}
		}
		for _, e := range h.Events {
			events[e.Type]++
		}
		for _, s := range h.Sessions {
			changes[s.Change]++
		}
		for _, op := range []proto.Op{proto.OpCreate2, proto.OpCreateContainer, proto.OpDelete, proto.OpSetData, proto.OpGetData, proto.OpExists,
			proto.OpGetChildren2, proto.OpSync, proto.OpMulti, proto.OpAddWatch, proto.OpSetWatches2, proto.OpPing, proto.OpCloseSession} {
			if ops[op] == 0 {
				t.Errorf("no %v", op)
			}
		}
		for typ := proto.EventNodeCreated; typ <= proto.EventNodeChildrenChanged; typ++ {
			if events[typ] == 0 {
				t.Errorf("no event %d", typ)
			}
		}
		if changes[history.Created] < 12 || changes[history.Attached] == 0 || changes[history.Abandoned] == 0 || changes[history.Expired] != 0 {
			t.Errorf("sessions: %v", changes)
		}
		if len(h.Ops) < 5000 || len(h.Holds) < 20 || unanswered != 0 {
			t.Error("too little happens")
		}
		t.Logf("%d requests (%d without reply): %v\n%v\nevents %v\nsessions %v\n%d holds", len(h.Ops), unanswered, ops, codes, events, changes, len(h.Holds))
	})
}
