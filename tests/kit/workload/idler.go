package workload

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// idler is a client that only pings, for longer than its session timeout, and then checks
// whether its ephemeral znode still exists. Only the pings show that it is alive, and its
// server must report that to the leader.
type idler struct {
	*session
	c     *conn
	tries int
	node  string // this client's znode
	owner int64  // session that has created it, or tried to
}

func (w *world) newIdler(number uint64) *idler {
	return &idler{session: newSession(w, w.rand(4, number))}
}

// run is idle until ctx is done.
func (l *idler) run(ctx context.Context) {
	for ctx.Err() == nil {
		if l.c = l.connect(ctx); l.c == nil {
			return
		}
		why := l.use(ctx)
		l.c.hangUp(why)
	}
}

// use is idle on one connection until that ends or ctx is done.
func (l *idler) use(ctx context.Context) string {
	if l.owner != l.id {
		l.tries++
		l.node, l.owner = fmt.Sprintf("%s%s/c%d.%d", l.w.Root, dirIdlers, l.client, l.tries), l.id
	}
	for {
		// This also shows whether a create without a reply was executed.
		o := l.c.do(&history.Op{Op: proto.OpExists, Path: l.node})
		if o.Code == proto.ErrNoNode {
			o = l.c.do(&history.Op{Op: proto.OpCreate2, Path: l.node, Value: fmt.Sprintf("%d.%d", l.client, l.tries), Mode: proto.ModeEphemeral})
		}
		if !o.Answered() || !pause(ctx, l.c.timeout+l.about(l.c.timeout), l.c.quit) {
			break
		}
	}
	if ctx.Err() != nil {
		return "the run is over"
	}
	return "the connection ended"
}
