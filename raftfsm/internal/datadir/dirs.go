package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

var (
	// ErrNoState reports directories that contain no zkgo state.
	ErrNoState = errors.New("no state of zkgo")
	// ErrHasState reports directories that contain zkgo state, which is never replaced.
	ErrHasState = errors.New("a state of zkgo already exists, which is never replaced: move it away, or name another directory")
)

// Dirs are the directories of a server.
type Dirs struct {
	FS   vfs.FS
	Log  string // Raft's log and vote, identity and bootstrap state
	Snap string // snapshots; may be the same directory
}

// String names the directories in a message.
func (d Dirs) String() string { return strings.Join(d.all(), " or ") }

// all returns both directories without duplicates.
func (d Dirs) all() []string {
	if d.Log == d.Snap {
		return []string{d.Log}
	}
	return []string{d.Log, d.Snap}
}

// HasState returns ErrNoState for empty directories. Opening the stores would create files
// in them.
func (d Dirs) HasState() error {
	found, err := raftlog.HasState(d.FS, d.Log, d.Snap)
	if err != nil || found {
		return err
	}
	for _, name := range []string{IdentityFile, JournalFile} {
		if _, err := d.FS.Stat(filepath.Join(d.Log, name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", d.Log, ErrNoState)
}

// Owner finishes an interrupted Swap and returns the owner of the state in the
// directories.
func (d Dirs) Owner() (Identity, error) {
	if err := d.HasState(); err != nil {
		return Identity{}, err
	}
	if _, err := (Swap{Dirs: d}).Resume(nil); err != nil {
		return Identity{}, err
	}
	id, found, err := ReadIdentity(d.FS, d.Log)
	if err == nil && !found {
		err = fmt.Errorf("%s: no file identifies the owner of its state: %w", d.Log, ErrNoState)
	}
	return id, err
}

// TakeEmpty creates and locks the directories. It returns ErrHasState if they contain a
// state.
func (d Dirs) TakeEmpty() (lock io.Closer, err error) {
	for _, dir := range d.all() {
		if err := vfs.MkdirSynced(d.FS, dir); err != nil {
			return nil, err
		}
	}
	lock, err = raftlog.Lock(d.FS, d.Log)
	if err != nil {
		return nil, err
	}
	switch err = d.HasState(); {
	case err == nil:
		err = fmt.Errorf("%s: %w", d, ErrHasState)
	case errors.Is(err, ErrNoState):
		return lock, nil
	}
	return nil, errors.Join(err, lock.Close())
}

// wasMember reports whether the log directory belongs to a member of an ensemble.
func (d Dirs) wasMember() bool {
	_, err := d.FS.Stat(filepath.Join(d.Log, bootstrap.StateFile))
	return err == nil
}

const (
	// StandaloneServer is the id of a standalone server.
	StandaloneServer = 1
	// StandaloneAddr is the Raft address of a server that no other server dials.
	StandaloneAddr raft.ServerAddress = "standalone"
)

// Server is the server that opens the directories, according to its configuration.
type Server struct {
	ID         uint64
	Members    []membership.Member
	Standalone bool
	// Joins reports that the server is about to run as a member of an ensemble. It may
	// then adopt the state of a standalone server.
	Joins bool
}

// Self returns this server as the only voter in Raft's configuration, without its ServerID.
func (s Server) Self() (raft.Server, error) {
	self := raft.Server{Suffrage: raft.Voter, Address: StandaloneAddr}
	if s.Standalone {
		return self, nil
	}
	for _, m := range s.Members {
		if m.ID == s.ID {
			self.Address = raft.ServerAddress(membership.FirstDialable(m.ID, m.QuorumAddr))
			return self, nil
		}
	}
	return self, fmt.Errorf("server %d is not on the list of servers in its configuration", s.ID)
}
