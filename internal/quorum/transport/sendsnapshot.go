package transport

import (
	"errors"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's leader sleeps after a snapshot that didn't get through, too, for up to 10.24 s. We
// therefore repeat snapshots as we repeat entries (replication.go), and under the same
// conditions: as long as this server leads the term of the request and the follower is a
// member at that address.
//
//   - When we repeat, we send the newest snapshot of this server, because the log may no
//     longer reach back to an older snapshot. We tell Raft that the follower has the
//     snapshot that it asked for. The follower has more than that, which is safe. If
//     Raft then asks for a snapshot that ends no later than the confirmed one, we answer
//     without another transfer.
//   - We report success to Raft only after the follower has answered that it has installed
//     the snapshot, or has applied everything in it.
//   - If the follower's Raft answers with an error, we report it to Raft: the follower got
//     the snapshot but couldn't store it, e.g. because its disk is full. In that case
//     Raft's longer pauses are right.
//   - A follower that refuses the snapshot, e.g. because its format is too new, ends the
//     stream. It will do so again, so we increase the pauses, unless an attempt lasts as
//     long as a stalled stream does, i.e. as if packets were lost.

// longestRefused is the longest pause before a snapshot is sent again to a server that ends
// the stream.
const longestRefused = 10 * time.Second

// snapshots sends snapshots to followers.
type snapshots struct {
	*replication
	checker  *checker
	net      *raft.NetworkTransport
	contacts *contacts
}

// InstallSnapshot sends a snapshot. It retries until the follower answers or the request is
// obsolete.
func (s *snapshots) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if s.cfg.SendingSnapshot != nil {
		defer s.cfg.SendingSnapshot()()
	}
	if deposed(args.Term, args.LastLogTerm, nil) {
		return errDeposed
	}
	if s.paths.covers(args.Term, id, args.LastLogIndex) {
		*resp = raft.InstallSnapshotResponse{RPCHeader: args.RPCHeader, Term: args.Term, Success: true}
		return nil
	}
	s.awaitFollower(args.Term, id, addr)
	began := time.Now()
	err := s.sendSnapshot(id, addr, args, resp, data)
	if err == nil || resp.Term != 0 || s.cfg.OpenSnapshot == nil || !s.replicates(args.Term, id, addr) {
		return err
	}
	s.cfg.Hub.Log().Info("could not send a snapshot to a follower; trying again", "server", id, "index", args.LastLogIndex, "err", err)
	for pauseFor := firstPause; err != nil && resp.Term == 0; {
		longest := longestRefused
		if time.Since(began) >= s.cfg.Stall {
			longest = lastPause
		}
		pauseFor = min(2*pauseFor, longest)
		if !s.pause(pauseFor) || !s.replicates(args.Term, id, addr) {
			return err
		}
		s.awaitFollower(args.Term, id, addr)
		opened := time.Now()
		meta, newest, oerr := s.cfg.OpenSnapshot()
		if oerr != nil {
			return errors.Join(err, oerr)
		}
		// Opening a large snapshot is slow, because its checksum is verified. Pause for
		// as long, so that it doesn't keep this server busy while nothing gets through.
		if !s.pause(time.Since(opened)) || !s.replicates(args.Term, id, addr) {
			_ = newest.Close()
			return err
		}
		began = time.Now()
		err = s.sendInstead(id, addr, args, resp, meta, newest)
		_ = newest.Close()
		if errors.Is(err, errOlderSnapshot) {
			return err
		}
	}
	return err
}

// errOlderSnapshot means that our newest snapshot ends before the requested one, so we
// must not tell Raft that the follower has it.
var errOlderSnapshot = errors.New("quorum: the newest snapshot does not cover the requested one")

// sendInstead sends a newer snapshot than Raft asked for, or repeats the same one.
func (s *snapshots) sendInstead(id raft.ServerID, addr raft.ServerAddress, asked *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, meta *raft.SnapshotMeta, data io.Reader) error {
	args := *asked
	args.SnapshotVersion, args.LastLogIndex, args.LastLogTerm = meta.Version, meta.Index, meta.Term
	args.Peers, args.Size = meta.Peers, meta.Size
	args.Configuration, args.ConfigurationIndex = raft.EncodeConfiguration(meta.Configuration), meta.ConfigurationIndex
	switch {
	case deposed(args.Term, args.LastLogTerm, nil):
		return errDeposed
	case args.LastLogIndex < asked.LastLogIndex:
		return errOlderSnapshot
	}
	err := s.sendSnapshot(id, addr, &args, resp, data)
	if err == nil && resp.Success && args.LastLogIndex > asked.LastLogIndex {
		s.paths.confirmed(args.Term, id, args.LastLogIndex)
	}
	return err
}

// sendSnapshot makes one attempt.
func (s *snapshots) sendSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	*resp = raft.InstallSnapshotResponse{}
	began := time.Now()
	err := s.net.InstallSnapshot(id, target(id, addr), args, resp, data)
	if err = errors.Join(err, s.checker.examineAnswer(id, resp.Term)); err != nil {
		s.noteFailure(args.Term, id, began, err)
		return err
	}
	s.paths.works(args.Term, id)
	return nil
}

// awaitFollower waits until a follower has answered a heartbeat recently: there is no point
// in opening and sending a snapshot before.
func (s *snapshots) awaitFollower(term uint64, id raft.ServerID, addr raft.ServerAddress) {
	for s.replicates(term, id, addr) {
		changed := s.paths.changed()
		if time.Since(s.contacts.Contact(term, id)) < s.cfg.Stall {
			return
		}
		timer := time.NewTimer(lastPause)
		select {
		case <-changed:
		case <-timer.C:
		case <-s.ctx.Done():
		}
		timer.Stop()
	}
}
