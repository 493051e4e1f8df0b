package server

import (
	"sync/atomic"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// clientSession holds the client's identity and options, and when we last heard from it.
// The reader owns what authentication and options set, and any goroutine may use the atomic
// fields. The fields of the attached session change under the lock of the reply queue,
// before the reader is told and before there is output for the session. The reader, the
// applying goroutine and writers of output read them without the lock, others with it.
type clientSession struct {
	c *conn

	// Set when a session is attached.
	id      int64 // 0: none yet
	gen     uint64
	timeout int32 // milliseconds
	local   bool  // read-only mode: the session belongs to this server alone

	// Used only by the reader.
	linear bool               // reads are linearizable
	sasl   *sasl.Server       // nil before the first token
	short  []proto.ID         // the identities that go with each command in full
	prints []tree.Fingerprint // fingerprints of the other identities, sorted

	// ids are the client's identities. The slice is immutable; the reader replaces it.
	ids atomic.Pointer[[]proto.ID]
	// watcher is made by the first watch, with the tree locked, by the goroutine that
	// serves the connection at that time.
	watcher atomic.Pointer[watch.Watcher]
	// heard is set when the client has sent something since the last call of Live.
	heard atomic.Bool
	// last is the clock when the client last sent something.
	last atomic.Int64
	// signs are the clocks when the client was heard from, as Live reported them.
	signs session.Signs
}
