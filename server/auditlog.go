package server

import (
	"github.com/zkgo/zkgo/internal/ops/audit"
	"github.com/zkgo/zkgo/raftfsm"
)

// Audit says where the server records the changes that clients make.
type Audit struct {
	// File is the file for lines in ZooKeeper's format; without a Path the records go
	// to the server's own log.
	File audit.FileOptions
	// Sink, if set, replaces File. The server closes it.
	Sink audit.Sink
}

// openAudit opens the audit log, if it is configured.
func (s *Server) openAudit() error {
	a := s.cfg.Audit
	if a == nil {
		return nil
	}
	sink := a.Sink
	switch {
	case sink != nil:
	case a.File.Path == "":
		sink = audit.Logger(s.log)
	default:
		var err error
		if sink, err = audit.File(a.File); err != nil {
			return err
		}
	}
	s.audit = audit.NewRecorder(sink, s.log, s.cfg.Env.Wall)
	return nil
}

// closeAudit writes the records collected so far and closes the log.
func (s *Server) closeAudit() error {
	if s.audit == nil {
		return nil
	}
	return s.audit.Close()
}

// record records a change in the audit log. Only the server that the client is connected
// to records its request.
func (s *Server) record(a *raftfsm.Applied, p *pending) {
	var by *audit.Client
	if p != nil {
		by = &audit.Client{IDs: p.ids, IP: orLocal(p.c.host)}
	}
	s.audit.Applied(a, by)
}
