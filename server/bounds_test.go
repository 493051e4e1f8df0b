package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// The server forgets read-only sessions that their clients don't close, but not those
// in use.
func TestLocalSessionsAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(Config{Memory: true}.withDefaults())
	s.clients.locals[1], s.clients.sessions[1] = [proto.PasswordSize]byte{}, new(conn)
	for sid := int64(2); sid < 3*maxLocals; sid++ {
		s.clients.forgetLocal()
		s.clients.locals[sid] = [proto.PasswordSize]byte{}
	}
	if _, ok := s.clients.locals[1]; !ok || len(s.clients.locals) > maxLocals {
		t.Errorf("%d are remembered, the one in use: %v", len(s.clients.locals), ok)
	}
}
