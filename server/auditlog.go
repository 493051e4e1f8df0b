package server

import (
	"time"

	"github.com/zkgo/zkgo/internal/ops/audit"
	"github.com/zkgo/zkgo/raftfsm"
)

// Audit configures the audit log of the changes that clients make.
type Audit struct {
	// Path is the file for lines in ZooKeeper's format; if it is empty, the records go to
	// the server's own log.
	Path string
	// MaxBytes is the size at which the file is renamed to Path.1, the previous Path.1 to
	// Path.2 and so on; 0 means 10 MiB, negative no limit.
	MaxBytes int64
	// Backups is the number of renamed files to keep; 0 means 10, negative none.
	Backups int
	// Sink, if set, replaces the file. The server closes it.
	Sink AuditSink
}

// AuditSink is the destination of an audit log. The server calls it from one goroutine,
// and stops reading requests while too many records wait for it.
type AuditSink interface {
	// Write writes the records in order. After an error the number of records written
	// is unknown; they aren't written again, and the server continues.
	Write(records []AuditRecord) error
	Close() error
}

// AuditRecord is one change, in the terms of ZooKeeper's audit log. An empty field doesn't
// apply to the change.
type AuditRecord struct {
	Time      time.Time
	Session   int64
	User      string // the names of all identities of the client, separated by commas
	IP        string
	Operation string // create, delete, setData, setAcl, multiOperation, reconfig, serverStart …
	Path      string
	NodeType  string // for create
	ACL       string // for setAcl
	Result    string // success, failure or invoked
}

// auditSink is an AuditSink as package audit calls it.
type auditSink struct{ AuditSink }

func (s auditSink) Write(records []audit.Record) error {
	list := make([]AuditRecord, len(records))
	for i, r := range records {
		list[i] = AuditRecord(r)
	}
	return s.AuditSink.Write(list)
}

// openAudit opens the audit log, if it is configured.
func (s *Server) openAudit() error {
	a := s.cfg.Audit
	if a == nil {
		return nil
	}
	var sink audit.Sink
	switch {
	case a.Sink != nil:
		sink = auditSink{a.Sink}
	case a.Path == "":
		sink = audit.Logger(s.log)
	default:
		var err error
		if sink, err = audit.File(audit.FileOptions{Path: a.Path, MaxBytes: a.MaxBytes, Backups: a.Backups}); err != nil {
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
