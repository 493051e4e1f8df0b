package raftfsm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
)

// A transplant exchanges the state in a server's directories for another one, so that a
// stop at any moment leaves one of the two. The new state is prepared in separate
// directories, where losing it does no harm. Then the journal is written. From then on there is no
// way back, and the next process that opens the directories finishes the steps:
//
//  1. Move the old state aside.
//  2. Record that in the journal.
//  3. Move the prepared state into place, and remove the journal.
//
// In each phase the file names alone tell what was already done. The lock file is never
// moved, because the lock is held all the time.
const (
	journalFile  = "recovery.json"
	preparedDir  = "recovery.new"
	asidePattern = "before-recovery-20060102-150405"
)

// The phases of a transplant.
const (
	phaseAside   = "aside"
	phaseInstall = "install"
)

// journal is the content of the journal file.
type journal struct {
	Phase string `json:"phase"`
	Aside string `json:"aside"` // name of the directories for the old state
}

// transplant is the exchange of state in one pair of directories.
type transplant struct {
	fs              vfs.FS
	logDir, snapDir string
	// reached is called before each step with the step's name. An error ends the work
	// there. For tests.
	reached func(step string) error
}

// part is one file or directory of a state.
type part struct{ dir, name string }

func (t *transplant) parts() []part {
	var all []part
	log, snap := raftlog.Parts()
	for _, name := range append(log, identityFile, bootstrap.StateFile) {
		all = append(all, part{t.logDir, name})
	}
	for _, name := range snap {
		all = append(all, part{t.snapDir, name})
	}
	return all
}

func (t *transplant) dirs() []string {
	if t.logDir == t.snapDir {
		return []string{t.logDir}
	}
	return []string{t.logDir, t.snapDir}
}

func (t *transplant) step(name string) error {
	if t.reached == nil {
		return nil
	}
	return t.reached(name)
}

// discard removes what an earlier attempt may have prepared. Without a journal, it
// doesn't count.
func (t *transplant) discard() error {
	var errs []error
	for _, dir := range t.dirs() {
		errs = append(errs, t.fs.RemoveAll(filepath.Join(dir, preparedDir)))
	}
	return errors.Join(errs...)
}

// begin writes the journal and carries it out. It returns the directories that hold the
// old state.
func (t *transplant) begin(now time.Time) ([]string, error) {
	if err := t.step("journal"); err != nil {
		return nil, err
	}
	j := journal{Phase: phaseAside, Aside: t.freeName(now)}
	if err := t.write(j); err != nil {
		return nil, err
	}
	return t.finish(j)
}

// freeName returns an unused name for the old state's directories.
func (t *transplant) freeName(now time.Time) string {
	name := now.UTC().Format(asidePattern)
	for free := name; ; name = free {
		taken := false
		for _, dir := range t.dirs() {
			_, err := t.fs.Stat(filepath.Join(dir, free))
			taken = taken || !errors.Is(err, fs.ErrNotExist)
		}
		if !taken {
			return free
		}
		free = fmt.Sprintf("%s-%x", name, bootstrap.NewDisk()&0xffff)
	}
}

// finish carries out the rest of a journal.
func (t *transplant) finish(j journal) ([]string, error) {
	if j.Phase == phaseAside {
		if err := t.moveAll("", j.Aside, "aside"); err != nil {
			return nil, err
		}
		if err := t.step("phase"); err != nil {
			return nil, err
		}
		j.Phase = phaseInstall
		if err := t.write(j); err != nil {
			return nil, err
		}
	}
	if err := t.moveAll(preparedDir, "", "install"); err != nil {
		return nil, err
	}
	if err := t.step("done"); err != nil {
		return nil, err
	}
	if err := t.fs.Remove(filepath.Join(t.logDir, journalFile)); err != nil {
		return nil, err
	}
	if err := t.fs.SyncDir(t.logDir); err != nil {
		return nil, err
	}
	var aside []string
	for _, dir := range t.dirs() {
		aside = append(aside, filepath.Join(dir, j.Aside))
	}
	return aside, t.discard()
}

// moveAll moves all parts from one folder of their directory to another.
func (t *transplant) moveAll(from, to, what string) error {
	for _, p := range t.parts() {
		source, target := filepath.Join(p.dir, from), filepath.Join(p.dir, to)
		if _, err := t.fs.Stat(filepath.Join(source, p.name)); errors.Is(err, fs.ErrNotExist) {
			continue // moved before a stop, or never there
		}
		if err := t.step(what + " " + p.name); err != nil {
			return err
		}
		if err := vfs.MkdirSynced(t.fs, target); err != nil {
			return err
		}
		if err := t.fs.Rename(filepath.Join(source, p.name), filepath.Join(target, p.name)); err != nil {
			return err
		}
		if err := errors.Join(t.fs.SyncDir(target), t.fs.SyncDir(source), t.fs.SyncDir(p.dir)); err != nil {
			return err
		}
	}
	return nil
}

func (t *transplant) write(j journal) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return vfs.ReplaceFile(t.fs, filepath.Join(t.logDir, journalFile), append(b, '\n'), 0o600)
}

// read returns the journal, and false when there is none.
func (t *transplant) read() (journal, bool, error) {
	var j journal
	path := filepath.Join(t.logDir, journalFile)
	b, err := vfs.ReadFile(t.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &j)
	}
	if err == nil && (j.Phase != phaseAside && j.Phase != phaseInstall || j.Aside == "" || filepath.Base(j.Aside) != j.Aside) {
		err = errors.New("it makes no sense")
	}
	if err != nil {
		return j, false, fmt.Errorf("%s, which says how far a recovery has come: %w", path, err)
	}
	return j, true, nil
}

// resume finishes an interrupted transplant, if there is one. lock is the log
// directory's lock if the caller holds it; otherwise resume takes it.
func (t *transplant) resume(lock io.Closer) (bool, error) {
	if _, found, err := t.read(); !found || err != nil {
		return false, err
	}
	if lock == nil {
		taken, err := raftlog.Lock(t.fs, t.logDir)
		if err != nil {
			return false, err
		}
		defer taken.Close()
	}
	j, found, err := t.read() // again: another process may have finished it
	if !found || err != nil {
		return false, err
	}
	_, err = t.finish(j)
	return err == nil, err
}
