package raftfsm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/disk"
	"github.com/zkgo/zkgo/raftfsm/peer"
)

// seatFile is what the seat is called in the log directory.
const seatFile = "ensemble.json"

// seat is what a server needs to know, beside its identity, to find its place
// in an ensemble. Both live and die with the Raft state: a server whose disk was
// wiped has forgotten its votes and what it acknowledged, so it is another one,
// with another ServerID, and must never be counted as the one it was.
type seat struct {
	Disk  uint64    `json:"disk"`            // random: this data directory
	Bound *founding `json:"bound,omitempty"` // the founding that this server has accepted last
	// Ballot is the one that Bound was accepted in, zero in a directory that is
	// older than ballots; Promised is the one below which nothing is accepted.
	Ballot   ballot `json:"ballot,omitzero"`
	Promised ballot `json:"promised,omitzero"`
	Taken    bool   `json:"taken,omitempty"` // there is Raft state, and it must not be missing again
}

// founding is the plan by which an ensemble begins.
type founding struct {
	Cluster peer.ClusterID    `json:"cluster"`
	List    peer.Hash         `json:"list"`
	Servers []founder         `json:"servers"` // everybody on the list, by id
	Disks   map[uint64]uint64 `json:"disks"`   // who takes part, by id, with the disk that was seen to be empty
}

// founder is one server of a founding.
type founder struct {
	ID       uint64 `json:"id"`
	Addr     string `json:"addr"`
	Observer bool   `json:"observer,omitempty"`
}

// configuration is the first entry of everybody's log.
func (f *founding) configuration() raft.Configuration {
	var conf raft.Configuration
	for _, s := range f.Servers {
		server := raft.Server{ID: founderID(s.ID), Address: raft.ServerAddress(s.Addr)}
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
	b, server := e.formation.held().Bound, serverOf(id)
	return b != nil && id == founderID(server) && b.Disks[server] == 0
}

// founderID is the ServerID of a server on the disk that formed the ensemble.
func founderID(server uint64) raft.ServerID {
	return raft.ServerID(strconv.FormatUint(server, 10))
}

// joinerID is the ServerID of a server on any other disk.
func joinerID(server, disk uint64) raft.ServerID {
	return raft.ServerID(strconv.FormatUint(server, 10) + "." + strconv.FormatUint(disk, 10))
}

// serverOf is the number of the server that a ServerID belongs to, noServer when
// it is none.
func serverOf(id raft.ServerID) uint64 {
	n, _, _ := strings.Cut(string(id), ".")
	server, err := strconv.ParseUint(n, 10, 64)
	if err != nil || server > MaxServer {
		return noServer
	}
	return server
}

// newDisk returns the number of a new data directory, short enough for a
// ServerID to be read.
func newDisk() uint64 { return randomUint64()>>16 | 1 }

// seatStore keeps the seat; without a directory in memory only.
type seatStore struct {
	fs   disk.FS
	dir  string
	seat seat
}

// openSeat reads the seat of dir. A directory without one gets a new
// disk number, which is written before anybody is told of it.
func openSeat(fsys disk.FS, dir string) (*seatStore, error) {
	s := &seatStore{fs: fsys, dir: dir}
	if dir == "" {
		s.seat.Disk = newDisk()
		return s, nil
	}
	name := filepath.Join(dir, seatFile)
	data, err := disk.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, s.save(seat{Disk: newDisk()})
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &s.seat); err != nil || s.seat.Disk == 0 {
		return nil, fmt.Errorf("%s is damaged: %v; a server without it has to join its ensemble anew, with an empty data directory", name, err)
	}
	return s, nil
}

// save makes v durable before it counts.
func (s *seatStore) save(v seat) error {
	if s.dir != "" {
		data, err := json.MarshalIndent(&v, "", "\t")
		if err != nil {
			return err
		}
		if err := disk.ReplaceFile(s.fs, filepath.Join(s.dir, seatFile), append(data, '\n'), 0o600); err != nil {
			return err
		}
	}
	s.seat = v
	return nil
}

// founders returns who is on the list of the configuration file, by id.
func founders(members []Member) []founder {
	var list []founder
	for _, m := range members {
		list = append(list, founder{ID: m.ID, Addr: m.QuorumAddr, Observer: m.Observer})
	}
	slices.SortFunc(list, func(a, b founder) int { return int(a.ID) - int(b.ID) })
	return list
}
