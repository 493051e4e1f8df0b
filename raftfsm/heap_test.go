package raftfsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// forgetful is a recorder that doesn't keep the applied commands.
type forgetful struct{ *recorder }

// Applied implements Handler.
func (f forgetful) Applied(a *Applied) {
	f.recorder.Applied(a)
	f.recorder.note(func() { f.recorder.applied = nil })
}

// TestHeapIsBounded: the heap memory of the log, its batches and its cache is bounded,
// however large and many the proposals are. Of an applied entry, only the data that the
// tree keeps stays in memory. The test doesn't run in parallel with others, because it
// measures the heap.
func TestHeapIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("writes some hundred megabytes; not with -short")
	}
	const mega = 1 << 20
	begin := func(t *testing.T) (*rig, func(command.Command)) {
		quiet := newRecorder()
		cfg := diskConfig(t, "")
		cfg.Handler = forgetful{quiet}
		r := start(t, cfg)
		r.recorder = quiet
		return r, func(c command.Command) {
			t.Helper()
			if o := r.do(c); o.code != proto.Ok {
				t.Fatalf("%v: %v", c.Op, o.code)
			}
		}
	}
	remove := func(path string) proto.Record { return &proto.DeleteRequest{Path: path, Version: -1} }
	withData := func(path string, data []byte) proto.Record {
		return &proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}
	}
	grown := func(t *testing.T, before, limit int, what string) {
		t.Helper()
		n := heap() - before
		t.Logf("%s: %.1f MiB of %d", what, float64(n)/mega, limit/mega)
		if n > limit {
			t.Errorf("%s takes %d MiB of the heap, more than %d", what, n/mega, limit/mega)
		}
	}

	t.Run("small beside large", func(t *testing.T) {
		r, do := begin(t)
		s := r.attach(1e13)
		before := heap()
		const rounds = 64
		large := bytes.Repeat([]byte("x"), 400<<10)
		for i := range rounds {
			do(write(s, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
				{Op: proto.OpCreate, Req: withData(fmt.Sprintf("/large-%d", i), large)},
				{Op: proto.OpCreate, Req: withData(fmt.Sprintf("/small-%d", i), []byte("x"))},
			}}))
			do(write(s, proto.OpDelete, remove(fmt.Sprintf("/large-%d", i))))
		}
		r.compact()
		grown(t, before, 8*mega, fmt.Sprintf("what is left of %d entries of which a few bytes are kept", rounds))
		r.close()
	})

	t.Run("full batches", func(t *testing.T) {
		r, do := begin(t)
		s := r.attach(1e13)
		do(create(s, "/n", 0))
		before := heap()
		const creates = 100_000
		for i := range creates {
			cmd := create(s, fmt.Sprintf("/n/%d", i), 0)
			if err := r.Propose(&cmd); err != nil {
				t.Fatal(err)
			}
		}
		do(command.Command{Kind: command.KindSync})
		r.compact()
		grown(t, before, creates*300, fmt.Sprintf("%d znodes created in full batches", creates))
		r.close()
	})

	t.Run("one enormous proposal", func(t *testing.T) {
		r, do := begin(t)
		s := r.attach(1e13)
		before := heap()
		do(write(s, proto.OpCreate2, withData("/a", make([]byte, 32*mega))))
		do(write(s, proto.OpDelete, remove("/a")))
		do(create(s, "/b", 0)) // replaces the large request in the reused record
		r.compact()
		grown(t, before, 8*mega, "what is left of a proposal of 32 MiB")
		r.close()
	})

	t.Run("many large proposals", func(t *testing.T) {
		r, do := begin(t)
		s := r.attach(1e13)
		do(create(s, "/a", 0))
		before := heap()
		data := make([]byte, mega)
		for range 128 {
			do(set(s, "/a", data))
		}
		grown(t, before, 40*mega, "128 proposals of a megabyte in the log")
		r.close()
	})
}
