package workload

import (
	"context"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// reader is a client that only reads registers, without waiting. When a server has lost the
// ensemble or was stopped, it finds stale reads that a write of the same client would
// prevent.
type reader struct {
	*session
	sync bool // send a sync before every read
	c    *conn
}

// newReader makes one third of the readers ask for linearizable reads, one third
// send a sync before each read, and one third rely on the configuration of the
// server.
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
