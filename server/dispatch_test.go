package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// The server executes every operation of the table that a client may send, and no
// others: it refuses these and closes the connection.
func TestEveryOperationIsDispatched(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	bodies := map[proto.Op]proto.Record{ // where no body at all would end the connection
		proto.OpAuth: &proto.AuthPacket{Scheme: "ip"},
		proto.OpSASL: &proto.SASLRequest{Token: []byte{}},
	}
	for _, op := range proto.Ops() {
		w := connect(t, s)
		got := w.call(op, bodies[op])
		if unknown := op.Kind() == proto.Unknown; (got.Err == proto.ErrUnimplemented) != unknown {
			t.Errorf("%v: %v", op, got.Err)
		} else if unknown {
			w.wantClosed()
		}
	}
}
