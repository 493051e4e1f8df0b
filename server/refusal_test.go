package server

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/proto"
)

// A refused client gets the reason and then the end of the stream, although it keeps
// sending and the server doesn't read that any more: closing a socket with unread input
// would reset the connection.
func TestRefusalReachesASendingClient(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) {
		c.ClientAddr, c.Limits.MaxClientCnxns = "127.0.0.1:0", -1
		c.Auth.SASL = &SASL{Users: sasl.Users{"bob": "secret"}}
	})
	token := func(s string) []byte {
		return appendRequest(nil, 1, proto.OpSASL, &proto.SASLRequest{Token: []byte(s)})
	}
	refusals := [][]byte{
		appendRequest(nil, proto.XidAuth, proto.OpAuth, &proto.AuthPacket{Scheme: "none"}),
		append(token(""), token("rubbish")...),
	}
	for round := range 100 {
		for kind, ask := range refusals {
			refuseWhileSending(t, s, ask, round, kind)
		}
	}
}

// refuseWhileSending sends ask and then pings until the connection ends.
func refuseWhileSending(t *testing.T, s *Server, ask []byte, round, kind int) {
	t.Helper()
	nc, err := net.Dial("tcp", s.ClientAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, nc: nc}
	w.handshake(proto.ConnectRequest{TimeOut: 30000, HasReadOnly: true})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, err := nc.Write(ask); err == nil; {
			_, err = nc.Write(appendRequest(nil, proto.XidPing, proto.OpPing, nil))
		}
	}()
	if kind == 1 {
		if got := w.recv(); got.Err != proto.Ok {
			t.Fatalf("round %d: no challenge but %v", round, got.Err)
		}
	}
	if got := w.recv(); got.Err != proto.ErrAuthFailed {
		t.Fatalf("round %d, kind %d: %+v", round, kind, got)
	}
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("round %d, kind %d: the end is %v", round, kind, err)
	}
	<-sent
}
