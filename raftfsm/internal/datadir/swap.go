package datadir

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

const (
	// JournalFile is the file in the log directory with the progress of a Swap.
	JournalFile  = "recovery.json"
	preparedDir  = "recovery.new"
	asidePattern = "before-recovery-20060102-150405"
)

// The phases of a Swap.
const (
	phaseAside   = "aside"
	phaseInstall = "install"
)

// journal is the content of the journal file.
type journal struct {
	Phase string `json:"phase"`
	Aside string `json:"aside"` // name of the directories for the old state
}

// Swap replaces the state in a server's directories, so that a stop at any moment
// leaves either the old or the new state. The new state is prepared in separate
// directories, where losing it does no harm. Then the journal is written. From then
// on the swap can't be undone, and the next process that opens the directories
// finishes the steps:
//
//  1. Move the old state aside.
//  2. Record that in the journal.
//  3. Move the prepared state into place, and remove the journal.
//
// In each phase the file names alone tell which steps are done. The lock file is never
// moved, because the lock is held all the time.
type Swap struct {
	Dirs
	// Reached is called before each step with the step's name. An error ends the work
	// there. For tests.
	Reached func(step string) error
}

// Prepared returns the directories for the new state.
func (s Swap) Prepared() Dirs {
	return Dirs{FS: s.FS, Log: filepath.Join(s.Log, preparedDir), Snap: filepath.Join(s.Snap, preparedDir)}
}

// part is one file or directory of a state.
type part struct{ dir, name string }

func (s Swap) parts() []part {
	var all []part
	log, snap := raftlog.Parts()
	for _, name := range append(log, IdentityFile, bootstrap.StateFile) {
		all = append(all, part{s.Log, name})
	}
	for _, name := range snap {
		all = append(all, part{s.Snap, name})
	}
	return all
}

// Step announces a step to Reached.
func (s Swap) Step(name string) error {
	if s.Reached == nil {
		return nil
	}
	return s.Reached(name)
}

// Discard removes the files of an earlier attempt. Without a journal, it
// doesn't count.
func (s Swap) Discard() error {
	var errs []error
	for _, dir := range s.all() {
		errs = append(errs, s.FS.RemoveAll(filepath.Join(dir, preparedDir)))
	}
	return errors.Join(errs...)
}

// Begin writes the journal and carries it out. It returns the new directories of the old
// state.
func (s Swap) Begin(now time.Time) ([]string, error) {
	if err := s.Step("journal"); err != nil {
		return nil, err
	}
	j := journal{Phase: phaseAside, Aside: s.freeName(now)}
	if err := s.write(j); err != nil {
		return nil, err
	}
	return s.finish(j)
}

// freeName returns an unused name for the old state's directories.
func (s Swap) freeName(now time.Time) string {
	name := now.UTC().Format(asidePattern)
	for free := name; ; name = free {
		taken := false
		for _, dir := range s.all() {
			_, err := s.FS.Stat(filepath.Join(dir, free))
			taken = taken || !errors.Is(err, fs.ErrNotExist)
		}
		if !taken {
			return free
		}
		free = fmt.Sprintf("%s-%x", name, bootstrap.NewDisk()&0xffff)
	}
}

// finish carries out the rest of a journal.
func (s Swap) finish(j journal) ([]string, error) {
	if j.Phase == phaseAside {
		if err := s.moveAll("", j.Aside, "aside"); err != nil {
			return nil, err
		}
		if err := s.Step("phase"); err != nil {
			return nil, err
		}
		j.Phase = phaseInstall
		if err := s.write(j); err != nil {
			return nil, err
		}
	}
	if err := s.moveAll(preparedDir, "", "install"); err != nil {
		return nil, err
	}
	if err := s.Step("done"); err != nil {
		return nil, err
	}
	if err := s.FS.Remove(filepath.Join(s.Log, JournalFile)); err != nil {
		return nil, err
	}
	if err := s.FS.SyncDir(s.Log); err != nil {
		return nil, err
	}
	var aside []string
	for _, dir := range s.all() {
		aside = append(aside, filepath.Join(dir, j.Aside))
	}
	return aside, s.Discard()
}

// moveAll moves all parts from one folder of their directory to another.
func (s Swap) moveAll(from, to, what string) error {
	for _, p := range s.parts() {
		source, target := filepath.Join(p.dir, from), filepath.Join(p.dir, to)
		if _, err := s.FS.Stat(filepath.Join(source, p.name)); errors.Is(err, fs.ErrNotExist) {
			continue // moved before a stop, or never there
		}
		if err := s.Step(what + " " + p.name); err != nil {
			return err
		}
		if err := vfs.MkdirSynced(s.FS, target); err != nil {
			return err
		}
		if err := s.FS.Rename(filepath.Join(source, p.name), filepath.Join(target, p.name)); err != nil {
			return err
		}
		if err := errors.Join(s.FS.SyncDir(target), s.FS.SyncDir(source), s.FS.SyncDir(p.dir)); err != nil {
			return err
		}
	}
	return nil
}

func (s Swap) write(j journal) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return vfs.ReplaceFile(s.FS, filepath.Join(s.Log, JournalFile), append(b, '\n'), 0o600)
}

// read returns the journal, and false when there is none.
func (s Swap) read() (journal, bool, error) {
	var j journal
	path := filepath.Join(s.Log, JournalFile)
	b, err := vfs.ReadFile(s.FS, path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &j)
	}
	if err == nil && (j.Phase != phaseAside && j.Phase != phaseInstall || j.Aside == "" || filepath.Base(j.Aside) != j.Aside) {
		err = errors.New("it is invalid")
	}
	if err != nil {
		return j, false, fmt.Errorf("%s, the progress of a recovery: %w", path, err)
	}
	return j, true, nil
}

// Resume finishes an interrupted Swap, if there is one. lock is the log directory's lock
// if the caller holds it; otherwise Resume acquires it.
func (s Swap) Resume(lock io.Closer) (bool, error) {
	if _, found, err := s.read(); !found || err != nil {
		return false, err
	}
	if lock == nil {
		taken, err := raftlog.Lock(s.FS, s.Log)
		if err != nil {
			return false, err
		}
		defer taken.Close()
	}
	j, found, err := s.read() // again: another process may have finished it
	if !found || err != nil {
		return false, err
	}
	_, err = s.finish(j)
	return err == nil, err
}

// Rejoin moves the state of a stopped server aside, so that the server joins the ensemble
// with the given id as a new member. It refuses a server that already belongs to that
// ensemble.
func (s Swap) Rejoin(cluster string, now time.Time) (aside []string, err error) {
	if id, err := hex.DecodeString(cluster); err != nil || len(id) != command.ClusterIDSize {
		return nil, fmt.Errorf("%q is not the id of an ensemble: want %d hexadecimal digits", cluster, 2*command.ClusterIDSize)
	}
	if err := s.HasState(); err != nil {
		return nil, err
	}
	lock, err := raftlog.Lock(s.FS, s.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := s.Resume(lock); err != nil {
		return nil, err
	}
	id, _, err := ReadIdentity(s.FS, s.Log)
	switch {
	case err != nil:
		return nil, err
	case id.Cluster == cluster:
		return nil, fmt.Errorf("%s already belongs to the ensemble %s: start the server", s.Log, cluster)
	}
	if err := s.Discard(); err != nil {
		return nil, err
	}
	return s.Begin(now)
}

// Open finishes an interrupted Swap and refuses directories that were emptied. A server
// calls it before it opens the stores.
func (d Dirs) Open(log *slog.Logger) error {
	done, err := Swap{Dirs: d}.Resume(nil)
	if err != nil {
		return err
	}
	if done {
		log.Info("finished an interrupted recovery", "directory", d.Log)
	}
	return d.refuseEmptied()
}
