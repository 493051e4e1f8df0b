package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/offline/backup"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// versionDir is the subdirectory of a data directory that contains ZooKeeper's files.
const versionDir = "version-2"

// listZooKeeper lists the files in version-2 of both directories, or in the
// directories themselves.
func listZooKeeper(d Dirs, verify bool) ([]File, error) {
	var files []File
	seen := map[string]bool{}
	for _, dir := range []string{d.logs(), d.Data} {
		if sub := filepath.Join(dir, versionDir); isDir(sub) {
			dir = sub
		}
		if seen[dir] {
			continue
		}
		seen[dir] = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			kind, zxid, ok := parseName(e.Name())
			if !ok || e.IsDir() {
				continue
			}
			path := filepath.Join(dir, e.Name())
			f := File{Path: path, Format: FormatZooKeeper, Kind: kind, Last: Number(zxid)}
			if kind == "log" {
				f.First, f.Last = Number(zxid), 0
			}
			files = append(files, f)
		}
	}
	slices.SortStableFunc(files, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(max(a.First, a.Last), max(b.First, b.Last)))
	})
	for i := range files {
		files[i].look(verify)
	}
	return files, nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// parseName recognizes ZooKeeper's files by name: log.<zxid>, and snapshot.<zxid>
// with or without .gz or .snappy.
func parseName(name string) (kind string, zxid uint64, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) < 2 || parts[0] != "log" && parts[0] != "snapshot" {
		return "", 0, false
	}
	zxid, err := strconv.ParseUint(parts[1], 16, 64)
	return parts[0], zxid, err == nil
}

// look reads as much of the file as the description needs, or the whole file.
func (f *File) look(verify bool) {
	st, err := os.Stat(f.Path)
	if err == nil {
		f.Bytes = st.Size()
	}
	if err == nil && !st.Mode().IsRegular() { // e.g. a FIFO, on which opening it would wait
		err = fmt.Errorf("%s is not a regular file (%v)", f.Path, st.Mode())
	} else if f.Kind == "log" {
		err = f.lookAtLog()
	} else if verify && err == nil {
		var img *Image
		if img, err = openFile(f.Path); err == nil {
			f.Note = img.Note
		}
	}
	f.finish(f.Path, err)
}

func (f *File) lookAtLog() error {
	f.First, f.Last = 0, 0
	file, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	log := zkfiles.ReadLog(f.Path, file, zkfiles.Limits{})
	for tx, err := range log.All() {
		if err != nil {
			return err
		}
		if f.First == 0 {
			f.First = Number(tx.Zxid)
		}
		f.Last = Number(tx.Zxid)
	}
	if t := log.Tail(); t != nil {
		f.Note = t.String()
	}
	return nil
}

// openFile loads a backup or a ZooKeeper snapshot file.
func openFile(path string) (*Image, error) {
	c, err := backup.Load(path)
	if err != nil {
		if img := fuzzy(path); img != nil {
			return img, nil
		}
		return nil, err
	}
	img := imageOf(path, c.Tree, c.Sessions)
	img.Format = FormatZooKeeper
	if c.Header != nil {
		img.Format = FormatBackup
		img.Note = fmt.Sprintf("taken %s of %s", c.Header.Taken.Format(time.RFC3339), c.Header.Source)
	} else if !c.Verified {
		img.Note = "there is no digest to compare with"
	}
	return img, nil
}

func imageOf(path string, t *tree.Tree, sessions *session.Table) *Image {
	img := &Image{Path: path, Tree: t}
	for row := range sessions.All {
		img.Sessions = append(img.Sessions, Session{Hex(row.ID), row.Timeout})
	}
	img.note()
	return img
}

// fuzzy loads a snapshot that ZooKeeper wrote while transactions were running. On its own
// it is a state that never existed, but we can still show it. fuzzy returns nil if the file
// has another problem.
func fuzzy(path string) *Image {
	dir, name := filepath.Split(path)
	if kind, _, ok := parseName(name); !ok || kind != "snapshot" {
		return nil
	}
	img, _, err := loadZooKeeper(zkfiles.Source{
		Data:   zkfiles.Dir{FS: oneFile{os.DirFS(filepath.Clean(dir)), name}, Name: filepath.Clean(dir)},
		NoLogs: true, IgnoreDigest: true,
	})
	if err != nil {
		return nil
	}
	img.Path = path
	img.Note = "written while clients wrote: inconsistent without the log after it"
	return img
}

// loadZooKeeper loads the state that ZooKeeper would start with.
func loadZooKeeper(src zkfiles.Source) (*Image, *zkfiles.Report, error) {
	s, report, err := zkfiles.Load(src)
	if err != nil {
		return nil, nil, err
	}
	t, sessions := tree.New(), session.NewTable()
	if err := s.Fill(t, sessions); err != nil {
		return nil, nil, err
	}
	img := imageOf("", t, sessions)
	img.Format = FormatZooKeeper
	return img, report, nil
}

// openZooKeeper loads the newest snapshot in ZooKeeper's directories and applies the
// transactions after it.
func openZooKeeper(d Dirs) (*Image, error) {
	src := zkfiles.Source{Data: zkfiles.Dir{FS: os.DirFS(d.Data), Name: d.Data}, IgnoreDigest: true}
	if d.Logs != "" {
		src.Logs = zkfiles.Dir{FS: os.DirFS(d.Logs), Name: d.Logs}
	}
	img, report, err := loadZooKeeper(src)
	if err != nil {
		return nil, err
	}
	img.Path = d.Data
	img.Note = fmt.Sprintf("%s and %d transactions after it", report.Snapshot, report.Transactions)
	if report.Snapshot == "" {
		img.Note = fmt.Sprintf("%d transactions, without a snapshot", report.Transactions)
	}
	if report.Different > 0 && !report.Verified {
		img.Note += "; the digest does not match"
	}
	return img, nil
}

// oneFile is a file system that lists only one file.
type oneFile struct {
	fs.FS
	name string
}

// ReadDir implements fs.ReadDirFS.
func (o oneFile) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(o.FS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return e.Name() != o.name }), err
}

// Stat implements fs.StatFS. It hides version-2.
func (o oneFile) Stat(name string) (fs.FileInfo, error) {
	if name == versionDir {
		return nil, fs.ErrNotExist
	}
	return fs.Stat(o.FS, name)
}

// logZooKeeper prints the transactions in log files.
func logZooKeeper(paths []string, f Filter, each func(*Transaction) error) error {
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		err = logFile(path, file, &f, each)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

func logFile(path string, file *os.File, f *Filter, each func(*Transaction) error) error {
	for tx, err := range zkfiles.ReadLog(path, file, zkfiles.Limits{}).All() {
		if err != nil {
			return err
		}
		t := Transaction{
			Format: FormatZooKeeper, Time: time.UnixMilli(tx.Time), Zxid: Hex(tx.Zxid), Session: Hex(tx.Session), Cxid: tx.Cxid,
			Op: tx.Type.String(), Result: proto.Ok.String(),
		}
		t.Path, t.Bytes = target(tx.Body)
		switch b := tx.Body.(type) {
		case *zkfiles.ErrorTxn:
			t.Result = b.Code.String()
		case *zkfiles.CreateSessionTxn:
			t.Timeout = b.Timeout
		case *zkfiles.CloseSessionTxn:
			for _, p := range b.Paths {
				t.Parts = append(t.Parts, Part{Op: proto.OpDelete.String(), Path: p})
			}
		case *zkfiles.MultiTxn:
			t.Parts = partsOf(b)
		}
		if !f.lets(&t, true) {
			continue
		}
		if err := each(&t); err != nil {
			return err
		}
	}
	return nil
}

func partsOf(m *zkfiles.MultiTxn) []Part {
	var parts []Part
	for i := range m.Ops {
		p := Part{Op: m.Ops[i].Type.String(), Result: proto.Ok.String()}
		p.Path, p.Bytes = target(m.Ops[i].Body)
		if e, failed := m.Ops[i].Body.(*zkfiles.ErrorTxn); failed {
			p.Result = e.Code.String()
		}
		parts = append(parts, p)
	}
	return parts
}

// target returns the znode that a transaction affects and the length of its data.
func target(body any) (path string, bytes int) {
	switch b := body.(type) {
	case *zkfiles.CreateTxn:
		return b.Path, len(b.Data)
	case *zkfiles.DeleteTxn:
		return b.Path, 0
	case *zkfiles.SetDataTxn:
		return b.Path, len(b.Data)
	case *zkfiles.SetACLTxn:
		return b.Path, 0
	case *zkfiles.CheckTxn:
		return b.Path, 0
	}
	return "", 0
}
