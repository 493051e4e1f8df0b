package raftfsm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// seatFile is the name of the seat's file in the log directory.
const seatFile = "ensemble.json"

// seat is what a server needs to know, besides its identity, to find its place in an
// ensemble. Both exist exactly as long as the Raft state. A server whose disk was wiped
// has forgotten its votes and what it acknowledged. So it is a different server with a
// different ServerID, and must never be counted as the old one.
type seat struct {
	Disk  uint64    `json:"disk"`            // random number of this data directory
	Bound *founding `json:"bound,omitempty"` // the formation plan that this server accepted last
	// Ballot is the one in which Bound was accepted, zero in a directory that is older
	// than ballots. Promised is the lowest ballot that this server still accepts.
	Ballot   ballot `json:"ballot,omitzero"`
	Promised ballot `json:"promised,omitzero"`
	Taken    bool   `json:"taken,omitempty"` // there is Raft state, and it must not be missing again
	// Sum is the CRC-32C of the file's content with a sum of 0.
	Sum uint32 `json:"sum"`
}

// marshal returns the content of the file.
func (s seat) marshal() ([]byte, error) {
	s.Sum = 0
	b, err := json.MarshalIndent(&s, "", "\t")
	if err != nil {
		return nil, err
	}
	s.Sum = crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	if b, err = json.MarshalIndent(&s, "", "\t"); err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// readSeat returns the seat in dir, and false when there is none.
func readSeat(fsys vfs.FS, dir string) (seat, bool, error) {
	name := filepath.Join(dir, seatFile)
	data, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return seat{}, false, nil
	}
	if err != nil {
		return seat{}, false, err
	}
	var s seat
	err = json.Unmarshal(data, &s)
	if err == nil {
		var want []byte
		if want, err = s.marshal(); err == nil && (s.Disk == 0 || !bytes.Equal(data, want)) {
			err = errors.New("checksum mismatch")
		}
	}
	if err != nil {
		return seat{}, false, fmt.Errorf("%s is damaged: %w; restore the file, or empty the data directory to let the server join its ensemble anew", name, err)
	}
	return s, true, nil
}

// founding is the plan for forming an ensemble.
type founding struct {
	Cluster quorum.ClusterID  `json:"cluster"`
	List    quorum.Hash       `json:"list"`
	Servers []founder         `json:"servers"` // all servers on the list, by id
	Disks   map[uint64]uint64 `json:"disks"`   // the participating servers, by id, with the disks that were seen empty
}

// founder is one server of a formation plan.
type founder struct {
	ID       uint64 `json:"id"`
	Addr     string `json:"addr"`
	Observer bool   `json:"observer,omitempty"`
}

// configuration returns the first entry of every server's log.
func (f *founding) configuration() raft.Configuration {
	var conf raft.Configuration
	for _, s := range f.Servers {
		server := raft.Server{ID: membership.FounderID(s.ID), Address: raft.ServerAddress(s.Addr)}
		if s.Observer {
			server.Suffrage = raft.Nonvoter
		}
		conf.Servers = append(conf.Servers, server)
	}
	return conf
}

// neverCame reports whether a ServerID stands for a server of the list that took no
// part in forming the ensemble and has not joined since.
func (e *ensemble) neverCame(id raft.ServerID) bool {
	b, server := e.formation.held().Bound, membership.ServerOf(id)
	return b != nil && id == membership.FounderID(server) && b.Disks[server] == 0
}

// newDisk returns the number of a new data directory. It is short, to keep ServerIDs
// readable.
func newDisk() uint64 { return randomUint64()>>16 | 1 }

// seatStore keeps the seat on disk, or only in memory if it has no directory.
type seatStore struct {
	fs   vfs.FS
	dir  string
	seat seat
}

// openSeat reads the seat of dir. A directory without a seat gets a new disk number,
// which is written before any other server learns it.
func openSeat(fsys vfs.FS, dir string) (*seatStore, error) {
	s := &seatStore{fs: fsys, dir: dir}
	if dir == "" {
		s.seat.Disk = newDisk()
		return s, nil
	}
	held, found, err := readSeat(fsys, dir)
	if err != nil {
		return nil, err
	}
	if !found {
		return s, s.save(seat{Disk: newDisk()})
	}
	s.seat = held
	return s, nil
}

// save makes v durable before it takes effect.
func (s *seatStore) save(v seat) error {
	if s.dir != "" {
		data, err := v.marshal()
		if err != nil {
			return err
		}
		if err := vfs.ReplaceFile(s.fs, filepath.Join(s.dir, seatFile), data, 0o600); err != nil {
			return err
		}
	}
	s.seat = v
	return nil
}

// founders returns the servers on the list of the configuration file, by id.
func founders(members []membership.Member) []founder {
	var list []founder
	for _, m := range members {
		list = append(list, founder{ID: m.ID, Addr: m.QuorumAddr, Observer: m.Observer})
	}
	slices.SortFunc(list, func(a, b founder) int { return int(a.ID) - int(b.ID) })
	return list
}
