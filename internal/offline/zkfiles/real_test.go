package zkfiles

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// releases returns the releases that have a directory in testdata, recorded by
// tests/compat/operator/move, and whether they store digests.
func releases() map[string]bool {
	return map[string]bool{"3.4.14": false, "3.5.10": false, "3.8.4": true, "3.9.5": true}
}

func recorded(t testing.TB, release string) Dir {
	t.Helper()
	return Dir{os.DirFS("testdata/" + release), release}
}

// TestRealDirectories loads directories of real servers, from every snapshot, and
// compares the result with what those servers showed.
func TestRealDirectories(t *testing.T) {
	t.Parallel()
	for release, digests := range releases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			d := recorded(t, release)
			want := must.Get(fs.ReadFile(d.FS, "expect.txt"))(t)
			if release == "3.4.14" { // 3.4 doesn't have /zookeeper/config
				want = bytes.Replace(want, []byte("cversion=-1 aversion=0 owner=0 length=0 children=1"), []byte("cversion=-2 aversion=0 owner=0 length=0 children=2"), 1)
			}
			inner := must.Get(d.inside())(t)
			list := must.Get(inner.files(snapshotPrefix))(t)
			for _, f := range list {
				tr, sessions, r := loaded(t, Source{Data: Dir{hiding{d.FS, f.zxid}, release}})
				if got := shown(tr); got != string(want) {
					t.Errorf("from %s:\n got %s\nwant %s", f.name, got, want)
				}
				if r.Verified != digests || r.Different > 0 || len(r.Warnings) > 0 || digests && r.Compared == 0 {
					t.Errorf("from %s: %+v", f.name, *r)
				}
				// The other client's session was closed.
				if sessions.Len() != 1 || tr.EphemeralCount() != 1 {
					t.Errorf("from %s: %d sessions, %d ephemeral znodes", f.name, sessions.Len(), tr.EphemeralCount())
				}
				for row := range sessions.All {
					if row.Timeout < 1000 || row.Password != Password(row.ID) || len(tr.ListEphemerals(row.ID, "").Paths()) != 1 {
						t.Errorf("%+v", row)
					}
				}
			}
			if len(list) < 3 {
				t.Errorf("%d snapshots", len(list))
			}
		})
	}
}

// loaded loads a valid directory.
func loaded(t *testing.T, src Source) (*tree.Tree, *session.Table, *Report) {
	t.Helper()
	state, r, err := Load(src)
	if err != nil {
		t.Fatal(err)
	}
	tr, sessions := tree.New(), session.NewTable()
	must.Do(t, state.Fill(tr, sessions))
	if err := tr.Check(); err != nil {
		t.Error(err)
	}
	return tr, sessions, r
}

// shown returns the tree as a client sees it, in the format of the recording.
func shown(tr *tree.Tree) string {
	var out strings.Builder
	var show func(path string)
	show = func(path string) {
		n := tr.Get(path)
		var s proto.Stat
		n.Stat(&s)
		var acl []string
		for _, a := range n.ACL() {
			acl = append(acl, fmt.Sprintf("{%d %s %s}", a.Perms, a.ID.Scheme, a.ID.ID))
		}
		fmt.Fprintf(&out, "%q %q czxid=%x mzxid=%x pzxid=%x ctime=%d mtime=%d version=%d cversion=%d aversion=%d owner=%x length=%d children=%d [%s]\n",
			path, n.Data(), s.Czxid, s.Mzxid, s.Pzxid, s.Ctime, s.Mtime, s.Version, s.Cversion, s.Aversion, uint64(s.EphemeralOwner), s.DataLength, s.NumChildren, strings.Join(acl, " "))
		for _, name := range slices.Sorted(tr.Children(n)) {
			if child := strings.TrimRight(path, "/") + "/" + name; child != tree.ConfigPath {
				show(child)
			}
		}
	}
	show("/")
	return out.String()
}

// hiding is a directory without the snapshots after zxid.
type hiding struct {
	fs.FS
	zxid int64
}

// ReadDir implements fs.ReadDirFS without the hidden files.
func (h hiding) ReadDir(name string) (left []fs.DirEntry, err error) {
	all, err := fs.ReadDir(h.FS, name)
	for _, e := range all {
		if zxidOf(e.Name(), snapshotPrefix) <= h.zxid {
			left = append(left, e)
		}
	}
	return left, err
}

// Sub implements fs.SubFS. The subdirectory hides the same files.
func (h hiding) Sub(name string) (fs.FS, error) {
	sub, err := fs.Sub(h.FS, name)
	return hiding{sub, h.zxid}, err
}
