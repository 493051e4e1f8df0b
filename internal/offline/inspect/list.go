package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/raftfsm/boltlog"
)

// The formats of files.
const (
	FormatZkgo      = "zkgo"
	FormatZooKeeper = "zookeeper"
	FormatBackup    = "backup"
)

// File is one file or directory that belongs to a server's state.
type File struct {
	Path   string    `json:"path"`
	Format string    `json:"format"`
	Kind   string    `json:"kind"` // snapshot, log, metadata (of the log), identity, place, recovery, myid
	Bytes  int64     `json:"bytes"`
	Time   time.Time `json:"time"` // of the last change
	// First and Last are log indexes for zkgo and zxids for ZooKeeper. A snapshot has
	// only Last.
	First  Number   `json:"-"`
	Last   Number   `json:"-"`
	Voters []string `json:"voters,omitempty"`
	Note   string   `json:"note,omitempty"`
	// Warning describes something that may be the result of either a crash or damage.
	Warning string `json:"warning,omitempty"`
	// Problem says why the file is invalid; empty if it is valid.
	Problem string `json:"problem,omitempty"`
}

// Dirs contains the directories of a server. Logs is the log directory if it's separate
// (dataLogDir).
type Dirs struct{ Data, Logs string }

func (d Dirs) logs() string {
	if d.Logs == "" {
		return d.Data
	}
	return d.Logs
}

// config returns what raftfsm reads the directories with.
func (d Dirs) config() raftfsm.Config {
	return raftfsm.Config{DataDir: d.Data, Log: raftfsm.Log{Dir: d.logs(), Bolt: boltlog.Format{}}}
}

// List returns the files of a server's state, logs before snapshots. With verify it checks all
// checksums of all files; otherwise only the checksums of the logs and of the snapshots' metadata.
func List(d Dirs, verify bool) ([]File, error) {
	if st, err := os.Stat(d.Data); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", d.Data)
	}
	files, err := listZkgo(d, verify)
	if err != nil {
		return nil, err
	}
	theirs, err := listZooKeeper(d, verify)
	if err != nil {
		return nil, err
	}
	return append(files, theirs...), nil
}

func listZkgo(d Dirs, verify bool) ([]File, error) {
	var files []File
	log, err := raftlog.LookAtLog(d.logs(), boltlog.Format{})
	if err != nil || log.Meta != "" && log.Kind == raftlog.WAL {
		files = append(files, metadataFile(&log, d, err))
	}
	for i := range log.Files {
		files = append(files, logFileOf(&log.Files[i], verify))
	}
	// We list snapshots after the log: a running server first writes a snapshot and then
	// removes entries.
	snapshots, serr := raftlog.SnapshotFiles(d.Data)
	if serr != nil {
		return nil, serr
	}
	for i := range snapshots {
		files = append(files, snapshotFile(&snapshots[i], verify))
	}
	bare, berr := bareSnapshots(d, snapshots)
	if berr != nil {
		return nil, berr
	}
	files = append(files, bare...)
	if err != nil { // if the log is unreadable, we can't tell which files belong together
		return files, nil
	}
	place, err := d.config().ReadPlace()
	if err != nil {
		return nil, err
	}
	if err := log.Agrees(d.Data, snapshots); err != nil && !slices.ContainsFunc(files, func(f File) bool { return f.Problem != "" }) {
		files = append(files, File{Path: filepath.Join(d.Data, "snapshots"), Format: FormatZkgo, Kind: "snapshot", Problem: err.Error()})
	}
	if verify && place.Cluster != "" && len(snapshots) > 0 {
		checkCluster(files, snapshots, place)
	}
	return append(files, placeFiles(d, place)...), nil
}

// metadataFile describes the database with Raft's term and vote and the list of log files.
func metadataFile(log *raftlog.Log, d Dirs, problem error) File {
	f := File{Path: log.Meta, Format: FormatZkgo, Kind: "metadata"}
	if f.Path == "" {
		f.Path = d.logs()
	}
	if st, err := os.Stat(f.Path); err == nil && !st.IsDir() {
		f.Bytes = st.Size()
	}
	f.finish(f.Path, problem)
	return f
}

func logFileOf(l *raftlog.LogFile, verify bool) File {
	f := File{Path: l.Path, Format: FormatZkgo, Kind: "log", Bytes: l.Bytes, First: Number(l.First), Last: Number(l.Last)}
	f.Note = string(l.Kind)
	switch {
	case l.Torn:
		f.Warning = "an incomplete record after log index " + strconv.FormatUint(l.Last, 10) +
			": a crash left it, and then it was never acknowledged, or the file was cut or damaged there"
	case l.Short:
		f.Warning = "the file ends directly after log index " + strconv.FormatUint(l.Last, 10) + ": the server stopped while it extended the file, or the file was cut"
	}
	problem := l.Err
	if verify && problem == nil {
		for _, err := range l.Entries() {
			problem = err
		}
	}
	f.finish(l.Path, problem)
	return f
}

// checkCluster loads the newest snapshot and compares its ensemble with the server's.
func checkCluster(files []File, snapshots []raftlog.SnapshotFile, place *raftfsm.Place) {
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == snapshots[0].Dir })
	if files[i].Problem != "" {
		return
	}
	s, err := raftfsm.ReadSnapshot(snapshots[0].Dir)
	switch {
	case err != nil:
		files[i].Problem = err.Error()
	case s.Cluster != place.Cluster && strings.Trim(s.Cluster, "0") != "":
		files[i].Problem = fmt.Sprintf("%s: the snapshot belongs to ensemble %s, the server to %s", snapshots[0].Dir, s.Cluster, place.Cluster)
	}
}

// placeFiles describes the files that identify the owner of the state.
func placeFiles(d Dirs, place *raftfsm.Place) []File {
	var files []File
	for _, p := range place.Files {
		f := File{Path: p.Path, Format: FormatZkgo, Kind: p.Kind, Bytes: p.Bytes, Note: p.Note}
		f.finish(p.Path, p.Err)
		files = append(files, f)
	}
	if !place.Member || place.Server == 0 {
		return files
	}
	path := filepath.Join(d.Data, "myid")
	b, err := zkfiles.Dir{FS: os.DirFS(d.Data), Name: d.Data}.ReadSmall("myid")
	if errors.Is(err, fs.ErrNotExist) {
		return files // it may be elsewhere
	}
	f := File{Path: path, Format: FormatZkgo, Kind: "myid", Bytes: int64(len(b))}
	if id, perr := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil && (perr != nil || id != place.Server) {
		err = fmt.Errorf("%s says %q, but the state in %s belongs to server %d", path, strings.TrimSpace(string(b)), d.logs(), place.Server)
	}
	f.finish(path, err)
	return append(files, f)
}

func snapshotFile(s *raftlog.SnapshotFile, verify bool) File {
	f := File{Path: s.Dir, Format: FormatZkgo, Kind: "snapshot", Bytes: s.Meta.Size, Last: Number(s.Meta.Index)}
	for _, server := range s.Meta.Configuration.Servers {
		f.Voters = append(f.Voters, string(server.ID))
	}
	problem := s.Err
	if problem == nil {
		problem = belongs(s)
	}
	if verify && problem == nil {
		r, err := s.Open()
		if err == nil {
			err = r.Close()
		}
		problem = err
	}
	f.finish(s.Dir, problem)
	return f
}

// finish sets the time of the last change and the problem.
func (f *File) finish(path string, problem error) {
	st, err := os.Stat(path)
	if err == nil {
		f.Time = st.ModTime()
	} else if problem == nil && !errors.Is(err, fs.ErrNotExist) {
		problem = err
	}
	if problem != nil {
		f.Problem = problem.Error()
	}
}

// MarshalJSON writes First and Last in their text form.
func (f File) MarshalJSON() ([]byte, error) {
	type plain File
	out := struct {
		plain
		First string `json:"first"`
		Last  string `json:"last"`
	}{plain: plain(f)}
	out.First, out.Last = f.Range()
	return json.Marshal(out)
}

// Range returns First and Last in their text form, "-" if there is none.
func (f *File) Range() (first, last string) {
	text := func(n Number) string {
		switch {
		case n == 0 && (f.Kind != "snapshot" || f.Format == FormatZkgo):
			return "-"
		case f.Format == FormatZkgo:
			return strconv.FormatUint(uint64(n), 10)
		}
		return Hex(n).String()
	}
	if first = "-"; f.Kind == "log" {
		first = text(f.First)
	}
	return first, text(f.Last)
}

// Verify checks everything a server depends on at a path: a server's directory, a
// snapshot or a backup. It loads the newest snapshot.
func Verify(d Dirs) ([]File, error) {
	st, err := os.Stat(d.Data)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() || isZkgoSnapshot(d.Data) {
		img, err := Open(d)
		if err != nil {
			f := File{Path: d.Data, Kind: "snapshot", Bytes: st.Size()}
			if st.IsDir() {
				f.Format = FormatZkgo
			}
			f.finish(d.Data, err)
			return []File{f}, nil
		}
		f := File{Path: img.Path, Format: img.Format, Kind: "snapshot", Bytes: st.Size(), Last: Number(img.Zxid), Note: img.Note}
		f.finish(d.Data, nil)
		return []File{f}, nil
	}
	files, err := List(d, true)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s contains no state of a server", d.Data)
	}
	newest := -1
	for i, f := range files {
		if f.Kind == "snapshot" && (newest < 0 || f.Last > files[newest].Last) {
			newest = i
		}
	}
	if newest >= 0 && files[newest].Problem == "" {
		if _, err := Open(Dirs{Data: files[newest].Path}); err != nil {
			files[newest].Problem = err.Error()
		}
	}
	return files, nil
}
