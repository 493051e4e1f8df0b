package zktest

import (
	"errors"

	"github.com/zkgo/zkgo/proto"
)

// ExpireSession ends a session immediately, as if its timeout had passed. When it returns,
// the session's ephemeral znodes are gone and its connection is closed. The client learns
// of the expiry when it reconnects.
func (s *Server) ExpireSession(id int64) {
	s.t.Helper()
	s.inProcess(needsFaults)
	s.gate.log("session 0x%x expires", id)
	for attempt := range attempts {
		srv, err := s.writer()
		if err != nil {
			s.fatalf("ExpireSession: %v", err)
		}
		t := srv.Node().Tree()
		t.RLock()
		row, ok := srv.Node().Sessions().Get(id)
		t.RUnlock()
		if !ok && attempt > 0 {
			return
		}
		if !ok {
			s.fatalf("ExpireSession: there is no session 0x%x, only %v", id, s.Sessions())
		}
		code, err := endSession(srv, id, row.Gen)
		switch {
		case errors.Is(err, errUncertain):
		case err != nil:
			s.fatalf("ExpireSession: %v", err)
		case code != proto.ErrSessionMoved: // its client has just reconnected
			s.settle()
			return
		}
	}
	s.fatalf("ExpireSession: the client of session 0x%x keeps reconnecting", id)
}

// DropConnection closes a session's connection, as a network failure would, and waits
// until the server has noticed. The session lives until its timeout; its client may
// reconnect.
func (s *Server) DropConnection(session int64) {
	s.t.Helper()
	s.inProcess(needsFaults)
	list := s.gate.ofSession(session)
	if session == 0 || len(list) == 0 {
		s.fatalf("DropConnection: session 0x%x is not connected here", session)
	}
	s.drop("the connection of session 0x%x is dropped", list, session)
}

// DropConnections closes all connections.
func (s *Server) DropConnections() {
	s.t.Helper()
	s.inProcess(needsFaults)
	list := s.gate.ofSession(0)
	s.drop("%d connections are dropped", list, len(list))
}

func (s *Server) drop(format string, list []*clientConn, arg any) {
	s.t.Helper()
	s.gate.log(format, arg)
	if !s.gate.drop(list) {
		s.fatalf("connections are still open after %v", patience)
	}
}

// HangConnection stops all traffic between the server and a client until resume is called.
// Nothing arrives on either side, and nothing is lost. Each side notices only by its
// timeouts, and Advance treats such a client as silent. If the server closes the connection
// because the session has ended, the client does see that.
func (s *Server) HangConnection(session int64) (resume func()) {
	s.t.Helper()
	s.inProcess(needsFaults)
	list := s.gate.ofSession(session)
	if session == 0 || len(list) == 0 {
		s.fatalf("HangConnection: session 0x%x is not connected here", session)
	}
	s.gate.log("the connection of session 0x%x hangs", session)
	for _, c := range list {
		c.hang()
	}
	return func() {
		s.gate.log("the connection of session 0x%x works again", session)
		for _, c := range list {
			c.release()
		}
	}
}

// RefuseConnections rejects new connections until accept is called. Existing
// connections stay open.
func (s *Server) RefuseConnections() (accept func()) {
	s.t.Helper()
	s.inProcess(needsFaults)
	s.gate.log("new connections are refused")
	s.gate.set(&s.gate.refusing, true)
	return func() {
		s.gate.log("new connections are accepted")
		s.gate.set(&s.gate.refusing, false)
	}
}
