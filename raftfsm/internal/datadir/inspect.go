package datadir

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
)

// PlaceFile is one of the files that identify the owner of a directory's state.
type PlaceFile struct {
	Path  string
	Kind  string // identity, place, recovery
	Bytes int64
	Note  string
	Err   error // problem with the file, e.g. that it is missing
}

// Place is the content of the files next to a log that describe the server that wrote it.
type Place struct {
	Server  uint64 // id; 0 if unknown
	Cluster string // id of the ensemble, hexadecimal; "" if unknown
	Member  bool   // of an ensemble, as opposed to a standalone server
	Files   []PlaceFile
}

// ReadPlace checks the files that identify the owner of the state in a log directory,
// separately and against the log and the snapshots. It only reads, and makes the same
// checks as the start of a server.
func ReadPlace(logDir string, log *raftlog.Log, snapshots []raftlog.SnapshotFile) *Place {
	r := placeReader{fs: vfs.OS{}, dir: logDir, log: log, snapshots: snapshots}
	_, interrupted, err := Swap{Dirs: Dirs{FS: r.fs, Log: logDir}}.read()
	if interrupted || err != nil {
		r.add(JournalFile, "recovery", "a recovery was interrupted: the server finishes it at its next start", err)
		return &r.Place // until then the parts lie in two directories
	}
	r.identity()
	r.bootstrap()
	return &r.Place
}

type placeReader struct {
	Place
	fs        vfs.FS
	dir       string
	log       *raftlog.Log
	snapshots []raftlog.SnapshotFile
}

func (r *placeReader) add(name, kind, note string, err error) {
	f := PlaceFile{Path: filepath.Join(r.dir, name), Kind: kind, Note: note, Err: err}
	if st, err := r.fs.Stat(f.Path); err == nil {
		f.Bytes = st.Size()
	} else if f.Err == nil {
		f.Err = err
	}
	r.Files = append(r.Files, f)
}

func (r *placeReader) identity() {
	id, found, err := ReadIdentity(r.fs, r.dir)
	switch {
	case err != nil:
		r.add(IdentityFile, "identity", "", err)
	case found:
		r.Server, r.Cluster = id.Server, id.Cluster
		if r.log.Meta == "" {
			err = errEmptied(r.dir)
		}
		r.add(IdentityFile, "identity", fmt.Sprintf("server %d, ensemble %s", id.Server, id.Cluster), err)
	case len(r.snapshots) > 0 || r.log.Started():
		r.add(IdentityFile, "identity", "", errNoIdentity(r.dir, r.dir))
	}
}

func (r *placeReader) bootstrap() {
	s, found, err := bootstrap.ReadState(r.fs, r.dir)
	switch {
	case err != nil:
		r.Member = true
		r.add(bootstrap.StateFile, "place", "", err)
	case found:
		r.Member = true
		if s.Taken && len(r.snapshots) == 0 && !r.log.Started() {
			err = errStateLost(r.dir, r.Server, "the directory of the snapshots")
		}
		r.add(bootstrap.StateFile, "place", fmt.Sprintf("disk %d", s.Disk), err)
	case r.inEnsemble():
		r.Member = true
		r.add(bootstrap.StateFile, "place", "", fmt.Errorf("%s is missing, although the server is a member of an ensemble: %s", filepath.Join(r.dir, bootstrap.StateFile), wayOut))
	}
}

// inEnsemble reports whether Raft's newest configuration names a member of an ensemble.
// It ignores an unreadable file, because the check of that file reports it.
func (r *placeReader) inEnsemble() bool {
	var conf raft.Configuration
	if len(r.snapshots) > 0 {
		conf = r.snapshots[0].Meta.Configuration
	}
	for i := range r.log.Files {
		for e, err := range r.log.Files[i].Entries() {
			if err != nil {
				break
			}
			if e.Type == raft.LogConfiguration && (len(r.snapshots) == 0 || e.Index > r.snapshots[0].Meta.ConfigurationIndex) {
				conf = raft.DecodeConfiguration(e.Data)
			}
		}
	}
	return slices.ContainsFunc(conf.Servers, func(s raft.Server) bool { return s.Address != StandaloneAddr })
}
