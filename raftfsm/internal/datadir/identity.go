package datadir

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// IdentityFile is the file in the log directory that names the owner of the state.
const IdentityFile = "identity.json"

// identityFormat is the version of the file's layout.
const identityFormat = 1

// Identity names a server's share of one history of the state.
type Identity struct {
	Format  int           `json:"format"`
	Server  uint64        `json:"server"`  // server id as in zoo.cfg
	RaftID  raft.ServerID `json:"raftId"`  // never reused after the directory is lost
	Cluster string        `json:"cluster"` // hexadecimal cluster id
	Sum     uint32        `json:"sum"`     // CRC-32C of the JSON with a sum of 0
}

// marshal returns the content of the file without the final newline.
func (i Identity) marshal() ([]byte, error) {
	i.Sum = 0
	b, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	i.Sum = crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return json.Marshal(i)
}

// NewIdentity returns the identity of a server that starts a new history.
func NewIdentity(server uint64) Identity {
	var cluster command.ClusterID
	rand.Read(cluster[:]) // never fails
	return IdentityIn(cluster, server, membership.FounderID(server))
}

// IdentityIn returns the identity of a server in an ensemble.
func IdentityIn(cluster command.ClusterID, server uint64, id raft.ServerID) Identity {
	return Identity{Format: identityFormat, Server: server, RaftID: id, Cluster: hex.EncodeToString(cluster[:])}
}

// ClusterID returns the cluster id in binary.
func (i Identity) ClusterID() command.ClusterID {
	var id command.ClusterID
	_, _ = hex.Decode(id[:], []byte(i.Cluster)) // parseIdentity has checked it
	return id
}

// ReadIdentity returns the identity in dir, and false if there is none.
func ReadIdentity(fsys vfs.FS, dir string) (Identity, bool, error) {
	path := filepath.Join(dir, IdentityFile)
	b, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, err
	}
	id, err := parseIdentity(b)
	if err != nil {
		return Identity{}, false, fmt.Errorf("%s %w: %s", path, err, wayOut)
	}
	return id, true, nil
}

// parseIdentity decodes and checks the content of the file.
func parseIdentity(b []byte) (id Identity, err error) {
	if err := json.Unmarshal(b, &id); err != nil {
		return id, fmt.Errorf("is damaged: %w", err)
	}
	cluster, err := hex.DecodeString(id.Cluster)
	want, _ := id.marshal() // can't fail
	switch {
	case id.Format != identityFormat:
		return id, fmt.Errorf("has format %d, this server knows %d", id.Format, identityFormat)
	case err != nil || len(cluster) != command.ClusterIDSize || id.RaftID == "":
		return id, fmt.Errorf("is damaged: server %d, raft id %q, cluster %q", id.Server, id.RaftID, id.Cluster)
	case !bytes.Equal(bytes.TrimSuffix(b, []byte("\n")), want):
		return id, errors.New("is damaged: checksum mismatch")
	}
	return id, nil
}

// Write makes i the identity in dir, durably.
func (i Identity) Write(fsys vfs.FS, dir string) error {
	b, err := i.marshal()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, IdentityFile)
	if err := vfs.ReplaceFile(fsys, path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// wayOut is the advice at the end of an error about a damaged or incomplete directory.
const wayOut = "restore it from a copy of the directory, or move the directory aside and recover (zkgo recover) or restore a backup; a member of an ensemble can also join again with an empty directory"

// refuseEmptied refuses a directory that has an identity but no log. An interrupted start
// can't leave such a directory, because the log is created first. Opening the stores
// would start with an empty state.
func (d Dirs) refuseEmptied() error {
	_, found, err := ReadIdentity(d.FS, d.Log)
	if err != nil || !found {
		return err
	}
	has, err := raftlog.HasLog(d.FS, d.Log)
	if err == nil && !has {
		err = errEmptied(d.Log)
	}
	return err
}

func errEmptied(logDir string) error {
	return fmt.Errorf("%s holds %s, but the log with Raft's term and vote is missing: %s", logDir, IdentityFile, wayOut)
}

// errNoIdentity refuses state without an identity file.
func errNoIdentity(logDir, snapDir string) error {
	return fmt.Errorf("%s or %s holds state, but %s is missing: the directories do not belong together, or one was emptied",
		logDir, snapDir, filepath.Join(logDir, IdentityFile))
}

// errStateLost refuses the directory of a member that lacks Raft's state.
func errStateLost(logDir string, server uint64, snapDir string) error {
	return fmt.Errorf("%s has lost the Raft state of server %d; empty it and %s so that the server joins again", logDir, server, snapDir)
}

// RefuseLost refuses the directories of a member if the stores lack Raft's state.
func (d Dirs) RefuseLost(server uint64, s Stores) error {
	has, err := raft.HasExistingState(s.Logs(), s.Stable(), s.Snapshots())
	if err == nil && !has {
		err = errStateLost(d.Log, server, d.Snap)
	}
	return err
}

// Stores are what raftlog.Store keeps in the directories.
type Stores interface {
	Logs() raft.LogStore
	Stable() raft.StableStore
	Snapshots() raft.SnapshotStore
}

// Identify determines which server's state is in the directories. A new identity is
// written before there is state. The identity is empty if it will come from the ensemble.
func (d Dirs) Identify(server Server, s Stores, log *slog.Logger) (id Identity, err error) {
	hasState, err := raft.HasExistingState(s.Logs(), s.Stable(), s.Snapshots())
	if err != nil {
		return id, err
	}
	id, found, err := ReadIdentity(d.FS, d.Log)
	switch {
	case err != nil:
		return id, err
	case found && id.Server != server.ID && server.Joins:
		return d.adopt(id, server, s, log)
	case found && id.Server != server.ID && (!server.Standalone || !d.wasMember()):
		return id, d.foreign(id, server.ID)
	case found: // the last member of an ensemble may continue standalone, whatever its id: leadAlone checks that
		return id, nil
	case hasState:
		return id, errNoIdentity(d.Log, d.Snap)
	case !server.Standalone:
		return id, nil
	}
	id = NewIdentity(server.ID)
	return id, id.Write(d.FS, d.Log)
}

// Begin writes the identity of a server that starts a new history. Outside of an
// ensemble, that is StandaloneServer.
func (d Dirs) Begin(server Server) (Identity, error) {
	if server.Standalone {
		id := NewIdentity(StandaloneServer)
		return id, id.Write(d.FS, d.Log)
	}
	// Use a disk number that no formation plan contains, so that no server mistakes this
	// one for a founder.
	state := bootstrap.State{Disk: bootstrap.NewDisk(), Taken: true}
	if err := bootstrap.Write(d.FS, d.Log, state); err != nil {
		return Identity{}, err
	}
	id := NewIdentity(server.ID)
	id.RaftID = membership.JoinerID(server.ID, state.Disk)
	return id, id.Write(d.FS, d.Log)
}
