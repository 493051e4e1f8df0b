package bootstrap

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
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

// StateFile is the name of the state's file in the log directory.
const StateFile = "ensemble.json"

// State is the bootstrap state: the data that a server needs, besides its identity, to
// find its place in an ensemble. Both exist exactly as long as the Raft state. A server
// with a wiped disk has forgotten its votes and the entries that it acknowledged. So it
// is a different server with a different ServerID, and must never be counted as the old
// one.
type State struct {
	Disk  uint64 `json:"disk"`            // random number of this data directory
	Bound *Plan  `json:"bound,omitempty"` // the formation plan that this server accepted last
	// Ballot is the ballot in which Bound was accepted, zero in a directory from a
	// release without ballots. Promised is the lowest ballot that this server still
	// accepts.
	Ballot   Ballot `json:"ballot,omitzero"`
	Promised Ballot `json:"promised,omitzero"`
	Taken    bool   `json:"taken,omitempty"` // there is Raft state, and it must not be missing again
	// Sum is the CRC-32C of the file's content with a sum of 0.
	Sum uint32 `json:"sum"`
}

// marshal returns the content of the file.
func (s State) marshal() ([]byte, error) {
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

// ReadState returns the state in dir, and false when there is none.
func ReadState(fsys vfs.FS, dir string) (State, bool, error) {
	name := filepath.Join(dir, StateFile)
	data, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, err
	}
	var s State
	err = json.Unmarshal(data, &s)
	if err == nil {
		var want []byte
		if want, err = s.marshal(); err == nil && (s.Disk == 0 || !bytes.Equal(data, want)) {
			err = errors.New("checksum mismatch")
		}
	}
	if err != nil {
		return State{}, false, fmt.Errorf("%s is damaged: %w; restore the file, or empty the data directory so that the server joins its ensemble again", name, err)
	}
	return s, true, nil
}

// Plan is the formation plan: how an ensemble forms.
type Plan struct {
	Cluster quorum.ClusterID  `json:"cluster"`
	List    quorum.Hash       `json:"list"`
	Servers []Server          `json:"servers"` // all servers on the list, by id
	Disks   map[uint64]uint64 `json:"disks"`   // the participating servers, by id, with the disks that were seen empty
}

// Server is one server of a formation plan.
type Server struct {
	ID       uint64 `json:"id"`
	Addr     string `json:"addr"`
	Observer bool   `json:"observer,omitempty"`
}

// Configuration returns the first entry of every server's log.
func (b *Plan) Configuration() raft.Configuration {
	var conf raft.Configuration
	for _, s := range b.Servers {
		server := raft.Server{ID: membership.FounderID(s.ID), Address: raft.ServerAddress(s.Addr)}
		if s.Observer {
			server.Suffrage = raft.Nonvoter
		}
		conf.Servers = append(conf.Servers, server)
	}
	return conf
}

// First reports whether server should be the first leader of a new ensemble: the voter
// with the highest id in the plan, as in ZooKeeper.
func (b *Plan) First(server uint64) bool {
	return server == slices.MaxFunc(b.Servers, func(x, y Server) int {
		return b.weight(x) - b.weight(y)
	}).ID
}

func (b *Plan) weight(s Server) int {
	if s.Observer || b.Disks[s.ID] == 0 {
		return 0
	}
	return int(s.ID) + 1
}

// NeverCame reports whether a ServerID belongs to a server of the list that didn't
// participate in forming the ensemble and hasn't joined since. b may be nil.
func (b *Plan) NeverCame(id raft.ServerID) bool {
	server := membership.ServerOf(id)
	return b != nil && id == membership.FounderID(server) && b.Disks[server] == 0
}

// NewDisk returns the number of a new data directory. It is short, to keep ServerIDs
// readable.
func NewDisk() uint64 { return random()>>16 | 1 }

// Store keeps the state on disk, or only in memory if it has no directory.
type Store struct {
	fs    vfs.FS
	dir   string
	state State
}

// Open reads the state of dir. A directory without state gets a new disk number, which is
// written before any other server learns it.
func Open(fsys vfs.FS, dir string) (*Store, error) {
	s := &Store{fs: fsys, dir: dir}
	if dir == "" {
		s.state.Disk = NewDisk()
		return s, nil
	}
	held, found, err := ReadState(fsys, dir)
	if err != nil {
		return nil, err
	}
	if !found {
		return s, s.save(State{Disk: NewDisk()})
	}
	s.state = held
	return s, nil
}

// save makes v durable and then replaces the state.
func (s *Store) save(v State) error {
	if s.dir != "" {
		if err := Write(s.fs, s.dir, v); err != nil {
			return err
		}
	}
	s.state = v
	return nil
}

// State returns the current state.
func (s *Store) State() State { return s.state }

// Write makes s the bootstrap state in dir, durably.
func Write(fsys vfs.FS, dir string, s State) error {
	data, err := s.marshal()
	if err != nil {
		return err
	}
	return vfs.ReplaceFile(fsys, filepath.Join(dir, StateFile), data, 0o600)
}

// serversOf returns the servers on the list of the configuration file, by id.
func serversOf(members []membership.Member) []Server {
	var list []Server
	for _, m := range members {
		list = append(list, Server{ID: m.ID, Addr: m.QuorumAddr, Observer: m.Observer})
	}
	slices.SortFunc(list, func(a, b Server) int { return int(a.ID) - int(b.ID) })
	return list
}

// random returns a number that no other server can guess.
func random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}
