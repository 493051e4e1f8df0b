package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
)

// Image is a snapshot in memory.
type Image struct {
	Path     string `json:"path"`
	Format   string `json:"format"`
	Zxid     Hex    `json:"zxid"`
	Index    uint64 `json:"index,omitempty"`    // log index, zkgo only
	Ensemble string `json:"ensemble,omitempty"` // ensemble id, zkgo only
	Digest   string `json:"digest,omitempty"`   // ZooKeeper's digest of the content
	Note     string `json:"note,omitempty"`

	Tree     *tree.Tree `json:"-"`
	Sessions []Session  `json:"-"` // ordered by id
}

// Session is a session in a snapshot.
type Session struct {
	ID      Hex   `json:"id"`
	Timeout int32 `json:"timeoutMs"`
}

// Open verifies and loads a snapshot: the directory of one zkgo snapshot, a ZooKeeper
// snapshot file, or a backup. For a server's directory it loads the state: the newest
// snapshot and the log after it.
func Open(d Dirs) (*Image, error) {
	st, err := os.Stat(d.Data)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return openFile(d.Data)
	}
	if isZkgoSnapshot(d.Data) {
		s := raftlog.LookAtSnapshot(d.Data)
		return openZkgo(&s)
	}
	img, err := openDirs(d)
	if err != nil || img != nil {
		return img, err
	}
	files, err := listZooKeeper(d, false)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s contains neither a snapshot nor a log of zkgo or ZooKeeper", d.Data)
	}
	return openZooKeeper(d)
}

// openDirs loads the state of a zkgo server, or returns nil if there is none.
func openDirs(d Dirs) (*Image, error) {
	snapshots, err := raftlog.SnapshotFiles(d.Data)
	if err != nil {
		return nil, err
	}
	s, err := d.config().ReadState()
	noLog := errors.Is(err, raftfsm.ErrNoState)
	switch {
	case err != nil && !noLog:
		return nil, err
	case len(snapshots) > 0 && (s == nil || s.Index < snapshots[0].Meta.Index): // there is no log, or it ends before the snapshot
		return openZkgo(&snapshots[0])
	case noLog:
		return nil, nil
	case s == nil:
		return nil, fmt.Errorf("%s: the log does not go back to the beginning, and there is no snapshot", d.logs())
	}
	img := imageOfState(d.Data, s)
	img.Note = "the whole log is applied, including entries that may not be committed"
	return img, nil
}

func openZkgo(f *raftlog.SnapshotFile) (*Image, error) {
	if errors.Is(f.Err, fs.ErrNotExist) {
		return nil, noMeta(f.Dir)
	}
	if f.Err == nil {
		if err := belongs(f); err != nil {
			return nil, err
		}
	}
	s, err := raftfsm.ReadSnapshot(f.Dir)
	if err != nil {
		return nil, err
	}
	return imageOfState(f.Dir, s), nil
}

func imageOfState(path string, s *raftfsm.State) *Image {
	img := imageOf(path, s.Tree, s.Sessions)
	img.Format, img.Index, img.Ensemble = FormatZkgo, s.Index, s.Cluster
	return img
}

func (img *Image) note() {
	img.Zxid = Hex(img.Tree.LastZxid())
	img.Digest = fmt.Sprintf("%x", img.Tree.Digest())
}

// walk calls each for n and its subtree, parents before children and siblings sorted
// by name.
func walk(t *tree.Tree, n *tree.Node, each func(*tree.Node)) {
	each(n)
	for _, name := range slices.Sorted(t.Children(n)) {
		walk(t, t.Get(below(n.Path(), name)), each)
	}
}

func below(path, name string) string { return strings.TrimSuffix(path, "/") + "/" + name }

// depth returns the number of names in a path.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}
