package transport

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// errMuted is returned for the messages of a leader that must be silent, because its
// disk hangs or because it can't replicate.
var errMuted = errors.New("quorum: no heartbeats while the log's disk hangs")

// sender sends AppendEntries of every kind: Raft's own requests, heartbeats, pushes, and
// entries that Raft hasn't asked for yet.
//
// Invariants:
//   - A leader with a hanging disk sends no AppendEntries. Otherwise it would lead
//     forever and accept no writes.
//   - Only an answer that grants success in the term of the request counts as contact. The
//     time of a contact is when the request was sent. Otherwise the answer to an old request
//     would prove a lease that has ended.
type sender struct {
	*instance
	checker  *checker
	contacts *contacts
	paths    *paths
	muting   muting
}

func newSender(i *instance, checks *checker, contacts *contacts, paths *paths) *sender {
	return &sender{instance: i, checker: checks, contacts: contacts, paths: paths, muting: muting{limit: stallLimit}}
}

func (s *sender) send(over *raft.NetworkTransport, id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if s.cfg.Hanging != nil && s.muting.silent(args.Term, s.cfg.Hanging(), time.Now()) {
		return errMuted
	}
	start := s.contacts.begin()
	if err := over.AppendEntries(id, target(id, addr), args, resp); err != nil {
		return err
	}
	if err := s.checker.examineAnswer(id, resp.Term); err != nil {
		return err
	}
	if resp.Success && resp.Term == args.Term {
		s.contacts.record(args.Term, id, start)
		s.paths.heard()
	}
	return nil
}
