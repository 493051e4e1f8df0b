package zkfiles

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zkgo/zkgo/tree"
)

// Source specifies what to load, and how strictly.
type Source struct {
	Data   Dir
	Logs   Dir         // zero: same as Data (dataLogDir is not set)
	Policy tree.Policy // only Emulate353TTL matters: the source ran with emulate353TTLNodes

	// Limits limits the size of fields and records.
	Limits Limits

	// NoLogs means that the snapshot is everything. Otherwise we reject a directory without a log,
	// because we can't tell whether the user forgot to copy the logs.
	NoLogs bool
	// AcceptGaps accepts missing transactions between files, which show as gaps in
	// the zxids.
	AcceptGaps bool
	// IgnoreDigest accepts a state that doesn't match the source's own digest.
	IgnoreDigest bool

	// Progress is called with the number of bytes read and the total. It may be nil.
	Progress func(done, total int64)
}

// Report describes how Load built a State.
type Report struct {
	Snapshot     string // path; "" if the logs go back to the beginning
	Info         SnapshotInfo
	Logs         []string
	Transactions int   // number applied
	Zxid         int64 // of the newest transaction
	Epoch        int64 // the newest in the directories
	// Compared is the number of digests compared, Different the number of mismatches.
	// Verified reports whether the newest digest matched.
	Compared, Different int
	Verified            bool
	// Warnings describes problems that ZooKeeper ignores.
	Warnings []string
}

// Load reads the newest valid snapshot and applies the transactions after it, like ZooKeeper at
// startup.
func Load(src Source) (*State, *Report, error) {
	l := loader{Source: src, report: new(Report)}
	if err := l.find(); err != nil {
		return nil, nil, err
	}
	if err := l.snapshot(); err != nil {
		return nil, nil, err
	}
	if err := l.replay(); err != nil {
		return nil, nil, err
	}
	if err := l.verify(); err != nil {
		return nil, nil, err
	}
	l.report.Zxid = l.state.Zxid
	l.report.Epoch = max(l.report.Epoch, l.state.Zxid>>32)
	return l.state, l.report, nil
}

type loader struct {
	Source
	report *Report
	state  *State

	snapshots, logs []*file
	done, total     int64

	older   bool    // the newest snapshot couldn't be read
	due     *Digest // the snapshot's digest, until its transaction has been applied
	unsure  *Digest // the snapshot's digest if it didn't match and no other was compared since
	fuzzy   bool    // digests can't be compared yet
	matches bool    // the newest compared digest matched
}

func (l *loader) warn(format string, args ...any) {
	l.report.Warnings = append(l.report.Warnings, fmt.Sprintf(format, args...))
}

// find lists the files.
func (l *loader) find() error {
	data, err := l.Data.inside()
	if err != nil {
		return err
	}
	logs := data
	if l.Logs.FS != nil {
		if logs, err = l.Logs.inside(); err != nil {
			return err
		}
	}
	if l.snapshots, err = data.files(snapshotPrefix); err != nil {
		return err
	}
	if l.logs, err = logs.files(logPrefix); err != nil {
		return err
	}
	for _, name := range []string{"currentEpoch", "acceptedEpoch"} {
		n, err := data.epoch(name)
		if err != nil {
			return err
		}
		l.report.Epoch = max(l.report.Epoch, n)
	}
	if l.Logs.FS == nil || data.Name == logs.Name {
		return l.needLogs(data)
	}
	// We reject this, like ZooKeeper: if one of the two directories was moved, we would load half a
	// state.
	strayLogs, err := data.files(logPrefix)
	if err != nil {
		return err
	}
	straySnapshots, err := logs.files(snapshotPrefix)
	switch {
	case err != nil:
		return err
	case len(strayLogs) > 0:
		return fmt.Errorf("both %s and %s contain transaction logs: which are the right ones?", data.Name, logs.Name)
	case len(straySnapshots) > 0:
		return fmt.Errorf("%s has snapshots, and so has %s: are the two directories mixed up?", logs.Name, data.Name)
	}
	return l.needLogs(logs)
}

// needLogs returns an error if the logs may have been forgotten and the snapshot
// isn't everything.
func (l *loader) needLogs(dir Dir) error {
	switch {
	case l.NoLogs:
		l.logs = nil
	case len(l.snapshots) == 0 && len(l.logs) == 0:
		return fmt.Errorf("%s: no files of ZooKeeper: neither %s.* nor %s.*", dir.Name, snapshotPrefix, logPrefix)
	case len(l.logs) == 0 && l.snapshots[len(l.snapshots)-1].zxid != 0:
		return fmt.Errorf("%s: snapshots but no transaction logs. Are they in another directory (dataLogDir)? Without them, all writes since %s would be lost",
			dir.Name, l.snapshots[len(l.snapshots)-1].name)
	}
	return nil
}

// maxTries is the number of snapshots that ZooKeeper tries.
const maxTries = 100

// snapshot loads the newest valid snapshot.
func (l *loader) snapshot() error {
	var failed []error
	tries := slices.Clone(l.snapshots)
	slices.Reverse(tries)
	for _, f := range tries[:min(len(tries), maxTries)] {
		l.plan(f)
		state, info, err := l.read(f)
		if errors.Is(err, ErrTooLong) {
			return err // the file is probably valid, so an older one would not help
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		l.state, l.report.Snapshot, l.report.Info = state, f.path, info
		l.state.Zxid, l.older = f.zxid, len(failed) > 0
		for _, err := range failed {
			l.warn("%v: the next older snapshot is used", err)
		}
		l.expect(info.Digest)
		return nil
	}
	if len(failed) > 0 {
		return fmt.Errorf("no snapshot can be read: %w", errors.Join(failed...))
	}
	l.plan(nil)
	l.state = NewState(l.Policy)
	return nil
}

// expect sets up the comparison with the snapshot's digest.
func (l *loader) expect(d *Digest) {
	switch {
	case d == nil || d.Zxid < l.state.Zxid: // from a new leader, of the last transaction before its epoch; ZooKeeper ignores it, too
	case d.Zxid == l.state.Zxid:
		l.snapshotDigest(d)
	default:
		l.due, l.fuzzy = d, true
	}
}

// plan computes the number of bytes to read with this snapshot.
func (l *loader) plan(f *file) {
	from := int64(0)
	l.done, l.total = 0, 0
	if f != nil {
		from, l.total = f.zxid, f.size
	}
	for _, g := range l.logsFrom(from) {
		l.total += g.size
	}
}

// logsFrom returns the logs that may contain transactions after zxid: the last log
// that starts at or before the next one, and all later logs.
func (l *loader) logsFrom(zxid int64) []*file {
	for i := len(l.logs) - 1; i >= 0; i-- {
		if l.logs[i].zxid <= zxid {
			return l.logs[i:]
		}
	}
	return l.logs
}

// read reads one snapshot.
func (l *loader) read(f *file) (*State, SnapshotInfo, error) {
	r, err := f.open()
	if err != nil {
		return nil, SnapshotInfo{}, err
	}
	defer func() { _ = r.Close() }() // opened for reading only
	return readSnapshot(f.path, l.counting(r), l.Policy, l.Limits)
}

// counting wraps r to report progress.
func (l *loader) counting(r io.Reader) io.Reader {
	if l.Progress == nil {
		return r
	}
	return &meter{r: r, l: l}
}

// meter reports the progress of a reader.
type meter struct {
	r io.Reader
	l *loader
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.l.done += int64(n)
	m.l.Progress(m.l.done, max(m.l.total, m.l.done))
	return n, err
}

// replay applies the logs.
func (l *loader) replay() error {
	var last join
	last.zxid = l.state.Zxid
	for _, f := range l.logsFrom(l.state.Zxid) {
		if err := l.file(f, &last); err != nil {
			return err
		}
	}
	return nil
}

// join is the point where one file ends and the next must continue.
type join struct {
	zxid int64
	tail *Tail // how the previous file ended
}

// file applies one log.
func (l *loader) file(f *file, last *join) error {
	r, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // opened for reading only
	log, first := ReadLog(f.path, l.counting(r), l.Limits), true
	for tx, err := range log.All() {
		if err != nil {
			return err
		}
		if l.report.Transactions == 0 && tx.Zxid <= l.state.Zxid { // it's in the snapshot
			continue
		}
		if err := l.follows(f, tx, last, first); err != nil {
			return err
		}
		first = false
		if err := l.apply(tx); err != nil {
			return fmt.Errorf("%s: at offset %d: %w", f.path, tx.Offset, err)
		}
	}
	l.report.Logs = append(l.report.Logs, f.path)
	last.tail = log.Tail()
	if last.tail != nil {
		l.warn("%v", last.tail)
	}
	return nil
}

// follows checks that tx is the next transaction. The zxids of an epoch have no gaps,
// except for requests that some versions numbered but didn't log. We therefore treat only a
// gap between two files as a loss.
func (l *loader) follows(f *file, tx *Txn, last *join, first bool) error {
	before := last.zxid
	last.zxid = tx.Zxid
	switch {
	case tx.Zxid <= before:
		return fmt.Errorf("%s: at offset %d: transaction %#x comes after %#x", f.path, tx.Offset, tx.Zxid, before)
	case tx.Zxid == before+1 || tx.Zxid>>32 > before>>32 && tx.Zxid&0xffffffff <= 1 && !l.oldStart(tx):
		return nil
	case !first:
		l.warn("%s: at offset %d: no transaction has a number between %#x and %#x", f.path, tx.Offset, before, tx.Zxid)
		return nil
	}
	text := fmt.Sprintf("%s: it begins with transaction %#x, but the last one before it is %#x: the transactions between them are missing", f.path, tx.Zxid, before)
	if last.tail != nil {
		text += fmt.Sprintf(" (%s: at offset %d: %s)", last.tail.File, last.tail.Offset, last.tail.Cause)
	}
	if l.AcceptGaps {
		l.warn("%s", text)
		return nil
	}
	return errors.New(text)
}

// oldStart reports whether tx is the first transaction after a start that is so old that
// whole epochs may be missing, because there was no snapshot, or not the newest one. In
// that case we accept only the next zxid.
func (l *loader) oldStart(tx *Txn) bool {
	return l.report.Transactions == 0 && (l.older || l.report.Snapshot == "" && tx.Zxid>>32 > 1)
}

// apply applies a transaction and compares the digest.
func (l *loader) apply(tx *Txn) error {
	if err := l.state.Apply(tx); err != nil {
		return err
	}
	l.report.Transactions++
	switch d := l.due; {
	case d == nil:
	case tx.Zxid == d.Zxid:
		l.due, l.fuzzy = nil, false
		if !l.snapshotDigest(d) {
			return nil // the digest of the transaction itself would not match either
		}
	case tx.Zxid > d.Zxid:
		l.warn("the logs lack transaction %#x, although the snapshot has its digest", d.Zxid)
		l.due, l.fuzzy = nil, false
	}
	if tx.Digest != nil && !l.fuzzy {
		l.compare(tx.Digest)
	}
	return nil
}

// snapshotDigest compares the state with the snapshot's digest. We don't treat a mismatch
// as conclusive: ZooKeeper records the zxid of a transaction after it has changed the
// znodes, so a snapshot may contain the change of the transaction after its digest.
func (l *loader) snapshotDigest(d *Digest) bool {
	if d.Comparable() && d.Value != l.state.digest {
		l.unsure = d
		return false
	}
	l.compare(d)
	return true
}

// compare compares the state with a digest.
func (l *loader) compare(d *Digest) {
	if !d.Comparable() {
		return
	}
	l.unsure = nil
	l.report.Compared++
	l.matches = d.Value == l.state.digest
	if !l.matches {
		l.report.Different++
		if l.report.Different == 1 {
			l.warn("at zxid %#x the digest is %#x, the source says %#x", d.Zxid, l.state.digest, d.Value)
		}
	}
}

// verify checks that the loaded state is the source's. We decide by the newest digest: an
// earlier mismatch may be a bug in ZooKeeper, but a wrong state never matches again.
func (l *loader) verify() error {
	if l.unsure != nil {
		l.compare(l.unsure)
	}
	l.report.Verified = l.report.Compared > 0 && l.matches
	var err error
	switch {
	case l.due != nil:
		err = fmt.Errorf("%s: written until transaction %#x, but the logs end with %#x: inconsistent without the rest",
			l.report.Snapshot, l.due.Zxid, l.state.Zxid)
	case l.report.Compared > 0 && !l.matches:
		err = fmt.Errorf("the state at zxid %#x differs from the source: %d of %d compared digests differ",
			l.state.Zxid, l.report.Different, l.report.Compared)
	}
	if err != nil && l.IgnoreDigest {
		l.warn("%v", err)
		return nil
	}
	return err
}
