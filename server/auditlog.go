package server

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server/audit"
	"github.com/zkgo/zkgo/tree"
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
	s.audit = audit.New(sink, s.log)
	s.user = osUser()
	s.audit.Add(audit.Record{Time: s.cfg.Env.Wall(), User: s.user, Operation: audit.Start, Result: audit.Success})
	return nil
}

// closeAudit writes the records collected so far and closes the log.
func (s *Server) closeAudit() error {
	if s.audit == nil {
		return nil
	}
	return s.audit.Close()
}

// osUser returns the name of the user that the process runs as.
func osUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid()) // e.g. in a container without /etc/passwd
}

// record records a change. Only the server that the client is connected to records its
// request; every server records the ephemeral znodes that ended with a session. The
// tree is locked.
func (s *Server) record(a *raftfsm.Applied, p *pending) {
	if a.Op == proto.OpCloseSession && a.Code == proto.Ok {
		for i := range a.Events {
			if e := &a.Events[i]; e.Type == proto.EventNodeDeleted {
				s.audit.Add(audit.Record{
					Time: s.cfg.Env.Wall(), Session: a.Session, User: s.user,
					Operation: audit.EphemeralDeletion, Path: strings.Clone(e.Path), Result: audit.Success,
				})
			}
		}
	}
	if p == nil || a.Kind != raftfsm.KindRequest || a.Code == proto.ErrSessionMoved {
		return
	}
	who := audit.Record{Time: s.cfg.Env.Wall(), Session: a.Session, User: userNames(p.ids), IP: orLocal(p.c.host)}
	if a.Op == proto.OpMulti {
		s.recordMulti(&who, a)
		return
	}
	result := a.Result
	if a.Code != proto.Ok {
		result = &tree.Result{Code: a.Code}
	}
	if a.Op == proto.OpReconfig {
		who.Operation, who.Result = audit.Reconfig, audit.Failure
		if a.Code == proto.Ok {
			who.Path, who.Result = "/zookeeper/config", audit.Success
		}
		s.audit.Add(who)
		return
	}
	defer s.fsm.requests.Forget()
	if req, err := s.fsm.requests.Decode(a.Op, a.Body); err == nil {
		s.recordOp(who, a.Op, req, result)
	}
}

// recordMulti records the operations of a transaction, or its failure.
func (s *Server) recordMulti(who *audit.Record, a *raftfsm.Applied) {
	var m proto.MultiRequest
	r := proto.AliasReader(a.Body)
	m.Decode(&r)
	failed := a.Code != proto.Ok || a.Result == nil || r.Err() != nil || len(a.Result.Multi) != len(m.Ops) ||
		slices.ContainsFunc(a.Result.Multi, func(one tree.Result) bool { return one.Op == proto.OpError })
	if failed {
		who.Operation, who.Result = audit.Multi, audit.Failure
		s.audit.Add(*who)
		return
	}
	for i := range m.Ops {
		s.recordOp(*who, m.Ops[i].Op, m.Ops[i].Req, &a.Result.Multi[i])
	}
}

// recordOp records one operation, unless it changes no znode; r already names the client.
func (s *Server) recordOp(r audit.Record, op proto.Op, req proto.Record, result *tree.Result) {
	r.Result = audit.Failure
	if result != nil && result.Code == proto.Ok {
		r.Result = audit.Success
	}
	r.Path, _ = proto.PathOf(req)
	switch q := req.(type) {
	case *proto.CreateRequest:
		r.Operation, r.NodeType = audit.Create, audit.NodeType(proto.CreateMode(q.Flags))
	case *proto.CreateTTLRequest:
		r.Operation, r.NodeType = audit.Create, audit.NodeType(proto.CreateMode(q.Flags))
	case *proto.SetDataRequest:
		r.Operation = audit.SetData
	case *proto.SetACLRequest:
		r.Operation, r.ACL = audit.SetACL, audit.ACLText(q.ACL)
	default:
		if op != proto.OpDelete {
			return
		}
		r.Operation = audit.Delete
	}
	if r.Operation == audit.Create && r.Result == audit.Success {
		r.Path = result.Path // with the number of a sequential znode
	}
	if r.Path == proto.NullString {
		r.Path = ""
	}
	r.Path = strings.Clone(r.Path) // the entry that it points into will be overwritten
	s.audit.Add(r)
}

// maxUserNames bounds the names in a record, in bytes, approximately. Clients choose
// the names of their digest identities.
const maxUserNames = 1 << 10

// userNames joins the names of a client's identities: the proved identities, as many as
// fit into maxUserNames, then the client's address.
func userNames(ids []proto.ID) string {
	var names, addresses []string
	room := maxUserNames
	for _, id := range ids {
		switch id.Scheme {
		case "ip":
			addresses = append(addresses, id.ID)
			continue
		case "super":
			continue // a permission, not a name
		case "digest":
			id.ID, _, _ = strings.Cut(id.ID, ":")
		}
		if room > 0 && !slices.Contains(names, id.ID) {
			names = append(names, clip(id.ID, maxUserNames))
			room -= len(id.ID)
		}
	}
	return strings.Join(append(names, addresses...), ",")
}

// auditFromZooCfg translates the audit.* settings.
func (c *Config) auditFromZooCfg(z *zoocfg.Config) {
	if a := &z.Audit; a.Enable {
		c.Audit = &Audit{File: audit.FileOptions{Path: a.File, MaxBytes: a.MaxFileSizeKB << 10, Backups: a.MaxBackups}}
	}
}
