package workload

import (
	"context"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/history"
)

// reader is a client that only reads registers, without waiting for anything. A
// server that lost the ensemble, or was stopped, finds reads that no write of the
// same client holds back.
type reader struct {
	*session
	sync bool // a sync goes before every read
	c    *conn
}

// newReader makes every third reader one that asks for linearizable reads, one
// that sends a sync before each, and one that leaves it to its server.
func (w *world) newReader(number uint64) *reader {
	r := &reader{session: newSession(w, w.rand(5, number)), sync: number%3 == 1}
	r.linear = number%3 == 0
	return r
}

// run reads until ctx is done.
func (r *reader) run(ctx context.Context) {
	for ctx.Err() == nil {
		if r.c = r.connect(ctx); r.c == nil {
			return
		}
		for pause(ctx, r.about(r.w.Think), r.c.quit) {
			path := r.w.register(r.rnd.IntN(r.w.Registers))
			if r.sync {
				r.c.send(&history.Op{Op: proto.OpSync, Path: path})
			}
			r.c.send(&history.Op{Op: proto.OpGetData, Path: path})
		}
		r.c.hangUp("the connection or the run ended")
	}
}
