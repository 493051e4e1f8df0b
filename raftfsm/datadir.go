package raftfsm

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// identityFile, in the log directory, identifies the server that owns the state there.
const identityFile = "identity.json"

// identityFormat is the version of the file's layout.
const identityFormat = 1

// identity names a server's share of one history of the state.
type identity struct {
	Format  int           `json:"format"`
	Server  uint64        `json:"server"`  // server id as in zoo.cfg
	RaftID  raft.ServerID `json:"raftId"`  // never reused after the directory is lost
	Cluster string        `json:"cluster"` // hexadecimal cluster id
	Sum     uint32        `json:"sum"`     // CRC-32C of the JSON with a sum of 0
}

// marshal returns the content of the file without the final newline.
func (i identity) marshal() ([]byte, error) {
	i.Sum = 0
	b, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	i.Sum = crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return json.Marshal(i)
}

// newIdentity returns the identity of a server that starts a new history.
func newIdentity(server uint64) identity {
	var id command.ClusterID
	rand.Read(id[:]) // never fails
	return identity{
		Format: identityFormat, Server: server,
		RaftID: raft.ServerID(fmt.Sprint(server)), Cluster: hex.EncodeToString(id[:]),
	}
}

// clusterID returns the cluster id in binary.
func (i identity) clusterID() command.ClusterID {
	var id command.ClusterID
	_, _ = hex.Decode(id[:], []byte(i.Cluster)) // parseIdentity has checked it
	return id
}

// readIdentity returns the identity in dir, and false if there is none.
func readIdentity(fsys vfs.FS, dir string) (identity, bool, error) {
	path := filepath.Join(dir, identityFile)
	b, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, false, nil
	}
	if err != nil {
		return identity{}, false, err
	}
	id, err := parseIdentity(b)
	if err != nil {
		return identity{}, false, fmt.Errorf("%s %w: %s", path, err, wayOut)
	}
	return id, true, nil
}

// parseIdentity decodes and checks the content of the file.
func parseIdentity(b []byte) (id identity, err error) {
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

// write makes i the identity in dir, durably.
func (i identity) write(fsys vfs.FS, dir string) error {
	b, err := i.marshal()
	if err != nil {
		return err
	}
	return vfs.ReplaceFile(fsys, filepath.Join(dir, identityFile), append(b, '\n'), 0o600)
}

// wayOut is the advice at the end of an error about a damaged or incomplete directory.
const wayOut = "restore it from a copy of the directory, or set the directory aside and recover from a backup (zkgo recover), or let a member of an ensemble join anew with an empty directory"

// refuseEmptied refuses a directory that has an identity but no log. An interrupted start
// can't leave such a directory, because the log is created first. Opening the stores
// would start with an empty state.
func (n *Node) refuseEmptied() error {
	_, found, err := readIdentity(n.cfg.FS, n.cfg.LogDir)
	if err != nil || !found {
		return err
	}
	has, err := raftlog.HasLog(n.cfg.FS, n.cfg.LogDir)
	if err == nil && !has {
		err = errEmptied(n.cfg.LogDir)
	}
	return err
}

func errEmptied(logDir string) error {
	return fmt.Errorf("%s holds %s, but the log with Raft's term and vote is missing: %s", logDir, identityFile, wayOut)
}

// loadIdentity determines which server's state the directories hold. hasState says
// whether Raft has any state. A new identity is written before there is state.
func (n *Node) loadIdentity(hasState bool) error {
	if n.cfg.Memory {
		if n.cfg.standalone() {
			n.identity = newIdentity(n.cfg.ID)
		}
		return nil
	}
	id, found, err := readIdentity(n.cfg.FS, n.cfg.LogDir)
	switch {
	case err != nil:
		return err
	case found && id.Server != n.cfg.ID && n.others.isMember():
		return n.adopt(id)
	case found && id.Server != n.cfg.ID && (!n.cfg.standalone() || !n.wasMember()):
		return n.foreign(id)
	case found: // the last member of an ensemble may continue standalone, whatever its id: leadAlone checks that
		n.identity = id
		return nil
	case hasState:
		return errNoIdentity(n.cfg.LogDir, n.cfg.SnapDir)
	}
	if !n.cfg.standalone() {
		return nil // the identity comes from the ensemble
	}
	n.identity = newIdentity(n.cfg.ID)
	return n.identity.write(n.cfg.FS, n.cfg.LogDir)
}
