package inspect

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/raftfsm/logstore"
	"github.com/zkgo/zkgo/tree"
)

// Image is the content of a snapshot, in memory.
type Image struct {
	Path     string `json:"path"`
	Format   string `json:"format"`
	Zxid     Hex    `json:"zxid"`
	Index    uint64 `json:"index,omitempty"`    // in the log, zkgo only
	Ensemble string `json:"ensemble,omitempty"` // its id, zkgo only
	Digest   string `json:"digest,omitempty"`   // ZooKeeper's, of the content
	Note     string `json:"note,omitempty"`

	Tree     *tree.Tree `json:"-"`
	Sessions []Session  `json:"-"` // in the order of their ids
}

// Session is a session in a snapshot.
type Session struct {
	ID      Hex   `json:"id"`
	Timeout int32 `json:"timeoutMs"`
}

// Open verifies and loads a snapshot: a directory of one, a file of ZooKeeper's,
// a backup, or the newest snapshot in the directory of a server.
func Open(path string) (*Image, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return openFile(path)
	}
	if isZkgoSnapshot(path) {
		s := logstore.LookAtSnapshot(nil, path)
		return openZkgo(&s)
	}
	list, err := logstore.SnapshotFiles(nil, path)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		return openZkgo(&list[0])
	}
	newest, err := newestZooKeeper(path)
	if err != nil {
		return nil, err
	}
	if newest == "" {
		return nil, fmt.Errorf("%s holds no snapshot, neither of zkgo nor of ZooKeeper", path)
	}
	return openFile(newest)
}

func openZkgo(f *logstore.SnapshotFile) (*Image, error) {
	s, err := raftfsm.ReadSnapshot(f)
	if err != nil {
		return nil, err
	}
	img := &Image{Path: f.Dir, Format: FormatZkgo, Index: s.Index, Ensemble: s.Cluster, Tree: s.Tree}
	for row := range s.Sessions.All {
		img.Sessions = append(img.Sessions, Session{Hex(row.ID), row.Timeout})
	}
	img.note()
	return img, nil
}

func (img *Image) note() {
	img.Zxid = Hex(img.Tree.LastZxid())
	img.Digest = fmt.Sprintf("%x", img.Tree.Digest())
}

// walk calls each for n and everything below it, parents first and siblings in
// the order of their names.
func walk(t *tree.Tree, n *tree.Node, each func(*tree.Node)) {
	each(n)
	for _, name := range slices.Sorted(n.Children) {
		walk(t, t.Get(below(n.Path(), name)), each)
	}
}

func below(path, name string) string { return strings.TrimSuffix(path, "/") + "/" + name }

// depth is the number of names in a path.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// newestZooKeeper returns the newest file of a snapshot in a data directory of
// ZooKeeper's; empty without.
func newestZooKeeper(dir string) (string, error) {
	files, err := listZooKeeper(Dirs{Data: dir}, false)
	var newest File
	for _, f := range files {
		if f.Kind == "snapshot" && (newest.Path == "" || f.Last > newest.Last) {
			newest = f
		}
	}
	return newest.Path, err
}
